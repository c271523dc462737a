"""Nights of a noisy backend, with or without a fault, judged as in production and stored nowhere."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

from stamina.instrumentation import set_on_retry_hooks

from collectors.backend import BackendConfig
from collectors.mutants import Part, play_all, with_fault
from collectors.suite import SHIPPED, load
from store.baselines import Night, baseline
from store.queries.verdicts import AnswerRow, AskedCase, PassRate, ValueRow, VerdictRecord
from store.verdicts import STAGES, Verdict, judge

SUITES = ("golden", "contract")
NOISE = {"fault": "flaky", "share": 0.15, "flip": 0.3, "of": {"type": "hybrid"}}
BEGIN = datetime(2026, 1, 1, 3, tzinfo=UTC)
AGAIN = 3
"""Trials of the second and of the third look."""


class Answer(NamedTuple):
    """`passed` None: not applicable."""

    suite: str
    case: str
    passed: bool | None
    latency_ms: float | None
    returned: int


Trial = tuple[Answer, ...]

_parts: dict[str, list[Part]] = {}


def load_parts() -> None:
    """Once in each process."""
    set_on_retry_hooks([])  # that calls fail is what a fault is for: nobody need be told
    for name in SUITES:
        _parts[name] = [Part(name, scenario) for scenario in load(SHIPPED[name]).scenarios]


def play(fault: str, draw: int | None, suites: Collection[str]) -> Trial:
    """`fault` "": none; `draw`: which noise, None for none."""
    options: dict[str, Any] = {} if draw is None else {**NOISE, "night": draw}
    backend = BackendConfig("hybrid", "hybrid" if draw is None else "faulty", options)
    parts = [part for name in suites for part in _parts[name]]
    answers = play_all(parts, with_fault(backend, fault) if fault else backend)
    return tuple(
        Answer(one.suite, one.case, one.passed, one.latency_ms, len(one.returned)) for one in answers
    )


def lost(fault: str) -> int:
    """Cases that the backend passes, and with the fault does not; neither has noise."""
    sound = {one[:2] for one in play("", None, SUITES) if one.passed}
    return sum(one[:2] in sound and not one.passed for one in play(fault, None, SUITES))


class Series:
    """A suite, night after night, as the record would keep it."""

    def __init__(self, suite: str) -> None:
        probes = [probe for part in _parts[suite] for probe in part.scenario.probes]
        self.suite = suite
        self.cases = tuple(
            AskedCase(number, probe.case, probe.tags, probe.critical, probe.cluster, quarantined=False)
            for number, probe in enumerate(sorted(probes, key=lambda probe: probe.case))
        )
        self.ids = {case.name: case.id for case in self.cases}
        self.nights: list[Night] = []
        self.rates: list[PassRate] = []
        self.reported: set[int] = set()
        self.runs: dict[int, tuple[list[AnswerRow], list[ValueRow]]] = {}
        self.looks: tuple[int, ...] = ()

    def begin(self, number: int, first: Trial) -> None:
        self.night, self.looks = 10 * number, ()
        self._keep(self.night, [first])

    def look(self, trials: list[Trial]) -> None:
        self.looks += (self.night + len(self.looks) + 1,)
        self._keep(self.looks[-1], trials)

    def _keep(self, run_id: int, trials: list[Trial]) -> None:
        answers, values = self.runs[run_id] = [], []
        for trial, played in enumerate(trials, 1):
            for one in played:
                if one.suite == self.suite:
                    key = (run_id, self.ids[one.case], trial)
                    answers.append(AnswerRow(*key, None if one.passed is None else float(one.passed)))
                    values.append(ValueRow(*key, "returned_n", float(one.returned)))
                    if one.latency_ms is not None:
                        values.append(ValueRow(*key, "recall_ms", one.latency_ms))

    def record(self) -> VerdictRecord:
        against = baseline(self._tonight(accepted=True), self.nights, ())
        held = (self.night, *self.looks, *against.history, *against.anchor)
        answers = list(chain.from_iterable(self.runs[run_id][0] for run_id in dict.fromkeys(held)))
        values = list(chain.from_iterable(self.runs[run_id][1] for run_id in dict.fromkeys(held)))
        return VerdictRecord(
            self.night, self.suite, "noisy", self.cases, self.looks, against, answers, values, None,
            self.rates, frozenset(self.reported),
        )  # fmt: skip

    def _tonight(self, *, accepted: bool) -> Night:
        return Night(self.night, BEGIN + timedelta(days=self.night / 10), accepted)

    def end(self, verdict: Verdict | None = None, *, accepted: bool = False) -> None:
        told = [row.value for row in self.runs[self.night][0] if row.value is not None]
        self.rates.append(PassRate(self.night, sum(told), len(told)))
        self.nights.append(self._tonight(accepted=accepted or (verdict is not None and verdict.accepted)))
        if verdict and verdict.stage == "leak" and verdict.leak:
            self.reported.add(verdict.leak.first_bad)


def judged(series: Series, number: int, first: Trial, fault: str = "") -> list[Verdict]:
    """The verdicts of a night, one after each look: a look more wherever one would be taken."""
    series.begin(number, first)
    said = [judge(series.record())]
    while len(said) < len(STAGES) and _is_open(said[-1]):
        draws = (100 * number + AGAIN * (len(said) - 1) + trial for trial in range(1, AGAIN + 1))
        series.look([play(fault, draw, [series.suite]) for draw in draws])
        said.append(judge(series.record()))
    series.end(said[-1])
    return said


def _is_open(verdict: Verdict) -> bool:
    return bool({"suspicion", "suspected"} & {verdict.stage, *(one.stage for one in verdict.moved)})
