"""A comparison of two backends before a migration: how long it takes to compute, and how often it lets a loss
pass.

Of two runs of 500 cases, four trials each, with 26 tags: every interval, from a record, in a fresh process;
beside it the same intervals by `scipy.stats.bootstrap` in a loop. Then simulated pairs of backends whose
candidate loses just the margin of three points, and pairs that are equal: how often each rule says "ship".
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy.stats import binomtest, bootstrap

from benchmarks.measure import Bar, fresh, parser, tell
from store import queries, writes
from store.database import Database, open_database
from store.records import CaseOutcome, CaseRecord, NewRun, ScenarioOutcome, SuiteRecord
from store.rollups import roll_up
from store.stats.intervals import Floats
from store.stats.margins import migration

TRIALS, TAGS, SCENARIO = 4, 26, 40
SCORED = ("recall@k", "precision@k", "mrr", "ndcg@k", "unwanted", "unwanted_first", "abstained")
MARGIN, SEED = 0.03, 20261201
BROKEN = 0.03
"""How often a broken case passes all the same."""
SIZES = (89, 180, 324)
MAX_S, MAX_LET_PASS = 1.0, 0.06


def main() -> int:
    given = parser(__doc__)
    given.add_argument("--cases", type=int, default=500)
    given.add_argument("--worlds", type=int, default=400, help="simulated pairs a cell")
    given.add_argument("--times", type=int, default=3, help="fresh processes")
    given.add_argument("--time", metavar="URL", help=argparse.SUPPRESS)
    arguments = given.parse_args()
    if arguments.time:
        print(json.dumps(_timed(arguments.time)))
        return 0
    found = sorted(_cold(arguments), key=lambda one: one["cold"])[arguments.times // 2]
    shares = {n: _shares(n, arguments.worlds) for n in SIZES}
    worst = max(cell["ours"] for cells in shares.values() for name, cell in cells.items() if name == "margin")
    bars = [
        Bar("s_of_a_comparison_of_500_cases_cold", round(found["cold"], 3), MAX_S),
        Bar("share_of_losses_of_the_margin_let_pass", round(worst, 3), MAX_LET_PASS),
    ]
    return tell(arguments.json, _lines(arguments, found, shares), bars)


# How long --------------------------------------------------------------------------------------------------


def _cold(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="memtrend-bench-") as folder:
        url = f"sqlite:///{Path(folder) / 'record.db'}"
        make(url, arguments.cases)
        for _ in range(arguments.times):
            yield fresh(str(Path(__file__)), "--time", url)


def make(url: str, cases: int) -> None:
    """A record with a run of each of two backends."""
    db = open_database(url)
    version = writes.register_suite(db, _suite(cases))
    for number, backend in enumerate(("old", "new")):
        _run(db, version, backend, cases, np.random.default_rng(SEED + number))
    db.close()


def _timed(url: str) -> dict[str, Any]:
    """In a process that has loaded nothing of ours but the record."""
    db = open_database(url)
    (a,), (b,) = (queries.runs(db, backends=[name]) for name in ("old", "new"))
    took = [_seconds(lambda: queries.comparison(db, "large", (a.id,), (b.id,))) for _ in range(3)]
    record = _columns(db, a.id, b.id)
    theirs = _seconds(lambda: [_bootstrapped(column) for column in record])
    return {"cold": took[0], "warm": min(took), "theirs": theirs, "columns": len(record)}


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _columns(db: Database, a: int, b: int) -> list[Floats]:
    """Of every metric and of the pass rate of every tag, the differences."""
    old, new = ({row.case_id: row for row in queries.run_cases(db, run, with_hits=False)} for run in (a, b))
    both = sorted(old.keys() & new.keys())
    found = [_differences(old, new, both, name) for name in ("pass", *SCORED)]
    for tag in {tag for row in old.values() for tag in row.tags}:
        found.append(_differences(old, new, [case for case in both if tag in old[case].tags], "pass"))
    return found


def _differences(old: Mapping[int, Any], new: Mapping[int, Any], cases: list[int], name: str) -> Floats:
    pairs = [(old[case].scores.get(name), new[case].scores.get(name)) for case in cases]
    return np.array([after - before for before, after in pairs if None not in (before, after)])


def _bootstrapped(differences: Floats) -> object:
    return bootstrap((differences,), np.mean, n_resamples=9999, confidence_level=0.9, vectorized=True)


def _suite(cases: int) -> SuiteRecord:
    records = tuple(
        CaseRecord(f"case-{n:03d}", "1", f"question {n}", tags=(f"tag-{n % TAGS:02d}",)) for n in range(cases)
    )
    return SuiteRecord("large", "golden", "own", "v1", cases, records)


def _run(db: Database, version: int, backend: str, cases: int, random: np.random.Generator) -> None:
    backend_id = writes.register_backend(db, backend, "keyword", {}, "default")
    token = writes.acquire_lease(db, writes.backend_lease(backend), "benchmark", 60)
    assert token is not None, "nobody else has this record"
    new = NewRun(version, backend_id, None, "cli", token, TRIALS * cases, TRIALS, "1", trials=TRIALS)
    run_id = writes.open_run(db, new)
    rates = np.where(random.random(cases) < 0.8, 0.99, random.random(cases))
    for trial in range(1, TRIALS + 1):
        for first in range(0, cases, SCENARIO):
            answers = [
                _answer(number, trial, bool(random.random() < rates[number]), random)
                for number in range(first, min(first + SCENARIO, cases))
            ]
            played = ScenarioOutcome(f"s{first}", trial, "ok", 40, 80.0, 1.0, 0, 0, 0.0, cases=tuple(answers))
            writes.save_scenario(db, run_id, played, token)
    rolled = roll_up(queries.case_scores(db, run_id), queries.scenario_stats(db, run_id))
    writes.close_run(db, run_id, "whole", rolled, token=token)
    writes.release_lease(db, writes.backend_lease(backend), token)


def _answer(number: int, trial: int, passed: bool, random: np.random.Generator) -> CaseOutcome:
    scores = {"pass": float(passed), "returned_tokens": float(random.integers(20, 90))}
    scores |= {name: float(random.random()) for name in SCORED}
    detail = {"hits": [{"id": "m", "text": "a memory", "score": 0.5}], "reply": None}
    failure = None if passed else "not stored"
    return CaseOutcome(
        f"case-{number:03d}", trial, "ok", failure, float(random.gamma(9, 2)), 1, 5, scores, detail
    )


# How often it lets a loss pass -----------------------------------------------------------------------------


def _shares(n: int, worlds: int) -> dict[str, dict[str, float]]:
    """By what is true of the candidate: the share of pairs that each rule would ship."""
    return {
        "margin": _shipped(n, worlds, MARGIN, SEED + n),
        "equal": _shipped(n, worlds, 0.0, SEED + n + 1),
    }


def _shipped(n: int, worlds: int, loss: float, seed: int) -> dict[str, float]:
    random, shipped = np.random.default_rng(seed), dict[str, int]()
    for _ in range(worlds):
        before, after = _world(n, loss, random)
        for name, rule in RULES.items():
            shipped[name] = shipped.get(name, 0) + rule(before, after)
    return {name: count / worlds for name, count in shipped.items()}


def _world(n: int, loss: float, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Cases as they are met with: most pass always, a few never, some now and then. The candidate breaks each
    case that passed with such a chance that `loss` is expected."""
    kind = random.random(n)
    rates = np.select([kind < 0.82, kind < 0.9], [0.99, 0.02], random.uniform(0.05, 0.95, n))
    expected = 0.82 * (0.99 - BROKEN)
    broken = (kind < 0.82) & (random.random(n) < loss / expected)
    before = random.random((n, TRIALS)) < rates[:, None]
    after = random.random((n, TRIALS)) < np.where(broken, BROKEN, rates)[:, None]
    return before.astype(float), after.astype(float)


