"""Looks: a suspicion is asked about again, at once by the runner and later by whoever wants to know."""

import time
from dataclasses import replace

import pytest

from collectors.backend import BackendConfig
from collectors.configured import configured
from collectors.looks import take_look
from collectors.plans import Confirm
from collectors.runner import run
from collectors.runs import NothingToResume, interrupted
from store import queries
from store.errors import StoreError
from tests.collectors.odd_backends import Shelf
from tests.collectors.playground import LOSING, LOST, cases, good_nights, launch, memtrend, project

pytestmark = pytest.mark.usefixtures("no_pauses")


class Moody(Shelf):
    """Loses texts in the namespaces of one run only."""

    def __init__(self, run_id, **options):
        super().__init__(**options)
        self.run_id = run_id

    def remember(self, scope, memories):
        kept = [
            one
            for one in memories
            if not (f"-{self.run_id}-" in scope.namespace and "r key opens" in one.text)
        ]
        return super().remember(scope, kept)


@pytest.fixture
def db(good_record):
    return good_record


@pytest.fixture
def nights(good):
    """The plan of six good nights in the record."""
    return good[1]


def with_backend(of, type="tests.collectors.odd_backends:Shelf", **options):
    return replace(of, backend=BackendConfig("mine", type, options, "wordllama", None))


def stages(db, run_id):
    return [(row.looks, row.verdict, row.stage) for row in queries.verdict_looks(db, run_id)]


def test_an_unchanged_run_is_not_asked_again(db, nights):
    """Without a suspicion there is no look, and the run's verdict is in the record when it ends."""
    outcome = run(nights, db)
    assert (outcome.verdict.verdict, outcome.verdict.accepted) == ("unchanged", True)
    assert stages(db, outcome.run_id) == [(1, "unchanged", "")]
    assert queries.count_runs(db) == 7


def test_a_suspicion_is_looked_at_at_once(db, nights):
    """The runner asks the suite again in three trials, of which the verdict is the run's, not the look's."""
    outcome = run(with_backend(nights, lost="r key opens"), db)
    assert (outcome.verdict.verdict, outcome.verdict.stage) == ("worse", "suspected")
    assert [*outcome.verdict.lost] == LOST
    assert stages(db, outcome.run_id) == [(1, "cannot_tell", "suspicion"), (2, "worse", "suspected")]
    look = queries.run(db, outcome.run_id + 1)
    assert (look.status, look.trials, look.subset) == ("whole", 3, queries.CONFIRM)
    assert (look.trigger, queries.looked_at(look.trigger)) == ("confirm:7", 7)
    assert queries.verdict_looks(db, look.id) == []


def test_a_suspicion_that_dies_leaves_a_good_run(db, nights):
    """When the look finds all in order, the run joins the baseline."""
    outcome = run(with_backend(nights, "tests.collectors.test_looks:Moody", run_id=7), db)
    assert stages(db, outcome.run_id) == [(1, "cannot_tell", "suspicion"), (2, "unchanged", "")]
    assert run(nights, db).verdict.baseline == (1, 2, 3, 4, 5, 6, 7)


def test_a_look_that_costs_too_much_is_not_taken(db, nights):
    """Beyond max_cost the run stays a suspicion, with the costs for its reason, and is not accepted."""
    dear = replace(with_backend(nights, lost="r key opens"), confirm=Confirm(3, max_cost=0.01))
    outcome = run(dear, db)
    assert queries.count_runs(db) == 7
    (row,) = queries.verdict_looks(db, outcome.run_id)
    assert (row.verdict, row.stage, row.accepted) == ("cannot_tell", "suspicion", False)
    assert row.content["untaken"] == "asking again would cost about $0.06, more than max_cost = 0.01"
    affordable = replace(dear, confirm=Confirm(3, max_cost=0.07))
    assert run(affordable, db).verdict.stage == "suspected"


def test_a_part_of_the_suite_gets_no_verdict(db, nights):
    """A run narrowed to a tag is no night, so nothing is said of it."""
    assert run(replace(nights, subset="keys"), db).verdict is None


def test_drift_is_a_series(db, nights):
    """How far a run is from the anchor is rolled up with it, and not with its looks."""
    outcome = run(with_backend(nights, lost="r key opens"), db)
    points = queries.trend(db, "small", "anchor_drift")
    assert [(point.run_id, point.mean) for point in points] == [
        *[(night, 0.0) for night in range(2, 7)],
        (outcome.run_id, pytest.approx(-3 / 16)),
    ]


# Later looks


@pytest.fixture
def home(tmp_path, monkeypatch, good_record):
    """A folder with six good nights, whose backend now loses three cases."""
    monkeypatch.chdir(project(tmp_path, LOSING.format(type="Shelf"), cases(16)))
    return good_record


def test_a_third_look_confirms(home, tmp_path):
    """Another look at a run is held against the same baseline, though runs came in between."""
    found = memtrend_run(home)
    good_nights(tmp_path, home, 2)
    verdict = take_look(home, configured(), found)
    assert (verdict.verdict, verdict.stage) == ("worse", "confirmed")
    assert verdict.baseline == (1, 2, 3, 4, 5, 6)
    assert [look.trials for look in verdict.looks] == [1, 3, 3]
    assert stages(home, found)[-1] == (3, "worse", "confirmed")


def memtrend_run(db):
    """A run of what is configured; its id."""
    from collectors.configured import plan

    return run(plan(configured(), "small", "mine"), db).run_id


def test_what_cannot_be_looked_at_is_refused(home, tmp_path):
    """A look itself, a run that is not there, and a run of a suite that has changed are refused with the
    reason."""
    found = memtrend_run(home)
    for run_id in (found + 1, 99):
        with pytest.raises(StoreError, match="no whole run of a whole suite"):
            take_look(home, configured(), run_id)
    project(tmp_path, LOSING.format(type="Shelf"), cases(12))
    with pytest.raises(StoreError, match="suite small has changed since; run it anew"):
        take_look(home, configured(), found)


def test_a_killed_look_leaves_the_run_whole(home, tmp_path):
    """Killed while it looks again, a run is whole with its suspicion, and --resume finishes the look."""
    project(tmp_path, LOSING.format(type="Slow"), cases(16))
    process = launch(tmp_path, "run", "--suite", "small", "--backend", "mine")
    try:
        deadline = time.monotonic() + 60
        while not (looks := [row for row in queries.runs(home) if row.subset and row.cases_done]):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        process.kill()
        process.communicate()
    assert (looks[0].id, queries.run(home, 7).status) == (8, "whole")
    assert stages(home, 7) == [(1, "cannot_tell", "suspicion")]
    resumed = memtrend(tmp_path, "run", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert [(row.id, row.status) for row in queries.runs(home)][:2] == [(8, "whole"), (7, "whole")]
    assert queries.run(home, 8).cases_done == 3 * 16
    assert stages(home, 7)[-1] == (2, "worse", "suspected")


def test_half_a_calibration_is_not_resumed(home, tmp_path):
    """A run of a calibration that was interrupted is left as it is: the next one makes both anew."""
    import threading

    from collectors.configured import plan

    stop = threading.Event()
    of = replace(plan(configured(), "small", "mine"), subset=queries.CALIBRATION, trigger="calibration")
    outcome = run(of, home, stop=stop, on_progress=lambda progress: progress.done >= 3 and stop.set())
    assert outcome.status == "interrupted"
    with pytest.raises(NothingToResume):
        interrupted(home, configured())
