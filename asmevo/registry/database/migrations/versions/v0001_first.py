"""Schema 1: code objects, dispatches, runs, candidates, verdicts, timings, replacements."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

WIDE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    schema = op.create_table(
        "registry_schema",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_registry_schema"),
    )
    op.create_table(
        "code_object",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("isa", sa.String(), nullable=False),
        sa.Column("size", WIDE, nullable=False),
        sa.Column("kernels", sa.JSON(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_code_object"),
    )
    op.create_table(
        "recovered_object",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("code_object_sha256", sa.String(64), nullable=False),
        sa.Column("assembly_sha256", sa.String(64), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.Column("toolchain", sa.JSON(), nullable=False),
        sa.Column("toolchain_sha256", sa.String(64), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_recovered_object"),
        sa.ForeignKeyConstraint(["code_object_sha256"], ["code_object.sha256"],
                                name="fk_recovered_object_code_object_sha256"),
        sa.UniqueConstraint("code_object_sha256", "assembly_sha256", "toolchain_sha256",
                            name="uq_recovered_object_version"),
    )
    op.create_index("ix_recovered_object_code_object_sha256", "recovered_object",
                    ["code_object_sha256"])
    op.create_table(
        "dispatch",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("kernel", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("held_out", sa.Boolean(), nullable=False),
        sa.Column("content_sha256", sa.String(64), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_dispatch"),
    )
    op.create_index("ix_dispatch_kernel", "dispatch", ["kernel"])
    op.create_table(
        "run",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("started", sa.DateTime(), nullable=False),
        sa.Column("finished", sa.DateTime(), nullable=True),
        sa.Column("config_sha256", sa.String(64), nullable=False),
        sa.Column("seed", WIDE, nullable=False),
        sa.Column("package_version", sa.String(), nullable=False),
        sa.Column("toolchain", sa.JSON(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("device_source", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
        sa.CheckConstraint("device_source IN ('measured', 'modelled')",
                           name="ck_run_device_source"),
    )
    op.create_index("ix_run_started", "run", ["started"])
    op.create_table(
        "candidate",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("parent_id", sa.String(), nullable=True),
        sa.Column("original_sha256", sa.String(64), nullable=False),
        sa.Column("kernel", sa.String(), nullable=False),
        sa.Column("object_sha256", sa.String(64), nullable=True),
        sa.Column("assembly_sha256", sa.String(64), nullable=True),
        sa.Column("edits", sa.JSON(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("direction", sa.String(), nullable=False),
        sa.Column("rationale", sa.String(), nullable=False),
        sa.Column("worker", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_candidate"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_candidate_run_id"),
        sa.ForeignKeyConstraint(["parent_id"], ["candidate.id"], name="fk_candidate_parent_id"),
        sa.ForeignKeyConstraint(["original_sha256"], ["code_object.sha256"],
                                name="fk_candidate_original_sha256"),
        sa.ForeignKeyConstraint(["object_sha256"], ["code_object.sha256"],
                                name="fk_candidate_object_sha256"),
    )
    for column in ("run_id", "parent_id", "original_sha256", "object_sha256"):
        op.create_index(f"ix_candidate_{column}", "candidate", [column])
    op.create_table(
        "verdict",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("candidate_id", sa.String(), nullable=False),
        sa.Column("gate", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_verdict"),
        sa.ForeignKeyConstraint(["candidate_id"], ["candidate.id"],
                                name="fk_verdict_candidate_id"),
        sa.UniqueConstraint("candidate_id", "gate", "attempt",
                            name="uq_verdict_candidate_id_gate_attempt"),
        sa.CheckConstraint("outcome IN ('pass', 'fail', 'missing')", name="ck_verdict_outcome"),
    )
    op.create_table(
        "timing",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("candidate_id", sa.String(), nullable=True),
        sa.Column("original_sha256", sa.String(64), nullable=True),
        sa.Column("dispatch_sha256", sa.String(64), nullable=False),
        sa.Column("samples", sa.JSON(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("warmup", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_timing"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_timing_run_id"),
        sa.ForeignKeyConstraint(["candidate_id"], ["candidate.id"],
                                name="fk_timing_candidate_id"),
        sa.ForeignKeyConstraint(["original_sha256"], ["code_object.sha256"],
                                name="fk_timing_original_sha256"),
        sa.ForeignKeyConstraint(["dispatch_sha256"], ["dispatch.sha256"],
                                name="fk_timing_dispatch_sha256"),
        sa.CheckConstraint("(candidate_id IS NULL) <> (original_sha256 IS NULL)",
                           name="ck_timing_subject"),
        sa.CheckConstraint("source IN ('measured', 'modelled')", name="ck_timing_source"),
    )
    for column in ("run_id", "candidate_id", "original_sha256", "dispatch_sha256"):
        op.create_index(f"ix_timing_{column}", "timing", [column])
    op.create_table(
        "replacement",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("original_sha256", sa.String(64), nullable=False),
        sa.Column("kernel", sa.String(), nullable=False),
        sa.Column("candidate_id", sa.String(), nullable=False),
        sa.Column("object_sha256", sa.String(64), nullable=False),
        sa.Column("speedup", sa.Float(), nullable=False),
        sa.Column("timing_source", sa.String(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("evidence_complete", sa.Boolean(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_replacement"),
        sa.ForeignKeyConstraint(["original_sha256"], ["code_object.sha256"],
                                name="fk_replacement_original_sha256"),
        sa.ForeignKeyConstraint(["candidate_id"], ["candidate.id"],
                                name="fk_replacement_candidate_id"),
        sa.ForeignKeyConstraint(["object_sha256"], ["code_object.sha256"],
                                name="fk_replacement_object_sha256"),
        sa.UniqueConstraint("candidate_id", name="uq_replacement_candidate_id"),
        sa.CheckConstraint("timing_source IN ('measured', 'modelled')",
                           name="ck_replacement_timing_source"),
        sa.CheckConstraint("speedup > 0", name="ck_replacement_speedup"),
    )
    op.create_index("ix_replacement_original_sha256_kernel", "replacement",
                    ["original_sha256", "kernel"])
    op.create_index("ix_replacement_object_sha256", "replacement", ["object_sha256"])
    op.bulk_insert(schema, [
        {"id": 1, "version": 1, "created": datetime.now(UTC).replace(tzinfo=None)}])
