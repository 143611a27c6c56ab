"""A few sequences that steps learned from, token by token, for people to look at."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "trained_sequence",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("row_id", sa.Uuid(), nullable=False),
        sa.Column("group", sa.Integer(), nullable=True),
        sa.Column("reward", sa.Double(), nullable=True),
        sa.Column("advantage", sa.Double(), nullable=True),
        sa.Column("left_out", sa.Integer(), nullable=False),
        sa.Column("tokens", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_trained_sequence_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_trained_sequence_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "phase", "step", "index", name=op.f("pk_trained_sequence")),
    )
    op.create_index(op.f("ix_trained_sequence_project_id"), "trained_sequence", ["project_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_trained_sequence_project_id"), table_name="trained_sequence")
    op.drop_table("trained_sequence")
