"""Rules about a case that asks for what cannot be: no memory, however good, meets all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from collectors.lint.findings import quoted
from collectors.lint.view import Case
from collectors.scorers import Want, is_same
from collectors.suite import Memory, Probe


def no_room(case: Case) -> Iterator[str]:
    """Fewer may come back than it takes to give all that is wanted."""
    rooms = (("k", case.probe.k, _ranked(case)), *(("at most", n, list(case.wants)) for n in _limits(case)))
    for name, room, wanted in rooms:
        if len(wanted) > room and (needed := _needed(case, wanted)) > room:
            memories = "one memory" if needed == 1 else f"{needed} memories"
            yield f"it takes {memories} to give all that is wanted, and {name} {room} may come back"


def _limits(case: Case) -> list[int]:
    return [e.n for e in case.probe.expectations if e.kind in ("at_most", "exactly") and e.n is not None]


def _ranked(case: Case) -> list[Want]:
    """What has to be among the first k; a set is of all that came back."""
    sets = {id for e in case.probe.expectations if e.kind == "only" for id in e.ids}
    return [want for want in case.wants if want.id not in sets]


def _needed(case: Case, wanted: list[Want]) -> int:
    """At least so many memories: things of which no memory gives two."""
    taken: set[int] = set()
    needed = 0
    for met in sorted((case.met(want) for want in wanted), key=len):
        if met and taken.isdisjoint(met):
            needed += 1
            taken.update(met)
    return needed


def other_metadata(case: Case) -> Iterator[str]:
    for expectation in case.probe.expectations:
        for memory in case.pool.memories if expectation.kind == "metadata" else ():
            if memory.id in expectation.ids:
                planted = _metadata(memory)
                for name, value in expectation.values:
                    if not is_same(value, planted.get(name)):
                        yield f"{memory.id} is planted with {_told(name, planted)}, not {_shown(value)}"


def _metadata(memory: Memory) -> Mapping[str, Any]:
    """What a good backend returns beside the text."""
    names = ("role", "user", "at", "domain", "session")
    known = {name: getattr(memory, name) for name in names}
    return {**memory.metadata, **{name: value for name, value in known.items() if value is not None}}


def _told(name: str, planted: Mapping[str, Any]) -> str:
    return f"{name} {_shown(planted[name])}" if name in planted else f"no {name}"


def _shown(value: Any) -> str:
    return quoted(value if isinstance(value, str) else str(value))


def silent_and_speaking(probe: Probe) -> Iterator[str]:
    wanting = {"any", "all", "only", "metadata"}
    if probe.abstain and any(e.kind in wanting and (e.patterns or e.ids) for e in probe.expectations):
        yield "silence is right (abstain), and something has to come back"
