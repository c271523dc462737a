"""What looking for alerts costs when a run closes, against a plain loop that compares every metric with the
run before and keeps an alert for each that moved.

A suite of 500 cases, every metric that a case or a scenario is scored by, over all cases and by tag; nights
on which a few cases waver, and last ones that lose every tenth case. The verdict is there already: it
is reached when the run closes, after the look that it wants.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import statistics
import tempfile
import time
from typing import Any

from benchmarks.measure import Bar, parser, tell
from collectors.detection import detect_in
from store import queries, writes
from store.database import Database, open_database
from store.evidence import Verdict, entry
from store.metrics import METRICS
from store.records import CaseOutcome, CaseRecord, NewRun, ScenarioOutcome, SuiteRecord
from store.rollups import roll_up
from store.settings import Settings
from store.verdicts import judge

MAX_MS = 500.0
GOOD, BAD = 8, 5
"""Nights before the fall, and nights that are looked at."""
TAGS = 5
SCORED = ("recall@k", "precision@k", "mrr", "ndcg@k", "abstained", "returned_tokens")
LIMIT = 0.03
"""The change of a mean from one run to the next that the plain loop takes for news."""


def main() -> int:
    given = parser(__doc__)
    given.add_argument("--cases", type=int, default=500)
    arguments = given.parse_args()
    with tempfile.TemporaryDirectory(prefix="memtrend-bench-") as folder:
        db = open_database(f"sqlite:///{Path(folder) / 'record.db'}")
        found = _measured(db, arguments.cases)
        db.close()
    bars = [Bar("ms_of_a_closed_run", found["ours"], MAX_MS), Bar("alerts_of_one_fall", found["alerts"], 1)]
    series = f"{arguments.cases} cases, {found['metrics']} metrics, {found['series']} series with their tags"
    lines = [
        f"{series}: {found['ours']:.0f} ms for a run that fell, {found['good']:.0f} ms for one that did not",
        f"the plain loop: {found['loop']:.0f} ms, and {found['loop_alerts']} alerts in {BAD} nights",
        f"ours: {found['alerts']} alert in as many",
    ]
    return tell(arguments.json, lines, bars)


def _measured(db: Database, cases: int) -> dict[str, Any]:
    settings = Settings.model_validate({"database": {"url": "sqlite:///record.db"}, "backends": {}})
    version = writes.register_suite(db, _suite(cases))
    good, bad, loop = [], [], []
    for _ in range(GOOD):
        run_id = _night(db, version, cases, lost=False)
        good.append(_timed(db, settings))
    for _ in range(BAD):
        run_id = _night(db, version, cases, lost=True)
        loop.append(_looped(db, run_id))
        bad.append(_timed(db, settings))
    row = queries.run(db, run_id)
    assert row is not None, "it has just ended"
    return {
        "ours": round(statistics.median(bad), 1),
        "good": statistics.median(good),
        "loop": statistics.median(ms for ms, _ in loop),
        "loop_alerts": sum(n for _, n in loop),
        "alerts": len(queries.alerts(db, states=["suspected", "open"])),
        "metrics": len(row.metrics),
        "series": len(row.metrics) + len(queries.run_tags(db, run_id)),
    }


def _suite(cases: int) -> SuiteRecord:
    told = tuple(CaseRecord(f"case-{n}", "1", f"{n}?", tags=(f"tag-{n % TAGS}",)) for n in range(cases))
    return SuiteRecord("many", "golden", "own", "1", cases, told)


def _night(db: Database, version: int, cases: int, *, lost: bool) -> int:
    """A run that has closed, with the look at it that it wants."""
    run_id, verdict = _run(db, version, cases, lost)
    if verdict.wants_a_look:
        _run(db, version, cases, lost, looks_at=run_id)
    return run_id


def _run(
    db: Database, version: int, cases: int, lost: bool, looks_at: int | None = None
) -> tuple[int, Verdict]:
    backend = writes.register_backend(db, "mine", "mine", {}, "team")
    token = writes.acquire_lease(db, writes.backend_lease("mine"), "bench", 600)
    assert token is not None, "nobody else has it"
    environment = writes.register_environment(db, {"packages": {"mine": "2" if lost else "1"}})
    trials, trigger = (3, queries.look_trigger(looks_at)) if looks_at else (1, "bench")
    subset = queries.CONFIRM if looks_at else ""
    new = NewRun(version, backend, environment, trigger, token, cases * trials, trials, "1", subset, trials)
    run_id = writes.open_run(db, new)
    for trial in range(1, trials + 1):
        outcomes = tuple(_outcome(n, trial, fails=_fails(n, run_id + trial, lost)) for n in range(cases))
        played = ScenarioOutcome("s", trial, "ok", 7, 10.0, 1.0, 1, 20, 0.5, cases=outcomes)
        writes.save_scenario(db, run_id, played, token)
    rolled = roll_up(queries.case_scores(db, run_id), queries.scenario_stats(db, run_id))
    record = queries.verdict_record(db, looks_at or run_id, closing=run_id)
    assert record is not None, "it is over the whole suite"
    verdict = judge(record)
    said = entry(looks_at or run_id, verdict)
    writes.close_run(db, run_id, "whole", rolled, token=token, verdict=said)
    writes.release_lease(db, writes.backend_lease("mine"), token)
    return run_id, verdict


def _fails(number: int, night: int, lost: bool) -> bool:
    return (lost and number % 10 == 0) or (7 * number + 13 * night) % 97 == 0


def _outcome(number: int, trial: int, *, fails: bool) -> CaseOutcome:
    scores = dict.fromkeys(SCORED, 0.5 if fails else 1.0) | {"pass": 0.0 if fails else 1.0}
    kind = "not stored" if fails else None
    return CaseOutcome(f"case-{number}", trial, "ok", kind, 2.0, 1, 5, scores, {"hits": []})


def _timed(db: Database, settings: Settings) -> float:
    """Milliseconds for a run, and for the look at it where one was taken."""
    begin = time.perf_counter()
    for one in queries.undetected(db):
        detect_in(db, settings, one)
    return 1000 * (time.perf_counter() - begin)


def _looped(db: Database, run_id: int) -> tuple[float, int]:
    """Milliseconds, and alerts: one for each metric and tag that moved from the run before, every night."""
    begin, found = time.perf_counter(), 0
    before = queries.previous_run(db, run_id)
    assert before is not None, "there were good nights"
    old, new = queries.case_scores(db, before.id), queries.case_scores(db, run_id)
    for tag in ("", *(f"tag-{n}" for n in range(TAGS))):
        for metric in METRICS:
            means = [
                [one.scores[metric] for one in rows if metric in one.scores and (not tag or tag in one.tags)]
                for rows in (old, new)
            ]
            if all(means):
                then, now = (sum(values) / len(values) for values in means)
                if abs(now - then) > LIMIT:
                    said = f"{metric} of {tag or 'all'}: {then} -> {now}"
                    writes.add_event(db, "error", "loop", said, run_id)
                    found += 1
    return 1000 * (time.perf_counter() - begin), found


if __name__ == "__main__":
    sys.exit(main())
