"""SQL of the data bench."""

from __future__ import annotations

from sqlalchemy import text

from gateway.core.db import session_scope


def analysed_bytes() -> tuple[float, float]:
    """Bytes of the call table's partitions and of their indexes, after what autovacuum would have done by then."""
    with session_scope() as session:
        session.execute(text("ANALYZE"))
        sizes = session.execute(
            text(
                "SELECT sum(pg_table_size(relid)), sum(pg_indexes_size(relid))"
                " FROM pg_partition_tree('call') WHERE isleaf"
            )
        ).one()
    return float(sizes[0]), float(sizes[1])
