"""Further upstreams of a route, asked in turn, and the most calls that a key may have under way."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "route_fallback",
        sa.Column("route_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("upstream_id", sa.Uuid(), nullable=False),
        sa.Column("upstream_model", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_route_fallback_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["route_id"], ["route.id"], name=op.f("fk_route_fallback_route_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["upstream_id"], ["upstream.id"], name=op.f("fk_route_fallback_upstream_id")),
        sa.PrimaryKeyConstraint("route_id", "position", name=op.f("pk_route_fallback")),
    )
    op.create_index(op.f("ix_route_fallback_project_id"), "route_fallback", ["project_id"], unique=False)
    op.add_column("api_key", sa.Column("max_concurrent", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("api_key", "max_concurrent")
    op.drop_index(op.f("ix_route_fallback_project_id"), table_name="route_fallback")
    op.drop_table("route_fallback")
