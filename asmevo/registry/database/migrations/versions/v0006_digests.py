"""Schema 6: a digest in every row, statements and signatures of replacements."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from asmevo.registry.database.row_digest import values_digest

revision = "0006"
down_revision = "0005"

TABLES = ("registry_schema", "code_object", "recovered_object", "dispatch", "capture", "run",
          "search_event", "candidate", "verdict", "timing", "replacement", "second_timing",
          "judgement")
PAGE = 1000  # rows held in memory at once


def digest_column() -> sa.Column[str]:
    return sa.Column("digest", sa.String(64), server_default=sa.text("''"), nullable=False)


def upgrade() -> None:
    op.create_table(
        "statement",
        digest_column(),
        sa.Column("candidate_id", sa.String(), nullable=False),
        sa.Column("statement_sha256", sa.String(64), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("candidate_id", name="pk_statement"),
        sa.ForeignKeyConstraint(["candidate_id"], ["candidate.id"],
                                name="fk_statement_candidate_id"),
    )
    op.create_table(
        "signature",
        digest_column(),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("candidate_id", sa.String(), nullable=False),
        sa.Column("public_key", sa.String(64), nullable=False),
        sa.Column("statement_sha256", sa.String(64), nullable=False),
        sa.Column("signature", sa.String(128), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_signature"),
        sa.ForeignKeyConstraint(["candidate_id"], ["candidate.id"],
                                name="fk_signature_candidate_id"),
        sa.UniqueConstraint("candidate_id", "public_key", "statement_sha256",
                            name="uq_signature_candidate_id_public_key_statement_sha256"),
    )
    op.drop_index("ix_replacement_original_sha256_kernel", "replacement")
    op.create_index(
        "ix_replacement_order", "replacement",
        ["original_sha256", "kernel", "timing_source", "speedup", "device"])
    op.create_index("ix_replacement_created", "replacement", ["created"])
    for name in TABLES:
        op.add_column(name, digest_column())
    op.execute("UPDATE registry_schema SET version = 6")
    connection = op.get_bind()
    for name in TABLES:
        # As the database has it, not as the models of some later version do.
        fill(connection, sa.Table(name, sa.MetaData(), autoload_with=connection))


def fill(connection: sa.Connection, table: sa.Table) -> None:
    """Give every row its digest."""
    [key] = table.primary_key.columns
    change = table.update().where(key == sa.bindparam("key")).values(digest=sa.bindparam("new"))
    for page in pages(connection, table, key):
        connection.execute(change, [
            {"key": row[key.name], "new": values_digest(table, timed(row))} for row in page])


def pages(connection: sa.Connection, table: sa.Table,
          key: sa.Column[Any]) -> Iterator[list[dict[str, Any]]]:
    """All rows in order of their key: no cursor stays open while rows change."""
    query = table.select().order_by(key).limit(PAGE)
    rows = connection.execute(query).mappings().all()
    while rows:
        yield [dict(row) for row in rows]
        rows = connection.execute(query.where(key > rows[-1][key.name])).mappings().all()


def timed(row: dict[str, Any]) -> dict[str, Any]:
    """Times are stored in UTC without saying so."""
    return {name: value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
            for name, value in row.items()}
