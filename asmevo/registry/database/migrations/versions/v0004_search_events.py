"""Schema 4: the events of searches."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "search_event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_search_event"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_search_event_run_id"),
        sa.UniqueConstraint("run_id", "number", name="uq_search_event_run_id_number"),
        sa.CheckConstraint("number >= 0", name="ck_search_event_number"),
    )
    op.create_index("ix_search_event_kind", "search_event", ["kind"])
    op.execute("UPDATE registry_schema SET version = 4")
