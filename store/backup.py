"""A record's SQLite file as a whole: copied while others write, put back, kept before an upgrade.

Everything here works on files of any revision, also one that this memtrend cannot open. PostgreSQL has tools
of its own for this.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.engine import URL

from store.database import REVISIONS, Database
from store.dialects import dialect_of
from store.dialects.base import BUSY_SECONDS
from store.dialects.sqlite import error_code, reason
from store.errors import DatabaseError, NoRecord
from store.queries.operation import leases

PAGES = 4096
"""Pages copied between two reports of progress: 16 MB."""

Report = Callable[[int, int], None]
"""Bytes copied so far, of how many."""


class Copied(NamedTuple):
    """A copy that was opened and found whole. `runs`: how many it holds."""

    path: Path
    bytes: int
    revision: str
    runs: int


class Restored(NamedTuple):
    """`kept`: where the record that was there before is now, None where there was none."""

    copy: Copied
    kept: Path | None


def file_of(url: URL) -> Path:
    """The file that a URL of the record names. Raises `DatabaseError` for a server's."""
    if url.get_backend_name() != "sqlite":
        raise DatabaseError(
            f"{dialect_of(url).url_public} is no SQLite file; copy it with pg_dump --format=custom "
            "--file=FILE, and put it back with pg_restore --clean"
        )
    return Path(url.database or "")


# Copying


def backup(url: URL, target: Path, *, force: bool = False, report: Report = lambda done, of: None) -> Copied:
    """Copy the record as it is at this moment, while others go on writing to it. The copy appears when it is
    complete, has been opened and found whole. Raises `DatabaseError`, `NoRecord` where there is none to copy;
    then `target` is as it was, and no record was made."""
    source = file_of(url)
    if not source.is_file():
        told = f"no record at {source.absolute()}: name its memtrend.toml with memtrend --config FILE"
        raise NoRecord(told)
    if target.exists() and (not force or target.samefile(source)):
        way_out = "name another file" if target.samefile(source) else "name another file, or give --force"
        raise DatabaseError(f"{target} is there already; {way_out}")
    with _arriving(target) as arriving:
        _copy(source, arriving, report)
        found = verified(arriving)
        arriving.replace(target)
    return found._replace(path=target)


@contextmanager
def _arriving(target: Path) -> Iterator[Path]:
    """A file beside the target that may take its place, or goes."""
    arriving = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with _plain_errors(f"cannot write {target}"):
            yield arriving
    finally:
        for part in _parts(arriving):
            part.unlink(missing_ok=True)


