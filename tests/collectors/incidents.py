"""Alerts as detection makes them, for what is told of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from store.alert_life import Cause, Incident, Step, Turned
from store.alert_signals import Signal
from store.sightings import Key

AT = datetime(2026, 11, 30, 3, 12, tzinfo=UTC)
SUSPECT = "mem0ai 2.0.0 → 2.2.1"
VERDICT: dict[str, Any] = {
    "verdict": "worse",
    "stage": "confirmed",
    "reason": None,
    "lost": ["c1", "c2", "c3", "c4"],
    "gained": ["c9"],
    "critical": [],
    "cases": 180,
    "nights": 10,
    "looks": [
        {"trials": 1, "p_worse": 0.001, "p_better": None},
        {"trials": 3, "p_worse": 0.0001, "p_better": None},
    ],
    "difference": {"old": 0.961, "new": 0.94, "low": -0.04, "high": -0.003, "n": 89},
    "blind_spot": 0.02,
    "leak": None,
    "provisional": False,
    "control": None,
}


def incident(
    *,
    kind: str = "regression",
    cases: tuple[str, ...] = ("c1", "c2", "c3", "c4"),
    backend: str = "mem0",
    content: dict[str, Any] | None = None,
    **changes: Any,
) -> Incident:
    """An open alert of one series. `changes`: fields of the incident."""
    key = Key(kind, "golden", backend, "")
    signal = Signal(key, "sure", 0.05, 0.05, 0, None, None, cases, content or VERDICT)
    found = Incident(
        "open",
        AT,
        (signal,),
        Cause(None),
        suspects=({"name": "mem0ai", "sentence": SUSPECT},),
        context={
            "at": AT.isoformat(),
            "failures": {"returned but too low": 3, "not stored": 1},
            "tags": [["temporal", 3, 20]],
        },
        tags=("temporal",),
        owner="search-team",
        told_at=AT,
    )
    return found._replace(**changes)


def turned(it: Incident, *actions: str) -> Turned:
    """What a record keeps of it."""
    return Turned(it, tuple(Step(action) for action in actions))  # type: ignore[arg-type]
