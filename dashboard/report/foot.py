"""What stands beneath every report: how it was made, and what must travel with its results. Pure."""

from __future__ import annotations

from datetime import datetime
from importlib.metadata import version


def foot(made: datetime, credit: str, *, with_texts: bool) -> tuple[str, ...]:
    texts = "with" if with_texts else "without"
    written = (
        f"Written by memtrend {version('memtrend')} on {made:%Y-%m-%d %H:%M %Z}, {texts} texts of memories."
    )
    return (written, *([f"{credit.rstrip('.')}."] if credit else []))
