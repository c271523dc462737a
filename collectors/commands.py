"""What the commands share: their options, the configuration in force, and how they print. How they check what
they were asked for, and refuse, stands in `arguments.py`.

`cli.py` puts the commands together; groups that stand in files of their own (`*_commands.py`) build on this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from store.database import Database
    from store.settings import Settings

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Suites = Annotated[list[str] | None, typer.Option("--suite", "-s", help="Suite by name; may be given again.")]
Backends = Annotated[
    list[str] | None, typer.Option("--backend", "-b", help="Backend by name; may be given again.")
]
Tag = Annotated[str, typer.Option(help="Only the cases that bear this tag.")]
Meta = Annotated[list[str] | None, typer.Option(help="KEY=VALUE kept with it; may be given again.")]


def settings() -> Settings:
    from collectors.configured import configured

    return configured()


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


def author() -> str:
    """Who gives the command, for what is kept with a name."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return "unknown"
