"""SQL of the capture bench."""

from __future__ import annotations

from sqlalchemy import text

from gateway.core.db import session_scope


def stored_bytes() -> dict[str, int]:
    """Bytes of the tables that hold captured bodies and calls: rows alone, and with indexes."""
    with session_scope() as session:
        session.execute(text("CHECKPOINT"))
        rows = session.execute(
            text(
                "SELECT c.relname, pg_table_size(c.oid) AS rows, pg_total_relation_size(c.oid) AS total"
                " FROM pg_class c WHERE c.relkind = 'r' AND"
                " (c.relname IN ('blob', 'blob_dictionary') OR c.relname LIKE 'call\\_2%')"
            )
        ).all()
    return {
        "rows": sum(row.rows for row in rows),
        "total": sum(row.total for row in rows),
        **{f"{row.relname}_rows": row.rows for row in rows if row.rows > 16384},
    }
