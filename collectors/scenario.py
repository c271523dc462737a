"""The work of a scenario: (open backend, scenario) -> what came back. Knows no database and no run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NamedTuple

from collectors.backend import Backend, BackendGone, Hit, Observation, Recall, Usage
from collectors.calls import Instance, Line, Stopped, attempt, describe, is_transient
from collectors.census import Census
from collectors.diagnosis import Inquirer, recall
from collectors.failures import ERROR, JUDGE_ERROR, Diagnosis, failure_kind
from collectors.history import History
from collectors.matching import MatchTimeout
from collectors.scorers import Evidence, judge
from collectors.suite import (
    Amend,
    Forget,
    ForgetUser,
    Memory,
    Plant,
    Probe,
    Reopen,
    Scenario,
    Scope,
    Session,
    Step,
)
from collectors.timing import Timed
from store import logs

LOG = logs.get("scenario")
DROP_S = 5.0
"""How long the dropping of a namespace may take, once its scenario has ended."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """`timeout_s` of each call; `attempts` at a call, and at a scenario whose planting failed;
    `diagnoses`: how many lost probes of the scenario are asked again, none after one that hung."""

    timeout_s: float = 30.0
    attempts: int = 3
    diagnoses: int = 50


class Answer(NamedTuple):
    """One probe's observation and what follows from it. `evidence` is None where there is no answer, or
    none that could be judged."""

    probe: Probe
    observation: Observation
    evidence: Evidence | None = None
    scores: dict[str, float] = {}  # noqa: RUF012
    failure: str | None = None
    diagnosis: Diagnosis | None = None


@dataclass(slots=True)
class Played:
    """What one scenario gave. `ingest` is the usage of planting, `asking` that of questions and diagnoses,
    with those of every replay. Times are in ms and of the replay that counted: `plant_ms` is None when
    nothing was asked of the backend, `settle_ms` when it did not settle or never had to. `error` is why the
    rest of the scenario could not be played, `left` why its namespace is left behind."""

    answers: list[Answer] = field(default_factory=list)
    plants: int = 0
    plant_ms: float | None = None
    settle_ms: float | None = None
    ingest: Usage = field(default_factory=Usage)
    asking: Usage = field(default_factory=Usage)
    attempts: int = 1
    error: str | None = None
    settle_error: str | None = None
    left: str | None = None


class _ChangeFailed(Exception):
    """A call that changes the store failed; `cause` says why."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(describe(cause))
        self.cause = cause


class _DiagnosisHung(Exception):
    """A diagnosis hangs in the only handle, with questions still to be asked."""


def play(
    instance: Instance,
    scenario: Scenario,
    namespace: str,
    limits: CallLimits | None = None,
    stop: threading.Event | None = None,
) -> Played:
    """Play the steps in a fresh namespace, and drop it; a standing one is only read. A transient failure of a
    call that changes the store replays everything from `reset`, since a plant that was stored and then raised
    would be stored twice.
    So does a diagnosis that hung before the last question, since it must change no answer: what else than
    planting again brings an open store back that lives in memory? That replay diagnoses nothing more, and
    is no attempt. Raises `Stopped`; every other failure is in what it returns."""
    limits, stop = limits or CallLimits(), stop or threading.Event()
    number, known, played = 1, dict[str, Diagnosis](), Played()
    while True:
        played = Played(ingest=played.ingest, asking=played.asking, attempts=number)
        player = _Player(instance, namespace, limits, Line(limits.timeout_s, stop), known, played)
        cause = player.run(scenario)
        if isinstance(cause, _DiagnosisHung):
            limits = replace(limits, diagnoses=0)
        elif cause is not None and is_transient(cause) and number < limits.attempts:
            number += 1
        else:
            break
    played.answers = [_replayed(answer, number - 1) for answer in played.answers]
    if player.began:
        played.left = _not_dropped(instance, namespace, Line(min(limits.timeout_s, DROP_S), stop))
    return played


