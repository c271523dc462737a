"""One backend's side of a run: its environment and its scenarios, kept as they come, and its end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from collectors.backend import NAMESPACE_PREFIX, BackendGone
from collectors.calls import GRACE_S, Instance, Line, Stopped, describe, on_line
from collectors.contract import CheckResult, adapter_checks
from collectors.environment import changes, fingerprint
from collectors.lease import BackendLease
from collectors.plans import Outdated, RunOutcome, RunPlan, release
from collectors.record import scenario_outcome, suite_record
from collectors.scenario import CallLimits, Played, play
from collectors.scorers import SCORER_VERSION
from collectors.suite import Scenario, digest
from store import logs, queries, writes
from store.database import Database
from store.errors import StoreError
from store.evidence import Verdict, drift_rollups, entry
from store.records import ClosedStatus, NewControl, NewRun, Rollup

LOG = logs.get("runner")
JOURNAL_S = 10.0
"""How often what a backend's processes print is kept, so that a collector that is killed has told most."""


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


def _close(instance: Instance, timeout_s: float) -> None:
    """A backend that cannot be closed has answered all the same; it may hang, so it is asked on a thread."""
    closing = threading.Thread(target=_closed_quietly, args=(instance,), daemon=True)
    closing.start()
    closing.join(timeout_s)
    if closing.is_alive():
        instance.abandon_all()


def _closed_quietly(instance: Instance) -> None:
    try:
        instance.close()
    except Exception:  # noqa: BLE001  the results are in; an adapter may raise anything here
        return


def _faults(checks: Sequence[CheckResult]) -> str | None:
    failed = [check for check in checks if not check.ok]
    return "; ".join(f"{check.name}: {check.detail} ({check.advice})" for check in failed) or None


