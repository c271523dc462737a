"""What a run of a suite will cost."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from collectors.suite import Plant, Session, Step, Suite
from store.queries import CostRow


class Cost(NamedTuple):
    """Of one trial. `calls` are those that a backend gets: planting, changing, asking."""

    plants: int
    questions: int
    scenarios: int
    calls: int


class Estimate(NamedTuple):
    """As the newest whole run of the backend went, one call after the other. None: not measured."""

    backend: str
    run: int
    minutes: float | None
    money: float | None


def cost(suite: Suite) -> Cost:
    questions = sum(1 for _ in suite.probes)
    calls = sum(_calls(step) for scenario in suite.scenarios for step in scenario.steps)
    return Cost(suite.plants, questions, len(suite.scenarios), calls)


def _calls(step: Step) -> int:
    match step:
        case Plant(memories):
            return sum(1 for _ in groupby(memories, lambda memory: (memory.user, memory.session)))
        case Session():
            return 0
        case _:
            return 1


def estimate(cost: Cost, measured: CostRow) -> Estimate:
    known = (measured.plant_ms, measured.settle_ms, measured.recall_ms)
    if None in known:
        minutes = None
    else:
        plant, settle, recall = (ms or 0.0 for ms in known)
        ms = cost.plants * plant + cost.scenarios * settle + cost.questions * recall
        minutes = ms / 60_000
    money = None if measured.money is None else cost.plants * measured.money
    return Estimate(measured.backend, measured.run_id, minutes, money)
