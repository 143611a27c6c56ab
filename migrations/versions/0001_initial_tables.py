"""Initial tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "project",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
    )
    op.create_table(
        "spool_cursor",
        sa.Column("segment", sa.String(), nullable=False),
        sa.Column("offset", sa.Integer(), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("segment", name=op.f("pk_spool_cursor")),
    )
    op.create_table(
        "api_key",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("prefix", sa.String(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("capture", sa.String(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("revoked_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_api_key_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
        sa.UniqueConstraint("hash", name=op.f("uq_api_key_hash")),
    )
    op.create_index(op.f("ix_api_key_project_id"), "api_key", ["project_id"], unique=False)
    op.create_table(
        "blob",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_blob_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project_id", "hash", name=op.f("pk_blob")),
    )
    op.create_table(
        "call",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=True),
        sa.Column("task_id", sa.Uuid(), nullable=True),
        sa.Column("received_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("alias", sa.String(), nullable=False),
        sa.Column("served_by", sa.String(), nullable=False),
        sa.Column("upstream_id", sa.Uuid(), nullable=True),
        sa.Column("student_id", sa.Uuid(), nullable=True),
        sa.Column("route_revision_id", sa.Uuid(), nullable=True),
        sa.Column("fallback_reason", sa.String(), nullable=True),
        sa.Column("streamed", sa.Boolean(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("trainable", sa.Boolean(), nullable=False),
        sa.Column("finish_reason", sa.String(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("latency_ms", sa.Double(), nullable=False),
        sa.Column("ttfb_ms", sa.Double(), nullable=True),
        sa.Column("overhead_ms", sa.Double(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Numeric(precision=20, scale=10), nullable=True),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=True),
        sa.Column("input_hash", sa.LargeBinary(), nullable=True),
        sa.Column("preview", sa.String(), nullable=False),
        sa.Column("answer_preview", sa.String(), nullable=False),
        sa.Column("tags", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("request", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("message_hashes", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("response_hash", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_call_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_call")),
        postgresql_partition_by="RANGE (id)",
    )
    op.create_index("ix_call_project_id_fingerprint", "call", ["project_id", "fingerprint"], unique=False)
    op.create_index("ix_call_project_id_id", "call", ["project_id", "id"], unique=False)
    op.create_index("ix_call_project_id_task_id_id", "call", ["project_id", "task_id", "id"], unique=False)
    op.create_table(
        "ledger_entry",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("source_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("call_id", sa.Uuid(), nullable=True),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("upstream_id", sa.Uuid(), nullable=True),
        sa.Column("student_id", sa.Uuid(), nullable=True),
        sa.Column("amount", sa.Numeric(precision=20, scale=10), nullable=False),
        sa.Column("price", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("usage", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_ledger_entry_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_entry")),
        sa.UniqueConstraint("source_id", name=op.f("uq_ledger_entry_source_id")),
    )
    op.create_index(op.f("ix_ledger_entry_project_id"), "ledger_entry", ["project_id"], unique=False)
    op.create_index(op.f("ix_ledger_entry_run_id"), "ledger_entry", ["run_id"], unique=False)
    op.create_table(
        "price",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("upstream_id", sa.Uuid(), nullable=True),
        sa.Column("student_id", sa.Uuid(), nullable=True),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("input_per_mtok", sa.Numeric(precision=20, scale=10), nullable=False),
        sa.Column("cached_input_per_mtok", sa.Numeric(precision=20, scale=10), nullable=False),
        sa.Column("output_per_mtok", sa.Numeric(precision=20, scale=10), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("effective_from", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_price_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_price")),
    )
    op.create_index(op.f("ix_price_project_id"), "price", ["project_id"], unique=False)
    op.create_index(op.f("ix_price_student_id"), "price", ["student_id"], unique=False)
    op.create_index(op.f("ix_price_upstream_id"), "price", ["upstream_id"], unique=False)
    op.create_table(
        "task",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("system_preview", sa.String(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_task_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task")),
        sa.UniqueConstraint("project_id", "fingerprint", name=op.f("uq_task_project_id_fingerprint")),
        sa.UniqueConstraint("project_id", "slug", name=op.f("uq_task_project_id_slug")),
    )
    op.create_index(op.f("ix_task_project_id"), "task", ["project_id"], unique=False)
    op.create_table(
        "upstream",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("base_url", sa.String(), nullable=True),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("credential", sa.LargeBinary(), nullable=True),
        sa.Column("train_on_output", sa.String(), nullable=False),
        sa.Column("judge_with", sa.String(), nullable=False),
        sa.Column("terms_source", sa.String(), nullable=True),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_upstream_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_upstream")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_upstream_project_id_name")),
    )
    op.create_index(op.f("ix_upstream_project_id"), "upstream", ["project_id"], unique=False)
    op.create_table(
        "dataset",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("task_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("rules", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_dataset_project_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_dataset_task_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset")),
    )
    op.create_index(op.f("ix_dataset_project_id"), "dataset", ["project_id"], unique=False)
    op.create_table(
        "route",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("alias", sa.String(), nullable=False),
        sa.Column("task_id", sa.Uuid(), nullable=True),
        sa.Column("upstream_id", sa.Uuid(), nullable=False),
        sa.Column("upstream_model", sa.String(), nullable=True),
        sa.Column("revision_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_route_project_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_route_task_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["upstream_id"], ["upstream.id"], name=op.f("fk_route_upstream_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_route")),
    )
    op.create_index(op.f("ix_route_project_id"), "route", ["project_id"], unique=False)
    op.create_index(
        "uq_route_project_alias_task",
        "route",
        ["project_id", "alias", "task_id"],
        unique=True,
        postgresql_nulls_not_distinct=True,
    )
    op.create_table(
        "rubric",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("task_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("criteria", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("vetoes", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("checks", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_rubric_project_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_rubric_task_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rubric")),
        sa.UniqueConstraint("task_id", "version", name=op.f("uq_rubric_task_id_version")),
    )
    op.create_index(op.f("ix_rubric_project_id"), "rubric", ["project_id"], unique=False)
    op.create_table(
        "run",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("task_id", sa.Uuid(), nullable=False),
        sa.Column("rubric_id", sa.Uuid(), nullable=True),
        sa.Column("dataset_version_id", sa.Uuid(), nullable=True),
        sa.Column("judge_upstream_id", sa.Uuid(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("config", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("bars", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("base_model", sa.String(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("judge_spend", sa.Numeric(precision=20, scale=10), nullable=False),
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_epoch", sa.Integer(), nullable=False),
        sa.Column("lease_expires_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("started_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("finished_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_run_project_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_run_task_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
    )
    op.create_index(op.f("ix_run_project_id"), "run", ["project_id"], unique=False)
    op.create_index(op.f("ix_run_state"), "run", ["state"], unique=False)
    op.create_index(op.f("ix_run_task_id"), "run", ["task_id"], unique=False)
    op.create_table(
        "student",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("task_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("checkpoint_id", sa.Uuid(), nullable=False),
        sa.Column("evaluation_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("manifest", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_student_project_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_student_task_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_student")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_student_project_id_name")),
    )
    op.create_index(op.f("ix_student_project_id"), "student", ["project_id"], unique=False)
    op.create_table(
        "checkpoint",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("validation", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("chosen", sa.Boolean(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_checkpoint_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_checkpoint_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkpoint")),
        sa.UniqueConstraint("run_id", "phase", "step", name=op.f("uq_checkpoint_run_id_phase_step")),
    )
    op.create_index(op.f("ix_checkpoint_project_id"), "checkpoint", ["project_id"], unique=False)
    op.create_table(
        "dataset_version",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("dataset_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("counts", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("rules", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("test_openings", sa.Integer(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["dataset.id"], name=op.f("fk_dataset_version_dataset_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_dataset_version_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_version")),
        sa.UniqueConstraint("dataset_id", "version", name=op.f("uq_dataset_version_dataset_id_version")),
    )
    op.create_index(op.f("ix_dataset_version_project_id"), "dataset_version", ["project_id"], unique=False)
    op.create_table(
        "deployment",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("wanted", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("base_url", sa.String(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_deployment_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["student.id"], name=op.f("fk_deployment_student_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deployment")),
    )
    op.create_index(op.f("ix_deployment_project_id"), "deployment", ["project_id"], unique=False)
    op.create_index(op.f("ix_deployment_student_id"), "deployment", ["student_id"], unique=False)
    op.create_table(
        "evaluation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("dataset_version_id", sa.Uuid(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("bars", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("candidates", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("external", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("winner", sa.String(), nullable=True),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("finished_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_evaluation_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_evaluation_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation")),
        sa.UniqueConstraint("run_id", name=op.f("uq_evaluation_run_id")),
    )
    op.create_index(op.f("ix_evaluation_project_id"), "evaluation", ["project_id"], unique=False)
    op.create_table(
        "rollout",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("group", sa.Integer(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("row_id", sa.Uuid(), nullable=False),
        sa.Column("completion", sa.String(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("finish_reason", sa.String(), nullable=True),
        sa.Column("reward", sa.Double(), nullable=True),
        sa.Column("advantage", sa.Double(), nullable=True),
        sa.Column("criteria", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("kept", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_rollout_project_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_rollout_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rollout")),
    )
    op.create_index(op.f("ix_rollout_project_id"), "rollout", ["project_id"], unique=False)
    op.create_index("ix_rollout_run_id_step_group_index", "rollout", ["run_id", "step", "group", "index"], unique=False)
    op.create_table(
        "route_revision",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("route_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("share", sa.Double(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=True),
        sa.Column("deployment_id", sa.Uuid(), nullable=True),
        sa.Column("evaluation_id", sa.Uuid(), nullable=True),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("restores", sa.Integer(), nullable=True),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_route_revision_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["route_id"], ["route.id"], name=op.f("fk_route_revision_route_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_route_revision")),
        sa.UniqueConstraint("route_id", "number", name=op.f("uq_route_revision_route_id_number")),
    )
    op.create_index(op.f("ix_route_revision_project_id"), "route_revision", ["project_id"], unique=False)
    op.create_table(
        "run_event",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_run_event_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_run_event_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_event")),
    )
    op.create_index(op.f("ix_run_event_project_id"), "run_event", ["project_id"], unique=False)
    op.create_index(op.f("ix_run_event_run_id"), "run_event", ["run_id"], unique=False)
    op.create_table(
        "run_step",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("metrics", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_run_step_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_run_step_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "phase", "step", name=op.f("pk_run_step")),
    )
    op.create_index(op.f("ix_run_step_project_id"), "run_step", ["project_id"], unique=False)
    op.create_table(
        "dataset_row",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("version_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("split", sa.String(), nullable=False),
        sa.Column("input_hash", sa.LargeBinary(), nullable=False),
        sa.Column("call_id", sa.Uuid(), nullable=False),
        sa.Column("upstream_id", sa.Uuid(), nullable=True),
        sa.Column("messages", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("tools", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("target", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_dataset_row_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["version_id"], ["dataset_version.id"], name=op.f("fk_dataset_row_version_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_row")),
        sa.UniqueConstraint("version_id", "position", name=op.f("uq_dataset_row_version_id_position")),
    )
    op.create_index(op.f("ix_dataset_row_project_id"), "dataset_row", ["project_id"], unique=False)
    op.create_index(
        "ix_dataset_row_version_id_split_position", "dataset_row", ["version_id", "split", "position"], unique=False
    )
    op.create_table(
        "evaluation_output",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("evaluation_id", sa.Uuid(), nullable=False),
        sa.Column("candidate", sa.String(), nullable=False),
        sa.Column("row_id", sa.Uuid(), nullable=False),
        sa.Column("output", sa.String(), nullable=False),
        sa.Column("matches", sa.Boolean(), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluation.id"], name=op.f("fk_evaluation_output_evaluation_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_evaluation_output_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["row_id"], ["dataset_row.id"], name=op.f("fk_evaluation_output_row_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_output")),
        sa.UniqueConstraint(
            "evaluation_id", "candidate", "row_id", name=op.f("uq_evaluation_output_evaluation_id_candidate_row_id")
        ),
    )
    op.create_index(op.f("ix_evaluation_output_project_id"), "evaluation_output", ["project_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_evaluation_output_project_id"), table_name="evaluation_output")
    op.drop_table("evaluation_output")
    op.drop_index("ix_dataset_row_version_id_split_position", table_name="dataset_row")
    op.drop_index(op.f("ix_dataset_row_project_id"), table_name="dataset_row")
    op.drop_table("dataset_row")
    op.drop_index(op.f("ix_run_step_project_id"), table_name="run_step")
    op.drop_table("run_step")
    op.drop_index(op.f("ix_run_event_run_id"), table_name="run_event")
    op.drop_index(op.f("ix_run_event_project_id"), table_name="run_event")
    op.drop_table("run_event")
    op.drop_index(op.f("ix_route_revision_project_id"), table_name="route_revision")
    op.drop_table("route_revision")
    op.drop_index("ix_rollout_run_id_step_group_index", table_name="rollout")
    op.drop_index(op.f("ix_rollout_project_id"), table_name="rollout")
    op.drop_table("rollout")
    op.drop_index(op.f("ix_evaluation_project_id"), table_name="evaluation")
    op.drop_table("evaluation")
    op.drop_index(op.f("ix_deployment_student_id"), table_name="deployment")
    op.drop_index(op.f("ix_deployment_project_id"), table_name="deployment")
    op.drop_table("deployment")
    op.drop_index(op.f("ix_dataset_version_project_id"), table_name="dataset_version")
    op.drop_table("dataset_version")
    op.drop_index(op.f("ix_checkpoint_project_id"), table_name="checkpoint")
    op.drop_table("checkpoint")
    op.drop_index(op.f("ix_student_project_id"), table_name="student")
    op.drop_table("student")
    op.drop_index(op.f("ix_run_task_id"), table_name="run")
    op.drop_index(op.f("ix_run_state"), table_name="run")
    op.drop_index(op.f("ix_run_project_id"), table_name="run")
    op.drop_table("run")
    op.drop_index(op.f("ix_rubric_project_id"), table_name="rubric")
    op.drop_table("rubric")
    op.drop_index("uq_route_project_alias_task", table_name="route", postgresql_nulls_not_distinct=True)
    op.drop_index(op.f("ix_route_project_id"), table_name="route")
    op.drop_table("route")
    op.drop_index(op.f("ix_dataset_project_id"), table_name="dataset")
    op.drop_table("dataset")
    op.drop_index(op.f("ix_upstream_project_id"), table_name="upstream")
    op.drop_table("upstream")
    op.drop_index(op.f("ix_task_project_id"), table_name="task")
    op.drop_table("task")
    op.drop_index(op.f("ix_price_upstream_id"), table_name="price")
    op.drop_index(op.f("ix_price_student_id"), table_name="price")
    op.drop_index(op.f("ix_price_project_id"), table_name="price")
    op.drop_table("price")
    op.drop_index(op.f("ix_ledger_entry_run_id"), table_name="ledger_entry")
    op.drop_index(op.f("ix_ledger_entry_project_id"), table_name="ledger_entry")
    op.drop_table("ledger_entry")
    op.drop_index("ix_call_project_id_task_id_id", table_name="call")
    op.drop_index("ix_call_project_id_id", table_name="call")
    op.drop_index("ix_call_project_id_fingerprint", table_name="call")
    op.drop_table("call")
    op.drop_table("blob")
    op.drop_index(op.f("ix_api_key_project_id"), table_name="api_key")
    op.drop_table("api_key")
    op.drop_table("spool_cursor")
    op.drop_table("project")
