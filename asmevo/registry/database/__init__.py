"""The rows of a registry: models, the databases that can hold them, migrations."""
