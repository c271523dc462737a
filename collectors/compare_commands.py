"""`memtrend compare`: may B replace A?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collectors.arguments import BAD, NO_ANSWER, Refused, chosen, refuse_texts, refuse_unwritable, write_to
from collectors.commands import Json, database, print_json, say, settings

if TYPE_CHECKING:
    from collectors.comparison_sides import Asked
    from store.comparisons import Comparison
    from store.database import Database
    from store.settings import Settings
    from store.sides import Side

Margin = Annotated[
    float, typer.Option(min=0.001, max=0.999, help="The largest acceptable loss: 0.03 is 3 points.")
]
Trials = Annotated[
    int, typer.Option(min=1, max=10, help="Of each case that a side which can be asked now takes.")
]
ONCE_MORE = "stopping after the step in flight; once more to stop at once"
Write = Callable[["Comparison"], str]
"""Draws a report of a comparison: how, this side does not know."""


def compare_command(html_of: Write, md_of: Write) -> Callable[..., None]:
    """The command, which writes its reports by these."""

    def compare(
        a: Annotated[
            str | None, typer.Argument(help="What is in use: mem0, mem0@2.0.20, mem0@2026-11-20, 165,166.")
        ] = None,
        b: Annotated[str | None, typer.Argument(help="The candidate, named alike.")] = None,
        suite: Annotated[str | None, typer.Option("--suite", "-s", help="The suite.")] = None,
        margin: Margin = 0.03,
        trials: Trials = 4,
        before: Annotated[
            str | None, typer.Option(help="A is what ran before this mark or day, or these runs.")
        ] = None,
        after: Annotated[
            str | None, typer.Option(help="B is what ran after this mark or day, or these runs.")
        ] = None,
        html: Annotated[Path | None, typer.Option(help="Write one self-contained page here.")] = None,
        md: Annotated[Path | None, typer.Option(help="Write a summary in Markdown here.")] = None,
        include_text: Annotated[
            bool, typer.Option("--include-text", help="With the memories that came back, in reports too.")
        ] = False,
        no_run: Annotated[
            bool, typer.Option("--no-run", help="Run nothing: the record alone is to answer.")
        ] = False,
        json: Json = False,
    ) -> None:
        """May B replace A? Runs what is missing, in turns. Exit 0 when B is better or not worse by more than
        the margin, 1 when it is worse, 3 when that cannot be told."""
        for path in (html, md):
            refuse_unwritable(path)
        of = settings()
        with _only_worse_is_1(), database(of) as db:
            sides = _sides(db, of, suite, a, b, before, after)
            if include_text:
                _refuse_texts(db, of, sides[0])
            found = _compared(db, of, _asked(*sides, margin, trials, no_run, include_text))
            for path, write in ((html, html_of), (md, md_of)):
                if path:
                    write_to(path, write(found))
                    say(f"written: {path}")
            _tell(found, json)
        raise typer.Exit({"inferior": BAD, "inconclusive": NO_ANSWER}.get(found.migration.verdict, 0))

    return compare


def _sides(
    db: Database,
    of: Settings,
    suite: str | None,
    a: str | None,
    b: str | None,
    before: str | None,
    after: str | None,
) -> tuple[str, Side, Side]:
    """The suite and both sides."""
    from collectors.comparison_sides import around
    from store.sides import BadSide, side

    named = _suite(db, of, suite)
    try:
        if before is None and after is None:
            if a is None or b is None:
                raise Refused("name two sides: memtrend compare A B, or BACKEND --before WHAT --after WHAT")
            return named, side(a), side(b)
        if b is not None:
            raise Refused("--before and --after are of one backend: memtrend compare BACKEND --before WHAT")
        return named, *around(db, named, a, before, after)
    except BadSide as error:
        raise Refused(str(error)) from None


def _suite(db: Database, of: Settings, suite: str | None) -> str:
    from collectors.configured import suite_names
    from store import queries

    known = [*suite_names(of), *(row.name for row in queries.suites(db))]
    if suite is None:
        raise Refused(f"name the suite with --suite; known: {', '.join(dict.fromkeys(known))}")
    return chosen([suite], known, "suite")[0]


def _refuse_texts(db: Database, of: Settings, suite: str) -> None:
    from collectors.configured import suite_config, suite_names
    from store import queries

    if suite in suite_names(of):
        it = suite_config(of, suite)
        return refuse_texts(suite, it.origin, it.licence)
    recorded = next(row for row in queries.suites(db) if row.name == suite)
    refuse_texts(suite, recorded.origin, recorded.licence)


def _asked(suite: str, a: Side, b: Side, margin: float, trials: int, no_run: bool, with_texts: bool) -> Asked:
    from collectors.comparison_sides import Asked

    return Asked(suite, a, b, margin, trials, no_run, with_texts)


@contextmanager
def _only_worse_is_1() -> Iterator[None]:
    """Exit code 1 says that B is worse, and nothing else does: what hinders an answer refuses it."""
    from collectors.backend import BackendError
    from collectors.lease import InstanceBusy
    from store.errors import StoreError
    from store.hiding import redacted

    try:
        yield
    except (typer.Exit, Refused):
        raise
    except InstanceBusy as error:
        raise Refused(f"{error}; --no-run asks the record alone", NO_ANSWER) from None
    except (StoreError, BackendError) as error:
        raise Refused(str(error), getattr(error, "code", NO_ANSWER)) from None
    except Exception as error:
        told = redacted(str(error)) or "no message"
        raise Refused(f"no answer: {type(error).__name__}: {told}", NO_ANSWER) from error


def _compared(db: Database, of: Settings, asked: Asked) -> Comparison:
    import sys
    from contextlib import redirect_stdout

    from collectors.calls import Stopped
    from collectors.comparing import NoAnswer, compare
    from collectors.process import INTERRUPTED, quiet_libraries, stop_on_signals

    quiet_libraries()
    with stop_on_signals(ONCE_MORE) as stop, redirect_stdout(sys.stderr):
        try:
            return compare(db, of, asked, stop, say)
        except (Stopped, NoAnswer) as error:
            raise Refused(str(error), INTERRUPTED if stop.asked.is_set() else NO_ANSWER) from None


def _tell(found: Comparison, json: bool) -> None:
    from collectors.comparison_tables import print_comparison
    from store import shapes

    print_json(shapes.comparison(found)) if json else print_comparison(found)
