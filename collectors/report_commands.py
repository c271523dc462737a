"""`memtrend report`: a run, or a week, as a document to send around."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collectors.arguments import (
    NO_ANSWER,
    Refused,
    existing,
    moment,
    refuse_texts,
    refuse_unwritable,
    write_to,
)
from collectors.commands import Json, database, print_json, say

if TYPE_CHECKING:
    from store.database import Database
    from store.queries import RunReport
    from store.week import Week

Write = Callable[[Any], str]
"""Draws the report of a run or of a week: how, this side does not know."""


def report_command(html_of: Write, md_of: Write, text_of: Write) -> Callable[..., None]:
    """The command, which writes its reports by these."""

    def report(
        run: Annotated[int | None, typer.Argument(help="A run, as `memtrend runs` lists it.")] = None,
        week: Annotated[
            bool, typer.Option("--week", help="Instead of a run: what changed in a week, everywhere.")
        ] = False,
        until: Annotated[
            str | None, typer.Option(help="The last day of the week, such as 2026-03-01; today by default.")
        ] = None,
        html: Annotated[
            Path | None, typer.Option(help="Write one HTML file that opens without a network.")
        ] = None,
        md: Annotated[Path | None, typer.Option(help="Write Markdown, for a pull request.")] = None,
        include_text: Annotated[
            bool, typer.Option("--include-text", help="With memories and questions, which are left out.")
        ] = False,
        json: Json = False,
    ) -> None:
        """What a run came to, or with --week what changed in a week, as a document to send around. Exit 3
        when there is nothing to report."""
        _refuse_mixed(run, week, until, include_text)
        for path in (html, md):
            refuse_unwritable(path)
        with database() as db:
            told = _week(db, until) if run is None else _run(db, run, include_text)
        for path, write in ((html, html_of), (md, md_of)):
            if path:
                write_to(path, write(told))
                say(f"written: {path}")
        if json:
            print_json(_document(told))
        elif html is None and md is None:
            typer.echo(text_of(told))

    return report


def _refuse_mixed(run: int | None, week: bool, until: str | None, include_text: bool) -> None:
    if (run is not None) == week:
        raise Refused("name a run, or ask for --week")
    if until is not None and not week:
        raise Refused("--until goes with --week")
    if include_text and week:
        raise Refused("--include-text goes with a run: a week tells no texts")


def _run(db: Database, run_id: int, include_text: bool) -> RunReport:
    from store import queries

    existing(db, [run_id])
    found = queries.run_report(db, run_id, with_texts=include_text)
    assert found is not None, "it exists"
    if found.run.subset == queries.CONFIRM:
        about = found.run.trigger.rpartition(":")[2]
        raise Refused(f"run {run_id} is a look at run {about}: memtrend report {about}", NO_ANSWER)
    if found.run.status == "running":
        raise Refused(f"run {run_id} is still going on: nothing to report yet", NO_ANSWER)
    if include_text:
        refuse_texts(found.suite.name, found.suite.origin, found.suite.licence)
    return found


def _week(db: Database, until: str | None) -> Week:
    from store import queries

    found = queries.week(db, _end(until))
    if found.is_empty:
        raise Refused(f"nothing happened in the week to {found.until:%Y-%m-%d %H:%M} UTC", NO_ANSWER)
    return found


def _end(until: str | None) -> datetime:
    """A day is meant to its end, where memtrend runs."""
    at = moment(until)
    if at is None or until is None:
        return datetime.now(UTC)
    return at + timedelta(days=1) if len(until) == len("2026-03-01") else at


def _document(told: RunReport | Week) -> dict[str, Any]:
    from store import report_shapes
    from store.week import Week

    return report_shapes.week(told) if isinstance(told, Week) else report_shapes.run(told)
