"""A run that is stopped, cancelled, killed or out of disk keeps what it stored, and can be finished."""

import json
import random
import signal
import sqlite3
import subprocess
import threading
import time
from dataclasses import replace

import pytest

from collectors import arm, calls, lease
from collectors.calls import Stopped
from collectors.lease import InstanceBusy
from collectors.plans import RunLimits
from collectors.runner import run
from store import queries, writes
from store.database import open_database
from store.errors import StoreError
from tests.collectors.playground import (
    SCRIPT,
    case,
    cases,
    events,
    launch,
    memtrend,
    plan,
    project,
    results,
    suite,
    value,
)

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.fixture
def six(tmp_path):
    return suite(tmp_path, cases(6))


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "journal"


# Stopping and going on


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(lease, "POLL_S", 0.02)
    monkeypatch.setattr(calls, "GRACE_S", 0.2)
    monkeypatch.setattr(arm, "GRACE_S", 0.2)


def stop_after(done, stop):
    def look(progress):
        if progress.done >= done:
            stop.set()

    return look


@pytest.mark.parametrize(("type", "concurrency"), [("Shelf", 1), ("Counted", 3)])
def test_stopped_and_resumed(db, tmp_path, notes, type, concurrency):
    """A stopped run keeps what was stored, and resuming it plays exactly what is missing."""
    asked = suite(tmp_path, cases(10))
    limits = RunLimits(timeout_s=5, concurrency=concurrency)
    of = plan(asked, type, limits=limits, options={"journal": str(notes)})
    stop = threading.Event()
    outcome = run(of, db, stop=stop, on_progress=stop_after(4, stop))
    row = queries.run(db, outcome.run_id)
    assert (outcome.status, row.status, row.metrics) == ("interrupted", "interrupted", {})
    assert (outcome.reason, row.reason) == ("stopped", "stopped")
    before = {case for case, _ in results(db, outcome.run_id)}
    assert row.cases_done == len(before)
    assert 4 <= len(before) < 4 + concurrency

    notes.unlink()
    told = []
    resumed = run(of, db, resume=outcome.run_id, on_progress=told.append)
    assert (resumed.run_id, resumed.status) == (outcome.run_id, "whole")
    assert [one.done for one in told] == list(range(len(before), 11))
    again = {what.split()[-2] for _, _, what in events(notes, "recall")}
    assert {f"case-{key}" for key in again} == {probe.case for probe in asked.probes} - before
    whole = run(replace(of, backend=replace(of.backend, name="other")), db)
    assert results(db, resumed.run_id) == results(db, whole.run_id)
    same = [n for n in queries.run(db, whole.run_id).metrics if not n.endswith("_ms")]
    assert all(value(db, resumed, name) == value(db, whole, name) for name in same)


def test_stopped_before_it_began(db, six):
    """A run that is stopped while its adapter is checked was none."""
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped, match="before it began"):
        run(plan(six), db, stop=stop)
    assert queries.count_runs(db) == 0
    assert run(plan(six), db).status == "whole"


def test_stopped_while_checks_hang(db, six, quick):
    """A stop does not wait for an adapter that hangs in its checks."""
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    with pytest.raises(Stopped):
        run(plan(six, "Hanging", options={"word": "", "stuck": True}), db, stop=stop)
    assert queries.count_runs(db) == 0


@pytest.mark.parametrize("type", ["Hanging", "HangingBeside"])
def test_stopped_while_a_call_hangs(db, tmp_path, quick, type):
    """A stop waits neither for a call that hangs nor for a closing that does; what was stored stays."""
    asked = suite(tmp_path, [*cases(6)[:2], case("hang"), *cases(6)[2:]])
    stop = threading.Event()
    of = plan(asked, type, limits=RunLimits(timeout_s=60), options={"stuck": True})
    outcome = run(of, db, stop=stop, on_progress=stop_after(2, stop))
    assert (outcome.status, outcome.reason) == ("interrupted", "stopped")
    assert queries.run(db, outcome.run_id).cases_done >= 2


