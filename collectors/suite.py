"""The words of a suite: memories, steps, probes, scenarios. Pure data, picklable, no I/O but `load`.

A suite is a list of scenarios. A scenario is a list of steps: it plants memories and probes them.
One probe is one case is one row. Every suite kind is a *reader* that turns its files into this;
nothing after the reader knows the kind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

DEFAULT_USER = "user"


class Problem(NamedTuple):
    """One thing that keeps a suite from being loaded. `where` is "file:line", or a file; `rule` is what lint
    calls it."""

    where: str
    message: str
    rule: str = "malformed"
    case: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class SuiteError(Exception):
    """A suite that cannot be loaded. The message names file, line, field and what was expected. `problems`
    are all there are, where they have a place; `rest` are the scenarios that could be read in spite of
    them, for lint to look at."""

    def __init__(
        self, message: str, problems: Sequence[Problem] = (), rest: tuple[Scenario, ...] = ()
    ) -> None:
        super().__init__(message)
        self.problems, self.rest = tuple(problems), rest

    @classmethod
    def at(cls, where: str, message: str, rule: str = "malformed", case: str = "") -> SuiteError:
        problem = Problem(where, message, rule, case)
        return cls(str(problem), [problem])


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing to remember. `at` is event time (aware), not the time of planting."""

    id: str
    text: str
    role: str = "user"
    at: datetime | None = None
    user: str = DEFAULT_USER
    domain: str | None = None
    session: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a call is made. The namespace is memtrend's own box, one a scenario; user, domains and
    session are what the backend itself must keep apart, and so are under test. No domains: all of them;
    no session: all of the user's."""

    namespace: str
    user: str = DEFAULT_USER
    domains: tuple[str, ...] = ()
    session: str | None = None


