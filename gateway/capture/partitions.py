"""Owns the calendar of the call table: which month a UUIDv7 falls in, and that month's bounds. Pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID


class Month(NamedTuple):
    """A calendar month in UTC."""

    year: int
    month: int

    @property
    def partition(self) -> str:
        """The name of its partition."""
        return f"call_{self.year:04}_{self.month:02}"

    @property
    def bounds(self) -> tuple[UUID, UUID]:
        """The smallest id of this month, and of the next."""
        return _first_id(self), _first_id(self.shifted(1))

    def shifted(self, months: int) -> Month:
        """So many months later."""
        index = self.year * 12 + self.month - 1 + months
        return Month(index // 12, index % 12 + 1)


def month_of(id: UUID) -> Month:
    """The month in which a UUIDv7 was made: its first 48 bits are Unix milliseconds (RFC 9562, section 5.7)."""
    moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=id.int >> 80)
    return Month(moment.year, moment.month)


def months_around(moment: datetime) -> list[Month]:
    """The previous month, this one and the next."""
    this = Month(moment.year, moment.month)
    return [this.shifted(-1), this, this.shifted(1)]


def _first_id(month: Month) -> UUID:
    start = datetime(month.year, month.month, 1, tzinfo=UTC)
    return UUID(int=int(start.timestamp() * 1000) << 80)