def test_cancelled(db, tmp_path, quick):
    """A cancel from elsewhere interrupts the run, which says so and can be resumed."""
    asked = suite(tmp_path, cases(10))

    def cancel(progress):
        if progress.done == 2:
            writes.cancel_run(db, progress.run_id, "cli")
        if progress.done > 1:
            time.sleep(0.05)

    outcome = run(plan(asked), db, on_progress=cancel)
    assert (outcome.status, outcome.reason) == ("interrupted", "cancelled")
    assert run(plan(asked), db, resume=outcome.run_id).status == "whole"


def test_only_interrupted_runs_are_resumed(db, six):
    """A whole run is no one's to add to: the refusal names it, and the backend stays free."""
    outcome = run(plan(six), db)
    before = queries.run(db, outcome.run_id)
    with pytest.raises(StoreError, match=f"run {outcome.run_id} is not interrupted"):
        run(plan(six), db, resume=outcome.run_id)
    assert queries.run(db, outcome.run_id) == before
    assert run(plan(six), db).status == "whole"


def test_another_system_is_not_resumed(db, six):
    """What was changed since makes another run: the refusal says what, and the run stays as it was."""
    stop = threading.Event()
    begun = plan(six, public_config={"type": "Shelf", "infer": False})
    outcome = run(begun, db, stop=stop, on_progress=stop_after(2, stop))
    before = queries.run(db, outcome.run_id)
    changed = replace(begun, public_config={"type": "Shelf", "infer": True})
    refusal = (
        rf"run {outcome.run_id}: the environment has changed since \(config.infer: False -> True\): start"
    )
    with pytest.raises(StoreError, match=refusal):
        run(changed, db, resume=outcome.run_id)
    assert queries.run(db, outcome.run_id) == before
    assert run(begun, db, resume=outcome.run_id).status == "whole"


def test_taken_over(db, six):
    """A run whose backend another process took over stores nothing more, and cannot close itself."""

    def depose(progress):
        if progress.done == 2:
            (row,) = [row for row in queries.leases(db) if row.name == "backend:mine"]
            writes.release_lease(db, row.name, row.token)
            writes.acquire_lease(db, row.name, "elsewhere:1", 60)

    with pytest.raises(writes.LeaseLost, match="taken over"):
        run(plan(six), db, on_progress=depose)
    (row,) = queries.runs(db)
    assert (row.status, row.cases_done) == ("interrupted", 2)


# Processes


SLOW = """
[database]
url = "sqlite:///record.db"
[backends.mine]
type = "tests.collectors.odd_backends:Slow"
seconds = 0.01
[suites.small]
path = "small.jsonl"
"""
HANGING = (
    SLOW.replace("odd_backends:Slow", "odd_backends:Hanging").replace("seconds = 0.01", "stuck = true")
    + "[limits]\ntimeout = 300\n"
)


@pytest.fixture
def start(tmp_path):
    """Start memtrend in the folder of the test; whatever still runs at its end is killed."""
    started = []

    def begin(*arguments):
        started.append(launch(tmp_path, *arguments))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def record(tmp_path, empty_record):
    (tmp_path / "record.db").write_bytes(empty_record.read_bytes())
    database = open_database(f"sqlite:///{tmp_path / 'record.db'}")
    yield database
    database.close()


def wait_for(process, record, done):
    """Until the only run has so many answers. A process that ends before has failed."""
    while True:
        rows = queries.runs(record)
        if rows and rows[0].cases_done >= done:
            return rows[0]
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)


def count(record, table):
    with record.read() as connection:
        return connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar()


def integrity(folder):
    with sqlite3.connect(folder / "record.db") as connection:
        (found,) = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    return found


