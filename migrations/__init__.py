"""Alembic's migrations: the only way the schema changes. Run by `stepdown db migrate` and `stepdown up`."""
