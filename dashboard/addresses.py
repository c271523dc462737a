"""What stands in an address. Pure: the server needs it before Streamlit runs."""

from __future__ import annotations

LARGEST = 2**63 - 1
"""The largest number that the record can hold."""


def number(text: str) -> int | None:
    """A whole number; None where it is none, or larger than any in the record."""
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(LARGEST)):
        return None
    return value if (value := int(text)) <= LARGEST else None