def _copy(source: Path, target: Path, report: Report) -> None:
    """In one reading transaction: a copy that began anew with every write of others might never end."""
    with closing(_opened(source, "rw")) as old, closing(sqlite3.connect(target)) as new:
        page = old.execute("PRAGMA page_size").fetchone()[0]
        old.execute("BEGIN")
        old.execute("SELECT count(*) FROM sqlite_master").fetchone()
        old.backup(new, pages=PAGES, progress=lambda _, left, of: report((of - left) * page, of * page))
        new.execute("PRAGMA journal_mode=DELETE")  # one file, with nothing beside it
    shutil.copymode(source, target)  # it holds the same texts


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    """Never makes the file."""
    where = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(where, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def verified(path: Path) -> Copied:
    """Opens it and reads every page. Raises `DatabaseError` for what is damaged or no record of ours."""
    if not path.is_file():
        raise DatabaseError(f"{path}: no such file")
    with _plain_errors(f"{path} is no whole record"), closing(_opened(path, "ro")) as connection:
        (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if said != "ok":
            raise DatabaseError(f"{path} is damaged ({said}); take another backup")
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if not {"alembic_version", "run"} <= names:
            raise DatabaseError(f"{path} holds no record of memtrend; name a file that memtrend backup wrote")
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        (runs,) = connection.execute("SELECT count(*) FROM run").fetchone()
    return Copied(path, path.stat().st_size, revision, runs)


@contextmanager
def _plain_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise DatabaseError(f"{doing}: {reason(error)}") from error
    except OSError as error:
        raise DatabaseError(f"{doing}: {error.strerror or error}") from error


# Putting back


def restore(
    url: URL, source: Path, *, force: bool = False, report: Report = lambda done, of: None
) -> Restored:
    """Put a copy in the place of the record, which stays beside it. Raises `DatabaseError`, and then nothing
    has changed: for a copy that is damaged or too new, and while anyone has the record open.

    force: also where the record is so damaged that nobody can tell who has it open."""
    path, found = file_of(url), verified(source)
    if found.revision not in REVISIONS:
        raise DatabaseError(
            f"{source} is of a newer memtrend (revision {found.revision}; known up to {REVISIONS[-1]}); "
            "upgrade memtrend, or name an older copy"
        )
    if path.exists() and path.samefile(source):
        raise DatabaseError(f"{source} is the record itself; name a copy of it")
    with _arriving(path) as arriving:
        _copy(source, arriving, report)
        with _put_aside(url, path, force) as kept:
            arriving.replace(path)
    return Restored(found._replace(path=path), kept)


@contextmanager
def _put_aside(url: URL, path: Path, force: bool) -> Iterator[Path | None]:
    """Where the record is kept; until the end nobody else can write to it."""
    if not path.exists():
        yield None
        return
    kept = free_name(path.with_name(f"{path.name}.before-restore"))
    with ExitStack() as held:
        try:
            _refuse_held(url)
            held.enter_context(_alone_with(path))
            _link(path, kept)
        except (DatabaseError, sqlite3.DatabaseError) as error:
            if not (force and _is_damage(error)):
                raise _with_way_out(error, path) from error
            for part in [part for part in _parts(path) if part.exists()]:
                part.rename(kept.with_name(kept.name + part.name.removeprefix(path.name)))
        yield kept


def _refuse_held(url: URL) -> None:
    with closing(Database(url.render_as_string(hide_password=False))) as db:
        held = [lease for lease in leases(db) if lease.held]
    if held:
        told = ", ".join(f"{lease.name} (process {lease.owner})" for lease in held)
        raise DatabaseError(f"the record is at work: {told}; stop what holds it, then do it again")


@contextmanager
def _alone_with(path: Path) -> Iterator[None]:
    """SQLite leaves the log mode only while no other process has the file open. So nothing is left in a log
    that the new file would be read with."""
    with closing(_opened(path, "rw")) as connection:
        connection.execute("PRAGMA busy_timeout=1000")
        try:
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error_code(error) != "BUSY":
                raise
            told = f"another process has {path} open, a dashboard perhaps; stop it, then do it again"
            raise DatabaseError(told) from error
        yield


def _link(path: Path, kept: Path) -> None:
    """Both names at once, so that at no moment there is no record."""
    try:
        os.link(path, kept)
    except OSError:  # a file system without links
        shutil.copy2(path, kept)


def _is_damage(error: Exception) -> bool:
    found = error if isinstance(error, sqlite3.Error) else getattr(error.__cause__, "orig", error.__cause__)
    return isinstance(found, sqlite3.Error) and error_code(found) in ("NOTADB", "CORRUPT")


def _with_way_out(error: Exception, path: Path) -> DatabaseError:
    if _is_damage(error):
        told = f"{path} is damaged, so nobody can tell who has it open; stop every memtrend, then add --force"
        return DatabaseError(told)
    told = reason(error) if isinstance(error, sqlite3.Error) else str(error)
    return DatabaseError(told)


def _parts(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in ("", "-wal", "-shm", "-journal")]


def free_name(path: Path) -> Path:
    """The path, or with a number where that is taken: nothing that was kept is lost."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free


# Before an upgrade


@contextmanager
def kept_before(url: URL, revision: str) -> Iterator[Path]:
    """A copy beside the record of what it is before the upgrade to `revision`, which stays unless the upgrade
    fails. Raises `DatabaseError` where it cannot be made; then the upgrade does not begin."""
    path = file_of(url)
    kept = free_name(path.with_name(f"{path.name}.before-{revision}"))
    try:
        with _arriving(kept) as arriving:
            _copy(path, arriving, lambda done, of: None)
            verified(arriving)
            arriving.replace(kept)
    except DatabaseError as error:
        raise DatabaseError(f"{path} was not upgraded, since no copy could be kept: {error}") from error
    try:
        yield kept
    except BaseException:
        kept.unlink(missing_ok=True)
        raise


def copy_to_go_back_to(url: URL) -> Path | None:
    """The copy that was kept before the record became too new for this memtrend, if it is still there."""
    with suppress(DatabaseError):
        path = file_of(url)
        kept = sorted(path.parent.glob(f"{path.name}.before-[0-9][0-9][0-9][0-9]"))
        return next((copy for copy in kept if copy.name[-4:] > REVISIONS[-1]), None)
    return None
