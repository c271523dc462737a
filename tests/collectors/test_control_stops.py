"""A run and its control stopped, cancelled, killed or taken over: who ends with whom, and what goes on."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from collectors import arm, calls, lease
from collectors.plans import RunLimits
from collectors.runner import run
from store import queries, writes
from tests.collectors.playground import case, cases, plan, results, suite
from tests.collectors.test_control import LOSES, beside, of_control, stop_after

pytestmark = pytest.mark.usefixtures("no_pauses")


def test_both_are_stopped_and_resumed(db, tmp_path):
    """A stop interrupts both arms; resuming the backend's run plays what is missing of both."""
    of = beside(plan(suite(tmp_path, cases(6))), **LOSES)
    stop = threading.Event()
    outcome = run(of, db, stop=stop, on_progress=stop_after(5, stop))
    control = of_control(db, outcome)
    kept = [results(db, run_id) for run_id in (outcome.run_id, control.id)]
    assert (outcome.status, control.status, [len(one) for one in kept]) == (
        "interrupted",
        "interrupted",
        [3, 2],
    )
    told = []
    resumed = run(of, db, resume=outcome.run_id, on_progress=told.append)
    assert (resumed.run_id, resumed.status) == (outcome.run_id, "whole")
    assert [one.done for one in told] == list(range(5, 13))
    again = of_control(db, outcome)
    assert (again.id, again.status, again.cases_done) == (control.id, "whole", 6)
    for run_id, before in zip((outcome.run_id, control.id), kept, strict=True):
        assert results(db, run_id).items() >= before.items()
    assert queries.verdict(db, outcome.run_id).content["control"]["nights"] == 1


def test_another_release_is_not_gone_on_with(db, tmp_path):
    """A control that is of another release now stays interrupted, and the verdict says so."""
    of = beside(plan(suite(tmp_path, cases(4))))
    stop = threading.Event()
    outcome = run(of, db, stop=stop, on_progress=stop_after(3, stop))
    resumed = run(beside(of, "Counted"), db, resume=outcome.run_id)
    assert (resumed.status, of_control(db, outcome).status) == ("whole", "interrupted")
    assert "is interrupted" in queries.verdict(db, outcome.run_id).content["control"]["unread"]


@pytest.fixture
def watchful(monkeypatch):
    monkeypatch.setattr(lease, "POLL_S", 0.02)


def slow_pair(tmp_path, number=10):
    of = plan(suite(tmp_path, cases(number)), "Slow", options={"seconds": 0.02})
    return beside(of, "Slow", seconds=0.02)


def cancel_after(db, done, which):
    """Cancels the run of the backend, or of its control, once so many cases are answered."""
    asked = []

    def look(progress):
        if progress.done == done and not asked:
            asked.append(which)
            found = queries.control_beside(db, progress.run_id)
            writes.cancel_run(db, {"own": progress.run_id, "control": found.control_id}[which], "cli")

    return look


def test_a_cancelled_control_ends_itself_alone(db, tmp_path, watchful):
    """The backend's run goes on to its end, and its verdict says what became of the control, which is not
    gone on with."""
    outcome = run(slow_pair(tmp_path), db, on_progress=cancel_after(db, 4, "control"))
    control = of_control(db, outcome)
    assert (outcome.status, queries.run(db, outcome.run_id).cases_done) == ("whole", 10)
    assert (control.status, control.reason) == ("interrupted", "cancelled")
    assert 2 <= control.cases_done < 10
    said = queries.verdict(db, outcome.run_id).content["control"]
    assert said["unread"] == f"its run {control.id} is interrupted: cancelled"


def test_cancelling_the_backends_run_ends_both(db, tmp_path, watchful):
    """Both are cancelled, and both go on when the backend's run is resumed."""
    of = slow_pair(tmp_path)
    outcome = run(of, db, on_progress=cancel_after(db, 4, "own"))
    control = of_control(db, outcome)
    assert (outcome.status, outcome.reason) == ("interrupted", "cancelled")
    assert (control.status, control.reason) == ("interrupted", "cancelled")
    assert run(of, db, resume=outcome.run_id).status == "whole"
    assert of_control(db, outcome).status == "whole"


