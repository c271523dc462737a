"""Titles and lines of alerts, as sentences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from store import alert_titles
from store.alert_life import Cause, Incident
from store.alert_signals import Signal
from store.queries import ChannelRow, DeliveryRow, Holder, Judged, ProofRow, StepRow
from store.sightings import Key

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SUSPECT = {"name": "mem0ai", "old": "2.0.0", "new": "2.0.20", "moved_before": False}


def incident(state: Any = "open", kind: str = "regression", **told: Any) -> Incident:
    signal = Signal(Key(kind, "golden", "mem0"), "sure", 0.1, 0.1, 0, 7, 7, (), {})
    return Incident(state, NOW - timedelta(days=20), (signal,), Cause(), **told)


FREE = Holder("open", None)


def held(who: str) -> Holder:
    return Holder("acknowledged", who)


@pytest.mark.parametrize(
    ("standing", "closed", "expected"),
    [
        ([], 0, "No alert yet"),
        ([], 3, "No alert is open"),
        ([Holder("suspicion", None)], 3, "No alert is open; one suspicion is being looked at"),
        ([Holder("suspicion", None), Holder("suspected", None)], 0,
         "No alert is open; two suspicions are being looked at"),
        ([FREE], 0, "One alert is open; nobody has taken it"),
        ([FREE, FREE], 0, "Two alerts are open; nobody has taken them"),
        ([FREE, held("priya")], 0, "Two alerts are open; nobody has taken one of them"),
        ([Holder("suspected", None), held("priya")], 0, "One alert is open; priya has it"),
        ([held("priya"), held("priya")], 0, "Two alerts are open; priya has both"),
        ([held("priya"), held("priya"), held("priya")], 0, "Three alerts are open; priya has all of them"),
        ([held("priya"), held("jonas")], 0, "Two alerts are open; each has somebody"),
        ([FREE] * 40, 0, "40 alerts are open; nobody has taken them"),
    ],
)  # fmt: skip
def test_the_title_of_all(standing: list[Holder], closed: int, expected: str) -> None:
    """What is open and whether somebody has it, in one sentence; suspicions are no alerts."""
    assert alert_titles.alerts_title(standing, closed) == expected


@pytest.mark.parametrize(
    ("suspects", "kind", "expected"),
    [
        ([], "regression", "mem0 on golden got worse"),
        ([SUSPECT], "regression", "mem0 on golden got worse when mem0ai went from 2.0.0 to 2.0.20"),
        ([SUSPECT | {"moved_before": True}], "regression", "mem0 on golden got worse"),
        ([SUSPECT | {"old": None}], "regression", "mem0 on golden got worse when mem0ai came"),
        ([SUSPECT | {"new": None}], "regression", "mem0 on golden got worse when mem0ai went"),
        ([SUSPECT | {"new": "x" * 40}], "regression",
         "mem0 on golden got worse when mem0ai went from 2.0.0 to another value"),
        ([SUSPECT], "leak", "mem0 on golden loses a little every week"),
    ],
)  # fmt: skip
def test_the_title_of_one(suspects: list[dict[str, Any]], kind: str, expected: str) -> None:
    """What is wrong and what came with it: only the first suspect, and none that had moved without effect."""
    assert alert_titles.alert_title(incident(kind=kind, suspects=suspects)) == expected


@pytest.mark.parametrize(
    ("it", "expected"),
    [
        (incident(), "nobody has it"),
        (incident("acknowledged", acknowledged_by="priya"), "priya has it"),
        (incident("suspicion"), "nobody was told yet"),
        (incident("resolved"), "nobody had it"),
        (incident("resolved", acknowledged_by="priya"), "it was priya's"),
    ],
)
def test_who_has_it(it: Incident, expected: str) -> None:
    """Who looks after an alert, in its state."""
    assert alert_titles.holder(it) == expected


def test_since_when() -> None:
    """State, first sight and how long that is."""
    assert alert_titles.since(incident(), "10 Nov, 03:24", NOW) == "open since 10 Nov, 03:24, 20 days"


@pytest.mark.parametrize(
    ("hours", "expected"),
    [(0, "0.0 s"), (0.5, "30 min"), (6, "6 h"), (47, "47 h"), (48, "2 days"), (-1, "0.0 s")],
)
def test_how_long(hours: float, expected: str) -> None:
    """Minutes, hours and days, never less than nothing."""
    assert alert_titles.lasted(NOW, NOW + timedelta(hours=hours)) == expected


def test_what_became_of_it() -> None:
    """A step says what, who, where that was a person, and why."""
    row = StepRow(1, 1, NOW, "acknowledged", "priya", "looking at it", None)
    assert alert_titles.step(row) == "acknowledged by priya: looking at it"
    assert alert_titles.step(row._replace(action="opened", author="memtrend", reason=None)) == "opened"
    assert alert_titles.step(row._replace(action="renamed", reason=None)) == "renamed by priya"


@pytest.mark.parametrize(
    ("attempts", "status", "error", "expected"),
    [
        (1, 200, None, "HTTP 200"),
        (2, 200, None, "2 tries, HTTP 200"),
        (3, 404, "HTTP 404: no such hook", "3 tries, HTTP 404: no such hook"),
        (1, 500, "the server is down", "HTTP 500: the server is down"),
        (1, None, "no route to host", "no route to host"),
        (0, None, None, ""),
    ],
)
def test_what_came_of_a_message(attempts: int, status: int | None, error: str | None, expected: str) -> None:
    """Tries, the answer's number once, and what went wrong."""
    row = DeliveryRow(1, "k", "team", "alert", 1, 1, {}, "sent", attempts, NOW, NOW, None, status, error)
    assert alert_titles.delivery(row) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (Judged(0, 0, 0), "No alarm yet to be judged"),
        (Judged(0, 0, 3), "No alarm was judged real or noise; 3 not judged yet"),
        (Judged(4, 2, 3), "4 of 6 judged alarms were real (30.0 to 90.3 %); 3 not judged yet"),
        (Judged(1, 0, 0), "1 of 1 judged alarms were real (20.7 to 100.0 %)"),
    ],
)
def test_precision(found: Judged, expected: str) -> None:
    """The share of alarms that were right with its interval, and how many nobody has judged."""
    assert alert_titles.precision(found) == expected


