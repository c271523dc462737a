"""What `memtrend run` tells while runs go on."""

import threading
from dataclasses import replace

import pytest

from collectors import runs
from collectors.pairs import Pair, Todo, came_to
from collectors.plans import Progress, RunOutcome
from collectors.process import stop_on_signals
from collectors.runner import run
from tests.collectors.playground import cases, plan, suite


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when told to."""
    at = [100.0]
    monkeypatch.setattr(runs.time, "monotonic", lambda: at[0])
    return at


def test_rate_of_a_resumed_run(clock, capsys):
    """Rate and time left are of this process's work: what was answered before a resume does not count."""
    show = runs.PlainDisplay()
    for done, at in ((80, 100.0), (82, 104.0), (90, 110.0)):
        clock[0] = at
        show(Progress(7, "mine", "floor", done, 100, 0))
    show.end("run 7: whole")
    clock[0] = 200.0
    show(Progress(8, "mine", "hybrid", 0, 100, 0))
    clock[0] = 210.0
    show(Progress(8, "mine", "hybrid", 50, 100, 0))
    assert capsys.readouterr().err.splitlines() == [
        "mine on floor: 90/100 cases, 1.0 a second, 10 s left",
        "run 7: whole",
        "mine on hybrid: 50/100 cases, 5.0 a second, 10 s left",
    ]


def test_what_cannot_be_finished_ends_nothing_else(db, tmp_path):
    """Of runs to finish, one whose system has changed since is told with the reason, and the next is
    finished."""
    begun = plan(suite(tmp_path, cases(2)), public_config={"infer": False})
    todo = []
    for _ in range(2):
        stop = threading.Event()
        outcome = run(begun, db, stop=stop, on_progress=lambda progress, stop=stop: stop.set())
        todo.append(Todo(begun, outcome.run_id))
    todo[0] = todo[0]._replace(plan=replace(begun, public_config={"infer": True}))
    with stop_on_signals("") as asked:
        changed, finished = runs.run_all(db, todo, asked)
    assert "the environment has changed since" in changed.problem
    assert (changed.outcome, finished.outcome.status) == (None, "whole")


@pytest.mark.parametrize("waits", [True, False])
def test_a_run_waits_when_it_says_so(waits):
    """Whether a run waits for the day's money is a fact of its own: its reason may quote anything."""
    outcome = RunOutcome(1, "interrupted", "the day's money is spent: said an adapter", waits=waits)
    done = came_to(Pair("mine", "floor"), outcome)
    assert (done.waits, done.code) == (waits, 3 if waits else 1)
