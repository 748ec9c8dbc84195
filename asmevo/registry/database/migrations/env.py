"""Run by Alembic: the revisions go over the connection that `migrations` hands it."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
