"""PostgreSQL and Valkey from pip, for a machine that has neither. Must not be used when the user names their own."""

from gateway.core.embedded.engine import Engine, running
from gateway.core.embedded.postgres import Postgres
from gateway.core.embedded.valkey import Valkey

__all__ = ["Engine", "Postgres", "Valkey", "running"]
