"""Alerts of every state in a seeded record, made as runs and people make them: by `store.writes` alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import time_machine

from store import alert_life, queries, writes
from store.alert_life import Facts, Turned, advance
from store.database import Database
from store.queries import RunRow
from store.sightings import ClosedRun, Key, Leg, Measured, Sighting, missed, sightings
from store.writes import NewDelivery
from tests.dashboard.facts import HOSTILE, HOSTILE_CASE
from tests.dashboard.seed import World

SUSPECTS = (
    {"name": "mem0ai", "old": "2.1.0", "new": "2.2.1", "kind": "own package", "moved_before": False,
     "sentence": "mem0ai 2.1.0 → 2.2.1"},
    {"name": "qdrant-client", "old": "1.19.1", "new": "1.19.3", "kind": "dependency", "moved_before": False,
     "sentence": "qdrant-client 1.19.1 → 1.19.3"},
    {"name": "numpy", "old": "2.4.0", "new": "2.4.1", "kind": "packages", "moved_before": True,
     "sentence": "numpy 2.4.0 → 2.4.1"},
)  # fmt: skip
CHANNELS = """
[channels.team]
type = "slack"
url = "https://hooks.example.org/T/B/x"

[channels.ops]
type = "webhook"
url = "https://ops.example.org/hook"
"""


class Alarmed(NamedTuple):
    """Ids of alerts by what became of them."""

    open: int
    acknowledged: int
    failing: int
    muted: int
    suspicion: int
    suspected: int
    resolved: int
    retracted: int
    intended: int
    died: int
    drill: int
    hostile: int


class _Maker:
    def __init__(self, db: Database, world: World) -> None:
        self.db, self.world = db, world

    def runs(self, suite: str, backend: str) -> list[RunRow]:
        """Whole ones of every night, oldest first."""
        found = queries.runs(self.db, suites=[suite], backends=[backend], statuses=["whole"], limit=None)
        return [run for run in reversed(found) if not run.subset]

    def content(self, run: RunRow) -> dict[str, Any]:
        found = queries.verdict(self.db, run.id)
        assert found is not None
        return found.content

    def seen(self, at: datetime, seen: Sequence[Sighting], run: RunRow | None = None, **facts: Any) -> int:
        """The id of the alert that these sightings made or changed."""
        with time_machine.travel(at, tick=False):
            told = Facts(at, run and run.id, **facts)
            turned = writes.turn_alerts(self.db, lambda known: advance(known, seen, told), _everyone)
        assert turned[-1].incident.id is not None
        return turned[-1].incident.id

    def act(self, at: datetime, alert: int, change: Any) -> Turned:
        with time_machine.travel(at, tick=False):
            return writes.act_on_alert(self.db, alert, change)


def _everyone(incident: alert_life.Incident, step: alert_life.Step, step_id: int) -> list[NewDelivery]:
    if incident.told_at is None and step.action != "died":
        return []
    return [
        NewDelivery(f"alert {incident.id} step {step_id} channel {name}", name, "alert", {})
        for name in ("team", "ops")
    ]


def alarm(db: Database, world: World, *, hostile: bool = True) -> Alarmed:
    """Add them to a seeded record."""
    make = _Maker(db, world)
    mem0, notes = make.runs("golden", "mem0"), make.runs("golden", "notes")
    first = next(run for run in mem0 if _stage(make, run) in ("confirmed", "suspected"))
    good = mem0[mem0.index(first) - 1]
    opened = _worse(make, first, good)
    leaking = notes[-6]
    ids = Alarmed(
        open=opened,
        acknowledged=_leak(make, leaking, notes),
        failing=_failing(make),
        muted=_muted(make, notes[-4]),
        suspicion=_early(make, "suspicion", "hybrid", "recall_ms", "slower"),
        suspected=_early(make, "suspected", "keyword", "unwanted", "threshold"),
        resolved=_resolved(make),
        retracted=_retracted(make),
        intended=_intended(make),
        died=_died(make),
        drill=_drill(make),
        hostile=_hostile(make) if hostile else opened,
    )
    _sent(db)
    _proven(db, world.nights, ids.drill)
    return ids


def _stage(make: _Maker, run: RunRow) -> str:
    found = queries.verdict(make.db, run.id)
    return found.content["stage"] if found and found.content["verdict"] == "worse" else ""


def _worse(make: _Maker, run: RunRow, good: RunRow) -> int:
    """Seen by the run, borne out by a look at once, and by another hours later; still so last night."""
    failures = {"stale fact first": 2, "stored but not returned": 1}
    tags = [["supersession", 2, 6], ["preference", 1, 5]]
    facts = {
        "suspects": SUSPECTS, "suspect": "packages.mem0ai: 2.1.0 -> 2.2.1", "last_good_run_id": good.id,
        "context": {"at": run.started_at.isoformat(), "cases": 29, "failures": failures, "tags": tags},
        "tags": dict.fromkeys(make.world.broken, ("supersession",)),
    }  # fmt: skip
    alert = 0
    for minutes, stage in ((9, "suspicion"), (24, "suspected"), (150, "confirmed")):
        content = make.content(run) | {"stage": stage, "verdict": "worse", "control": None}
        closed = ClosedRun("golden", "mem0", "whole", verdict=content, measured=_measured(run))
        seen = [one for one in sightings(closed) if one.standing != "clear"]
        alert = make.seen(run.started_at + timedelta(minutes=minutes), seen, run, **facts)
    return alert


def _measured(run: RunRow) -> dict[str, Measured]:
    return {name: Measured(one.n, one.mean, one.low, one.high) for name, one in run.metrics.items()}


def _leak(make: _Maker, run: RunRow, notes: Sequence[RunRow]) -> int:
    looks = [{"number": 1, "run_id": run.id, "trials": 1, "p_worse": 0.004, "p_better": 0.99}]
    leak = {"before": 0.93, "after": 0.79, "first_bad": notes[len(notes) // 2].id}
    content = make.content(run) | {"stage": "leak", "verdict": "worse", "leak": leak, "looks": looks}
    key = Key("leak", "golden", "notes")
    at = run.started_at + timedelta(hours=2)
    alert = make.seen(at, [Sighting(key, "sure", 0.14, content=content)], run)
    make.act(
        at + timedelta(hours=6), alert, lambda it: alert_life.acknowledge(it, "priya", "looking at its store")
    )
    return alert


def _failing(make: _Maker) -> int:
    run = queries.run(make.db, make.world.invalid_run)
    assert run is not None
    return make.seen(
        run.started_at + timedelta(minutes=9), sightings(ClosedRun("contract", "notes", "invalid")), run
    )


def _muted(make: _Maker, run: RunRow) -> int:
    at = run.started_at + timedelta(hours=1)
    leg = Leg("vector", 13_311, 14_020)
    seen = sightings(ClosedRun("golden", "dense", "whole", legs=[leg]))
    dense = make.runs("golden", "dense")[-4]
    alert = make.seen(at, [one for one in seen if one.standing == "sure"], dense)
    until = make.world.nights[-1] + timedelta(days=9)
    make.act(
        at, alert, lambda it: alert_life.mute(it, until, at, "jonas", "the index is built anew on Friday")
    )
    return alert


def _moved(metric: str, change: float) -> dict[str, Any]:
    return {"metric": metric, "change": change, "worse": True, "stage": "suspected", "old": 9.0, "new": 12.4}


def _early(make: _Maker, standing: Any, backend: str, metric: str, kind: str, night: int = -1) -> int:
    run = make.runs("golden", backend)[night]
    key = Key(kind, "golden", backend, metric)
    bar = {"metric": metric, "bar": 0.05, "n": 29, "mean": 0.09, "low": 0.03, "high": 0.21}
    content = _moved(metric, 0.38) if kind == "slower" else bar
    return make.seen(
        run.started_at + timedelta(hours=1), [Sighting(key, standing, 0.3, content=content)], run
    )


def _resolved(make: _Maker) -> int:
    at = make.world.nights[-20]
    alert = make.seen(at, missed({"nightly": [f"{at:%Y-%m-%dT%H:%MZ}"]}, ["nightly"]))
    make.act(at + timedelta(hours=2), alert, lambda it: alert_life.acknowledge(it, "priya"))
    make.seen(at + timedelta(hours=6), missed({}, ["nightly"]))
    make.act(at + timedelta(hours=8), alert, lambda it: alert_life.judge(it, "real", "priya"))
    return alert


def _turned(make: _Maker, backend: str, night: int, kind: str = "regression") -> tuple[int, RunRow, Key]:
    """An alert on contract that opened, of two cases."""
    run = make.runs("contract", backend)[night]
    mem0 = make.content(make.runs("golden", "mem0")[-1])
    names = [row.case for row in queries.run_cases(make.db, run.id, with_hits=False)][:2]
    side = "gained" if kind == "improvement" else "lost"
    verdict = "better" if kind == "improvement" else "worse"
    lists = {"lost": [], "gained": [], side: names, "critical": [], "verdict": verdict, "stage": "confirmed"}
    key = Key(kind, "contract", backend)
    at = run.started_at + timedelta(hours=1)
    sighting = Sighting(key, "sure", 0.14, tuple(names), mem0 | lists)
    return make.seen(at, [sighting], run), run, key


def _retracted(make: _Maker) -> int:
    alert, run, key = _turned(make, "dense", -14)
    make.seen(run.started_at + timedelta(hours=5), [Sighting(key, "clear")], run)
    make.act(
        run.started_at + timedelta(hours=9),
        alert,
        lambda it: alert_life.judge(it, "noise", "jonas", "the provider"),
    )
    return alert


def _intended(make: _Maker) -> int:
    alert, run, _ = _turned(make, "hybrid", -25, "improvement")
    with time_machine.travel(run.started_at + timedelta(hours=9), tick=False):
        writes.intend_alert(make.db, alert, "jonas", "RRF weights .6 and .4")
    return alert


def _died(make: _Maker) -> int:
    alert = _early(make, "suspicion", "keyword", "recall_ms", "slower", night=-5)
    run = make.runs("golden", "keyword")[-5]
    make.seen(
        run.started_at + timedelta(hours=3),
        [Sighting(Key("slower", "golden", "keyword", "recall_ms"), "clear")],
        run,
    )
    return alert


def _drill(make: _Maker) -> int:
    run = make.runs("contract", "hybrid")[-2]
    mem0 = make.content(make.runs("golden", "mem0")[-1])
    sighting = Sighting(
        Key("regression", "contract", "hybrid"), "sure", 0.5, (), mem0 | {"lost": [], "critical": []}
    )
    return make.seen(run.started_at + timedelta(hours=1), [sighting], run, drill=True)


def _hostile(make: _Maker) -> int:
    """A person's reason and a case that try to be markup."""
    run = make.runs("golden", "dense")[-1]
    mem0 = make.content(make.runs("golden", "mem0")[-1])
    content = mem0 | {"lost": [HOSTILE_CASE], "critical": [HOSTILE_CASE]}
    sighting = Sighting(Key("critical", "golden", "dense"), "sure", 1.0, (HOSTILE_CASE,), content)
    suspects = [
        {
            "name": HOSTILE,
            "old": "1",
            "new": "2",
            "kind": "packages",
            "moved_before": False,
            "sentence": HOSTILE,
        }
    ]
    at = run.started_at + timedelta(hours=1)
    alert = make.seen(at, [sighting], run, suspects=suspects, owner=HOSTILE)
    make.act(at + timedelta(minutes=5), alert, lambda it: alert_life.acknowledge(it, HOSTILE[:40], HOSTILE))
    return alert


