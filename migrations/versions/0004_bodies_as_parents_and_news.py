"""A call as its parent plus what is new, answers beside their call, dictionaries, shorter hashes, retention."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_KEPT = ("project", "api_key", "route")


def upgrade() -> None:
    op.create_table(
        "blob_dictionary",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_blob_dictionary_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("pk_blob_dictionary")),
    )
    op.add_column("call", sa.Column("parent_id", sa.Uuid(), nullable=True))
    op.add_column("call", sa.Column("shared", sa.Integer(), nullable=True))
    op.add_column("call", sa.Column("items", sa.LargeBinary(), nullable=True))
    op.add_column("call", sa.Column("response", sa.LargeBinary(), nullable=True))
    # Hashes are half as long as they were, in the rows and in the pointers to large fields.
    op.execute(
        "UPDATE call SET"
        " items = (SELECT coalesce(string_agg(decode(left(h, 32), 'hex'), ''::bytea ORDER BY place), ''::bytea)"
        "   FROM jsonb_array_elements_text(message_hashes) WITH ORDINALITY AS given(h, place)),"
        " request = regexp_replace(request::text, '(\"\\$blob\": \"[0-9a-f]{32})[0-9a-f]{32}\"', '\\1\"', 'g')::jsonb,"
        " response = (SELECT data FROM blob WHERE blob.project_id = call.project_id AND hash = response_hash)"
        " WHERE message_hashes IS NOT NULL OR response_hash IS NOT NULL"
    )
    op.execute("UPDATE blob SET hash = substring(hash FROM 1 FOR 16)")
    op.drop_column("call", "message_hashes")
    op.drop_column("call", "response_hash")
    op.drop_column("blob", "size")
    for name in ("latency_ms", "ttfb_ms", "overhead_ms"):
        op.alter_column("call", name, type_=sa.REAL())
    op.create_index(
        "ix_call_parent_id", "call", ["parent_id"], unique=False, postgresql_where=sa.text("parent_id IS NOT NULL")
    )
    for table in _KEPT:
        op.add_column(table, sa.Column("retention_days", sa.Integer(), nullable=True))


def downgrade() -> None:
    if op.get_bind().execute(sa.text("SELECT EXISTS (SELECT FROM call WHERE items IS NOT NULL)")).scalar_one():
        raise RuntimeError("Bodies are stored in a way that 0003 cannot read: restore a backup of before instead.")
    for table in _KEPT:
        op.drop_column(table, "retention_days")
    op.drop_index("ix_call_parent_id", table_name="call")
    for name in ("latency_ms", "ttfb_ms", "overhead_ms"):
        op.alter_column("call", name, type_=sa.Double())
    op.add_column("blob", sa.Column("size", sa.Integer(), nullable=False))
    op.add_column("call", sa.Column("message_hashes", postgresql.JSONB(astext_type=sa.Text()), nullable=True))
    op.add_column("call", sa.Column("response_hash", sa.LargeBinary(), nullable=True))
    for name in ("parent_id", "shared", "items", "response"):
        op.drop_column("call", name)
    op.drop_table("blob_dictionary")
