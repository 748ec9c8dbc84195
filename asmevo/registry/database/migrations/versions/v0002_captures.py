"""Schema 2: captured dispatches."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

WIDE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "capture",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("original_sha256", sa.String(64), nullable=False),
        sa.Column("kernel", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("held_out", sa.Boolean(), nullable=False),
        sa.Column("size", WIDE, nullable=False),
        sa.Column("dispatch_sha256", sa.String(64), nullable=True),
        sa.Column("content_sha256", sa.String(64), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_capture"),
        sa.ForeignKeyConstraint(["original_sha256"], ["code_object.sha256"],
                                name="fk_capture_original_sha256"),
        sa.CheckConstraint("reason IN ('captured', 'counterexample')", name="ck_capture_reason"),
        sa.CheckConstraint("size >= 0", name="ck_capture_size"),
    )
    op.create_index("ix_capture_original_sha256_kernel", "capture",
                    ["original_sha256", "kernel"])
    op.execute("UPDATE registry_schema SET version = 2")
