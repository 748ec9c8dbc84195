"""Schema 5: by what replacements were judged."""

import sqlalchemy as sa
from alembic import op

from asmevo.registry.database.migrations.versions.v0003_second_timings import create

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "judgement",
        sa.Column("candidate_id", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("candidate_id", name="pk_judgement"),
        sa.ForeignKeyConstraint(["candidate_id"], ["candidate.id"],
                                name="fk_judgement_candidate_id"),
    )
    # Commits between 6818595 and faeb207 called a schema without this table the fourth.
    if not sa.inspect(op.get_bind()).has_table("second_timing"):
        create()
    op.execute("UPDATE registry_schema SET version = 5")
