"""The heart: run a suite against a backend and keep every answer.

One loop for every kind of suite. Each scenario is committed before the next is played, so a kill at any
moment loses at most the scenarios in flight, and `resume` plays exactly those that are missing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from math import ceil
from typing import Any, NamedTuple

from collectors.backend import NAMESPACE_PREFIX, BackendConfig
from collectors.calls import GRACE_S, Instance, Line, Stopped, describe, on_line
from collectors.contract import CheckResult, adapter_checks
from collectors.environment import changes, fingerprint
from collectors.lease import BackendLease
from collectors.record import scenario_outcome, suite_record
from collectors.scenario import CallLimits, Played, play
from collectors.scorers import SCORER_VERSION
from collectors.suite import Scenario, Suite, digest
from store import queries, writes
from store.database import Database
from store.errors import StoreError
from store.evidence import Verdict, drift_rollups, entry
from store.portable import Against
from store.records import ClosedStatus, NewRun, Rollup

AHEAD = 2
"""Scenarios given out for each worker: one to play and one to go on with, so that few answers are held."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """`max_error_rate`: share of the cases that may go unanswered before a run is invalid; `concurrency`:
    scenarios at once, for a backend that allows it; `max_diagnoses`: lost probes asked again, a run."""

    timeout_s: float = 30.0
    attempts: int = 3
    max_error_rate: float = 0.1
    concurrency: int = 4
    max_diagnoses: int = 50


class Confirm(NamedTuple):
    """How a suspicion is looked at again, at once: by so many trials, unless they would cost more than
    `max_cost` USD."""

    trials: int = 3
    max_cost: float | None = None


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What to run. `subset` names the tag by which the suite was narrowed, '' for the whole of it; `owner`
    is the backend's, and so the run's; `looks_at` is the run whose questions are asked once more, `repeats`
    the one that this one makes a calibration with;
    `against` is what a run is held against in place of its baseline in the record;
    `public_config` is the backend's configuration with its secrets hidden."""

    suite: Suite
    backend: BackendConfig
    trials: int = 1
    trigger: str = "cli"
    subset: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)
    owner: str = "default"
    suite_owner: str = "default"
    confirm: Confirm = Confirm()  # noqa: RUF009
    against: Against | None = None
    looks_at: int | None = None
    repeats: int | None = None
    limits: RunLimits = field(default_factory=RunLimits)
    public_config: Mapping[str, Any] = field(default_factory=dict)


class Progress(NamedTuple):
    """Cases answered so far, of cases x trials."""

    run_id: int
    suite: str
    backend: str
    done: int
    total: int
    errors: int


class RunOutcome(NamedTuple):
    """How a run ended: whole, invalid (too many errors), void (the adapter is broken), interrupted. `verdict`
    of a whole run of the whole suite, after the looks taken at once."""

    run_id: int
    status: str
    reason: str | None = None
    verdict: Verdict | None = None


class Job(NamedTuple):
    trial: int
    scenario: Scenario


class Allowance:
    """So many of something a run, lent to scenarios that may be played side by side."""

    def __init__(self, left: int) -> None:
        self._left, self._lock = left, threading.Lock()

    def borrow(self, wanted: int) -> int:
        with self._lock:
            granted = min(wanted, self._left)
            self._left -= granted
            return granted

    def give_back(self, unused: int) -> None:
        with self._lock:
            self._left += unused


def run(
    plan: RunPlan,
    db: Database,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    stop: threading.Event | None = None,
    resume: int | None = None,
) -> RunOutcome:
    """Run the plan, or what is missing of the interrupted run `resume`. `stop` is this run's alone, and
    interrupts it within 10 s. Raises `InstanceBusy` while another run has the backend, `Stopped` when it was
    stopped before it began, `StoreError` when the record refuses."""
    expected = queries.expected_counts(db, plan.suite.name, plan.backend.name)
    plan = replace(plan, suite=plan.suite.expecting(expected))
    with BackendLease(db, plan.backend.name, stop or threading.Event()) as lease:
        instance, outcome = Instance(plan.backend), None
        try:
            outcome = _Run(plan, db, lease, instance, on_progress).run(resume)
            if outcome.verdict and outcome.verdict.wants_a_look:
                with suppress(Stopped, StoreError):  # the run has ended well, whatever becomes of its look
                    look = _Run(look_at(plan, outcome.run_id), db, lease, instance, on_progress).run(None)
                    outcome = outcome._replace(verdict=look.verdict or outcome.verdict)
            return outcome
        finally:
            _close(instance, GRACE_S / 2 if lease.stop.is_set() else plan.limits.timeout_s)
            if outcome and (told := instance.journal()):
                writes.add_to_journal(db, outcome.run_id, told)


def look_at(plan: RunPlan, run_id: int) -> RunPlan:
    """The same questions once more, in fresh trials; what was diagnosed once is not diagnosed again."""
    return replace(
        plan,
        trials=plan.confirm.trials,
        trigger=queries.look_trigger(run_id),
        subset=queries.CONFIRM,
        looks_at=run_id,
        limits=replace(plan.limits, max_diagnoses=0),
    )