def _sent(db: Database) -> None:
    """The one channel took all but the newest, which wait; the other refused one, and then was gone."""
    for _ in range(8):
        claim = writes.claim_delivery(db, "team", "sender")
        assert claim is not None
        writes.mark_sent(db, claim, 200)
    for _ in range(2):
        claim = writes.claim_delivery(db, "ops", "sender")
        assert claim is not None
        writes.mark_sent(db, claim, 202)
    refused = writes.claim_delivery(db, "ops", "sender")
    assert refused is not None
    writes.give_up(db, refused, 500, "the server answered 500 for 24 h")
    gone = writes.claim_delivery(db, "ops", "sender")
    assert gone is not None
    writes.disable_channel(db, gone, 404, "HTTP 404: no such hook", "0f3a")


def _proven(db: Database, nights: Sequence[datetime], drill: int) -> None:
    """Weekly drills: one that did not arrive, and the newest, which did."""
    for night, error in ((nights[-9], "not delivered within 15 min"), (nights[-2], None)):
        with time_machine.travel(night + timedelta(hours=3), tick=False):
            proof = writes.begin_proof(db, "contract", "hybrid", "stale-first", "team")
        with time_machine.travel(night + timedelta(hours=3, minutes=4), tick=False):
            took = (61.0, 131.0, None) if error else (58.0, 124.0, 126.5)
            writes.finish_proof(db, proof, drill, *took, error)


def many(db: Database, n: int) -> None:
    """So many open alerts, each of a metric of its own."""
    run = queries.runs(db, suites=["golden"], backends=["hybrid"], statuses=["whole"], limit=1)[0]
    for number in range(n):
        key = Key("slower", "golden", "hybrid", f"metric-{number}")
        sighting = Sighting(key, "sure", 0.3, content=_moved("recall_ms", 0.38))
        told = Facts(run.started_at + timedelta(seconds=number) - timedelta(days=number % 7))
        writes.turn_alerts(db, lambda known, s=sighting, t=told: advance([], [s], t))
