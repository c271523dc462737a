"""A part of a suite, drawn at random: of each combination of tags its share, and for the same seed the same
cases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import NamedTuple

from collectors.plans import RunPlan
from collectors.suite import Probe, Scenario, Suite, digest

PREFIX = "@sample"


class Sample(NamedTuple):
    """`size`: a number of cases, or a percentage of them, such as `20%`. As text it is what a run's `subset`
    holds, so that the run can be gone on with."""

    size: str
    seed: str

    def __str__(self) -> str:
        return f"{PREFIX} {self.size} {self.seed}"

    @classmethod
    def of(cls, subset: str) -> Sample | None:
        """The sample that a run's `subset` names; None for any other part of a suite."""
        kind, _, rest = subset.partition(" ")
        size, _, seed = rest.partition(" ")
        return cls(size, seed) if kind == PREFIX else None

    def number(self, cases: int) -> int:
        """How many of so many cases: one at least."""
        if self.size.endswith("%"):
            return max(1, round(float(self.size[:-1]) / 100 * cases))
        return min(int(self.size), cases)


def sampled(plan: RunPlan, sample: Sample) -> RunPlan:
    """The plan for the cases drawn."""
    return replace(plan, suite=draw(plan.suite, sample), subset=str(sample))


def draw(suite: Suite, sample: Sample) -> Suite:
    """The cases drawn, with all else that their scenarios do; scenarios without any are left out."""
    probes = list(suite.probes)
    chosen = _chosen(probes, sample.number(len(probes)), sample.seed)
    parts = (_part(scenario, chosen) for scenario in suite.scenarios)
    return replace(suite, scenarios=tuple(part for part in parts if part.probes))


def _chosen(probes: Iterable[Probe], number: int, seed: str) -> frozenset[str]:
    """Every n-th of the cases in the order of their tags, which gives each combination of tags its share,
    rounded up or down; among equal tags the seed decides, and where the count begins."""
    ordered = sorted(probes, key=lambda probe: (sorted(probe.tags), digest([seed, probe.case])))
    start = Random(seed).randrange(len(ordered))
    places = ((start + place * len(ordered)) // number for place in range(number))
    return frozenset(ordered[place].case for place in places)


def _part(scenario: Scenario, chosen: frozenset[str]) -> Scenario:
    steps = (step for step in scenario.steps if not isinstance(step, Probe) or step.case in chosen)
    return replace(scenario, steps=tuple(steps))