def _close(instance: Instance, timeout_s: float) -> None:
    """A backend that cannot be closed has answered all the same; it may hang, so it is asked on a thread."""
    closing = threading.Thread(target=_closed_quietly, args=(instance,), daemon=True)
    closing.start()
    closing.join(timeout_s)


def _closed_quietly(instance: Instance) -> None:
    try:
        instance.close()
    except Exception:  # noqa: BLE001  the results are in; an adapter may raise anything here
        return


def _faults(checks: Sequence[CheckResult]) -> str | None:
    failed = [check for check in checks if not check.ok]
    return "; ".join(f"{check.name}: {check.detail} ({check.advice})" for check in failed) or None


@dataclass(slots=True)
class _Run:
    plan: RunPlan
    db: Database
    lease: BackendLease
    instance: Instance
    on_progress: Callable[[Progress], None]
    run_id: int = 0
    done: int = 0
    errors: int = 0
    total: int = field(init=False)
    diagnoses: Allowance = field(init=False)

    def __post_init__(self) -> None:
        self.total = self.plan.trials * sum(1 for _ in self.plan.suite.probes)
        self.diagnoses = Allowance(self.plan.limits.max_diagnoses)

    def run(self, resume: int | None) -> RunOutcome:
        broken, environment = self._prepare()
        self.run_id = self._open(environment) if resume is None else self._reopen(resume, environment)
        self.lease.watch(self.run_id)
        if broken:
            return self._end("void", broken)
        try:
            self._play_all()
        except Stopped:
            return self._end("interrupted", self.lease.reason or "stopped")
        return self._conclude()

    # Before the first scenario

    def _prepare(self) -> tuple[str | None, dict[str, Any] | None]:
        """Why the adapter is broken, if it is, and the environment of the run."""
        line = Line(self.plan.limits.timeout_s, self.lease.stop)
        broken, environment = None, None
        try:
            self.instance.prepare(self.lease.stop)
            backend = line(self.instance.handle).value
            if not self.plan.suite.standing:  # the checks write
                box = f"{NAMESPACE_PREFIX}check-{self.lease.token}"
                broken = _faults(adapter_checks(on_line(backend, line), box))
            process = line(backend.environment).value
            environment = fingerprint(line(backend.versions).value, self.plan.public_config, process=process)
        except Stopped:
            raise Stopped(self.lease.reason or "stopped before it began") from None
        except Exception as error:  # noqa: BLE001  whatever an adapter raises here is why the run is void
            broken = broken or describe(error)
        finally:
            line.close()
        return broken, environment

    def _open(self, environment: Mapping[str, Any] | None) -> int:
        plan, suite = self.plan, self.plan.suite
        return writes.open_run(
            self.db,
            NewRun(
                suite_version_id=self._suite_version_id(),
                backend_id=self._backend_id(),
                environment_id=writes.register_environment(self.db, environment) if environment else None,
                trigger=plan.trigger,
                token=self.lease.token,
                cases_total=self.total,
                scenarios_total=plan.trials * len(suite.scenarios),
                scorer_version=SCORER_VERSION,
                subset=plan.subset,
                trials=plan.trials,
                meta=plan.meta,
                owner=plan.owner,
            ),
        )

    def _suite_version_id(self) -> int:
        record = suite_record(self.plan.suite, self.plan.suite_owner)
        return writes.register_suite(self.db, record, in_force=not self.plan.subset)

    def _backend_id(self) -> int:
        backend = self.plan.backend
        return writes.register_backend(
            self.db, backend.name, backend.type, self.plan.public_config, self.plan.owner
        )

    def _reopen(self, run_id: int, environment: Mapping[str, Any] | None) -> int:
        stored = queries.run(self.db, run_id)
        if stored and environment:
            self._refuse_another_system(stored, environment)
        writes.reopen_run(self.db, run_id, self.lease.token)
        if stored:
            self.done, self.errors = stored.cases_done, stored.errors
        return run_id

    def _refuse_another_system(self, stored: queries.RunRow, environment: Mapping[str, Any]) -> None:
        """The means of a run are of one system: half of them must not come from another one."""
        now = writes.register_environment(self.db, environment)
        if stored.environment_id in (None, now):
            return
        differing = changes(*(queries.environment(self.db, id) or {} for id in (stored.environment_id, now)))
        if differing:
            what = ", ".join(differing[:3]) + (f" and {len(differing) - 3} more" if differing[3:] else "")
            raise StoreError(f"run {stored.id}: the environment has changed since ({what}): start a new run")

    # The loop

    def _play_all(self) -> None:
        finished = queries.finished_scenarios(self.db, self.run_id)
        jobs = [
            Job(trial, scenario)
            for trial in range(1, self.plan.trials + 1)
            for scenario in self.plan.suite.scenarios
            if (scenario.id, trial) not in finished
        ]
        self._report()
        together = [job for job in jobs if not job.scenario.reopens]
        alone = [job for job in jobs if job.scenario.reopens]
        for job, played in chain(self._played(together, self._workers()), self._played(alone, 1)):
            self._save(job, played)

    def _workers(self) -> int:
        concurrent = "concurrent" in self.instance.handle().capabilities
        return self.plan.limits.concurrency if concurrent else 1

    def _played(self, jobs: Sequence[Job], workers: int) -> Iterator[tuple[Job, Played]]:
        if workers == 1:  # nothing else runs while a probe is timed
            yield from ((job, self._play(job)) for job in jobs)
            return
        waiting, playing = iter(jobs), dict[Future[Played], Job]()
        with ThreadPoolExecutor(workers, "memtrend-scenario") as pool:
            try:
                while True:
                    room = islice(waiting, AHEAD * workers - len(playing))
                    playing |= {pool.submit(self._play, job): job for job in room}
                    if not playing:
                        return
                    done = wait(playing, return_when=FIRST_COMPLETED).done
                    while done:
                        yield playing.pop(future := done.pop()), future.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _play(self, job: Job) -> Played:
        if self.lease.stop.is_set():
            raise Stopped
        namespace = self._namespace(job)
        granted = self.diagnoses.borrow(self._share(job.scenario))
        limits = CallLimits(self.plan.limits.timeout_s, self.plan.limits.attempts, granted)
        played = play(self.instance, job.scenario, namespace, limits, self.lease.stop)
        self.diagnoses.give_back(granted - sum(answer.diagnosis is not None for answer in played.answers))
        return played

    def _namespace(self, job: Job) -> str:
        if job.scenario.standing:
            return job.scenario.standing.namespace
        return f"{NAMESPACE_PREFIX}{self.run_id}-{job.trial}-{digest(job.scenario.id)[:8]}"

    def _share(self, scenario: Scenario) -> int:
        """The run's diagnoses are shared out over its scenarios by their number of probes."""
        return ceil(self.plan.limits.max_diagnoses * len(scenario.probes) / max(self.total, 1))

    def _save(self, job: Job, played: Played) -> None:
        outcome = scenario_outcome(job.scenario.id, job.trial, played)
        writes.save_scenario(self.db, self.run_id, outcome, self.lease.token)
        self.done += len(outcome.cases)
        self.errors += sum(case.status == "error" for case in outcome.cases)
        self._report()

    def _report(self) -> None:
        suite, backend = self.plan.suite.name, self.plan.backend.name
        self.on_progress(Progress(self.run_id, suite, backend, self.done, self.total, self.errors))

    # The end

    # The statistics are loaded when a run ends: they take half a second, which whoever only asks for the
    # configuration, and so for this module, need not wait for.

    def _conclude(self) -> RunOutcome:
        from store.rollups import roll_up

        cases = queries.case_scores(self.db, self.run_id)
        scenarios = queries.scenario_stats(self.db, self.run_id)
        rollups = roll_up(cases, scenarios)
        asked = sum(case.status != "skipped" for case in cases)
        if not asked:
            return self._end("void", f"no case of {self.plan.suite.name} applies to this backend", rollups)
        if self.errors > self.plan.limits.max_error_rate * asked:
            limit = f"{self.plan.limits.max_error_rate:.0%}"
            reason = f"{self.errors} of {asked} answers were errors, over the limit of {limit}"
            return self._end("invalid", reason, rollups)
        rollups += self._calibrated()
        return self._end("whole", None, rollups, self._judged(sum(one.money for one in scenarios)))

    def _calibrated(self) -> list[Rollup]:
        """Of the second run of a calibration."""
        from store.calibration import calibration_rollups

        if self.plan.repeats is None:
            return []
        records = queries.calibration_records(self.db, self.plan.repeats, self.run_id)
        return calibration_rollups(*records, deterministic=self._deterministic) if records else []

    @property
    def _deterministic(self) -> bool:
        return "deterministic" in self.instance.handle().capabilities

    def _judged(self, money: float) -> Verdict | None:
        """Of this run, or of the one it looks at; None for a run of a part of the suite."""
        from store.verdicts import judge

        about = self.plan.looks_at or self.run_id
        record = queries.verdict_record(self.db, about, closing=self.run_id, against=self.plan.against)
        if record is None:
            return None
        verdict = judge(record, deterministic=self._deterministic)
        verdict = verdict._replace(borrowed=self.plan.against is not None)
        again, most = money / self.plan.trials * self.plan.confirm.trials, self.plan.confirm.max_cost
        if verdict.wants_a_look and most is not None and again > most:
            reason = f"asking again would cost about ${again:.2f}, more than max_cost = {most}"
            return verdict._replace(untaken=reason)
        return verdict

    def _end(
        self,
        status: ClosedStatus,
        reason: str | None,
        rollups: Sequence[Rollup] = (),
        verdict: Verdict | None = None,
    ) -> RunOutcome:
        rows, said = [*rollups], None
        if verdict:
            said = entry(self.plan.looks_at or self.run_id, verdict)
            rows += [] if self.plan.looks_at else drift_rollups(verdict)
        writes.close_run(self.db, self.run_id, status, rows, reason, token=self.lease.token, verdict=said)
        return RunOutcome(self.run_id, status, reason, verdict)
