"""Pass-through tokens, and what a key lets be captured: a share of conversations, redacted; trajectories."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("api_key", sa.Column("upstream_id", sa.Uuid(), nullable=True))
    op.create_foreign_key(
        op.f("fk_api_key_upstream_id"), "api_key", "upstream", ["upstream_id"], ["id"], ondelete="CASCADE"
    )
    op.add_column("api_key", sa.Column("sample", sa.Double(), nullable=False, server_default="1"))
    op.add_column(
        "api_key",
        sa.Column("redact", postgresql.JSONB(astext_type=sa.Text()), nullable=False, server_default="[]"),
    )
    op.alter_column("api_key", "sample", server_default=None)
    op.alter_column("api_key", "redact", server_default=None)
    op.add_column("call", sa.Column("trajectory", sa.String(), nullable=True))
    op.create_index(
        "ix_call_project_id_trajectory_id",
        "call",
        ["project_id", "trajectory", "id"],
        unique=False,
        postgresql_where=sa.text("trajectory IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_call_project_id_trajectory_id", table_name="call")
    op.drop_column("call", "trajectory")
    op.drop_column("api_key", "redact")
    op.drop_column("api_key", "sample")
    op.drop_constraint(op.f("fk_api_key_upstream_id"), "api_key", type_="foreignkey")
    op.drop_column("api_key", "upstream_id")
