"""What a command was asked for: checked before anything is done, refused in a sentence with an exit code."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from collectors.starter import unconfigured
from store.hiding import hidden
from store.licences import withheld
from store.marks import mark_text, mark_time

if TYPE_CHECKING:
    from collectors.pairs import Todo
    from store.database import Database
    from store.settings import Settings

BAD, USAGE, NO_ANSWER = 1, 2, 3


class Refused(Exception):
    """What a command will not do; `code` is the exit code."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


def chosen(asked: list[str] | None, known: list[str], what: str) -> list[str]:
    """The names asked for, or all that are known. Refuses one that is not."""
    for name in asked or ():
        if name not in known:
            hint = unconfigured(Path(), name) if what == "backend" else None
            names = ", ".join(dict.fromkeys(known))
            said = f"unknown {what} {name!r}; {f'known: {names}' if names else 'none is configured'}"
            raise Refused(f"{said}\n{hint}" if hint else said)
    return list(dict.fromkeys(asked)) if asked else known


def only_one(asked: str | None, known: list[str], what: str) -> str:
    """The name asked for, or the one that there is. Refuses to guess among several."""
    if asked is None and len(known) != 1:
        names = ", ".join(known) or "none is configured"
        raise Refused(f"name the {what} with --{what}; known: {names}")
    return chosen([asked] if asked else None, known, what)[0]


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


def to_resume(
    db: Database, of: Settings, run_id: int | None, suites: list[str] | None, backends: list[str] | None
) -> list[Todo]:
    """The interrupted runs asked for: refuses where there is none."""
    from collectors.runs import NothingToResume, interrupted

    try:
        return interrupted(db, of, existing(db, [run_id] if run_id else []), suites, backends)
    except NothingToResume as error:
        raise Refused(str(error), NO_ANSWER) from None


def writable(path: Path) -> TextIO:
    """The file, opened to be written anew as CSV."""
    try:
        return path.open("w", newline="", encoding="utf-8")
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}") from None


def refuse_unwritable(path: Path | None) -> None:
    """Refuses a place that takes no file, before what is to stand in it is paid for."""
    if path is None:
        return
    is_new = not path.exists()
    try:
        path.open("a").close()
        if is_new:
            path.unlink()
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}") from None


def write_to(path: Path, text: str, mode: str = "w") -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}") from None


def refuse_texts(suite: str, origin: str, licence: str) -> None:
    """Where texts were asked for of a suite whose licence does not let them be shared."""
    if why := withheld(suite, origin, licence):
        raise Refused(f"--include-text: {why}")


def pairs(given: list[str] | None) -> dict[str, str]:
    split = [text.partition("=") for text in given or ()]
    for key, sign, _ in split:
        if not key or not sign:
            raise Refused(f"--meta {key}: should be KEY=VALUE")
    told: dict[str, str] = hidden({key: value for key, _, value in split})
    return told


def moment(text: str | None) -> datetime | None:
    """In UTC; a time without its zone is meant where memtrend runs."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(f"{text!r} should be a date or time such as 2026-03-04T09:30+01:00") from None
    try:
        return mark_time(at)
    except ValueError as error:
        raise Refused(f"{text!r} {error}") from None


def ahead(until: str | None, lasting: str | None) -> datetime:
    """A time that is given as such or by how far it lies ahead."""
    from store.sections import time_of

    if (until is None) == (lasting is None):
        raise Refused("say until when: --until 2026-03-04T09:00, or --for 8h")
    if until is not None:
        found = moment(until)
        assert found is not None, "it was given"
        return found
    try:
        return datetime.now(UTC) + time_of(lasting or "")
    except (ValueError, OverflowError):
        raise Refused(f"--for {lasting}: should be such as 30m, 8h, 7d") from None


def said(text: str) -> str:
    """What a mark is to say."""
    try:
        return mark_text(text)
    except ValueError as error:
        raise Refused(f"the text of a mark {error}, such as 'deploy agent 4.12'") from None
