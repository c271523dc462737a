"""Do the suites notice a broken memory? Every fault is put into a backend, and the suites are played on it.

Nothing is stored but the findings: a mutant is no run of the backend, and never on a chart.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from collectors.backend import NAMESPACE_PREFIX, BackendConfig
from collectors.backends.faulty import FAULTS
from collectors.calls import Instance
from collectors.scenario import CallLimits, play
from collectors.suite import Scenario, Suite, digest
from collectors.symptoms import Seen, Symptoms, seen, symptoms

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


class Proof(NamedTuple):
    """`healthy` is the backend without a fault, held against itself: nothing may be found there."""

    cases: int
    healthy: Symptoms
    mutants: tuple[Mutant, ...]

    @property
    def detected(self) -> int:
        return sum(mutant.found.detected for mutant in self.mutants)

    @property
    def named_right(self) -> int:
        return sum(mutant.named_right for mutant in self.mutants)


def prove(
    suites: Sequence[Suite],
    backend: BackendConfig,
    faults: Sequence[str] = tuple(FAULTS),
    *,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Proof:
    """Play the suites on the healthy backend twice and on each mutant of it, in processes of their own."""
    scenarios = tuple(scenario for suite in suites for scenario in suite.scenarios)
    configs = [backend, backend, *(with_fault(backend, fault) for fault in faults)]
    played: dict[int, tuple[Seen, ...]] = {}
    for number, answers in _played(scenarios, configs, workers or os.cpu_count() or 1):
        played[number] = answers
        on_progress(len(played), len(configs))
    first, again, *others = (played[number] for number in range(len(configs)))
    mutants = (Mutant(fault, symptoms(first, answers)) for fault, answers in zip(faults, others, strict=True))
    return Proof(sum(one.passed is not None for one in first), symptoms(first, again), tuple(mutants))


def with_fault(backend: BackendConfig, fault: str) -> BackendConfig:
    options = {"fault": fault, "of": {**backend.options, "type": backend.type}}
    return replace(backend, type="faulty", options=options)


# In processes of their own


def _played(
    scenarios: tuple[Scenario, ...], configs: Sequence[BackendConfig], workers: int
) -> Iterator[tuple[int, tuple[Seen, ...]]]:
    context = multiprocessing.get_context("spawn")  # threads and SDKs do not survive a fork
    with ProcessPoolExecutor(workers, context, _keep, (scenarios,)) as pool:
        playing = {pool.submit(_play_kept, config): number for number, config in enumerate(configs)}
        try:
            yield from ((playing[future], future.result()) for future in as_completed(playing))
        finally:
            pool.shutdown(cancel_futures=True)


_kept: tuple[Scenario, ...] = ()


def _keep(scenarios: tuple[Scenario, ...]) -> None:
    """Sent once to each process, and not with each mutant."""
    global _kept
    _kept = scenarios


def _play_kept(config: BackendConfig) -> tuple[Seen, ...]:
    return play_all(_kept, config)


def play_all(scenarios: Sequence[Scenario], config: BackendConfig) -> tuple[Seen, ...]:
    """In memory, and what closes and opens the backend in a folder that is gone afterwards: the store that
    the backend is configured with is not touched."""
    with tempfile.TemporaryDirectory(prefix="memtrend-mutant-") as folder:
        together = [scenario for scenario in scenarios if not scenario.reopens]
        alone = [scenario for scenario in scenarios if scenario.reopens]
        return (
            *_answers(together, replace(config, directory=None)),
            *_answers(alone, replace(config, directory=Path(folder))),
        )


def _answers(scenarios: Sequence[Scenario], config: BackendConfig) -> Iterator[Seen]:
    instance = Instance(config)
    try:
        for scenario in scenarios:
            namespace = f"{NAMESPACE_PREFIX}mutant-{digest(scenario.id)[:8]}"
            for answer in play(instance, scenario, namespace, LIMITS).answers:
                yield seen(answer, scenario.id)
    finally:
        instance.close()
