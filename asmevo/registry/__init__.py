"""The artifact registry: SQLite rows and content-addressed blobs.

Importing this package, `asmevo.registry.records` or `asmevo.registry.pull` loads neither
SQLAlchemy nor NumPy, so that a deployment script starts quickly.
"""
