"""`memtrend diff`: what changed between two runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collectors.arguments import NO_ANSWER, Refused
from collectors.commands import Json, database, print_json

Suite = Annotated[str | None, typer.Option("--suite", "-s", help="Of this suite alone.")]
Backend = Annotated[str | None, typer.Option("--backend", "-b", help="On this backend alone.")]

if TYPE_CHECKING:
    from store.changes import Change
    from store.database import Database
    from store.queries import MarkRow, RunChanges, RunRow, Turned


def diff(
    before: Annotated[
        int | None, typer.Argument(help="A run, as `memtrend runs` lists it: the good one.")
    ] = None,
    after: Annotated[int | None, typer.Argument(help="The run to hold against it.")] = None,
    suite: Suite = None,
    backend: Backend = None,
    json: Json = False,
) -> None:
    """What changed from one run to another, and what of it to suspect first. Without runs: from the last good
    one to the first bad one of a suite on a backend."""
    from store import queries

    if (before is None) != (after is None):
        raise Refused("name two runs, or none: then it is the last good one and the first bad one")
    with database() as db:
        try:
            turned = queries.turn(db, suite, backend) if before is None else None
            pair = (before, after, ()) if turned is None else turned
            found = queries.changes_between(db, *pair)
            cases = _turned(db, found)
        except queries.NothingToCompare as error:
            raise Refused(str(error), NO_ANSWER) from None
    print_json(_document(found, cases)) if json else typer.echo("\n".join(_lines(found, cases)))


def _turned(db: Database, found: RunChanges) -> Turned | None:
    """None where the runs were asked different suites."""
    from store import queries

    return queries.turned_between(db, found.before.id, found.after.id) if found.is_of_one_suite else None


def _document(found: RunChanges, turned: Turned | None) -> dict[str, Any]:
    from store.changes import PLAIN_KINDS

    changed = found.changes
    return {
        "before": _run(found.before),
        "after": _run(found.after),
        "pass": [_passed(row) for row in (found.before, found.after)],
        "lost": turned and turned.lost,
        "gained": turned and turned.gained,
        "packages": {how: _rows(rows) for how, rows in changed.packages._asdict().items()},
        **{kind: _rows(getattr(changed, kind)) for kind in PLAIN_KINDS},
        "git": _git(changed.git),
        "marks": [_mark(mark) for mark in changed.marks],
        "suspects": [
            {**_row(row), "kind": row.kind, "moved_before": row.moved_before} for row in changed.suspects
        ],
    }


def _run(row: RunRow) -> dict[str, Any]:
    from store.shapes import moment

    named = {name: getattr(row, name) for name in ("id", "suite", "suite_version", "backend", "status")}
    return {**named, "started_at": moment(row.started_at)}


def _passed(row: RunRow) -> float | None:
    rolled = row.metrics.get("pass")
    return rolled and rolled.mean


def _rows(changes: Iterable[Change]) -> list[dict[str, Any]]:
    return [_row(change) for change in changes]


def _row(change: Change) -> dict[str, Any]:
    return {"name": change.name, "path": change.path, "old": change.old, "new": change.new}


def _git(change: Change | None) -> dict[str, Any] | None:
    from store.changes import git_range

    return None if change is None else {"old": change.old, "new": change.new, "range": git_range(change)}


def _mark(mark: MarkRow) -> dict[str, Any]:
    from store.shapes import moment

    return {**mark._asdict(), "at": moment(mark.at)}


def _lines(found: RunChanges, turned: Turned | None) -> Iterator[str]:
    from store.changes import sentence, title

    yield f"{_named(found.before)} → {_named(found.after)}"
    if not found.is_of_one_suite:
        suites = f"{found.before.suite} and {found.after.suite}"
        yield f"These are runs of two suites, {suites}: no case is compared"
    yield title(found.changes)
    for number, change in enumerate(found.changes.suspects, 1):
        before = "  (had changed before, without effect)" if change.moved_before else ""
        yield f"{number:>3}. {change.kind}: {sentence(change)}{before}"
    for mark in found.changes.marks:
        yield f"mark {mark.at:%Y-%m-%d %H:%M}: {mark.text}"
    if turned:
        yield from _outcome(found, turned)


def _outcome(found: RunChanges, turned: Turned) -> Iterator[str]:
    """How both did, and which cases turned."""
    old, new = (_share(row) for row in (found.before, found.after))
    yield f"pass rate: {old} → {new}"
    for which, names in turned._asdict().items():
        yield f"{which} {len(names)}{': ' if names else ''}{', '.join(names)}"


def _share(row: RunRow) -> str:
    from store import words

    passed = _passed(row)
    return "none" if passed is None else words.amount("pass", passed)


def _named(row: RunRow) -> str:
    return f"run {row.id} ({row.suite} on {row.backend}, {row.started_at:%Y-%m-%d %H:%M})"
