"""An index of the words in calls' previews, and one of the calls that failed: what the call list is narrowed to."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_WORDS = "to_tsvector('simple', translate(preview || ' ' || answer_preview, '@./_-+<>&', '         '))"


def upgrade() -> None:
    op.execute(f"CREATE INDEX ix_call_words ON call USING gin ({_WORDS})")
    op.execute("CREATE INDEX ix_call_failed ON call (project_id, id) WHERE status >= 400 OR NOT complete")
    op.execute("CREATE INDEX ix_call_elsewhere ON call (project_id, served_by, id) WHERE served_by <> 'upstream'")


def downgrade() -> None:
    for name in ("ix_call_words", "ix_call_failed", "ix_call_elsewhere"):
        op.execute(f"DROP INDEX {name}")
