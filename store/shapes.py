"""Rows of the record as the JSON that scripts rely on: the command line and the HTTP API print the same."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from store.queries import CaseRow, RunRow


def run_list(rows: Iterable[RunRow]) -> dict[str, Any]:
    return {"runs": [run(row) for row in rows]}


def run(row: RunRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "suite": row.suite,
        "suite_version": row.suite_version,
        "backend": row.backend,
        "status": row.status,
        "reason": row.reason,
        "started_at": moment(row.started_at),
        "finished_at": moment(row.finished_at),
        "trials": row.trials,
        "trigger": row.trigger,
        "subset": row.subset,
        "meta": row.meta,
        "cases_done": row.cases_done,
        "cases_total": row.cases_total,
        "metrics": {name: rolled._asdict() for name, rolled in sorted(row.metrics.items())},
    }


def run_with_cases(row: RunRow, cases: Iterable[CaseRow]) -> dict[str, Any]:
    return {**run(row), "cases": [case(one) for one in cases]}


def case(row: CaseRow) -> dict[str, Any]:
    """`passed` is None where no answer says: an error, or a case that does not apply."""
    return {
        "case": row.case,
        "tags": list(row.tags),
        "critical": row.critical,
        "passed": row.passed,
        "status": row.status,
        "failure": row.failure,
        "passes": row.passes,
        "trials": row.trials,
    }


def moment(at: datetime | None) -> str | None:
    """ISO 8601 in UTC, to the second."""
    return None if at is None else at.isoformat(timespec="seconds").replace("+00:00", "Z")
