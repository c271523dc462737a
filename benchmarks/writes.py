"""What the record costs: case results through `save_scenario`, against plain SQLAlchemy Core inserts.

Both store the same rows in files of their own with the same tables, in transactions of the same size. They
take turns, so that what else the machine does weighs on both; the ratio is the median over the pairs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benchmarks.measure import Bar, pairs, parser, tell
from store import models as m
from store import writes
from store.database import Database, open_database
from store.metrics import METRICS
from store.records import CaseOutcome, CaseRecord, NewRun, ScenarioOutcome, SuiteRecord

CASES = 100  # a scenario
SCENARIOS = 20  # a run: 2,000 cases
SCORED = ("pass", "recall@k", "precision@k", "mrr", "ndcg@k", "unwanted")
MAX_RATIO = 1.5
MAX_BYTES = 250


class Cost(NamedTuple):
    """CPU seconds of storing, and bytes of the file that it made."""

    seconds: float
    size: int


def main() -> int:
    given = parser(__doc__)
    given.add_argument("--rows", type=int, default=1_000_000, help="case results a side, in runs of 2,000")
    given.add_argument("--pairs", type=int, default=5)
    arguments = given.parse_args()
    runs = max(1, round(arguments.rows / (CASES * SCENARIOS)))
    rows = runs * CASES * SCENARIOS
    costs = pairs(arguments.pairs, lambda: _cost(_through_store, runs), lambda: _cost(_through_core, runs))
    ratio = statistics.median(ours.seconds / core.seconds for ours, core in costs)
    bars = [
        Bar("store_cpu_over_core", round(ratio, 3), MAX_RATIO),
        Bar("bytes_per_case_result", round(costs[0][0].size / rows, 1), MAX_BYTES),
    ]
    lines = [
        f"{rows:,} case results of {len(SCORED)} metrics: {ours.seconds:.1f} s of CPU through the store, "
        f"{core.seconds:.1f} s by Core inserts"
        for ours, core in costs
    ]
    return tell(arguments.json, lines, bars)


def _cost(store: Callable[[Database, int], float], runs: int) -> Cost:
    with tempfile.TemporaryDirectory(prefix="memtrend-bench-") as folder:
        path = Path(folder) / "record.db"
        db = open_database(f"sqlite:///{path}")
        seconds = store(db, runs)
        db.close()
        return Cost(seconds, path.stat().st_size)


def _through_store(db: Database, runs: int) -> float:
    seconds = 0.0
    for run_id in _runs(db, runs):
        outcomes = list(_outcomes(run_id))
        begin = time.process_time()
        for outcome in outcomes:
            writes.save_scenario(db, run_id, outcome, 1)
        seconds += time.process_time() - begin
    return seconds


def _through_core(db: Database, runs: int) -> float:
    """The rows are ready as dicts before the clock starts: what is timed is inserting alone."""
    seconds = 0.0
    first = 1
    for run_id in _runs(db, runs):
        rows = []
        for outcome in _outcomes(run_id):
            rows.append(_as_rows(run_id, outcome, first))
            first += CASES
        begin = time.process_time()
        for scenario, cases, scores in rows:
            with db.write() as connection:
                connection.execute(m.scenario_result.insert(), [scenario])
                connection.execute(m.case_result.insert(), cases)
                connection.execute(m.score.insert(), scores)
        seconds += time.process_time() - begin
    return seconds


def _runs(db: Database, runs: int) -> Iterator[int]:
    names = [f"s{scenario}-c{case}" for scenario in range(SCENARIOS) for case in range(CASES)]
    cases = tuple(CaseRecord(name, f"{name:0>16}", "which one was it?") for name in names)
    version = writes.register_suite(db, SuiteRecord("bench", "golden", "own", "v1", 0, cases))
    backend = writes.register_backend(db, "bench", "keyword", {})
    for _ in range(runs):
        new = NewRun(version, backend, None, "bench", 1, len(cases), SCENARIOS, "1")
        yield writes.open_run(db, new)


def _outcomes(run_id: int) -> Iterator[ScenarioOutcome]:
    for scenario in range(SCENARIOS):
        cases = tuple(_outcome(run_id, f"s{scenario}-c{case}", case) for case in range(CASES))
        yield ScenarioOutcome(f"s{scenario}", 1, "ok", 40, 12.5, 0.5, cases=cases)


def _outcome(run_id: int, name: str, case: int) -> CaseOutcome:
    lost = (case + run_id) % 5 == 0
    share = 1 / (1 + (case + run_id) % 7)
    scores = dict(zip(SCORED, (0.0 if lost else 1.0, share, 0.2, share, share / 3, 0.0), strict=True))
    failure = "returned but too low" if lost else None
    return CaseOutcome(name, 1, "ok", failure, 1.7 + case / 97, 1, 5, scores)


def _as_rows(
    run_id: int, outcome: ScenarioOutcome, first: int
) -> tuple[dict[str, Any], list[Any], list[Any]]:
    scenario = {
        "run_id": run_id, "trial": 1, "scenario": outcome.scenario, "status": "ok", "plants": 40,
        "plant_ms": 12.5, "settle_ms": 0.5, "ingest_calls": 0, "ingest_tokens": 0, "money": 0.0,
        "attempts": 1, "error": None,
    }  # fmt: skip
    number = int(outcome.scenario[1:])
    cases = [
        {
            "id": first + i, "run_id": run_id, "case_id": number * CASES + i + 1, "trial": 1,
            "status": case.status, "failure": case.failure, "latency_ms": case.latency_ms,
            "attempts": case.attempts, "returned_n": case.returned_n,
        }
        for i, case in enumerate(outcome.cases)
    ]  # fmt: skip
    scores = [
        {"case_result_id": first + i, "metric_id": METRICS[name].id, "scorer_id": 1, "value": value}
        for i, case in enumerate(outcome.cases)
        for name, value in case.scores.items()
    ]
    return scenario, cases, scores


if __name__ == "__main__":
    sys.exit(main())
