"""The answers of two sides as arrays, and which of their cases are pairs. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from store.answers import Flags, mean, rows_by_trial
from store.queries.comparing import ComparisonRecord, PlayedRow, failure_kinds
from store.queries.runs import RunRow
from store.queries.verdicts import AskedCase
from store.stats.intervals import Floats, Indices

APPLIES, ERROR = "does not apply to {}", "got no answer from {}"
CHANGED, UNASKED, APART = "was changed between the two", "was not asked of {}", "in quarantine"


class AskedSide:
    """One side: a row a trial, a column a case. `trials` of each case that were judged, `errors` beside them,
    `passed` of the former."""

    def __init__(self, record: ComparisonRecord, runs: Sequence[RunRow], columns: Mapping[int, int]) -> None:
        self.runs, self.columns, self.ids = runs, columns, {row.id for row in runs}
        own = [row for row in record.results if row.run_id in self.ids]
        self.passes = self._stacked((row.run_id, row.case_id, row.trial, row.passed) for row in own)
        answered = (row for row in own if row.status == "ok")
        self.latency = mean(
            self._stacked((row.run_id, row.case_id, row.trial, row.latency_ms) for row in answered)
        )
        self.statuses: dict[int, Counter[str]] = defaultdict(Counter)
        for row in own:
            self.statuses[row.case_id][row.status] += 1
        self.values = record.values
        self.played: list[PlayedRow] = [row for row in record.played if row.run_id in self.ids]
        self.failures = failure_kinds(own)
        self.rate = mean(self.passes)
        self.trials = (~np.isnan(self.passes)).sum(axis=0)
        self.errors = np.array([self.statuses[case_id]["error"] for case_id in columns], dtype=int)
        self.passed = np.nansum(self.passes, axis=0)

    def _stacked(self, rows: Iterable[tuple[Any, ...]]) -> Floats:
        found = rows_by_trial(rows, self.columns)
        return np.stack([*found.values()]) if found else np.full((1, len(self.columns)), np.nan)

    def metric(self, name: str) -> Floats:
        """The mean of each case over its trials, NaN where it has none."""
        return mean(self._stacked(row for row in self.values.get(name, ()) if row[0] in self.ids))

    def counting_errors(self) -> Floats:
        """The pass rate of each case if its errors were losses; NaN where it was not asked, or does not
        apply."""
        asked = self.trials + self.errors
        return np.where(asked > 0, self.passed / np.maximum(asked, 1), np.nan)


class Paired:
    """`kept`: of the record's cases, those that are compared; `cases`, `before`, `after` and `clusters` (None
    where each case stands for itself) are of these; `dropped`: name -> why not."""

    def __init__(self, record: ComparisonRecord) -> None:
        self.record = record
        columns = {case.id: place for place, case in enumerate(record.cases)}
        self.a, self.b = AskedSide(record, record.a, columns), AskedSide(record, record.b, columns)
        found = dict(self._unfit_cases())
        kept = [case.name not in found for case in record.cases]
        names = {case.name for case, one in zip(record.cases, kept, strict=True) if one}
        self.dropped = {name: why for name, why in found.items() if name not in names}
        self.kept: Flags = np.array(kept, dtype=bool)
        self.cases = [case for case, one in zip(record.cases, kept, strict=True) if one]
        self.before, self.after = self.a.rate[self.kept], self.b.rate[self.kept]
        self.clusters = clusters(self.cases)

    @property
    def sides(self) -> tuple[AskedSide, AskedSide]:
        return self.a, self.b

    def _unfit_cases(self) -> Iterator[tuple[str, str]]:
        for place, case in enumerate(self.record.cases):
            if why := self._unfit(place, case):
                yield case.name, why

    def _unfit(self, place: int, case: AskedCase) -> str | None:
        if case.quarantined:
            return APART
        for side, name in zip(self.sides, self.record.names, strict=True):
            if not np.isnan(side.rate[place]):
                continue
            if not (statuses := side.statuses.get(case.id)):
                return self._missing(case, name)
            return (ERROR if statuses["error"] else APPLIES).format(name)
        return None

    def _missing(self, case: AskedCase, name: str) -> str:
        """The other side was asked: under this name another question, or none."""
        alike = sum(other.name == case.name for other in self.record.cases)
        return CHANGED if alike > 1 else UNASKED.format(name)

    def groups(self, columns: Flags | Indices | slice) -> Indices | None:
        return None if self.clusters is None else self.clusters[columns]

    def metric(self, name: str) -> tuple[Floats, Floats]:
        """Of the compared cases, on both sides."""
        return self.a.metric(name)[self.kept], self.b.metric(name)[self.kept]


def clusters(cases: Sequence[AskedCase]) -> Indices | None:
    """A number for each case; None where every one stands for itself."""
    if not any(case.cluster for case in cases):
        return None
    return np.unique([case.cluster or case.name for case in cases], return_inverse=True)[1]
