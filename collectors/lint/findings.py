"""What lint says: findings, and the rules that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from collectors.lint.view import Case, View
from collectors.suite import Probe, Problem

Severity = Literal["error", "warning"]


class Finding(NamedTuple):
    """One thing wrong with a suite. `line` counts from 1, 0 where no line is meant; `case` is empty where
    no case is meant."""

    file: str
    line: int
    case: str
    rule: str
    severity: Severity
    message: str
    hint: str


class Found(NamedTuple):
    """What a rule says about a case."""

    case: Case
    message: str


Check = Callable[[View], Iterator[Found]]


class Rule(NamedTuple):
    """`why` it matters; `hint` says what to do. Without a check it is found while the suite is read."""

    name: str
    severity: Severity
    why: str
    hint: str
    check: Check | None = None

    def of_probe(self, probe: Probe, message: str) -> Finding:
        return Finding(*_place(probe.where), probe.case, self.name, self.severity, message, self.hint)

    def of_problem(self, problem: Problem) -> Finding:
        place = _place(problem.where)
        return Finding(*place, problem.case, self.name, self.severity, problem.message, self.hint)


def each(check: Callable[[Case], Iterator[str]]) -> Check:
    """A rule about one case at a time, of those whose memories are known."""

    def checked(view: View) -> Iterator[Found]:
        return (Found(case, told) for case in view.cases if not case.blind for told in check(case))

    return checked


def _place(where: str) -> tuple[str, int]:
    file, _, line = where.rpartition(":")
    return (file, int(line)) if file and line.isdecimal() else (where, 0)


def quoted(text: str, longest: int = 60) -> str:
    """The beginning of a pattern or of a memory, on one line."""
    line = " ".join(text.split())
    return f"'{line}'" if len(line) <= longest else f"'{line[: longest - 1]}…'"