def depose(db, done):
    """Another process takes the control's lease, once so many cases are answered."""
    taken = []

    def look(progress):
        if progress.done == done and not taken:
            taken.append(done)
            (row,) = [row for row in queries.leases(db) if row.name == "backend:mine-control"]
            writes.release_lease(db, row.name, row.token)
            writes.acquire_lease(db, row.name, "elsewhere:1", 60)

    return look


@pytest.mark.parametrize("done", [4, 12])
def test_a_control_that_was_taken_over_ends_itself_alone(db, tmp_path, done):
    """Early or after its last case, the lease of the control is no business of the backend's run."""
    outcome = run(beside(plan(suite(tmp_path, cases(6)))), db, on_progress=depose(db, done))
    assert (outcome.status, of_control(db, outcome).status) == ("whole", "interrupted")
    assert "is interrupted" in queries.verdict(db, outcome.run_id).content["control"]["unread"]


def test_a_stop_ends_what_is_left(db, tmp_path):
    """Stopped after its control was taken over, the backend's run keeps what it has."""
    stop, taken = threading.Event(), depose(db, 4)

    def look(progress):
        taken(progress)
        if progress.total == 6 and progress.done >= 4:
            stop.set()

    outcome = run(beside(plan(suite(tmp_path, cases(6)))), db, on_progress=look, stop=stop)
    assert (outcome.status, outcome.reason) == ("interrupted", "stopped")
    assert queries.run(db, outcome.run_id).cases_done == 4


def test_a_stop_waits_for_no_control_that_hangs(db, tmp_path, monkeypatch):
    """The stop of the run reaches a call of the control that is under way; what hung is no answer of it."""
    monkeypatch.setattr(calls, "GRACE_S", 0.1)
    monkeypatch.setattr(arm, "GRACE_S", 0.1)
    stop, limits = threading.Event(), RunLimits(timeout_s=4)
    of = beside(plan(suite(tmp_path, [case("hang"), *cases(2)]), limits=limits), "Hanging")

    def look(progress):
        if progress.done == 1:
            threading.Timer(0.1, stop.set).start()

    outcome = run(of, db, stop=stop, on_progress=look)
    control = of_control(db, outcome)
    assert (outcome.status, control.status, control.reason) == ("interrupted", "interrupted", "stopped")
    assert (control.cases_done, control.errors) == (0, 0)


SLOW_PAIR = """
import sys
from pathlib import Path
from dataclasses import replace
from collectors.backend import BackendConfig
from collectors.runner import run
from store.database import open_database
from tests.collectors.playground import cases, plan, suite
folder, resume = Path(sys.argv[1]), int(sys.argv[2]) or None
slow = {"seconds": 0.02}
of = plan(suite(folder, cases(12)), "Slow", options=slow)
control = BackendConfig("mine-control", of.backend.type, slow)
print(run(replace(of, control=control), open_database(f"sqlite:///{folder}/record.db"), resume=resume).status)
"""


def test_killed_and_resumed(db, tmp_path):
    """Killed in the middle, both arms read as interrupted with what they had stored, and a resumed run ends
    with every case of either there once."""
    command = [sys.executable, "-c", SLOW_PAIR, str(tmp_path)]
    process = subprocess.Popen([*command, "0"], stderr=subprocess.PIPE, text=True)
    try:
        while not (rows := queries.runs(db)) or min(row.cases_done for row in rows) < 2:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = subprocess.run([*command, "1"], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "whole", done.stderr
    own, control = queries.run(db, 1), queries.run(db, queries.control_beside(db, 1).control_id)
    assert [(row.status, row.cases_done, len(results(db, row.id))) for row in (own, control)] == [
        ("whole", 12, 12)
    ] * 2
