"""What a suite's licence lets a report or export hold. Pure."""

from __future__ import annotations

import re

_NO_TRADE = re.compile(r"\bNC\b|non[- ]?commercial|research only", re.IGNORECASE)
"""CC-BY-NC-4.0 and its kin, and licences in words."""


def withheld(suite: str, origin: str, licence: str) -> str:
    """Why texts of a suite are not to be shared, in a sentence; "" where they may be. A benchmark that
    somebody published without a licence is theirs alone."""
    if _NO_TRADE.search(licence):
        return f"{suite} is under {licence}, which does not let its texts be shared for any purpose"
    if origin == "published" and not licence:
        return f"{suite} is published, and no licence is known that lets its texts be shared"
    return ""


def credit(licence: str, citation: str) -> str:
    """The line that travels with results: "Licence: CC-BY-4.0. Cite: Maharana et al. 2024"; "" of a team's
    own."""
    told = (("Licence", licence), ("Cite", citation))
    return ". ".join(f"{name}: {text.rstrip('.')}" for name, text in told if text)
