"""What a person reads on the terminal. What a script reads stands in `store/shapes.py`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from collectors.contract import CheckResult
from collectors.suite import SHIPPED
from store import words
from store.metrics import METRICS
from store.queries import CaseRow, CaseStanding, FireRow, LogRow, Rolled, RunRow
from store.records import RequestRow

if TYPE_CHECKING:
    from collectors.envs import Env
    from collectors.mutants import Proof
    from collectors.policy import Difference

PIPED_COLUMNS = 160


def print_environments(envs: Sequence[Env], removed: Sequence[str] | None) -> None:
    """`removed`: by name, None where nothing was to be removed."""
    if removed is not None:
        wide_console().print(
            "\n".join(f"removed {name}" for name in removed) or "nothing removed", markup=False
        )
    if not envs:
        wide_console().print("no environment of a release is there", markup=False)
        return
    table = plain_table(
        "name", "release", "with", "python", "made (UTC)", "in s", "last used (UTC)", "MB", "lock", "in use"
    )
    for env in envs:
        made, used = (f"{moment:%Y-%m-%d %H:%M}" for moment in (env.made, env.used))
        lock, size = "tested" if env.locked else "resolved", f"{env.bytes / 1e6:.0f}"
        busy = "yes" if env.in_use else ""
        extra = escape(", ".join(env.extra))  # psycopg[binary] is no markup
        table.add_row(
            env.name,
            escape(env.package),
            extra,
            env.python,
            made,
            f"{env.seconds:.1f}",
            used,
            size,
            lock,
            busy,
        )
    wide_console().print(table)


def waiting(fires: Sequence[FireRow], requests: Sequence[RequestRow]) -> list[str]:
    """A line for each run that was asked for or is due, and has been put off."""
    due = [
        f"{fire.schedule}, {fire.scheduled_for:%Y-%m-%d %H:%M} UTC, waits: {fire.reason}" for fire in fires
    ]
    return [*due, *(f"request-{row.id} waits: {row.error}" for row in requests)]


def print_runs(rows: Sequence[RunRow], fitting: int, *, narrowed: bool) -> None:
    """`fitting`: how many there are, with those that are not shown; `narrowed`: whether any was left out for
    what it is."""
    if not rows:
        wide_console().print("no run fits these options" if narrowed else "no runs yet: memtrend run")
        return
    table = plain_table("run", "started (UTC)", "suite", "backend", "status", "pass %", "95 % interval", "n")
    for row in rows:
        started = f"{row.started_at:%Y-%m-%d %H:%M}"
        suite = f"{row.suite} ({words.part(row.subset)})" if row.subset else row.suite
        table.add_row(
            str(row.id), started, suite, row.backend, row.status, *_rolled(row.metrics.get("pass"), 100)
        )
    wide_console().print(table)
    if fitting > len(rows):
        wide_console().print(f"{len(rows)} of {fitting} runs; --limit N shows more", highlight=False)


def print_run(
    row: RunRow, cases: Sequence[CaseRow], errors: Sequence[str] = (), journal: str = "", removed: str = ""
) -> None:
    console = wide_console()
    console.print(
        f"run {row.id}: {row.suite} ({row.suite_version}) on {row.backend}, {row.status}", markup=False
    )
    if row.reason:
        console.print(row.reason, markup=False)
    if removed:
        console.print(f"its {removed}", markup=False, highlight=False)
    console.print(_metrics(row.metrics))
    lost = [case for case in cases if case.passed is False or case.status == "error"]
    if lost:
        console.print(_cases(lost))
    for error, n in Counter(errors).most_common():
        console.print(Text(f"{words.count(n, 'error')}: {error}"), soft_wrap=True)
    if journal:
        console.print("its process told beside its answers:")
        console.print(journal, markup=False, highlight=False)


def _metrics(metrics: Mapping[str, Rolled]) -> Table:
    table = plain_table("metric", "unit", "value", "95 % interval", "n", "better")
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
    table = plain_table("lost case", "tags", "passes", "why")
    for case in cases:
        name = f"{case.case} (critical)" if case.critical else case.case
        table.add_row(
            Text(name), Text(", ".join(case.tags)), f"{case.passes}/{case.trials}", case.failure or ""
        )
    return table


def print_checks(checks: Iterable[CheckResult]) -> None:
    console = wide_console()
    for check in checks:
        console.print(Text(f"{'ok ' if check.ok else 'BAD'} {check.name}: {check.detail}"), soft_wrap=True)
        if not check.ok and check.advice:
            console.print(Text(f"    {check.advice}"), soft_wrap=True)


def print_difference(found: Difference) -> None:
    console = wide_console()
    since = found.old[:8] or "nothing"
    console.print(f"{found.suite}: {since} → {found.new[:8]}", markup=False, highlight=False)
    for sign, names in (("+", found.added), ("−", found.removed), ("~", found.changed)):
        for name in names:
            note = "  deleted, not retired" if sign == "−" and name in found.deleted else ""
            console.print(Text(f"{sign} {name}{note}"), soft_wrap=True)
    console.print(f"{found.paired} cases are the same; a comparison drops {found.dropped}", highlight=False)


def print_log(rows: Iterable[LogRow]) -> None:
    table = plain_table("when (UTC)", "what", "of", "why", "by", "owner", "until")
    for row in rows:
        of = row.subject[:8] if row.what == "version" else row.subject
        until = f"{row.expires:%Y-%m-%d}" if row.expires else ""
        why = row.reason or "nobody said"
        table.add_row(
            f"{row.at:%Y-%m-%d %H:%M}",
            row.what,
            Text(of),
            Text(why),
            Text(row.author),
            Text(row.owner),
            until,
        )
    wide_console().print(table)


def print_standings(rows: Iterable[CaseStanding]) -> None:
    table = plain_table("case", "counts as", "equal runs", "owner", "until", "why")
    for row in rows:
        until = f"{row.expires:%Y-%m-%d}" if row.expires else ""
        table.add_row(
            Text(row.case), row.standing, str(row.stretch), Text(row.owner), until, Text(row.reason)
        )
    wide_console().print(table)


def print_backends(rows: Iterable[Mapping[str, Any]]) -> None:
    table = plain_table("backend", "type", "release", "control", "owner")
    for row in rows:
        release = ", ".join([row["package"], *row["with"]]) if row["package"] else ""
        told = (row["name"], row["type"], release, row["control"], row["owner"])
        table.add_row(*(Text(cell or "") for cell in told))
    wide_console().print(table)


def print_mutants(proof: Proof) -> None:
    console = wide_console()
    table = plain_table("fault", "detected", "lost", "critical", "by", "named", "right")
    table.columns[0].no_wrap = True
    for mutant in proof.mutants:
        found = mutant.found
        by = [*(tag for tag in found.tags if tag not in SHIPPED), *found.beyond]
        right = "yes" if mutant.named_right else f"no, it is: {mutant.expected}"
        told = ("yes" if found.detected else "MISSED", str(len(found.lost)), str(found.critical))
        table.add_row(mutant.fault, *told, ", ".join(by[:2]) or "–", found.kind or "–", right)
    console.print(table)
    many = f"{proof.detected} of {len(proof.mutants)} faults detected, {proof.named_right} named rightly"
    console.print(f"{many}; {proof.cases} cases")
    healthy = f"{proof.healthy.kind}, so nothing is proved" if proof.healthy.detected else "found healthy"
    console.print(f"without a fault: {healthy}", markup=False)


def wide_console() -> Console:
    """As wide as the terminal; in a file or a pipe, where nothing wraps, as wide as the tables need."""
    return Console() if sys.stdout.isatty() else Console(width=PIPED_COLUMNS)


def plain_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
