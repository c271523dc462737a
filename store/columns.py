"""How times and JSON lie in a column."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, Float, Text
from sqlalchemy.types import TypeDecorator

LARGEST = 2**63 - 1
"""The largest number that a column of whole numbers holds, in either database: no row has a larger id."""


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC in and out; stored without a zone, so that it sorts as text."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a datetime without a zone cannot be stored: {value.isoformat()}")
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


class ClockTime(TypeDecorator[datetime]):
    """Aware UTC in and out; stored as seconds since 1970, as the database's clock counts."""

    impl = Float
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> float | None:
        return None if value is None else value.timestamp()

    def process_result_value(self, value: float | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromtimestamp(value, UTC)


class JsonText(TypeDecorator[Any]):
    """A JSON value as compact text with sorted keys: equal values are equal text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else to_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


def to_json(value: Any) -> str:
    """Compact JSON with sorted keys. Raises ValueError for NaN and infinity, which JSON does not know."""
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain
    )


def _plain(value: Any) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be kept as JSON")
