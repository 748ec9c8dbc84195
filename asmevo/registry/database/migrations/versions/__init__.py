"""The revisions of the schema, oldest first; each is loaded by Alembic."""