def _not_dropped(instance: Instance, namespace: str, line: Line) -> str | None:
    """Drop the namespace, after a hang by a handle opened anew: one that is left costs space, not truth.
    Why it could not be dropped, None when it was."""
    opened = None
    try:
        backend = opened = line(instance.handle).value
        line(lambda: backend.reset(Scope(namespace)))
    except Stopped:
        raise
    except Exception as error:  # noqa: BLE001  an adapter may raise anything, and the answers are in
        if isinstance(error, BackendGone):
            instance.abandon(opened)
        return f"namespace {namespace} is left behind: {describe(error)}"
    finally:
        line.close()
    return None


@dataclass(slots=True)
class _Player:
    """One pass over a scenario's steps. `known` are the diagnoses made so far, by case, of earlier passes
    too; `missing` is the capability of a step that could not be done: no later probe of the scenario means
    anything then; `hung`: a diagnosis does; `began`: there is a namespace to drop."""

    instance: Instance
    namespace: str
    limits: CallLimits
    line: Line
    known: dict[str, Diagnosis]
    played: Played
    backend: Backend = field(init=False)
    opened: Backend | None = None
    history: History = field(default_factory=History)
    unsettled: bool = False
    missing: str | None = None
    hung: bool = False
    began: bool = False
    unstored: dict[str, History] = field(default_factory=dict)
    expected: Mapping[str, int] | None = None

    def run(self, scenario: Scenario) -> Exception | None:
        """Play the scenario; the error that a replay may mend, if there was one."""
        try:
            self._open()
            self._play(scenario)
        except _ChangeFailed as failed:
            self._fail(scenario, failed.cause)
            return failed.cause
        except BackendGone as gone:
            self.instance.abandon(self.opened)
            self._fail(scenario, gone)
        except _DiagnosisHung as hung:
            self.instance.abandon(self.opened)
            return hung
        finally:
            self.line.close()
        return None

    def _open(self) -> None:
        self.opened = None  # while it is being opened, there is none that could hang
        self.opened = self.backend = self._change(self.instance.handle).value

    def _play(self, scenario: Scenario) -> None:
        if scenario.standing and "durable" not in self.backend.capabilities:
            self.missing = "durable"  # without it an index does not stand
        if all(self._lacks(probe) for probe in scenario.probes):
            self.played.answers = [_skipped(probe, str(self._lacks(probe))) for probe in scenario.probes]
            return
        if scenario.standing:
            self.unsettled, self.expected = False, scenario.expected
            self._walk(scenario)
            return
        self.began, self.played.plant_ms = True, 0.0
        self._change(lambda: self.backend.reset(Scope(self.namespace)))
        self._walk(scenario)
        self.played.answers = [self._tried_alone(answer) for answer in self.played.answers]

    def _walk(self, scenario: Scenario) -> None:
        for step in scenario.steps:
            if self.hung:
                raise _DiagnosisHung
            if isinstance(step, Probe):
                with logs.bound(case=step.case):
                    self.played.answers.append(self._ask(step))
            else:
                self._follow(step)

    # Changing the store

    def _follow(self, step: Step) -> None:
        needed = _NEEDED.get(type(step))
        if needed and needed not in self.backend.capabilities:
            self.missing = self.missing or needed
        if not self.missing:
            self._do(step)
            self.history.follow(step)

    def _do(self, step: Step) -> None:
        match step:
            case Plant(memories):
                self._plant(memories)
            case Amend(id, text):
                self._change(lambda: self.backend.amend(self._home(id), id, text))
            case Forget(ids):
                self._forget(ids)
            case ForgetUser(user):
                self._change(lambda: self.backend.forget_user(Scope(self.namespace, user)))
            case Session():
                pass  # the history remembers it
            case Reopen():
                self._settle()
                self._reopened()
            case Probe():
                raise AssertionError("a probe is asked, not done")

    def _reopened(self) -> Backend:
        self._change(self.instance.close)
        self._open()
        return self.backend

    def _plant(self, memories: tuple[Memory, ...]) -> None:
        """One `remember` for each run of memories of one user and session."""
        placed = map(self.history.placed, memories)
        for (user, session), group in groupby(placed, lambda memory: (memory.user, memory.session)):
            self._remember(Scope(self.namespace, user, session=session), tuple(group))

    def _remember(self, scope: Scope, memories: tuple[Memory, ...]) -> None:
        usage, ms = self._change(lambda: self.backend.remember(scope, memories))
        self.played.plants += len(memories)
        self.played.plant_ms = (self.played.plant_ms or 0.0) + ms
        self.played.ingest += usage if isinstance(usage, Usage) else Usage()

    def _forget(self, ids: tuple[str, ...]) -> None:
        for home, group in groupby(ids, self._home):
            self._forget_at(home, tuple(group))

    def _forget_at(self, home: Scope, ids: tuple[str, ...]) -> None:
        self._change(lambda: self.backend.forget(home, ids))

    def _home(self, id: str) -> Scope:
        memory = self.history.held.get(id)
        return Scope(self.namespace, memory.user) if memory else Scope(self.namespace)

    def _change(self, call: Callable[[], Any]) -> Timed:
        self.unsettled = True
        try:
            return self.line(call)
        except (BackendGone, Stopped):
            raise
        except Exception as error:
            raise _ChangeFailed(error) from error

    def _settle(self) -> None:
        """A backend that does not settle is recorded and asked all the same: what it returns is a result."""
        if self.unsettled:
            self.unsettled = False
            box = Scope(self.namespace)
            settled = attempt(self.line, lambda: self.backend.settle(box), self.limits.attempts)
            if settled.error:
                self.played.settle_error = describe(settled.error)
            waited = (self.played.settle_ms or 0.0) + (settled.ms or 0.0)
            self.played.settle_ms = None if self.played.settle_error else waited

    # Asking

    def _ask(self, probe: Probe) -> Answer:
        lacking = self._lacks(probe)
        if lacking:
            return _skipped(probe, lacking)
        self._settle()
        if probe.counts:
            return self._count(probe)
        scope = self._scope(probe)
        asked = recall(self.line, self.backend, scope, probe.query, probe.k, probe.leg, self.limits.attempts)
        if asked.error:
            return _failed(probe, describe(asked.error), asked.attempts)
        answer: Recall = asked.value
        self.played.asking += answer.usage
        seen = Observation(answer.hits, answer.reply, asked.ms, asked.attempts, answer.usage)
        return self._asked_again(probe, scope, seen) if probe.twice else self._judged(probe, seen)

    def _asked_again(self, probe: Probe, scope: Scope, seen: Observation) -> Answer:
        """Judge an answer by a second one to the same question, which is not timed."""
        asked = recall(self.line, self.backend, scope, probe.query, probe.k, probe.leg, self.limits.attempts)
        if asked.error:
            return _failed(probe, describe(asked.error), seen.attempts + asked.attempts)
        self.played.asking += asked.value.usage
        by_id = "ids" in self.backend.capabilities
        same = _told(seen.hits, by_id) == _told(asked.value.hits, by_id)
        return self._judged(probe, seen if same else replace(seen, again=tuple(asked.value.hits)))

    def _count(self, probe: Probe) -> Answer:
        counted = attempt(self.line, lambda: self._census(probe), self.limits.attempts)
        if counted.error:
            return _failed(probe, describe(counted.error), counted.attempts)
        census: Census = counted.value
        lacking = census.lacks(probe.leg)
        if lacking:
            return _skipped(probe, lacking)
        seen = Observation(reply=census.told(probe.leg), attempts=counted.attempts, census=census)
        return self._judged(probe, seen)

    def _census(self, probe: Probe) -> Census:
        """What was planted is expected where the backend keeps memories one to one, as `ids` promises. A leg
        that is not there any more holds nothing."""
        counted = self.backend.count(Scope(self.namespace, probe.user))
        expected = self.expected
        if expected is None:
            one_to_one = "ids" in self.backend.capabilities
            expected = dict.fromkeys(counted, len(self.history.held)) if one_to_one else {}
        told = {str(leg): int(n) for leg, n in counted.items()}
        return Census({**dict.fromkeys(expected, 0), **told}, expected)

    def _lacks(self, probe: Probe) -> str | None:
        """What the backend lacks to be asked this, and to be judged by it."""
        if self.missing:
            return self.missing
        if (
            probe.leg
            and not probe.counts
            and ("legs" not in self.backend.capabilities or probe.leg not in self.backend.legs)
        ):
            return f"leg {probe.leg}"
        return next(iter(sorted(probe.needs - self.backend.capabilities)), None)

    def _scope(self, probe: Probe) -> Scope:
        session = None if probe.all_sessions else probe.session or self.history.session
        return Scope(self.namespace, probe.user, probe.domains, session)

    def _judged(self, probe: Probe, observation: Observation) -> Answer:
        diagnosis = None
        try:
            evidence, scores = judge(probe, observation)
            if not scores["pass"] and not probe.counts:
                diagnosis = self._diagnose(probe)
            failure = self._kind(probe, evidence, self.history, diagnosis)
            if diagnosis and diagnosis.unstored:
                self.unstored[probe.case] = self.history.copy()
        except MatchTimeout as late:
            return Answer(probe, replace(observation, error=str(late)), failure=JUDGE_ERROR)
        return Answer(probe, observation, evidence, scores, failure, diagnosis)

    def _kind(
        self, probe: Probe, evidence: Evidence, history: History, diagnosis: Diagnosis | None
    ) -> str | None:
        by_id = "ids" in self.backend.capabilities
        return failure_kind(probe, evidence, history, diagnosis, ids=by_id)

    def _tried_alone(self, answer: Answer) -> Answer:
        """A memory that was not found is planted again, alone, when the scenario is over: was it never
        stored, or taken away?"""
        history = self.unstored.get(answer.probe.case)
        if self.hung or history is None or answer.diagnosis is None or answer.evidence is None:
            return answer
        told = answer.diagnosis
        memory = history.held[told.unstored[0]]
        inquirer = Inquirer(self.line, self.backend, self.limits.attempts)
        reopen = self._reopened if memory.id in history.reopened else None
        try:
            found = inquirer.plant_alone(memory, Scope(self.namespace), reopen)
        except _ChangeFailed:  # the backend would not open again: the answers are in, and stay
            return answer
        finally:
            self.hung = inquirer.hung
            self.played.asking += inquirer.usage
        diagnosis = told.with_alone(found)
        failure = self._kind(answer.probe, answer.evidence, history, diagnosis)
        return answer._replace(failure=failure, diagnosis=diagnosis)

    def _diagnose(self, probe: Probe) -> Diagnosis | None:
        if probe.case not in self.known and len(self.known) < self.limits.diagnoses:
            inquirer = Inquirer(self.line, self.backend, self.limits.attempts)
            self.known[probe.case] = inquirer.diagnose(probe, self._scope(probe), self.history)
            self.hung = inquirer.hung
            self.played.asking += inquirer.usage
        return self.known.get(probe.case)

    def _fail(self, scenario: Scenario, cause: Exception) -> None:
        """Every probe not answered yet is an error, never a number. Those that were answered stay."""
        unanswered = scenario.probes[len(self.played.answers) :]
        if unanswered:
            self.played.error = describe(cause)
        self.played.answers += [_failed(probe, describe(cause), 1) for probe in unanswered]


def _replayed(answer: Answer, times: int) -> Answer:
    """A case that was answered after replays of its scenario was not answered at the first try."""
    seen = answer.observation
    return (
        answer if seen.skipped else answer._replace(observation=replace(seen, attempts=seen.attempts + times))
    )


_NEEDED = {Amend: "amend", Forget: "forget", ForgetUser: "forget_user", Reopen: "durable"}


def _skipped(probe: Probe, capability: str) -> Answer:
    return Answer(probe, Observation(attempts=0, skipped=capability))


def _told(hits: Iterable[Hit], by_id: bool) -> list[tuple[str, str]]:
    """What two equal answers have in common; ids only where they are the planted ones."""
    return [(hit.id if by_id else "", hit.text) for hit in hits]


def _failed(probe: Probe, reason: str, attempts: int) -> Answer:
    LOG.warning("a case has no answer", case=probe.case, attempts=attempts)
    return Answer(probe, Observation(attempts=attempts, error=reason), failure=ERROR)
