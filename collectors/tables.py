"""What a person reads on the terminal. What a script reads stands in `store/shapes.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from collectors.contract import CheckResult
from store.metrics import METRICS
from store.queries import CaseRow, Rolled, RunRow


def print_runs(rows: Sequence[RunRow]) -> None:
    if not rows:
        Console().print("no runs yet: memtrend run")
        return
    table = _table("run", "started (UTC)", "suite", "backend", "status", "pass %", "95 % interval", "n")
    for row in rows:
        started = f"{row.started_at:%Y-%m-%d %H:%M}"
        table.add_row(
            str(row.id), started, row.suite, row.backend, row.status, *_rolled(row.metrics.get("pass"), 100)
        )
    Console().print(table)


def print_run(row: RunRow, cases: Sequence[CaseRow]) -> None:
    console = Console()
    console.print(
        f"run {row.id}: {row.suite} ({row.suite_version}) on {row.backend}, {row.status}", markup=False
    )
    if row.reason:
        console.print(row.reason, markup=False)
    console.print(_metrics(row.metrics))
    lost = [case for case in cases if case.passed is False or case.status == "error"]
    if lost:
        console.print(_cases(lost))


def _metrics(metrics: Mapping[str, Rolled]) -> Table:
    table = _table("metric", "unit", "value", "95 % interval", "n", "better")
    for name, metric in METRICS.items():
        if name in metrics:
            scale = 100 if metric.unit == "share" else 1
            unit = "%" if metric.unit == "share" else metric.unit
            table.add_row(name, unit, *_rolled(metrics[name], scale), metric.better)
    return table


def _rolled(rolled: Rolled | None, scale: float) -> tuple[str, str, str]:
    if rolled is None:
        return "–", "", ""
    span = "" if rolled.low is None else f"{scale * rolled.low:.1f} to {scale * (rolled.high or 0):.1f}"
    return f"{scale * rolled.mean:.1f}", span, str(rolled.n)


def _cases(cases: Iterable[CaseRow]) -> Table:
    table = _table("lost case", "tags", "passes", "why")
    for case in cases:
        name = f"{case.case} (critical)" if case.critical else case.case
        table.add_row(
            Text(name), Text(", ".join(case.tags)), f"{case.passes}/{case.trials}", case.failure or ""
        )
    return table


def print_checks(checks: Iterable[CheckResult]) -> None:
    console = Console()
    for check in checks:
        console.print(Text(f"{'ok ' if check.ok else 'BAD'} {check.name}: {check.detail}"), soft_wrap=True)
        if not check.ok and check.advice:
            console.print(Text(f"    {check.advice}"), soft_wrap=True)


def print_backends(rows: Iterable[Mapping[str, Any]]) -> None:
    table = _table("backend", "type", "owner")
    for row in rows:
        table.add_row(row["name"], row["type"], row["owner"])
    Console().print(table)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
