"""Which cases the two floors pass: a question that they pass tells no memory from none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from collectors.backend import NAMESPACE_PREFIX, BackendConfig
from collectors.calls import Instance
from collectors.lint.findings import Finding
from collectors.lint.rules import BY_NAME
from collectors.scenario import CallLimits, play
from collectors.suite import Probe, Suite


class FloorCase(NamedTuple):
    """Whether each floor passes the case; None where it cannot be asked."""

    probe: Probe
    nothing: bool | None
    everything: bool | None

    @property
    def asked(self) -> bool:
        return self.nothing is not None and self.everything is not None

    @property
    def telling(self) -> bool:
        """Neither floor passes, but for silence where silence is right."""
        return self.asked and not self.everything and not (self.nothing and not self.probe.abstain)


def on_floors(suite: Suite) -> list[FloorCase]:
    """Play the suite on `nothing` and `everything`, in memory. What reads a standing index is left out."""
    nothing, everything = (_passed(suite, floor) for floor in ("nothing", "everything"))
    return [
        FloorCase(probe, nothing[probe.case], everything[probe.case])
        for scenario in suite.scenarios
        if scenario.standing is None
        for probe in scenario.probes
    ]


def _passed(suite: Suite, floor: str) -> dict[str, bool | None]:
    instance = Instance(BackendConfig(floor, floor))
    limits = CallLimits(attempts=1, diagnoses=0)
    try:
        return {
            answer.probe.case: bool(answer.scores["pass"]) if answer.scores else None
            for number, scenario in enumerate(suite.scenarios)
            if scenario.standing is None
            for answer in play(instance, scenario, f"{NAMESPACE_PREFIX}lint-{number}", limits).answers
        }
    finally:
        instance.close()


def floor_findings(cases: list[FloorCase]) -> Iterator[Finding]:
    for case in cases:
        silent = case.nothing and not case.probe.abstain
        if silent and case.everything:
            yield BY_NAME["passed-by-both"].of_probe(case.probe, "nothing and everything both pass")
        elif silent:
            yield BY_NAME["passed-by-nothing"].of_probe(case.probe, "a backend that returns nothing passes")
        elif case.everything:
            told = "a backend that returns everything, newest first, passes"
            yield BY_NAME["passed-by-everything"].of_probe(case.probe, told)
