"""What the cases of a made-up year came to, as arrays, and the rollup of each run from them.

The rollup has the rows and means that `store/rollups.py` gives. Its intervals of means are those of a normal
distribution, and of medians that of the mean: a bootstrap of 16,000 runs takes ten minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from store.metrics import METRICS
from store.stats.intervals import wilson

SCORED = ("pass", "recall@k", "precision@k", "mrr", "ndcg@k", "unwanted", "unwanted_first", "returned_tokens")
SCORED_IDS = np.array([METRICS[name].id for name in SCORED])
SLIPS = 0.012
"""Share of the answers that come out otherwise than usual."""
SPREAD = 1.96
FIRST_DRIFT = 10
"""The night from which on the anchor is known."""


class Night(NamedTuple):
    """The answers of one run, a row a case. `failed`: calls that got no answer. `scenarios`: plant_ms."""

    failed: np.ndarray
    passed: np.ndarray
    scores: np.ndarray
    latency_ms: np.ndarray
    attempts: np.ndarray
    plant_ms: np.ndarray


def able(skill: float, cases: int, dice: np.random.Generator) -> np.ndarray:
    """Which cases a backend usually passes."""
    return dice.random(cases) < skill


def night(usually: np.ndarray, ms: float, scenarios: int, invalid: bool, dice: np.random.Generator) -> Night:
    cases = len(usually)
    passed = usually != (dice.random(cases) < SLIPS)
    rank = np.where(passed, dice.integers(1, 3, cases), dice.integers(3, 9, cases))
    found = rank <= 5
    reciprocal = np.where(found, 1 / rank, 0.0)
    unwanted = np.where(passed, 0.0, dice.integers(0, 3, cases) / 5)
    scores = np.column_stack([
        passed, found, found * 0.2, reciprocal, np.where(found, 1 / np.log2(rank + 1), 0.0), unwanted,
        ~passed & (unwanted > 0.2), dice.integers(40, 76, cases),
    ]).astype(np.float64)  # fmt: skip
    failed = (np.arange(cases) < 0.2 * cases) & invalid
    attempts = np.where(failed, 3, 1 + (dice.random(cases) < 0.01))
    latency = ms * dice.uniform(0.8, 1.6, cases)
    return Night(failed, passed, scores, latency, attempts, dice.uniform(250, 400, scenarios))


def rollup(one: Night, tagged: Sequence[tuple[str, np.ndarray]], drift: float | None) -> Iterator[tuple]:
    """(metric id, tag, n, mean, low, high) of every metric over the cases of every tag, '' for all."""
    answered = ~one.failed
    columns = [
        ("error_rate", one.failed, None),
        ("first_try_errors", one.failed | (one.attempts > 1), None),
        ("attempts", one.attempts, None),
        *((name, one.scores[:, place], answered) for place, name in enumerate(SCORED)),
        ("recall_ms", one.latency_ms, answered),
        ("returned_n", np.full(len(answered), 5), answered),
    ]
    for tag, members in tagged:
        for name, values, only in columns:
            chosen = values[members if only is None else members & only].astype(np.float64)
            if len(chosen):
                yield METRICS[name].id, tag, len(chosen), *_interval(name, chosen)
    yield from _scenarios(one)
    if drift is not None:
        yield METRICS["anchor_drift"].id, "", len(answered), drift, None, None


PLANTS = 4
"""Memories of a scenario."""


def _scenarios(one: Night) -> Iterator[tuple]:
    scenarios = len(one.plant_ms)
    yield METRICS["plant_ms"].id, "", scenarios, *_interval("plant_ms", one.plant_ms / PLANTS)
    for name, value in (("settle_ms", 4.0), ("ingest_calls", 0.0), ("ingest_tokens", 0.0), ("money", 0.0)):
        yield METRICS[name].id, "", scenarios, value, value, value


def _interval(name: str, values: np.ndarray) -> tuple[float, float, float]:
    """Mean or median, low, high."""
    n, metric = len(values), METRICS[name]
    mean = float(values.mean())
    if metric.unit == "share":
        found = wilson(min(mean * n, n), n)
        return mean, found.low, found.high
    half = SPREAD * float(values.std()) / n**0.5
    return (float(np.median(values)) if metric.kind == "median" else mean), mean - half, mean + half
