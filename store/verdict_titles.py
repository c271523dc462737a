"""What verdicts come to, as titles: of all series together, and of one run. Pure.

Text that comes back holds names as they are: who shows it escapes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from store import verdict_words, words
from store.verdict_words import Badge, Kind


class Series(NamedTuple):
    """A suite on a backend. `status` is that of the newest closed run, None before there is one, `verdict`
    the kind of what is said of it, None where nothing can be said yet. A floor is a backend that no one
    should be proud to beat; a `silent` one is overdue, so that nobody knows how it is now."""

    suite: str
    backend: str
    status: str | None
    running: bool = False
    floor: bool = False
    verdict: Kind | None = None
    silent: bool = False

    @property
    def name(self) -> str:
        return f"the floor {self.backend}" if self.floor else self.backend

    @property
    def is_broken(self) -> bool:
        return self.status in words.PROBLEMS


class _Clause(NamedTuple):
    said: str
    applies: Callable[[Series], bool]


def _of(*kinds: Kind) -> Callable[[Series], bool]:
    return lambda row: not (row.is_broken or row.silent) and row.verdict in kinds


_CLAUSES = (
    _Clause("got worse", _of("worse", "leak")),
    _Clause("may have got worse", _of("suspected")),
    _Clause("could not be measured", lambda row: row.is_broken),
    _Clause("brought no new data", lambda row: row.silent and not row.is_broken),
    _Clause("may have changed", _of("unknown")),
    _Clause("got better", _of("better")),
)
"""The worst first."""


def overview_title(series: Sequence[Series]) -> str:
    """What all series come to: who changed, what could not be measured, and whether that is all."""
    measured = [row for row in series if row.status is not None]
    if not measured:
        running = any(row.running for row in series)
        return "The first runs are under way" if running else "Nothing has been measured yet"
    found = [(clause.said, rows) for clause in _CLAUSES if (rows := list(filter(clause.applies, measured)))]
    quiet = [row for row in measured if not any(row in rows for _, rows in found)]
    if not found:
        return _at_rest(quiet)
    return "; ".join(filter(None, [_told(found), _rest(quiet)]))


def _at_rest(quiet: Sequence[Series]) -> str:
    where = f"{_measured(quiet)} measured on {words.count(len({row.suite for row in quiet}), 'suite')}"
    if all(row.verdict is None for row in quiet):
        return _capital(f"{where}; no baseline yet, so no verdict")
    early = sum(row.verdict != "unchanged" for row in quiet)
    if not early:
        return _capital(f"{where}; no change seen")
    return _capital(f"{where}; no change seen, {words.spelled(early)} of {len(quiet)} verdicts provisional")


def _measured(measured: Sequence[Series]) -> str:
    """ "3 backends and two floors"."""
    backends, floors = (
        len({row.backend for row in measured if row.floor == floor}) for floor in (False, True)
    )
    told = [words.count(backends, "backend")] if backends else []
    return words.listed([*told, *([f"{words.spelled(floors)} floor{'s' * (floors > 1)}"] if floors else [])])


def _told(found: Sequence[tuple[str, Sequence[Series]]]) -> str:
    """By name where each happened to one backend, else by numbers."""
    named = all(len({row.name for row in rows}) == 1 for _, rows in found)
    if named:
        return ", ".join(f"{rows[0].name} {said} on {_suites(rows)}" for said, rows in found)
    numbers = [len({row.name for row in rows}) for _, rows in found]
    nouns = [" backend" + "s" * (numbers[0] > 1), *[""] * (len(found) - 1)]
    told = zip(numbers, nouns, found, strict=True)
    return _capital(", ".join(f"{words.spelled(n)}{noun} {said}" for n, noun, (said, _) in told))


def _suites(rows: Sequence[Series]) -> str:
    return words.listed([row.suite for row in rows])


def _rest(quiet: Sequence[Series]) -> str:
    if not quiet:
        return ""
    if all(row.verdict == "unchanged" for row in quiet):
        return "nothing else changed"
    if all(row.verdict is None for row in quiet):
        return "of the rest nothing can be said yet"
    return "no other change seen so far"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# A series and a run -----------------------------------------------------------------


def badge(content: Mapping[str, Any]) -> Badge | None:
    """None where there was nothing to compare with: that is no finding."""
    return verdict_words.badge(content) if content["baseline"] else None


def run_phrase(content: Mapping[str, Any]) -> str:
    """What follows "27 of 29 cases passed": "worse, 3 lost compared with 10 earlier nights"."""
    found = badge(content)
    if found is None:
        return f"{words.NO_BASELINE.lower()}, so no verdict"
    told = turned(content) if found.kind not in ("unchanged", "provisional") else ""
    said = "no change seen so far" if found.kind == "provisional" else found.text.lower()
    said += ", shared cause" if verdict_words.is_shared(content) else ""
    nights = words.count(content["nights"], "earlier night")
    return f"{', '.join(filter(None, [said, told]))} compared with {nights}"


def trend_news(backend: str, content: Mapping[str, Any] | None, broken: int) -> str | None:
    """What the newest verdict of a backend adds to a title that counts its `broken` cases: "" where it bears
    that count out, None where it says otherwise, else the news itself."""
    found = badge(content) if content else None
    if content is None or found is None:
        return ""
    if found.kind == "better":
        return ", ".join(filter(None, [f"{backend} got better", turned(content)]))
    if found.kind in ("worse", "leak"):
        return "" if broken else f"{backend} got worse"
    return None if found.kind == "unchanged" else ""


def turned(content: Mapping[str, Any]) -> str:
    """ "3 lost and 1 gained", "" where no case turned."""
    return words.listed([f"{len(content[side])} {side}" for side in ("lost", "gained") if content[side]])


def card_notes(content: Mapping[str, Any], *, reference: bool = False) -> list[str]:
    """What a card says below its chart, a line each: does it beat a plain vector store (`reference`: it is
    one), and which cases turned, or what the suite could not have seen."""
    dense = {"yes": "beats dense", "no": "does not beat dense", "": ""}
    beats = dense.get(told := verdict_words.beats_dense(content), f"beats dense? {told}")
    spot = content["blind_spot"]
    blind = f"would have missed drops under {spot * 100:.2g} points" if spot is not None else ""
    news = turned(content) or (_leaked(content["leak"]) if content["leak"] else "")
    news += ", shared cause" if verdict_words.is_shared(content) else ""
    return [*filter(None, ["the reference" if reference and not beats else beats, blind or news])]


def _leaked(leak: Mapping[str, Any]) -> str:
    return f"{words.difference('pass', leak['before'], leak['after'])} at run {leak['first_bad']}"