def test_killed_again_and_again(tmp_path, record, start):
    """Killed at any moments, and resumed each time, a run ends as if it had never been interrupted: nothing
    is lost, and nothing is there twice."""
    dice = random.Random(412)
    project(tmp_path, SLOW, cases(30))
    process = start("run", "--suite", "small", "--trials", "2")
    seen = 0
    for kill in range(4):
        if kill == 1:
            time.sleep(dice.uniform(0.0, 1.0))  # perhaps while it is only getting ready
        else:
            seen = wait_for(process, record, seen + dice.randint(1, 5)).cases_done
            time.sleep(dice.uniform(0.0, 0.08))
        process.kill()
        process.communicate()
        assert len(results(record, 1)) >= seen
        process = start("run", "--resume")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    (row,) = queries.runs(record)
    assert (row.id, row.status, row.cases_done, row.cases_total, row.errors) == (1, "whole", 60, 60, 0)
    assert [count(record, table) for table in ("scenario_result", "case_result", "detail")] == [60, 60, 60]
    assert integrity(tmp_path) == "ok"
    whole = run(plan(suite(tmp_path, cases(30)), trials=2, name="other"), record)
    assert results(record, 1) == results(record, whole.run_id)
    same = [name for name in row.metrics if not name.endswith("_ms")]
    assert all(row.metrics[name].mean == value(record, whole, name) for name in same)


def test_killed(tmp_path, record, start):
    """While a process runs on a backend nobody else may; once it is killed, and its lease out or its process
    known to be dead, the run reads as interrupted and the backend is free."""
    project(tmp_path, HANGING, [*cases(2), case("hang")])
    process = start("run", "--suite", "small")
    run_id = wait_for(process, record, 2).id
    other = plan(suite(tmp_path, cases(2), "other"))
    with pytest.raises(InstanceBusy, match="backend mine is in use by another run; wait for it, or stop it:"):
        run(other, record)
    process.kill()
    process.communicate()
    assert queries.run(record, run_id).status == "running"
    assert run(other, record).status == "whole"
    assert queries.run(record, run_id).status == "interrupted"


def test_signal_while_a_call_hangs(tmp_path, record, start):
    """TERM ends a run within 10 s, a call that hangs and a backend that cannot be closed notwithstanding:
    exit code 130, one document for scripts, and the rest for --resume."""
    project(tmp_path, HANGING, [*cases(2), case("hang")])
    process = start("run", "--suite", "small", "--json")
    run_id = wait_for(process, record, 2).id
    process.terminate()
    out, said = process.communicate(timeout=10)
    assert (process.returncode, "Traceback" in said) == (130, False)
    assert [(run["id"], run["status"]) for run in json.loads(out)["runs"]] == [(run_id, "interrupted")]
    row = queries.run(record, run_id)
    assert (row.status, row.reason, row.cases_done) == ("interrupted", "stopped", 2)


def test_second_signal(tmp_path, record, start):
    """A second ^C does not wait for the call in flight, and still leaves a run that can be resumed."""
    project(tmp_path, HANGING, [*cases(2), case("hang")])
    process = start("run", "--suite", "small")
    run_id = wait_for(process, record, 2).id
    process.send_signal(signal.SIGINT)
    assert any("once more to stop at once" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 130
    assert queries.run(record, run_id).status == "interrupted"


def test_disk_full(tmp_path, record):
    """When the disk is full a run ends with a clear word, the record stays sound, and the rest can follow."""
    project(
        tmp_path, SLOW, [case(f"key{n}", writes=["a" * 3000, f"the key{n} key opens"]) for n in range(60)]
    )
    limited = ("bash", "-c", 'ulimit -f 700 && exec "$@"', "--", SCRIPT, "run", "--suite", "small")
    full = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert full.returncode == 1
    assert "cannot write sqlite:///" in full.stderr
    assert "what was stored before is intact" in full.stderr
    assert "Traceback" not in full.stderr
    assert integrity(tmp_path) == "ok"
    (row,) = queries.runs(record)
    assert 0 < row.cases_done == len(results(record, row.id)) < 60
    resumed = memtrend(tmp_path, "run", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    (row,) = queries.runs(record)
    assert (row.status, row.cases_done, len(results(record, row.id))) == ("whole", 60, 60)
