"""A/A calibration: one backend twice in a row, and what that tells of the noise and of the verdicts."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from collectors.calibration import calibrate
from collectors.collector import Collector
from collectors.configured import configured
from collectors.pairs import Asked, Pair
from collectors.reload import SettingsFile
from collectors.runner import run
from store import queries
from store.settings import SettingsError
from tests.collectors.odd_backends import Shelf
from tests.collectors.playground import LOSING, cases, good_nights, opened, project
from tests.store.seeding import Seed

pytestmark = pytest.mark.usefixtures("no_pauses")
PAIR = Pair("small", "mine")


class Twofaced(Shelf):
    """Loses three of 16 cases in the runs of these ids."""

    def __init__(self, runs=(), lost="", **options):
        super().__init__(**options)
        self.marks = [f"memtrend-{run}-" for run in runs]

    def remember(self, scope, memories):
        loses = any(mark in scope.namespace for mark in self.marks)
        kept = [one for one in memories if not (loses and "r key opens" in one.text)]
        return super().remember(scope, kept)


def configuration(folder, runs, schedule=""):
    config = LOSING.format(type="Shelf").replace("odd_backends:Shelf", "test_calibration:Twofaced")
    project(folder, config.replace("[suites", f"runs = {runs}\n[suites") + schedule, cases(16))
    return configured()


@pytest.fixture
def record(tmp_path, monkeypatch, good_record):
    """A folder with good nights on six days."""
    monkeypatch.chdir(tmp_path)
    configuration(tmp_path, [])
    for run_id in range(1, 7):
        Seed(good_record).at(run_id, datetime.now(UTC) - timedelta(days=7 - run_id))
    return good_record


def calibrated(db, folder, runs):
    done = calibrate(configuration(folder, runs), db, PAIR, Asked("schedule:x"), threading.Event())
    assert done.problem is None
    return done


def test_an_unchanged_backend_is_calibrated(record, tmp_path):
    """Two equal runs differ in no case and alarm nobody; both are in the record for what they are."""
    done = calibrated(record, tmp_path, [])
    (point,) = queries.calibrations(record, "small", "mine")
    assert (point.run_id, point.n, point.noise_floor, point.false_verdict) == (8, 16, 0, 0)
    assert done.outcome.run_id == 8
    made = [queries.run(record, run_id) for run_id in (7, 8)]
    assert {(row.trigger, row.subset, row.trials, row.status) for row in made} == {
        ("calibration", queries.CALIBRATION, 1, "whole")
    }


def test_noise_is_counted_and_so_is_the_false_verdict(record, tmp_path):
    """Where the second run loses cases that the first had, these are the noise floor, and what would have
    been a suspicion is a false one."""
    calibrated(record, tmp_path, [8])
    (point,) = queries.calibrations(record, "small", "mine")
    assert (point.noise_floor, point.false_verdict) == (3 / 16, 1)


def test_a_change_is_no_noise(record, tmp_path):
    """Where both runs lost the same cases the backend has changed: nothing differs, and no verdict would
    have been false."""
    calibrated(record, tmp_path, [7, 8])
    (point,) = queries.calibrations(record, "small", "mine")
    assert (point.noise_floor, point.false_verdict) == (0, None)


def test_a_calibration_is_no_night(record, tmp_path):
    """Neither run has a verdict, is looked at again, or stands in a later baseline or on a chart."""
    before = queries.trend(record, "small", "pass"), queries.overview(record)
    calibrated(record, tmp_path, [8])
    assert queries.verdicts(record, [7, 8]) == {}
    assert queries.count_runs(record) == 8
    assert (queries.trend(record, "small", "pass"), queries.overview(record)) == before
    assert run(good_nights(tmp_path, record, 0), record).verdict.baseline == (1, 2, 3, 4, 5, 6)


def test_calibrations_are_a_series(record, tmp_path):
    """Calibrations come oldest first, of their suite and backend alone."""
    calibrated(record, tmp_path, [])
    calibrated(record, tmp_path, [10])
    points = queries.calibrations(record, "small", "mine")
    assert [(point.run_id, point.false_verdict) for point in points] == [(8, 0), (10, 1)]
    assert queries.calibrations(record, "small", "other") == []


def test_the_first_thing_that_is_ever_run(tmp_path, monkeypatch):
    """Without a night before them, two runs have a noise floor all the same."""
    monkeypatch.chdir(tmp_path)
    settings = configuration(tmp_path, [2])
    db = opened(tmp_path)
    calibrate(settings, db, PAIR, Asked("schedule:x"), threading.Event())
    (point,) = queries.calibrations(db, "small", "mine")
    assert point.noise_floor == 3 / 16
    db.close()


def test_half_a_calibration_has_no_figures(record, tmp_path):
    """When the first run does not end whole there is no second, and the reason is told."""
    stop = threading.Event()
    stop.set()
    done = calibrate(configuration(tmp_path, []), record, PAIR, Asked("schedule:x"), stop)
    assert "stopped before" in done.problem
    done = calibrate(configured(), record, Pair("small", "nowhere"), Asked("schedule:x"), threading.Event())
    assert done.problem == "unknown backend 'nowhere'; known: mine"
    assert queries.calibrations(record, "small", "mine") == []
    assert queries.calibration_records(record, 5, 6) is None


SCHEDULE = """
[schedules.own_noise]
cron = "0 5 * * sun"
kind = "calibration"
suites = ["small"]
"""


def test_a_schedule_calibrates(record, tmp_path):
    """A schedule of kind calibration runs its pairs twice instead of once."""
    configuration(tmp_path, [], SCHEDULE)
    collector = Collector(record, SettingsFile(), threading.Event(), leader=0)
    collector.fires.expect(datetime.now(UTC))
    collector.fires.take(datetime.now(UTC) + timedelta(days=7))
    assert collector.worker.finish(60)
    assert [point.run_id for point in queries.calibrations(record, "small", "mine")] == [8]
    assert queries.count_runs(record) == 8


@pytest.mark.parametrize(("line", "told"), [("trials = 2", "leave trials out"), ('kind = "weekly"', "kind")])
def test_a_calibration_asks_once(record, tmp_path, line, told):
    """Trials make no sense in a calibration, nor does an unknown kind: both are refused."""
    schedule = SCHEDULE.replace('kind = "calibration"', line) if "kind" in line else f"{SCHEDULE}{line}\n"
    with pytest.raises(SettingsError, match=told):
        configuration(tmp_path, [], schedule)
