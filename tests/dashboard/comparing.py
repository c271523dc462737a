"""Comparisons made by hand, and two backends asked the same questions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from store import writes
from store.comparing import foreseen
from store.comparisons import Comparison, MetricRow, RatioRow, Reference, SideTold, TagRow, Turned
from store.database import Database
from store.records import CaseRecord, SuiteRecord
from store.stats.margins import migration
from tests.store.seeding import Seed, outcome, scenario


def turned(case: str, *, lost: bool = True, **fields: Any) -> Turned:
    passes = (4, 0) if lost else (0, 4)
    told = {
        "case_id": 1, "query": f"what of {case}?", "tags": ("speaker",), "critical": False, "confirmed": True,
        "failure": "wrong speaker", "a_hit": "a said", "b_hit": "b said", "a_run": 1, "b_run": 2,
    }  # fmt: skip
    return Turned(
        case=case, a_passes=passes[0], a_trials=4, b_passes=passes[1], b_trials=4, **{**told, **fields}
    )


def tag(name: str, n: int = 12, difference: float = 0.0, **fields: Any) -> TagRow:
    told = {
        "critical": False, "a": 0.9, "b": 0.9 + difference, "low": difference - 0.2, "high": difference + 0.2,
        "word": "no_confirmed_loss", "lost": (), "gained": (),
    }  # fmt: skip
    return TagRow(tag=name, n=n, difference=difference, **{**told, **fields})


def comparison(n: int = 180, lost: int = 4, gained: int = 6, **fields: Any) -> Comparison:
    """Of `n` cases that passed on A but for `gained` of them, and on B but for `lost` others."""
    a, b = np.ones(n), np.ones(n)
    a[:gained], b[gained : gained + lost] = 0.0, 0.0
    found = migration(a, b)
    told = {
        "suite": "golden", "suite_version": "5a1d20ce", "suite_kind": "golden", "suite_origin": "own",
        "a": side("mem0", float(a.mean())), "b": side("hybrid", float(b.mean())),
        "migration": found, "foresight": foreseen(n, 0.03), "cases": n, "clusters": None, "dropped": {},
        "metrics": (
            MetricRow("recall@k", n, 0.92, 0.95, 0.03, -0.004, 0.061, "BCa bootstrap", None),
            MetricRow("unwanted_first", 40, 0.1, 0.025, 0.075, -0.01, 0.178, "BCa bootstrap", None),
        ),
        "tags": (tag("time", 28), tag("speaker", 24, -0.125, word="lost", lost=("who-01",))),
        "lost": tuple(turned(f"who-{i:02}") for i in range(lost)),
        "gained": tuple(turned(f"when-{i:02}", lost=False) for i in range(gained)),
        "ratios": (RatioRow("recall_ms_p95", 400.0, 180.0, 0.45, 0.41, 0.5, n, None),),
        "references": (Reference("nothing", "floor", 0.1, 0.05, 0.15, n, 3),),
        "blind_spot": 0.02, "changes": None, "latencies": (times(200.0, n), times(90.0, n)), "warnings": (),
    }  # fmt: skip
    return Comparison(**{**told, **fields})


def side(name: str, rate: float) -> SideTold:
    return SideTold(name, name, "", (), 4, rate, rate - 0.05, min(rate + 0.05, 1.0))


def times(middle: float, n: int) -> tuple[float, ...]:
    return tuple(middle * (0.5 + place / n) for place in range(n))


# In a record ----------------------------------------------------------------------------------------------


def asked(
    db: Database, backend: str, *, lost: Collection[str] = (), errors: Collection[str] = (), trials: int = 4,
    cases: Sequence[str] = ("a", "b", "c", "d"), critical: Collection[str] = (),
) -> int:  # fmt: skip
    """A whole run in which all passed but what was lost: its id."""
    records = tuple(
        CaseRecord(name, "1", f"what of {name}?", tags=("all",), critical=name in critical) for name in cases
    )
    seed = Seed(db)
    suite = writes.register_suite(db, SuiteRecord("golden", "golden", "own", "".join(cases), 7, records))
    run_id, token = seed.open(suite, backend, trials=trials)
    for trial in range(1, trials + 1):
        answers = [_answer(name, trial, name in lost, name in errors) for name in cases]
        writes.save_scenario(db, run_id, scenario(answers, trial=trial), token)
    seed.close(run_id, token, backend)
    return run_id


def _answer(name: str, trial: int, is_lost: bool, is_error: bool) -> Any:
    if is_error:
        return outcome(name, passed=None, trial=trial, status="error")
    return outcome(name, passed=not is_lost, trial=trial)
