"""What the commands share: their options, the configuration in force, and how they refuse and print.

`cli.py` puts the commands together; groups that stand in files of their own (`*_commands.py`) build on this.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from collectors.runs import Stop
    from store.database import Database
    from store.settings import Settings

BAD, USAGE, NO_ANSWER = 1, 2, 3

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Suites = Annotated[list[str] | None, typer.Option("--suite", "-s", help="Suite by name; may be given again.")]
Backends = Annotated[
    list[str] | None, typer.Option("--backend", "-b", help="Backend by name; may be given again.")
]
Tag = Annotated[str, typer.Option(help="Only the cases that bear this tag.")]
Meta = Annotated[list[str] | None, typer.Option(help="KEY=VALUE kept with the run; may be given again.")]


class Refused(Exception):
    """What a command will not do; `code` is the exit code."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


class State(NamedTuple):
    """The options that stand before every command."""

    config: Path | None = None
    debug: bool = False


_given = State()


def given() -> State:
    return _given


def give(state: State) -> None:
    global _given
    _given = state


def settings() -> Settings:
    from collectors.configured import configured

    return configured(_given.config)


@contextmanager
def database(of: Settings | None = None) -> Iterator[Database]:
    from store.database import open_database

    db = open_database((of or settings()).database.url.get_secret_value())
    try:
        yield db
    finally:
        db.close()


def print_json(document: Any) -> None:
    import json

    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))


def say(text: str) -> None:
    """For a person, so on stderr: stdout is for data."""
    typer.echo(text, err=True)


def chosen(asked: list[str] | None, known: list[str], what: str) -> list[str]:
    """The names asked for, or all that are known. Refuses one that is not."""
    for name in asked or ():
        if name not in known:
            raise Refused(f"unknown {what} {name!r}; known: {', '.join(dict.fromkeys(known))}")
    return list(dict.fromkeys(asked)) if asked else known


def refuse_unknown(db: Database, of: Settings, suites: list[str] | None, backends: list[str] | None) -> None:
    """Names that neither the configuration nor an earlier run knows."""
    from collectors.configured import backend_names, suite_names
    from store import queries

    chosen(suites, [*suite_names(of), *(row.name for row in queries.suites(db))], "suite")
    chosen(backends, [*backend_names(of), *(row.name for row in queries.backends(db))], "backend")


def existing(db: Database, run_ids: list[int]) -> list[int]:
    """The ids, each of which is a run's."""
    from store import queries

    for run_id in run_ids:
        if queries.run(db, run_id) is None:
            raise Refused(f"no run {run_id}; memtrend runs lists them", NO_ANSWER)
    return run_ids


def author() -> str:
    """Who gives the command, for what is kept with a name."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return "unknown"


def only_one(asked: str | None, known: list[str], what: str) -> str:
    """The name asked for, or the one that there is. Refuses to guess among several."""
    if asked is None and len(known) != 1:
        names = ", ".join(known) or "none is configured"
        raise Refused(f"name the {what} with --{what}; known: {names}")
    return chosen([asked] if asked else None, known, what)[0]


def pairs(given: list[str] | None) -> dict[str, str]:
    split = [text.partition("=") for text in given or ()]
    for key, sign, _ in split:
        if not key or not sign:
            raise Refused(f"--meta {key}: should be KEY=VALUE")
    return {key: value for key, _, value in split}


def moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(f"{text!r} should be a date or time such as 2026-03-04T09:30+01:00") from None
    return at.astimezone() if at.tzinfo is None else at


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """The first ^C or TERM asks the run to stop at the next step; a second one ends it at once."""
    from collectors.runs import Stop

    stop = Stop()

    def ask(number: int, _frame: object) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.ask()
        say("stopping after the step in flight; once more to stop at once")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