@dataclass(slots=True, eq=False)
class Arm:
    """`broken`: why the adapter is, if it is."""

    plan: RunPlan
    db: Database
    lease: BackendLease
    instance: Instance
    run_id: int = 0
    done: int = 0
    errors: int = 0
    broken: str | None = None
    environment: dict[str, Any] | None = None
    told_before: str | None = None
    kept_at: float = field(default_factory=time.monotonic)
    total: int = field(init=False)
    diagnoses: Allowance = field(init=False)

    def __post_init__(self) -> None:
        self.total = self.plan.trials * sum(1 for _ in self.plan.suite.probes)
        self.diagnoses = Allowance(self.plan.limits.max_diagnoses)

    def close(self) -> None:
        """Let the backend go, and keep what its processes had to tell beside their answers."""
        _close(self.instance, GRACE_S / 2 if self.lease.stop.is_set() else self.plan.limits.timeout_s)
        self.keep_journal()

    def keep_journal(self) -> None:
        """What the backend's processes had to tell so far, after what they told before a resume."""
        if self.told_before is None:
            self.told_before = queries.journal(self.db, self.run_id)
        told = "\n".join(filter(None, [self.told_before, self.instance.journal()]))
        if self.run_id and told:
            with suppress(StoreError):  # the answers count, and are kept
                writes.keep_journal(self.db, self.run_id, told)
        self.kept_at = time.monotonic()

    # Before the first scenario

    def prepare(self, *, again: bool = True) -> None:
        """Find out whether the adapter is broken, and what the environment is. That the process behind it was
        killed says nothing of it, unless it happens `again`."""
        line = Line(self.plan.limits.timeout_s, self.lease.stop)
        try:
            self.instance.prepare(self.lease.stop)
            backend = line(self.instance.handle).value
            if not self.plan.suite.standing:  # the checks write
                box = f"{NAMESPACE_PREFIX}check-{self.lease.token}"
                self.broken = _faults(adapter_checks(on_line(backend, line), box))
            versions, process = line(backend.versions).value, line(backend.environment).value
            self.environment = fingerprint(versions, self.plan.public_config, process=process)
        except Stopped:
            raise Stopped(self.lease.reason or "stopped before it began") from None
        except Exception as error:  # noqa: BLE001  whatever an adapter raises here is why the run is void
            if again and type(error) is BackendGone:
                self.instance.open_anew()
                return self.prepare(again=False)
            self.broken = self.broken or describe(error)
        finally:
            line.close()

    def new_run(self) -> NewRun:
        plan, suite = self.plan, self.plan.suite
        return NewRun(
            suite_version_id=self._suite_version_id(),
            backend_id=self._backend_id(),
            environment_id=self._environment_id(),
            trigger=plan.trigger,
            token=self.lease.token,
            cases_total=self.total,
            scenarios_total=plan.trials * len(suite.scenarios),
            scorer_version=SCORER_VERSION,
            subset=plan.subset,
            trials=plan.trials,
            meta=plan.meta,
            owner=plan.owner,
        )

    def new_control(self) -> NewControl:
        of = self.plan.backend
        ids = self._environment_id(), self.lease.token
        return NewControl(of.name, of.type, self.plan.public_config, release(of), *ids)

    def _environment_id(self) -> int | None:
        return writes.register_environment(self.db, self.environment) if self.environment else None

    def _suite_version_id(self) -> int:
        record = suite_record(self.plan.suite, self.plan.suite_owner)
        return writes.register_suite(self.db, record, in_force=not self.plan.subset)

    def _backend_id(self) -> int:
        backend = self.plan.backend
        return writes.register_backend(
            self.db, backend.name, backend.type, self.plan.public_config, self.plan.owner
        )

    def refuse_another_system(self, run_id: int) -> None:
        """The means of a run are of one system: half of them must not come from another one."""
        stored, now = queries.run(self.db, run_id), self._environment_id()
        if stored is None or stored.environment_id is None or now in (None, stored.environment_id):
            return
        then = queries.environment(self.db, stored.environment_id)
        if differing := changes(then, self.environment or {}):
            what = ", ".join(differing[:3]) + (f" and {len(differing) - 3} more" if differing[3:] else "")
            raise Outdated(f"run {stored.id}: the environment has changed since ({what}): start a new run")

    def reopen(self, run_id: int) -> None:
        writes.reopen_run(self.db, run_id, self.lease.token)
        self.run_id, stored = run_id, queries.run(self.db, run_id)
        if stored:
            self.done, self.errors = stored.cases_done, stored.errors

    # Its scenarios

    @property
    def concurrent(self) -> bool:
        return "concurrent" in self.instance.handle().capabilities

    def play(self, trial: int, scenario: Scenario) -> Played:
        if self.lease.stop.is_set():
            raise Stopped
        granted = self.diagnoses.borrow(self._share(scenario))
        limits = CallLimits(self.plan.limits.timeout_s, self.plan.limits.attempts, granted)
        with logs.bound(run=self.run_id, backend=self.plan.backend.name):  # of a control: its own
            played = play(self.instance, scenario, self._namespace(trial, scenario), limits, self.lease.stop)
        self.diagnoses.give_back(granted - sum(answer.diagnosis is not None for answer in played.answers))
        return played

    def _namespace(self, trial: int, scenario: Scenario) -> str:
        if scenario.standing:
            return scenario.standing.namespace
        return f"{NAMESPACE_PREFIX}{self.run_id}-{trial}-{digest(scenario.id)[:8]}"

    def _share(self, scenario: Scenario) -> int:
        """The run's diagnoses are shared out over its scenarios by their number of probes."""
        return ceil(self.plan.limits.max_diagnoses * len(scenario.probes) / max(self.total, 1))

    def save(self, trial: int, scenario: Scenario, played: Played) -> None:
        outcome = scenario_outcome(scenario.id, trial, played)
        writes.save_scenario(self.db, self.run_id, outcome, self.lease.token)
        self.done += len(outcome.cases)
        self.errors += sum(case.status == "error" for case in outcome.cases)
        if time.monotonic() - self.kept_at > JOURNAL_S:
            self.keep_journal()

    # The end

    # The statistics are loaded when a run ends: they take half a second, which whoever only asks for the
    # configuration, and so for this module, need not wait for.

    def conclude(self) -> RunOutcome:
        from store.rollups import roll_up

        cases = queries.case_scores(self.db, self.run_id)
        scenarios = queries.scenario_stats(self.db, self.run_id)
        rollups = roll_up(cases, scenarios)
        asked = sum(case.status != "skipped" for case in cases)
        if not asked:
            return self.end("void", f"no case of {self.plan.suite.name} applies to this backend", rollups)
        if self.errors > self.plan.limits.max_error_rate * asked:
            limit = f"{self.plan.limits.max_error_rate:.0%}"
            reason = f"{self.errors} of {asked} answers were errors, over the limit of {limit}"
            return self.end("invalid", reason, rollups)
        rollups += self._calibrated()
        return self.end("whole", None, rollups, self._judged(sum(one.money for one in scenarios)))

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
        verdict = judge(record, deterministic=self._deterministic, level=self.plan.confirm.level)
        verdict = verdict._replace(borrowed=self.plan.against is not None)
        again, most = money / self.plan.trials * self.plan.confirm.trials, self.plan.confirm.max_cost
        if verdict.wants_a_look and most is not None and again > most:
            reason = f"asking again would cost about ${again:.2f}, more than max_cost = {most}"
            return verdict._replace(untaken=reason)
        return verdict

    def end(
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
        self._log_end(status, reason, verdict)
        return RunOutcome(self.run_id, status, reason, verdict)

    def _log_end(self, status: ClosedStatus, reason: str | None, verdict: Verdict | None) -> None:
        # Why an adapter is broken, it says itself, and may quote anything: that stands in the record.
        LOG.log(
            logging.INFO if status == "whole" else logging.WARNING,
            "run ended",
            run=self.run_id,
            backend=self.plan.backend.name,
            status=status,
            reason=f"memtrend show {self.run_id} says why" if status == "void" else reason,
            verdict=verdict.verdict if verdict else None,
            cases=self.done,
            errors=self.errors,
        )
