"""Answers of many runs as arrays: a row a trial, a column a case, NaN where there is none. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.queries.verdicts import AnswerRow, ValueRow, VerdictRecord
from store.stats.intervals import Floats

Flags = NDArray[np.bool_]


class Table:
    """Answers, or one metric's values, by run as arrays: a column a case, or each of the `columns` of what
    else is counted; NaN for none."""

    def __init__(
        self,
        record: VerdictRecord,
        rows: Iterable[AnswerRow | ValueRow],
        columns: Collection[int] | None = None,
    ) -> None:
        known = [case.id for case in record.cases] if columns is None else sorted(columns)
        self.columns = {id: column for column, id in enumerate(known)}
        self.prime = frozenset(record.baseline.primed)
        self.rows = rows_by_trial(rows, self.columns)

    def nights(self, run_ids: Iterable[int]) -> Floats:
        """The first trial of each run, and every trial of one that primed the baseline."""
        return self._stacked(
            key for run_id in run_ids for key in self._keys(run_id) if key[1] == 1 or run_id in self.prime
        )

    def trials(self, run_id: int) -> Floats:
        return self._stacked(self._keys(run_id))

    def _keys(self, run_id: int) -> list[tuple[int, int]]:
        return sorted(key for key in self.rows if key[0] == run_id)

    def _stacked(self, keys: Iterable[tuple[int, int]]) -> Floats:
        found = [self.rows[key] for key in keys]
        return np.stack(found) if found else np.empty((0, len(self.columns)))


def rows_by_trial(
    rows: Iterable[tuple[Any, ...]], columns: Mapping[int, int]
) -> dict[tuple[int, int], Floats]:
    """(run, trial) -> a value a column, NaN for none. `rows` begin with run, case and trial, and end with the
    value; `columns`: case id -> its place."""
    found: dict[tuple[int, int], list[float]] = {}  # lists, since an array is slow to fill one by one
    for run_id, case_id, trial, *_, value in rows:
        column = columns.get(case_id)
        if column is not None and value is not None:
            if (run_id, trial) not in found:
                found[run_id, trial] = [np.nan] * len(columns)
            found[run_id, trial][column] = value
    return {key: np.array(row) for key, row in found.items()}


def mean(rows: Floats) -> Floats:
    """Of each column, over what was answered; NaN where nothing was."""
    known = ~np.isnan(rows)
    total = known.sum(axis=0)
    return np.where(total > 0, np.nansum(rows, axis=0) / np.maximum(total, 1), np.nan)


def constant(rows: Floats) -> Flags:
    """Columns that hold one answer only, or none."""
    lowest = np.where(np.isnan(rows), np.inf, rows).min(axis=0)
    highest = np.where(np.isnan(rows), -np.inf, rows).max(axis=0)
    same: Flags = lowest >= highest
    return same


def longest_stretch(column: Floats) -> int:
    """The longest row of equal answers."""
    return max((sum(1 for _ in group) for _, group in groupby(column[~np.isnan(column)])), default=0)
