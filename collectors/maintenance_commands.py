"""`memtrend backup`, `restore` and `prune`: the record's file, and how much it holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collectors.arguments import NO_ANSWER, Refused
from collectors.commands import Json, database, print_json, say, settings

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from store.retention import Due

BIG = 64_000_000
"""Bytes from which on a copy takes long enough to tell how far it is."""


def backup(
    file: Annotated[Path, typer.Argument(help="Where to write the copy.")],
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    json: Json = False,
) -> None:
    """Copy the record while others go on writing to it; the copy is opened and checked. SQLite only:
    PostgreSQL has pg_dump."""
    from store import backup as files
    from store.errors import NoRecord

    try:
        made = files.backup(_url(), file, force=force, report=_progress())
    except NoRecord as error:
        raise Refused(str(error), NO_ANSWER) from None
    if json:
        print_json({**made._asdict(), "path": str(made.path)})
    else:
        typer.echo(
            f"{made.path}: {made.bytes / 1e6:.1f} MB, {made.runs} runs, revision {made.revision}, checked"
        )


def restore(
    file: Annotated[Path, typer.Argument(help="A copy that `memtrend backup` or an upgrade made.")],
    force: Annotated[
        bool, typer.Option("--force", help="Also where the record is too damaged to tell who has it open.")
    ] = False,
    json: Json = False,
) -> None:
    """Put a copy in the place of the record, which is kept beside it as *.before-restore. Refused while a
    collector, a run or a dashboard has the record."""
    from store import backup as files

    url = _url()
    _release_the_dead(url)
    done = files.restore(url, file, force=force, report=_progress())
    if json:
        document = {**done.copy._asdict(), "path": str(done.copy.path)}
        print_json({**document, "kept": str(done.kept) if done.kept else None})
    else:
        kept = f"; what was there is kept: {done.kept}" if done.kept else ""
        typer.echo(f"{done.copy.path} is {file} now, {done.copy.runs} runs{kept}")


def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    json: Json = False,
) -> None:
    """Remove what is older than \\[retention] says, as the collector does once a day, and give back the
    space. Runs, verdicts, charts and whatever a baseline needs stay."""
    from store import retention

    section = settings().retention
    with database() as db:
        due = retention.due(db, section)
        pruned = None if dry_run else retention.prune(db, section)
    if json:
        named = {one.what: {"after": one.after, "runs": one.run_ids} for one in due}
        print_json({**named, "dry_run": dry_run, "bytes": pruned.bytes if pruned else 0})
    else:
        typer.echo(retention.told(pruned) or _nothing(due) if pruned else _would(due))


def _would(due: list[Due]) -> str:
    counts = [f"{one.what} ({one.after}): {len(one.run_ids)} runs" for one in due if one.run_ids]
    return f"would remove {', '.join(counts)}" if counts else _nothing(due)


def _nothing(due: list[Due]) -> str:
    if all(one.after == "never" for one in due):
        return 'everything is kept; [retention] details = "180d" in memtrend.toml would remove texts by age'
    return "nothing is old enough to be removed"


def _url() -> URL:
    from sqlalchemy.engine import make_url

    return make_url(settings().database.url.get_secret_value())


def _release_the_dead(url: URL) -> None:
    """What a process held that was killed on this machine holds nobody up."""
    from contextlib import closing, suppress

    from collectors.lease import release_those_of_the_dead
    from store.backup import file_of
    from store.database import Database, DatabaseError

    if file_of(url).exists():
        with suppress(DatabaseError), closing(Database(url.render_as_string(hide_password=False))) as db:
            release_those_of_the_dead(db)


def _progress() -> Callable[[int, int], None]:
    """A line for each tenth of a big file."""
    said = 0

    def report(done: int, of: int) -> None:
        nonlocal said
        tenth = 10 * done // max(of, 1)
        if of > BIG and tenth > said:
            said = tenth
            say(f"{done / 1e6:.0f} of {of / 1e6:.0f} MB")

    return report
