"""Nights of a noisy backend, with or without a fault, judged as in production and stored nowhere."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import NamedTuple

from stamina.instrumentation import set_on_retry_hooks

from collectors.backend import BackendConfig, open_backend
from collectors.backends.faults.answers import Flaky
from collectors.mutants import Part, play_all, with_fault
from collectors.suite import SHIPPED, load
from collectors.symptoms import Seen
from store.baselines import Night, baseline
from store.evidence import Verdict
from store.queries.verdicts import AnswerRow, AskedCase, PassRate, ValueRow, VerdictRecord
from store.verdicts import STAGES, judge

SUITES = ("golden", "contract")
NOISE = {"fault": "flaky", "share": 0.15, "flip": 0.3}
BEGIN = datetime(2026, 1, 1, 3, tzinfo=UTC)
AGAIN = 3
"""Trials of the second and of the third look."""


class Case(NamedTuple):
    """What a case comes to when its question is answered, and when its best hits stay away: passed (None: not
    applicable) and hits returned. `twice`: it is asked twice, and passes where both answers agree."""

    suite: str
    name: str
    query: str
    steady: tuple[bool | None, int]
    flipped: tuple[bool | None, int]
    twice: bool


Tape = tuple[Case, ...]
"""A backend on the suites: all that its nights consist of."""

_parts: list[Part] = []


def load_parts() -> None:
    """Once in each process."""
    set_on_retry_hooks([])  # that calls fail is what a fault is for: nobody need be told
    _parts[:] = [Part(name, scenario) for name in SUITES for scenario in load(SHIPPED[name]).scenarios]


def tape(fault: str = "") -> Tape:
    """Play the backend, with a fault in it, once without noise and once with every answer flipped."""
    steady, flipped = (play(fault, flip=flip, share=1.0) for flip in (0.0, 1.0))
    return tuple(
        Case(one.suite, one.case, one.query, _came_to(one), _came_to(other), one.unstable is not None)
        for one, other in zip(steady, flipped, strict=True)
    )


def play(fault: str, **noise: float) -> tuple[Seen, ...]:
    sound = BackendConfig("hybrid", "hybrid")
    within = with_fault(sound, fault) if fault else sound
    return play_all(_parts, noisy(within, **noise))


def noisy(within: BackendConfig, **noise: float) -> BackendConfig:
    return BackendConfig("noisy", "faulty", {**NOISE, **noise, "of": {**within.options, "type": within.type}})


def _came_to(one: Seen) -> tuple[bool | None, int]:
    return one.passed, len(one.returned)


def night(of: Tape, draw: int) -> tuple[tuple[bool | None, int], ...]:
    """What each case comes to in one trial: the noise is that of `Flaky`, whose draws for one question hang
    on nothing else that is asked."""
    noise = open_backend(noisy(BackendConfig("nothing", "nothing"), night=draw))
    assert isinstance(noise, Flaky)
    return tuple(_tonight(case, noise) for case in of)


def _tonight(case: Case, noise: Flaky) -> tuple[bool | None, int]:
    told = case.flipped if noise.flips(case.query, 1) else case.steady
    if case.twice and noise.flips(case.query, 1) != noise.flips(case.query, 2):
        return False, told[1]
    return told


def lost(sound: Tape, broken: Tape) -> int:
    """Cases that the backend passes, and with the fault does not, apart from all noise."""
    pairs = zip(sound, broken, strict=True)
    return sum(bool(one.steady[0]) and not other.steady[0] for one, other in pairs)


class Series:
    """A suite, night after night, as the record would keep it."""

    def __init__(self, suite: str) -> None:
        probes = [probe for part in _parts if part.suite == suite for probe in part.scenario.probes]
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

    def begin(self, number: int, of: Tape) -> None:
        self.night, self.looks = 10 * number, ()
        self._play(self.night, of, [100 * number])

    def look(self, of: Tape) -> None:
        """Three trials more of tonight."""
        first = 10 * self.night + AGAIN * len(self.looks) + 1
        self.looks += (self.night + len(self.looks) + 1,)
        self._play(self.looks[-1], of, range(first, first + AGAIN))

    def _play(self, run_id: int, of: Tape, draws: Iterable[int]) -> None:
        answers, values = self.runs[run_id] = [], []
        for trial, draw in enumerate(draws, 1):
            for case, (passed, returned) in zip(of, night(of, draw), strict=True):
                if case.suite == self.suite:
                    key = (run_id, self.ids[case.name], trial)
                    answers.append(AnswerRow(*key, None if passed is None else float(passed)))
                    values.append(ValueRow(*key, "returned_n", float(returned)))

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


def judged(series: Series, number: int, of: Tape) -> list[Verdict]:
    """The verdicts of a night, one after each look: a look more wherever one would be taken."""
    series.begin(number, of)
    said = [judge(series.record())]
    while len(said) < len(STAGES) and _is_open(said[-1]):
        series.look(of)
        said.append(judge(series.record()))
    series.end(said[-1])
    return said


def _is_open(verdict: Verdict) -> bool:
    return bool({"suspicion", "suspected"} & {verdict.stage, *(one.stage for one in verdict.moved)})
