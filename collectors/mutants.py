"""Do the suites notice a broken memory? Every fault is put into a backend, and the suites are played on it.

Nothing is stored but the findings: a mutant is no run of the backend, and never on a chart.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stamina.instrumentation import set_on_retry_hooks

from collectors.backend import NAMESPACE_PREFIX, BackendConfig
from collectors.backends.faulty import FAULTS
from collectors.calls import Instance
from collectors.failures import ERROR
from collectors.scenario import CallLimits, play
from collectors.suite import Scenario, Suite, digest
from collectors.symptoms import Seen, Symptoms, seen, symptoms
from store.records import MutantRecord

IN_MEMORY = ("keyword", "dense", "hybrid", "nothing", "everything")
LIMITS = CallLimits(diagnoses=8)
"""A few diagnoses of each scenario name the kind as well as all of them would."""


class Mutant(NamedTuple):
    """What became of one fault. `named_right`: the kind found is the one written down for the fault."""

    fault: str
    found: Symptoms

    @property
    def expected(self) -> str:
        return FAULTS[self.fault].kind

    @property
    def named_right(self) -> bool:
        return self.found.detected and self.found.kind == self.expected

    @property
    def record(self) -> MutantRecord:
        found, meaning = self.found, FAULTS[self.fault].meaning
        lost = (found.detected, len(found.lost), found.critical)
        return MutantRecord(self.fault, meaning, *lost, found.kind, self.named_right)


class Unfit(Exception):
    """The backend without a fault is itself broken, so that nothing can be proved. Says how."""


class Proof(NamedTuple):
    """`cases`: those that the backend could be asked; `healthy`: the backend without a fault, held against
    itself, where nothing may be found."""

    cases: int
    healthy: Symptoms
    mutants: tuple[Mutant, ...]

    @property
    def detected(self) -> int:
        return sum(mutant.found.detected for mutant in self.mutants)

    @property
    def named_right(self) -> int:
        return sum(mutant.named_right for mutant in self.mutants)


class Played(NamedTuple):
    """All answers: of the healthy backend, of the same once more, and of each mutant by its fault."""

    healthy: tuple[Seen, ...]
    again: tuple[Seen, ...]
    mutants: Mapping[str, tuple[Seen, ...]]

    def proof(self, suites: Collection[str]) -> Proof:
        """What these suites notice together."""
        first = [one for one in self.healthy if one.suite in suites]
        found = {
            fault: symptoms(first, [one for one in answers if one.suite in suites])
            for fault, answers in (("", self.again), *self.mutants.items())
        }
        healthy = found.pop("")
        asked = sum(one.passed is not None for one in first)
        return Proof(asked, healthy, tuple(Mutant(fault, of_it) for fault, of_it in found.items()))


def play_mutants(
    suites: Sequence[Suite],
    backend: BackendConfig,
    faults: Sequence[str] = tuple(FAULTS),
    *,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Played:
    """Play the suites on the healthy backend twice and on each mutant of it, in processes of their own: side
    by side where it lives in memory, else one after the other, since a server's load is an answer too. Raises
    `Unfit` when the healthy one answers with errors, or passes nothing."""
    parts = tuple(Part(suite.name, scenario) for suite in suites for scenario in suite.scenarios)
    configs = [backend, backend, *(with_fault(backend, fault) for fault in faults)]
    played: dict[int, tuple[Seen, ...]] = {0: play_all(parts, backend)}
    _refuse_unfit(backend.name, played[0])
    at_once = workers or (os.cpu_count() or 1 if backend.type in IN_MEMORY else 1)
    for number, answers in _played(parts, configs[1:], at_once):
        _refuse_silent(("", *faults)[number], answers)
        played[number + 1] = answers
        on_progress(len(played), len(configs))
    healthy, again, *others = (played[number] for number in range(len(configs)))
    return Played(healthy, again, dict(zip(faults, others, strict=True)))


def _refuse_unfit(name: str, answers: Sequence[Seen]) -> None:
    asked = [one for one in answers if one.passed is not None]
    errors = [one for one in asked if one.failure == ERROR]
    if errors:
        raise Unfit(
            f"{name} without a fault: {len(errors)} of {len(asked)} cases end in an error; "
            f"memtrend doctor {name}"
        )
    if not any(one.passed for one in asked):
        raise Unfit(
            f"{name} without a fault passes none of {len(asked)} cases, so no fault could cost it one"
        )


def _refuse_silent(fault: str, answers: Sequence[Seen]) -> None:
    """A fault that leaves nothing but errors was not put in: no case could be said to notice it."""
    if answers and all(one.failure == ERROR for one in answers):
        raise Unfit(f"{fault or 'the second round'}: every case ends in an error, so it proves nothing")


def with_fault(backend: BackendConfig, fault: str) -> BackendConfig:
    """The fault is put in from outside: a release runs in its environment as it is."""
    options = {"fault": fault, "of": {**backend.options, "type": backend.type}}
    return replace(backend, type="faulty", options=options)


# In processes of their own


class Part(NamedTuple):
    suite: str
    scenario: Scenario


def _played(
    parts: tuple[Part, ...], configs: Sequence[BackendConfig], workers: int
) -> Iterator[tuple[int, tuple[Seen, ...]]]:
    context = multiprocessing.get_context("spawn")  # threads and SDKs do not survive a fork
    with ProcessPoolExecutor(workers, context, _keep, (parts,)) as pool:
        playing = {pool.submit(_play_kept, config): number for number, config in enumerate(configs)}
        try:
            yield from ((playing[future], future.result()) for future in as_completed(playing))
        finally:
            pool.shutdown(cancel_futures=True)


_kept: tuple[Part, ...] = ()


def _keep(parts: tuple[Part, ...]) -> None:
    """Sent once to each process, and not with each mutant."""
    global _kept
    _kept = parts
    set_on_retry_hooks([])  # that calls fail is what a fault is for: nobody need be told


def _play_kept(config: BackendConfig) -> tuple[Seen, ...]:
    return play_all(_kept, config)


def play_all(parts: Sequence[Part], config: BackendConfig) -> tuple[Seen, ...]:
    """In memory, and what closes and opens the backend in a folder that is gone afterwards, so that no store
    in the box is touched; a server gets namespaces of their own."""
    with tempfile.TemporaryDirectory(prefix="memtrend-mutant-") as folder:
        together = [part for part in parts if not part.scenario.reopens]
        alone = [part for part in parts if part.scenario.reopens]
        return (
            *_answers(together, replace(config, directory=None)),
            *_answers(alone, replace(config, directory=Path(folder))),
        )


def _answers(parts: Sequence[Part], config: BackendConfig) -> Iterator[Seen]:
    instance = Instance(config)
    try:
        instance.prepare(threading.Event())
        for suite, scenario in parts:
            namespace = (
                f"{NAMESPACE_PREFIX}mutant-{digest([os.getpid(), time.time_ns(), suite, scenario.id])[:16]}"
            )
            played = play(instance, scenario, namespace, LIMITS)
            yield from (seen(answer, suite, scenario.id, played) for answer in played.answers)
    finally:
        instance.close()
