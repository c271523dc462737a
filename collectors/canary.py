"""The canary of a standing index: what its legs should hold, and whether they do. Reads only."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

from collectors.backend import Backend
from collectors.calls import Instance, Line, attempt, describe
from collectors.census import Census
from collectors.configured import backend_config, backend_public, load_suite, suite_owner
from collectors.record import suite_record
from collectors.scenario import Answer, CallLimits, play
from collectors.suite import Scope, Suite, SuiteError
from collectors.suites.index_health import DEFAULT_TOLERANCE
from store import queries, writes
from store.database import Database
from store.settings import Settings

T = TypeVar("T")

SOURCE_TIMEOUT_S = 300.0


class CanaryError(Exception):
    """What a canary refuses, or cannot tell. The message is made for the user."""


class NoAnswer(CanaryError):
    """The index, or the source of truth, did not answer."""


class Finding(NamedTuple):
    """One case of the canary now."""

    case: str
    state: Literal["ok", "bad", "error", "skipped"]
    message: str


class Canary:
    """A suite that reads a standing index, and the backend in which that index lives."""

    def __init__(self, settings: Settings, suite: str, backend: str) -> None:
        self.settings, self.suite, self.backend = settings, standing_suite(settings, suite), backend
        self.scope = next(one.standing for one in self.suite.scenarios if one.standing)

    def check(self, db: Database) -> list[Finding]:
        """Every case of the suite, asked now and not stored. Raises `NoAnswer` where nothing is recorded."""
        expected = queries.expected_counts(db, self.suite.name, self.backend)
        if not expected:
            raise NoAnswer(
                f"nothing is recorded of {self.suite.name} on {self.backend}: memtrend canary record "
                "--expected N, with N from the source of truth"
            )
        self._refuse_unknown_legs(self._with(self._count))
        limits = CallLimits(self.settings.limits.timeout, self.settings.limits.attempts, 0)
        scenarios = self.suite.expecting(expected).scenarios
        return self._with(
            lambda instance: [
                _finding(answer)
                for scenario in scenarios
                for answer in play(instance, scenario, self.scope.namespace, limits).answers
            ]
        )

    def record(
        self, db: Database, expected: int, source: str, author: str, legs: Sequence[str] = ()
    ) -> Mapping[str, int]:
        """Write down that each leg, or each of `legs`, should hold so many. Raises `CanaryError` while a leg
        holds fewer, or the legs disagree: whoever records a broken index would never hear of it again."""
        self._register(db)
        known = queries.expected_counts(db, self.suite.name, self.backend)
        counted = self._with(self._count)
        self._refuse_unknown_legs(counted)
        if unknown := [leg for leg in legs if leg not in counted]:
            raise CanaryError(f"no leg {', '.join(unknown)}; known: {', '.join(counted)}")
        named = dict.fromkeys(legs or counted, expected)
        _refuse(_beside(counted, named, known), Census(counted, named), self._tolerance)
        writes.expect_counts(db, self.suite.name, self.backend, named, source, author)
        return {leg: counted[leg] for leg in named}

    def _refuse_unknown_legs(self, counted: Mapping[str, int]) -> None:
        """A leg that is not there would be skipped, and a canary that checks nothing is green."""
        asked = {probe.leg for probe in self.suite.probes if probe.leg}
        if unknown := sorted(asked - counted.keys()):
            raise CanaryError(
                f"suite {self.suite.name} asks leg {', '.join(unknown)}, which {self.backend} does not "
                f"count; it counts: {', '.join(counted)}"
            )

    @property
    def _tolerance(self) -> float:
        found = (one.tolerance for probe in self.suite.probes for one in probe.expectations)
        return next((tolerance for tolerance in found if tolerance is not None), DEFAULT_TOLERANCE)

    def _register(self, db: Database) -> None:
        section = self.settings.backends[self.backend]
        owner = suite_owner(self.settings, self.suite.name)
        writes.register_suite(db, suite_record(self.suite, owner))
        public = backend_public(self.settings, self.backend)
        writes.register_backend(db, self.backend, section.type, public, section.owner)

    def _with(self, ask: Callable[[Instance], T]) -> T:
        config = backend_config(self.settings, self.backend)
        if config.directory and not config.directory.exists():  # which opening would make, empty
            raise CanaryError(
                f"{self.backend}: its folder {config.directory} is not there, so nor is the index"
            )
        instance = Instance(config)
        try:
            instance.prepare(threading.Event())
            return ask(instance)
        finally:
            instance.close()

    def _count(self, instance: Instance) -> dict[str, int]:
        line = Line(self.settings.limits.timeout, threading.Event())
        try:
            backend: Backend = line(instance.handle).value
            lacking = sorted({"count", "durable"} - backend.capabilities)
            if lacking:
                raise CanaryError(
                    f"backend {self.backend} does not declare {' and '.join(lacking)}: no canary"
                )
            scope = Scope(self.scope.namespace, self.scope.user)
            counted = attempt(line, lambda: backend.count(scope), self.settings.limits.attempts)
        finally:
            line.close()
        if counted.error:
            raise NoAnswer(f"{self.backend} cannot be counted: {describe(counted.error)}")
        return {str(leg): int(n) for leg, n in counted.value.items()}


def standing_suite(settings: Settings, name: str) -> Suite:
    """Raises `SuiteError` for a suite that reads no standing index."""
    suite = load_suite(settings, name)
    if not suite.standing:
        raise SuiteError(
            f"suite {name} reads no standing index: a canary is of one; give its file a [standing] section"
        )
    return suite


def standing_suites(settings: Settings) -> list[str]:
    """The configured suites that may read a standing index."""
    return [name for name, section in settings.suites.items() if section.kind == "index_health"]


def _beside(counted: Mapping[str, int], named: Mapping[str, int], known: Mapping[str, int]) -> Census:
    """The legs against each other: by what each was known to hold, since legs may differ by design. One that
    has grown since is whole."""
    held = {leg: min(n, known.get(leg, n)) for leg, n in counted.items() if leg in {**named, **known}}
    return Census(held, {**named, **known} if known else {})


def _refuse(against_each_other: Census, against_truth: Census, tolerance: float) -> None:
    short = [
        against_truth.told(leg) for leg, n in against_truth.expected.items() if against_truth.counted[leg] < n
    ]
    if len(against_each_other.counted) > 1 and against_each_other.share(None) < 1 - tolerance:
        short.append(f"the legs disagree: {against_each_other.told(None)}")
    if short:
        raise CanaryError(
            "not recorded, since the index is not whole: " + "; ".join(short) + "; mend it first"
        )


def _finding(answer: Answer) -> Finding:
    seen, case = answer.observation, answer.probe.case
    if seen.error:
        return Finding(case, "error", seen.error)
    if seen.skipped:
        return Finding(case, "skipped", f"not applicable: lacks {seen.skipped}")
    told = str(seen.reply) if answer.probe.counts else f"asked {answer.probe.query!r}"
    state: Literal["ok", "bad"] = "bad" if answer.failure else "ok"
    return Finding(case, state, f"{answer.failure or 'as it should be'}: {told}")


def asked_of_source(command: str) -> int:
    """The number on the last line that the command prints. Raises `NoAnswer` where there is none."""
    try:
        ran = subprocess.run(
            command, shell=True, capture_output=True, text=True, timeout=SOURCE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"the source did not answer within {SOURCE_TIMEOUT_S:.0f} s: {command}") from None
    if ran.returncode:
        raise NoAnswer(
            f"the source failed with exit code {ran.returncode}: {command}: {ran.stderr.strip()[-300:]}"
        )
    lines = ran.stdout.split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if not last.isdecimal():
        raise NoAnswer(f"the source should print a number on its last line, not {last[:80]!r}: {command}")
    return int(last)
