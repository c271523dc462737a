"""The nights that verdicts are proven on: the noise is the noise, and what is missed or false is counted."""

import json

import pytest

from benchmarks import verdicts
from benchmarks.figures import nights
from collectors.backend import BackendConfig
from collectors.mutants import play_all


@pytest.fixture
def contract(monkeypatch):
    """One small suite alone, and much noise."""
    monkeypatch.setattr(nights, "SUITES", ("contract",))
    monkeypatch.setattr(verdicts, "SUITES", ("contract",))
    monkeypatch.setattr(nights, "NOISE", {**nights.NOISE, "share": 0.5, "flip": 0.5})
    nights.load_parts()
    yield nights.tape()
    nights._parts.clear()


def test_a_night_is_what_the_noise_makes_of_it(contract):
    """Put together from two plays, a night is what playing the noisy backend gives, case by case."""
    queries = [case.query for case in contract]
    flips = 0
    for draw in (1, 2):
        made = nights.night(contract, draw)
        played = play_all(nights._parts, nights.noisy(BackendConfig("hybrid", "hybrid"), night=draw))
        for case, told, one in zip(contract, made, played, strict=True):
            if queries.count(case.query) == 1:
                assert (case.name, *told) == (one.case, one.passed, len(one.returned))
                flips += told != case.steady
    assert flips > 5


def test_a_fault_is_judged_on_the_night_after_ten(contract):
    """A backend that returns nothing is worse than its ten good nights, and loses what it passed without."""
    found = verdicts._broken("returns-nothing", 1, contract, nights.tape("returns-nothing"))
    assert (found["verdict"], found["stage"], found["suite"]) == ("worse", "confirmed", "contract")
    assert found["lost"] == sum(bool(case.steady[0]) for case in contract) - found_passing()
    assert found["looks"] == len(found["p"]) >= 2
    json.dumps(found, allow_nan=False)


def found_passing():
    """Cases that a backend passes that returns nothing."""
    return sum(bool(case.steady[0]) for case in nights.tape("returns-nothing"))


def test_what_is_missed_and_what_is_false_is_counted():
    """A fault that loses three cases must be confirmed, one that loses two need not; no night of noise alone
    may be called worse."""
    seen = {"verdict": "worse", "stage": "confirmed"}
    missed = {"verdict": "unchanged", "stage": ""}
    found = {
        "faults": [{"lost": 3, **seen}, {"lost": 3, **missed}, {"lost": 2, **missed}],
        "alone": [missed, seen, {"verdict": "better", "stage": "confirmed"}],
    }
    assert [(bar.name, bar.value, bar.target) for bar in verdicts._bars(found)] == [
        ("faults_missed", 1, 0),
        ("false_verdicts", 1, 0),
    ]