def test_the_budget_of_a_channel() -> None:
    """False alarms against what the channel accepts in the same time; overdrawn beyond it alone."""
    span = timedelta(days=90)
    assert alert_titles.budget(1.0, 2, span) == "2 of 3 false alarms in 90 days"
    assert not alert_titles.is_overdrawn(1.0, 3, span)
    assert alert_titles.is_overdrawn(1.0, 4, span)


def test_the_state_of_a_channel() -> None:
    """A channel that is off says since when and why, before all else."""
    row = ChannelRow("team", 0, None, 3, 0, NOW, None, None, None)
    assert alert_titles.channel(row, "") == "ready"
    assert alert_titles.channel(row._replace(waiting=2), "") == "2 messages waiting"
    assert alert_titles.channel(row._replace(last_error="HTTP 500"), "") == "last message failed"
    off = row._replace(disabled_at=NOW, reason="HTTP 404", waiting=2)
    assert alert_titles.channel(off, "12 Nov, 04:10") == "off since 12 Nov, 04:10: HTTP 404"


def test_how_old_the_proof_is() -> None:
    """Never, under way, failed, or how long ago the alarm arrived."""
    values = dict.fromkeys(ProofRow._fields)
    row = ProofRow(**values)._replace(started_at=NOW - timedelta(hours=3))  # type: ignore[arg-type]
    done = row._replace(finished_at=NOW - timedelta(hours=2), delivered_s=71.0)
    assert alert_titles.proof(None, NOW) == "Alarm never proven"
    assert alert_titles.proof(row, NOW) == "A proof of the alarm is under way, begun 3 h 0 min ago"
    assert alert_titles.proof(done, NOW) == "Alarm proven 2 h 0 min ago"
    failed = done._replace(error="not delivered", delivered_s=None)
    assert alert_titles.proof(failed, NOW) == "Last proof of the alarm failed 2 h 0 min ago"
