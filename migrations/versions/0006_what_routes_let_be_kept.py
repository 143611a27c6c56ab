"""What a route lets be captured: as of a key, the mode and a share of conversations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("route", sa.Column("capture", sa.String(), nullable=False, server_default="full"))
    op.add_column("route", sa.Column("sample", sa.Double(), nullable=False, server_default="1"))
    op.alter_column("route", "capture", server_default=None)
    op.alter_column("route", "sample", server_default=None)


def downgrade() -> None:
    op.drop_column("route", "sample")
    op.drop_column("route", "capture")