def _ours(before: Floats, after: Floats) -> bool:
    found = migration(before, after, margin=MARGIN, resamples=2000)
    return found.verdict in ("better", "non_inferior")


def _difference(before: Floats, after: Floats) -> bool:
    """The means, compared: what a dashboard of two numbers invites to."""
    return bool((after - before).mean() > -MARGIN)


def _mcnemar(before: Floats, after: Floats) -> bool:
    """No significant difference of one run each, taken for none."""
    lost = int(((before[:, 0] > 0.5) & (after[:, 0] < 0.5)).sum())
    gained = int(((before[:, 0] < 0.5) & (after[:, 0] > 0.5)).sum())
    return lost + gained == 0 or binomtest(lost, lost + gained).pvalue > 0.05


RULES: dict[str, Callable[[Floats, Floats], bool]] = {
    "ours": _ours,
    "means": _difference,
    "mcnemar": _mcnemar,
}


def _lines(
    arguments: argparse.Namespace, found: dict[str, Any], shares: dict[int, dict[str, dict[str, float]]]
) -> Iterator[str]:
    of = f"{arguments.cases} cases x {TRIALS} trials a side, {found['columns']} intervals and the ratios"
    ratio = found["theirs"] / found["warm"]
    yield f"comparison of {of}: {found['cold']:.2f} s cold, {found['warm']:.2f} s again"
    yield f"scipy.stats.bootstrap in a loop, its intervals alone: {found['theirs']:.2f} s, {ratio:.1f} x"
    yield f"shipped, of {arguments.worlds} pairs: ours; means under 3 points apart; no significant McNemar"
    for n, cells in shares.items():
        for truth, cell in cells.items():
            told = "  ".join(f"{cell[name]:.3f}" for name in RULES)
            yield f"  {n} cases, candidate {'loses 3 points' if truth == 'margin' else 'equal'}: {told}"


if __name__ == "__main__":
    sys.exit(main())
