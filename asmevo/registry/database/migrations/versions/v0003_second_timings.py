"""Schema 3: second timings of replacements."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    create()
    op.execute("UPDATE registry_schema SET version = 3")


def create() -> None:
    op.create_table(
        "second_timing",
        sa.Column("candidate_id", sa.String(), nullable=False),
        sa.Column("speedup", sa.Float(), nullable=True),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("candidate_id", name="pk_second_timing"),
        sa.ForeignKeyConstraint(["candidate_id"], ["candidate.id"],
                                name="fk_second_timing_candidate_id"),
        sa.CheckConstraint("outcome IN ('pass', 'fail', 'missing')",
                           name="ck_second_timing_outcome"),
    )
