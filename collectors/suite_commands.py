"""`memtrend suite`: what changed in a suite, why, and how its cases count."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collectors.arguments import NO_ANSWER, Refused, chosen, moment
from collectors.commands import Json, author, database, print_json, say, settings

if TYPE_CHECKING:
    from store.database import Database
    from store.queries import CaseStanding
    from store.settings import Settings
    from store.writes import Decision

suite_app = typer.Typer(help="What changed in a suite, why, and how its cases count.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The suite.")]
Case = Annotated[str, typer.Argument(help="The case, by its id.")]
Of = Annotated[str | None, typer.Option("--suite", "-s", help="Its suite, where several have such a case.")]
Reason = Annotated[str, typer.Option(help="Why: kept with your name and the date.")]


@suite_app.command()
def diff(
    suite: Name,
    since: Annotated[
        str, typer.Option(help="A version in the record; the newest other one by default.")
    ] = "",
    json: Json = False,
) -> None:
    """What the file asks that an earlier version did not, and the reverse."""
    from collectors import policy, tables
    from collectors.configured import load_suite

    of = _configured(suite)
    with database(of) as db:
        found = policy.difference(db, load_suite(of, suite), since)
    print_json({**found._asdict(), "dropped": found.dropped}) if json else tables.print_difference(found)


@suite_app.command()
def log(
    suite: Name,
    reason: Annotated[
        str | None, typer.Option(help="Why the suite is as it is now: kept with this version.")
    ] = None,
    json: Json = False,
) -> None:
    """The versions of a suite with their reasons, and what was decided about its cases. Newest first."""
    from collectors import policy, tables
    from store import queries, shapes

    of = _configured(suite)
    with database(of) as db:
        if reason is not None:
            version = policy.explain(db, of, suite, reason, author())
            say(f"suite {suite}, version {version[:8]}: {reason}")
        rows = queries.suite_log(db, suite)
    print_json(shapes.suite_log(suite, rows)) if json else tables.print_log(rows)


@suite_app.command()
def cases(suite: Name, json: Json = False) -> None:
    """How each case counts: gating, on trial, in quarantine or retired."""
    from collectors import policy, tables
    from store import queries, shapes

    of = _configured(suite)
    with database(of) as db:
        policy.register(db, of, suite)
        rows = queries.case_standings(db, suite)
    print_json(shapes.standings(suite, rows)) if json else tables.print_standings(rows)


@suite_app.command()
def quarantine(
    case: Case,
    owner: Annotated[str, typer.Option(help="Who mends it.")],
    reason: Reason,
    until: Annotated[str, typer.Option(help="When it ends: a date, such as 2026-03-31.")],
    suite: Of = None,
    json: Json = False,
) -> None:
    """Show a case and let it gate nothing, until a day. Giving it again renews it."""
    _decide(case, suite, "quarantine", json, reason=reason, owner=owner, expires=moment(until))


@suite_app.command()
def release(case: Case, reason: Reason, suite: Of = None, json: Json = False) -> None:
    """End a quarantine, or take a retirement back."""
    _decide(case, suite, "released", json, reason=reason)


@suite_app.command()
def retire(case: Case, reason: Reason, suite: Of = None, json: Json = False) -> None:
    """Account for a case that is no longer asked. Its line goes from the file, its history stays."""
    _decide(case, suite, "retired", json, reason=reason)


@suite_app.command()
def draft(
    file: Annotated[
        Path, typer.Option("--from", help="A transcript or ticket: plain text, or JSONL of turns.")
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; stdout by default.")] = None,
    id: Annotated[
        str | None, typer.Option(help="The id of the case; by default draft- and a digest of the talk.")
    ] = None,
) -> None:
    """Turn a conversation into a draft case, for a person to finish: it does not load before."""
    from collectors import drafting

    line = drafting.draft(file, id)
    if output is None:
        typer.echo(line, nl=False)
        return
    drafting.append(line, output)
    say(f"a draft at the end of {output}: read it, and fill in what stands in <angle brackets>")


def _configured(suite: str) -> Settings:
    from collectors.configured import suite_names

    of = settings()
    chosen([suite], suite_names(of), "suite")
    return of


def _decide(case: str, suite: str | None, state: Decision, json: bool, **decision: Any) -> None:
    from store import queries, shapes, writes

    of = settings() if suite is None else _configured(suite)
    with database(of) as db:
        home = suite or _home(db, of, case)
        writes.decide_case(db, home, case, state, author=author(), **decision)
        rows = [row for row in queries.case_standings(db, home) if row.case == case]
    print_json(shapes.standings(home, rows)) if json else say(_told(home, state, rows))


def _told(suite: str, state: str, rows: list[CaseStanding]) -> str:
    return "\n".join(f"{suite}: {row.case} is {state}; it now counts as {row.standing}" for row in rows)


def _home(db: Database, of: Settings, case: str) -> str:
    """The one suite that has the case, or had it."""
    from collectors.configured import suite_names
    from store import queries

    having = [name for name in suite_names(of) if queries.case(db, name, case)]
    if not having:
        raise Refused(f"no suite in the record has a case {case!r}; run the suite once", NO_ANSWER)
    if len(having) > 1:
        raise Refused(f"{', '.join(having)} have a case {case!r}: name one with --suite")
    return having[0]