Kind = Literal[
    "any", "all", "unwanted", "unwanted_first", "only", "at_most", "exactly", "metadata", "stable", "count"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must, or must not, come back: by pattern (a case-insensitive regular expression) or by id.

    any: one of the patterns in the first k | all: each pattern and id in the first k |
    unwanted: none of them in the first k | unwanted_first: none of them in the first hit |
    only: exactly these ids, of all that came back | at_most, exactly: `n` hits, of all that came back |
    metadata: the one id in the first k, its metadata with these `values` | stable: asked again, the same
    hits in the same order |
    count: the probe's leg holds as many memories as it should, or all legs as many as each other, give or
    take `tolerance` (a share); nothing is asked of the index but its number.
    `section` names the part of a structured answer that is meant; None is the plain list of hits.
    """

    kind: Kind
    patterns: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    n: int | None = None
    section: str | None = None
    tolerance: float | None = None
    values: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Plant:
    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True)
class Amend:
    """Only the text changes; id, user, times and metadata must survive."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Forget:
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForgetUser:
    user: str


@dataclass(frozen=True, slots=True)
class Session:
    """Sets the session of the later steps."""

    id: str


@dataclass(frozen=True, slots=True)
class Reopen:
    """Close the backend and open it again: durability."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question with what is expected of the answer. `session` None is the session of the last
    `Session` step; `all_sessions` asks over all of the user's. `story` holds the case's own steps before
    the question, without the background memories, for a person to read. `where` is "file:line", where it was
    read: no part of what is asked."""

    case: str
    query: str
    expectations: tuple[Expectation, ...]
    k: int = 5
    user: str = DEFAULT_USER
    domains: tuple[str, ...] = ()
    session: str | None = None
    all_sessions: bool = False
    leg: str | None = None
    abstain: bool = False
    critical: bool = False
    cluster: str | None = None
    tags: tuple[str, ...] = ()
    source: str = ""
    hash: str = ""
    background: str = ""
    story: tuple[Step, ...] = ()
    where: str = field(default="", compare=False)

    @property
    def counts(self) -> bool:
        """Whether memories are counted instead of asked for."""
        return any(expectation.kind == "count" for expectation in self.expectations)

    @property
    def twice(self) -> bool:
        """Whether it is asked a second time, to compare the answers."""
        return any(expectation.kind == "stable" for expectation in self.expectations)

    @property
    def needs(self) -> frozenset[str]:
        """Capabilities without which the question cannot be judged."""
        asked = {
            "ids": any(expectation.ids for expectation in self.expectations),
            "metadata": any(expectation.kind == "metadata" for expectation in self.expectations),
            "count": self.counts,
        }
        return frozenset(name for name, needed in asked.items() if needed)


Step = Plant | Amend | Forget | ForgetUser | Session | Reopen | Probe


@dataclass(frozen=True, slots=True)
class Scenario:
    """Steps in one fresh namespace: the unit of isolation, of concurrency, of retry and of resume.

    `standing` is an index of the team's that is only read: no reset, no planting, nothing dropped.
    `expected`: how many memories its legs should hold, from the record; of a fresh one the plants tell."""

    id: str
    steps: tuple[Step, ...]
    standing: Scope | None = None
    expected: Mapping[str, int] = field(default_factory=dict)

    @property
    def probes(self) -> tuple[Probe, ...]:
        return tuple(step for step in self.steps if isinstance(step, Probe))

    @property
    def plants(self) -> int:
        return sum(len(step.memories) for step in self.steps if isinstance(step, Plant))

    @property
    def reopens(self) -> bool:
        return any(isinstance(step, Reopen) for step in self.steps)


@dataclass(frozen=True, slots=True)
class Suite:
    """`version` is a hash of the cases: two suites of one version ask the same questions.
    `origin` is "own" for a team's cases, "starter" for those we ship, "published" for a benchmark; `licence`
    and `citation` travel with its results."""

    name: str
    kind: str
    scenarios: tuple[Scenario, ...]
    origin: str = "own"
    path: str = ""
    licence: str = ""
    citation: str = ""

    @property
    def version(self) -> str:
        return digest([self.kind, sorted((probe.case, probe.hash) for probe in self.probes)])

    @property
    def probes(self) -> Iterator[Probe]:
        return (probe for scenario in self.scenarios for probe in scenario.probes)

    @property
    def plants(self) -> int:
        return sum(scenario.plants for scenario in self.scenarios)

    @property
    def standing(self) -> bool:
        """Whether a standing index is read, so that nothing may be written anywhere near it."""
        return any(scenario.standing for scenario in self.scenarios)

    def expecting(self, counts: Mapping[str, int]) -> Suite:
        """The suite with what the legs of its standing index should hold."""
        told = (replace(one, expected=counts) if one.standing else one for one in self.scenarios)
        return replace(self, scenarios=tuple(told))


@dataclass(frozen=True, slots=True)
class SuiteConfig:
    """Where a suite comes from. Selected are the cases that bear all tags of `only` and none of `without`."""

    name: str
    path: Path
    kind: str = "golden"
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    origin: str = "own"
    licence: str = ""
    citation: str = ""


SHIPPED_DIR = Path(__file__).parent / "suites"


def _ours(
    name: str, folder: str, *, only: tuple[str, ...] = (), without: tuple[str, ...] = ()
) -> SuiteConfig:
    return SuiteConfig(
        name, SHIPPED_DIR / folder, only=only, without=without, origin="starter", licence="MIT",
        citation="the starter suites of memtrend",
    )  # fmt: skip


SHIPPED = {
    suite.name: suite
    for suite in (
        _ours("golden", "golden", without=("holdout",)),
        _ours("smoke", "golden", only=("smoke",)),
        _ours("holdout", "golden", only=("holdout",)),
        _ours("contract", "contract"),
    )
}

READERS = {
    "golden": "collectors.suites.golden:read",
    "index_health": "collectors.suites.index_health:read",
}
"""Kind -> its reader: a function (SuiteConfig) -> tuple of scenarios."""


def load(config: SuiteConfig) -> Suite:
    """Read a suite by its kind's reader. Raises `SuiteError` for anything malformed, missing or empty."""
    if config.kind not in READERS:
        known = ", ".join(sorted(READERS))
        raise SuiteError(f"suite {config.name}: unknown kind {config.kind!r}; known: {known}")
    module, _, function = READERS[config.kind].partition(":")
    scenarios = getattr(import_module(module), function)(config)
    told = (config.origin, str(config.path), config.licence, config.citation)
    suite = Suite(config.name, config.kind, scenarios, *told)
    _refuse_empty_or_doubled(suite)
    _refuse_changes_of_standing(suite)
    return suite


def _refuse_changes_of_standing(suite: Suite) -> None:
    for scenario in suite.scenarios:
        changing = [step for step in scenario.steps if not isinstance(step, Probe | Session)]
        if scenario.standing and changing:
            raise SuiteError(
                f"suite {suite.name}: scenario {scenario.id!r} would {type(changing[0]).__name__.lower()} in "
                f"the standing index {scenario.standing.namespace!r}; a standing index is only read"
            )


def _refuse_empty_or_doubled(suite: Suite) -> None:
    cases = [(probe.case, probe.where) for probe in suite.probes]
    if not cases:
        raise SuiteError(
            f"suite {suite.name}: no cases in {suite.path}; check the path and the selected tags"
        )
    _refuse_doubled(suite, "case", cases)
    _refuse_doubled(suite, "scenario", [(scenario.id, suite.path) for scenario in suite.scenarios])


def _refuse_doubled(suite: Suite, what: str, ids: Sequence[tuple[str, str]]) -> None:
    seen: set[str] = set()
    for id, where in ids:
        if id in seen:
            told = f"{what} id {id!r} occurs twice; ids must be unique"
            problem = Problem(where, told, "duplicate-id", id)
            raise SuiteError(f"suite {suite.name}: {told}", [problem], suite.scenarios)
        seen.add(id)


def digest(value: Any) -> str:
    """First 16 hex digits of the SHA-256 of a JSON value with sorted keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
