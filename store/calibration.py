"""What a calibration came to: two runs of one unchanged backend in a row, held against each other. Pure."""

from __future__ import annotations

import numpy as np

from store.answers import Table
from store.queries.verdicts import VerdictRecord
from store.records import Rollup
from store.rollups import EVERY
from store.stats.intervals import wilson
from store.verdicts import judge


def calibration_rollups(
    first: VerdictRecord, second: VerdictRecord, *, deterministic: bool = False
) -> list[Rollup]:
    """`noise_floor`: the share of cases that the two answered differently; `false_verdict`: whether the
    second would have been a suspicion. The latter is left out while the baseline is provisional, and where
    the first would have been one as well: then the backend has changed since its baseline, and there is
    nothing false about it."""
    rows = [*_noise_floor(second, first.run_id)]
    if first.baseline.provisional:
        return rows
    looks_changed = [
        judge(record, deterministic=deterministic).stage == "suspicion" for record in (first, second)
    ]
    if not looks_changed[0]:
        rows.append(Rollup("false_verdict", EVERY, 1, float(looks_changed[1]), None, None))
    return rows


def _noise_floor(record: VerdictRecord, first: int) -> list[Rollup]:
    table = Table(record, record.answers)
    one, other = table.trials(first)[:1], table.trials(record.run_id)[:1]
    if not (len(one) and len(other)):
        return []
    differing = np.abs(one[0] - other[0])
    differing = differing[~np.isnan(differing)]
    n, count = len(differing), float(differing.sum())
    if not n:
        return []
    interval = wilson(count, n)
    return [Rollup("noise_floor", EVERY, n, count / n, interval.low, interval.high)]
