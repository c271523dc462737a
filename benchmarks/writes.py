"""What the record costs: case results through `save_scenario`, against plain SQLAlchemy Core inserts.

Both store the same rows in files of their own with the same tables, in transactions of the same size. They
take turns, so that what else the machine does weighs on both; the ratio is the median over the pairs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


def main() -> int:
    arguments = _arguments()
    runs = max(1, round(arguments.rows / (CASES * SCENARIOS)))
    with tempfile.TemporaryDirectory(prefix="memtrend-bench-") as folder:
        pairs = [_pair(Path(folder), number, runs) for number in range(arguments.pairs)]
    ratio = statistics.median(ours / core for ours, core, _ in pairs)
    size = pairs[0][2] / (runs * CASES * SCENARIOS)
    bars = {
        "store_cpu_over_core": {"value": round(ratio, 3), "target": MAX_RATIO, "met": ratio <= MAX_RATIO},
        "bytes_per_case_result": {"value": round(size, 1), "target": MAX_BYTES, "met": size <= MAX_BYTES},
    }
    _tell(arguments, pairs, runs * CASES * SCENARIOS, bars)
    return 0 if all(bar["met"] for bar in bars.values()) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="case results a side, in runs of 2,000")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the bars as one JSON document")
    return parser.parse_args()


def _pair(folder: Path, number: int, runs: int) -> tuple[float, float, int]:
    """CPU seconds of ours and of Core's, and the size of our file in bytes. Who goes first alternates."""
    sides: list[Callable[[Database, int], float]] = [_through_store, _through_core]
    seconds = {}
    sizes = {}
    for side in sides if number % 2 == 0 else reversed(sides):
        path = folder / f"{side.__name__}.db"
        db = open_database(f"sqlite:///{path}")
        seconds[side] = side(db, runs)
        db.close()
        sizes[side] = path.stat().st_size
        path.unlink()
    return seconds[_through_store], seconds[_through_core], sizes[_through_store]


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


def _tell(arguments: argparse.Namespace, pairs: list[Any], rows: int, bars: dict[str, Any]) -> None:
    if arguments.json:
        print(json.dumps({"bars": bars}))
        return
    for ours, core, _ in pairs:
        print(f"{rows} case results of {len(SCORED)} metrics: store {ours:.1f} s, Core {core:.1f} s of CPU")
    for name, bar in bars.items():
        print(f"{name}: {bar['value']} (at most {bar['target']}): {'met' if bar['met'] else 'MISSED'}")


if __name__ == "__main__":
    sys.exit(main())
