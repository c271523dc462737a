"""The collector: schedules and requests become runs, what fails is told, and it stops when asked."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
import time_machine

from collectors import cli, envs
from collectors.collector import POLL_S, Collector, _level, collect
from collectors.configured import configured
from collectors.pairs import Done, Pair
from collectors.plans import RunOutcome
from collectors.process import Stop
from collectors.pulse import BEAT_S, NAME, TTL_S, CollectorBusy, Pulse
from collectors.reload import SettingsFile
from collectors.runs import interrupted as interrupted_runs
from collectors.runs import run_all
from store import models as m
from store import queries, writes
from store.database import open_database
from store.errors import StoreError
from store.settings import SettingsError

WAIT_S = 40.0

CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.{backend}]
type = "{type}"
[suites.mine]
path = "mine.jsonl"
[schedules.nightly]
cron = "0 3 * * *"
suites = ["mine"]
backends = ["*"]
trials = 2
[limits]
timeout = 60
"""

WEEKLY = """[schedules.weekly]
cron = "0 4 * * sun"
suites = ["mine"]
"""

SLOW = """
import os, time

class Slow:
    def __init__(self):
        self.texts = []
    def write(self, text):
        self.texts.append(text)
    def search(self, query, k):
        time.sleep(float(os.environ.get("SLOW_S", "0.15")) if query.startswith("Which") else 0)
        return self.texts[:k]
"""


def until(condition, what):
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {WAIT_S:.0f} s: {what}")


def case(number):
    return {
        "id": f"door-{number}",
        "writes": [f"The door of room {number} opens with code {1000 + number}."],
        "query": f"Which code opens room {number}?",
        "expect_any": [f"{1000 + number}"],
    }


def write_suite(folder, cases):
    lines = [json.dumps(case(number)) for number in range(cases)]
    (folder / "mine.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with a configuration: suite `mine` of three cases, backend `floor`, the schedule `nightly`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memtrend.toml").write_text(CONFIG.format(backend="floor", type="everything"))
    write_suite(tmp_path, 3)
    return tmp_path


@pytest.fixture
def slow_home(home):
    """The same over a backend that takes its time for each of 40 cases."""
    (home / "memtrend.toml").write_text(CONFIG.format(backend="slow", type="sluggish:Slow"))
    (home / "sluggish.py").write_text(SLOW)
    write_suite(home, 40)
    return home


@pytest.fixture
def db(home):
    db = open_database(f"sqlite:///{home / 'record.db'}")
    yield db
    db.close()


class Running:
    """A collector on a thread of the test's own process."""

    def __init__(self, db, busy_wait_s=0.0, first_runs=False):
        self.db, self.busy_wait_s, self.first_runs = db, busy_wait_s, first_runs
        self.stop, self.lines = threading.Event(), []
        self.pulse, self.file = Pulse(db, self.stop), SettingsFile()

    def __enter__(self):
        self.pulse.__enter__()
        made = (self.db, self.file, self.stop, self.pulse.token, self.lines.append, self.busy_wait_s)
        work = partial(Collector(*made).work, first_runs=self.first_runs)
        self.thread = threading.Thread(target=work)
        self.thread.start()
        until(lambda: queries.schedules(self.db), "the schedules are followed")
        return self

    def fire(self, schedule):
        """Let the schedule's time come. Returns it."""
        now = datetime.now(UTC)
        expect(self.db, schedule, now)
        return now

    def __exit__(self, *raised):
        self.stop.set()
        self.thread.join(WAIT_S)
        self.pulse.__exit__(*raised)
        assert not self.thread.is_alive()


def expect(db, schedule, *times):
    rows = [
        {"schedule": schedule, "scheduled_for": at, "due": at, "state": "expected", "run_ids": []}
        for at in times
    ]
    with db.write() as connection:
        connection.execute(m.fire.insert(), rows)


def ask(db, kind="run", **payload):
    return writes.add_request(db, kind, payload, "tester")


def answered(db, request_id):
    def find():
        return [row for row in queries.requests(db, ["done", "failed"]) if row.id == request_id]

    return until(find, f"request {request_id} is answered")[0]


def told(db, part, source=None):
    """The event whose message holds `part`, once there is one."""

    def find():
        return [e for e in queries.events(db) if part in e.message and source in (None, e.source)]

    return until(find, f"an event says {part!r}")[0]


# Schedules


def test_a_fire_runs_its_pairs(home, db):
    """A fire runs its suites on its backends with its trials, under the schedule's name and with its time,
    and is accounted for."""
    with Running(db) as running:
        at = running.fire("nightly")
        (fire,) = until(lambda: ended(db, "nightly"), "the fire has ended")
        (state,) = queries.schedules(db)
    (row,) = queries.runs(db)
    assert (row.suite, row.backend, row.trigger, row.trials) == ("mine", "floor", "schedule:nightly", 2)
    assert (row.status, row.meta) == ("whole", {"scheduled_for": f"{at:%Y-%m-%dT%H:%MZ}"})
    assert fire[:4] == ("nightly", at, "done", (row.id,))
    assert (state.name, state.last_fire, state.enabled) == ("nightly", at, True)
    assert state.next_fire > state.last_fire


def ended(db, schedule):
    """The fires of a schedule that are over."""
    rows = queries.schedule_calendar(db, datetime(2026, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
    return [row for row in rows if row.schedule == schedule and row.state != "due"]


def test_fire_times_are_written_ahead(home, db):
    """From its start on, the record says when each schedule should fire in the next 40 days."""
    with Running(db):
        until(lambda: queries.next_expected(db), "fires are expected")
        now = datetime.now(UTC)
        times = [row.scheduled_for for row in queries.schedule_calendar(db, now, now + timedelta(days=99))]
    assert len(times) == 40
    assert {(at.hour, at.minute) for at in times} == {(3, 0)}
    assert now < min(times) < now + timedelta(days=1)


def test_fire_times_are_renewed_every_day(home, db):
    """A day later the far end of what is expected has moved a day on."""
    collector = Collector(db, SettingsFile(), threading.Event(), leader=0)
    collector._tick()
    with db.write() as connection:
        connection.execute(m.fire.delete())
    collector._tick()
    assert queries.next_expected(db) is None
    with time_machine.travel(datetime.now(UTC) + timedelta(days=1, seconds=1)):
        collector._tick()
        assert queries.next_expected(db).schedule == "nightly"


def test_environments_of_releases_are_cleaned(home, db):
    """What was never finished, or not used for as long as is configured, is removed, and told."""
    with Path("memtrend.toml").open("a") as file:
        file.write('[environments]\ndirectory = "envs"\n')
    half = Path("envs/six-1_17_0-0123456789ab").absolute()
    half.mkdir(parents=True)
    (half / envs.BEGUN).touch()
    with Running(db):
        until(lambda: "was not used for 60d: removed" in str(queries.events(db)), "it is told")
    assert not half.exists()


def test_a_held_backend_is_told_by_name(home, db):
    """A scheduled run whose backend another run keeps for too long becomes an event that names both."""
    token = writes.acquire_lease(db, writes.backend_lease("floor"), "elsewhere:1", 60)
    with Running(db) as running:
        running.fire("nightly")
        event = told(db, "mine on floor", "schedule:nightly")
        (fire,) = until(lambda: ended(db, "nightly"), "the fire has ended")
    writes.release_lease(db, writes.backend_lease("floor"), token)
    assert "backend floor is in use" in event.message
    assert queries.runs(db) == []
    assert (fire.state, fire.reason) == ("invalid", event.message)


def test_a_held_backend_is_waited_for(home, db):
    """A run begins as soon as the one that holds its backend lets go."""
    token = writes.acquire_lease(db, writes.backend_lease("floor"), "elsewhere:1", 60)
    with Running(db, busy_wait_s=WAIT_S):
        request = ask(db, suite="mine", backend="floor")
        until(lambda: queries.requests(db, ["claimed"]), "the request is claimed")
        writes.release_lease(db, writes.backend_lease("floor"), token)
        assert answered(db, request).state == "done"


# Requests


def test_a_request_becomes_a_run(home, db):
    """What was asked for is run as it was asked for, and the request names the run."""
    with Running(db):
        request = ask(db, suite="mine", backend="floor", trials=2, meta={"deploy": "4.12"})
        row = answered(db, request)
    run = queries.run(db, row.run_ids[0])
    assert (row.state, row.error, run.status) == ("done", None, "whole")
    assert (run.trigger, run.trials, run.meta) == ("request:tester", 2, {"deploy": "4.12"})


def test_requests_are_picked_up_within_two_seconds(home, db):
    """The record is asked for requests more than twice in the two seconds that are promised."""
    assert POLL_S * 2 < 2.0


def test_requests_are_picked_up_while_a_run_is_under_way(slow_home, db, monkeypatch):
    """A run does not keep the collector from claiming what is asked for next; cancelled, it ends alone."""
    monkeypatch.syspath_prepend(slow_home)
    with Running(db) as running:
        first = ask(db, suite="mine", backend="slow")
        row = until(lambda: queries.progress(db), "the run is under way")[0]
        second = ask(db, suite="mine", backend="slow")
        until(lambda: len(queries.requests(db, ["claimed"])) == 2, "both are claimed")
        writes.cancel_run(db, row.id, "tester")
        assert answered(db, first) == queries.requests(db, ["done"])[-1]
        until(lambda: [r for r in queries.progress(db) if r.id != row.id], "the second run begins")
        assert not running.stop.is_set()
    assert queries.run(db, row.id).status == "interrupted"
    assert queries.run(db, row.id).reason == "cancelled"
    stopped = answered(db, second)
    assert (stopped.state, len(stopped.run_ids)) == ("failed", 1)
    assert "memtrend run --resume" in stopped.error


@pytest.mark.parametrize(
    ("kind", "payload", "part"),
    [
        (
            "run",
            {"suite": "mime", "backend": "floor"},
            "unknown suite 'mime'; known: contract, golden, holdout, mine, smoke",
        ),
        ("run", {"suite": "mine", "backend": "flour"}, "unknown backend 'flour'; known: floor"),
        ("run", {"suite": "mine"}, "backend: Field required"),
        ("run", {"suite": "mine", "backend": "floor", "trials": 0}, "trials: "),
        (
            "run",
            {"suite": "mine", "backend": "floor", "tag": "no-such"},
            "suite mine: no case bears the tag 'no-such'",
        ),
        ("dance", {}, "unknown kind of request 'dance'; known: run"),
    ],
)
def test_a_request_that_cannot_be_done_says_why(home, db, kind, payload, part):
    """Nonsense is answered with what is wrong, and the next request is done all the same."""
    with Running(db):
        wrong, right = ask(db, kind, **payload), ask(db, suite="mine", backend="floor")
        refused = answered(db, wrong)
        assert answered(db, right).state == "done"
    assert (refused.state, refused.run_ids) == ("failed", [])
    assert part in refused.error


def test_what_a_dead_collector_had_taken_is_answered(home, db):
    """A request that was claimed by a collector that died does not wait for ever."""
    request = ask(db, suite="mine", backend="floor")
    writes.claim_request(db)
    with Running(db):
        assert "ask again" in answered(db, request).error


def test_what_is_due_at_the_start_is_run(home, db):
    """Of the fires that found no collector one is made up for when one starts, and is told to be late; the
    others are told to be missed."""
    now = datetime.now(UTC)
    expect(db, "nightly", *(now - timedelta(days=days, hours=1) for days in (2, 1, 0)))
    with Running(db):
        until(lambda: [fire for fire in ended(db, "nightly") if fire.state == "late"], "one is made up for")
    assert [fire.state for fire in ended(db, "nightly")] == ["missed", "missed", "late"]
    assert len(queries.runs(db)) == 1
    late, lost = (event.message for event in queries.events(db) if event.source == "schedule:nightly")
    assert late.endswith("UTC: made up for, late")
    assert "UTC: missed (2 in all): no collector ran; that of " in lost


def test_a_fire_that_a_stop_cuts_short_is_told(slow_home, db, monkeypatch):
    """What a stop interrupts is an invalid fire with its run; what had not begun is left to the next."""
    monkeypatch.syspath_prepend(slow_home)
    file = slow_home / "memtrend.toml"
    file.write_text(file.read_text().replace("[limits]", WEEKLY + "[limits]"))
    with Running(db) as running:
        running.fire("nightly")
        until(lambda: queries.progress(db), "the first is under way")
        second = running.fire("weekly")
        until(lambda: not queries.due_fires(db, datetime.now(UTC)), "the second is taken")
    (fire,) = ended(db, "nightly")
    (run,) = queries.runs(db)
    assert (fire.state, fire.run_ids, run.status) == ("invalid", (run.id,), "interrupted")
    assert [row[:2] for row in queries.due_fires(db, datetime.now(UTC))] == [("weekly", second)]


def test_what_waits_when_the_collector_stops_is_answered(slow_home, db, monkeypatch):
    """A claimed request whose turn never came says so, instead of waiting for ever."""
    monkeypatch.syspath_prepend(slow_home)
    with Running(db):
        ask(db, suite="mine", backend="slow")
        waiting = ask(db, suite="mine", backend="slow")
        until(lambda: len(queries.requests(db, ["claimed"])) == 2, "both are claimed")
        until(lambda: queries.progress(db), "the first is under way")
    row = answered(db, waiting)
    assert (row.state, row.run_ids) == ("failed", [])
    assert "ask for it again" in row.error


# First runs


def test_first_runs_fill_what_is_empty(home, db):
    """Every suite is run once on every backend, a line each; a second start finds nothing to do."""
    with Running(db, first_runs=True) as running:
        until(lambda: len(running.lines) == 5, "five first runs")
    assert {(row.suite, row.trigger, row.status) for row in queries.runs(db)} == {
        (suite, "first", "whole") for suite in ("mine", "golden", "smoke", "holdout", "contract")
    }
    assert running.lines[0].startswith("run 1  mine on floor: whole, ")
    with Running(db, first_runs=True) as again:
        assert answered(db, ask(db, suite="mine", backend="floor")).state == "done"
    assert again.lines == []


def test_a_first_run_that_fails_is_told(home, db):
    """A backend that cannot even be opened makes a void run, a line and an event; the collector goes on."""
    (home / "memtrend.toml").write_text(CONFIG.format(backend="lost", type="nowhere.to_be:Found"))
    with Running(db, first_runs=True) as running:
        event = told(db, "mine on lost: void", "first")
        until(lambda: running.lines, "a line")
    assert queries.run(db, event.run_id).status == "void"
    assert "mine on lost: void" in running.lines[0]


# Configuration


def test_suites_are_looked_at_when_they_come_into_force(home, db):
    """What lint finds is in the record soon after the start, and anew after a suite has changed."""

    def wrong():
        return [row.case for row in queries.findings(db, "mine") if row.rule == "missing-source"]

    with Running(db):
        until(lambda: wrong() == ["door-0", "door-1", "door-2"], "the suite is looked at")
        write_suite(home, 4)
        edited = (home / "memtrend.toml").read_text() + "\n"
        (home / "memtrend.toml").write_text(edited)
        until(lambda: len(wrong()) == 4, "the changed suite is looked at")


def test_a_broken_edit_keeps_the_former_configuration(home, db):
    """An edit that breaks the file is told without its values and changes nothing; mended, it is followed."""
    file = home / "memtrend.toml"
    good = file.read_text()
    with Running(db):
        file.write_text(good.replace('cron = "0 3 * * *"', 'cron = "0 3 * * 1"'))
        event = told(db, "the former stays in force", NAME)
        assert [state.name for state in queries.schedules(db)] == ["nightly"]
        assert answered(db, ask(db, suite="mine", backend="floor")).state == "done"
        file.write_text(
            good.replace("schedules.nightly", "schedules.weekly").replace("0 3 * * *", "0 3 * * mon")
        )
        told(db, "the changed configuration is in force", NAME)
        states = {state.name: (state.next_fire, state.enabled) for state in queries.schedules(db)}
    assert event.level == "error"
    assert "schedules.nightly" in event.message
    assert states["nightly"] == (None, False)
    assert states["weekly"][0].weekday() == 0
    now = datetime.now(UTC)
    expected = queries.schedule_calendar(db, now, now + timedelta(days=99))
    assert {row.schedule for row in expected} == {"weekly"}


def test_a_broken_suite_keeps_the_former_configuration(home, db):
    """An edit that names a suite whose file is not there changes nothing either."""
    file = home / "memtrend.toml"
    with Running(db):
        file.write_text(file.read_text() + '[suites.other]\npath = "missing.jsonl"\n')
        told(db, "missing.jsonl", NAME)
        assert answered(db, ask(db, suite="mine", backend="floor")).state == "done"


def test_a_removed_file_keeps_the_former_configuration(home, db):
    """A file that vanishes does not bring the defaults into force behind the user's back."""
    with Running(db):
        (home / "memtrend.toml").unlink()
        told(db, "is gone", NAME)
        assert answered(db, ask(db, suite="mine", backend="floor")).state == "done"


def test_a_change_that_the_record_refused_is_followed_later(home, db, monkeypatch, caplog):
    """A full disk or a locked file at the moment of a change ends nothing, and the change is kept."""
    failures = [StoreError("no space left on its disk")]

    def register(db, settings):
        if failures:
            raise failures.pop()

    with Running(db):
        monkeypatch.setattr("collectors.collector.register_all", register)
        file = home / "memtrend.toml"
        file.write_text(file.read_text().replace("schedules.nightly", "schedules.weekly"))
        told(db, "the changed configuration is in force", NAME)
    assert "no space left on its disk" in caplog.text
    assert {state.name for state in queries.schedules(db) if state.enabled} == {"weekly"}


def test_half_a_file_is_not_taken_for_a_broken_one(home):
    """A file that is still being written is read once it rests."""
    watched = SettingsFile()
    text = (home / "memtrend.toml").read_text()
    (home / "memtrend.toml").write_text(text[: len(text) // 2] + '"')
    assert watched.reread() is None
    (home / "memtrend.toml").write_text(text.replace("trials = 2", "trials = 3"))
    assert watched.reread() is None
    assert watched.reread().schedules["nightly"].trials == 3
    assert watched.reread() is None


def test_a_wrong_configuration_stops_the_start(home):
    """What is wrong at the start is refused at once."""
    (home / "memtrend.toml").write_text('[schedules.nightly]\ncron = "0 3 30 2 *"\nsuites = ["smoke"]\n')
    with pytest.raises(SettingsError, match=r"schedules.nightly"):
        collect(stop=threading.Event())


# One collector a database


def test_a_second_collector_is_refused(home, db, monkeypatch, capsys):
    """While one lives, a second says which process on which host has the database, and exits with 1; ^C ends
    the first with 130, and its claim with it."""
    with Process(home, "collect") as first:
        until(lambda: queries.heartbeats(db), "the first collector beats")
        monkeypatch.setattr(sys, "argv", ["memtrend", "collect"])
        with pytest.raises(SystemExit) as second:
            cli.main()
        assert first.poll() is None
        first.send_signal(signal.SIGINT)
        assert first.wait(timeout=10) == 130
    assert not any(lease.held for lease in queries.leases(db))
    assert second.value.code == 1
    said = capsys.readouterr().err
    assert f"process {first.pid} on " in said
    assert "Traceback" not in said


def test_a_killed_collector_is_succeeded(home, db, monkeypatch):
    """The claim of a process that is no more is waited for, not refused."""
    monkeypatch.setattr("collectors.pulse.RETRY_S", 0.01)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    writes.acquire_lease(db, NAME, f"{os.uname().nodename}:{gone.pid}", 0.3)
    with Pulse(db, threading.Event()) as pulse:
        assert not pulse.lost
        assert queries.leases(db)[0].owner.endswith(f":{os.getpid()}")


def test_a_collector_on_another_host_is_refused(home, db):
    """Whether a process of another host lives cannot be seen, so its claim holds until it ends by itself."""
    writes.acquire_lease(db, NAME, "elsewhere:1", 60)
    with pytest.raises(CollectorBusy, match="process 1 on elsewhere"), Pulse(db, threading.Event()):
        pass


def test_a_stand_by_takes_over(home, db, monkeypatch):
    """A stand-by waits while another leads, says who that is, and leads once its claim has ended."""
    monkeypatch.setattr("collectors.pulse.RETRY_S", 0.01)
    said, old = [], writes.acquire_lease(db, NAME, "elsewhere:1", 60)

    def told_to_wait(text):
        said.append(text)
        writes.release_lease(db, NAME, old)

    monkeypatch.setattr("collectors.pulse.say", told_to_wait)
    with Pulse(db, threading.Event(), stand_by=True) as pulse:
        assert pulse.token == old + 1
    assert said == ["standing by: process 1 on elsewhere leads"]


def test_a_stand_by_can_be_stopped(home, db, monkeypatch):
    """A stand-by that is asked to stop has led nothing, and leaves the leader's claim alone."""
    stop = threading.Event()
    writes.acquire_lease(db, NAME, "elsewhere:1", 60)
    monkeypatch.setattr("collectors.pulse.say", lambda text: stop.set())
    assert collect(stop=stop, stand_by=True) == 0
    assert [lease.owner for lease in queries.leases(db) if lease.held] == ["elsewhere:1"]
    assert queries.heartbeats(db) == []


def test_a_deposed_collector_stops(home, db, monkeypatch):
    """A collector that slept too long, and was succeeded meanwhile, notices and stops."""
    monkeypatch.setattr("collectors.pulse.BEAT_S", 0.01)
    stop = threading.Event()
    with Pulse(db, stop) as pulse:
        with db.write() as connection:
            connection.execute(m.lease.update().values(token=m.lease.c.token + 1, owner="elsewhere:1"))
        assert stop.wait(WAIT_S)
    assert pulse.lost
    assert "another collector took over" in queries.events(db)[0].message


def test_the_claim_outlives_two_lost_beats():
    """A heartbeat that could not be written twice does not depose its collector."""
    assert BEAT_S * 3 < TTL_S


# Real processes


def environment(**more):
    return {**os.environ, "PYTHONPATH": "", **more}


class Process:
    """`memtrend ...` as a process of its own, killed at the end should it still live."""

    def __init__(self, home: Path, *arguments, **more):
        command = [sys.executable, "-m", "collectors.cli", *arguments]
        self.errors = home / "stderr.txt"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(command, cwd=home, env=environment(**more), stderr=errors)

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def test_term_checkpoints_and_resume_finishes(slow_home, db, monkeypatch):
    """A run that TERM interrupts keeps what it had, and resuming it loses and doubles nothing."""
    process = Process(slow_home, "collect")
    with process as collector:
        request = ask(db, suite="mine", backend="slow")
        row = until(lambda: [r for r in queries.progress(db) if r.cases_done >= 3], "three cases are done")[0]
        collector.send_signal(signal.SIGTERM)
        assert collector.wait(timeout=10) == 0
    assert process.errors.read_text() == ""
    kept = results(db, row.id)
    interrupted = queries.run(db, row.id)
    assert interrupted.status == "interrupted"
    assert 3 <= len(kept) < 40
    assert answered(db, request).run_ids == [row.id]

    monkeypatch.setenv("SLOW_S", "0")
    (resumed,) = run_all(db, interrupted_runs(db, configured(), [row.id]), Stop())
    assert resumed.problem is None
    after = results(db, row.id)
    assert queries.run(db, row.id).status == "whole"
    assert sorted(name for name, _ in after) == sorted(f"door-{number}" for number in range(40))
    assert set(kept) <= set(after)


def results(db, run_id):
    """(case, id of its result) of everything stored for a run."""
    query = sa.select(m.case.c.name, m.case_result.c.id).join(m.case, m.case.c.id == m.case_result.c.case_id)
    with db.read() as connection:
        return [tuple(row) for row in connection.execute(query.where(m.case_result.c.run_id == run_id))]


@pytest.mark.parametrize(
    ("status", "reason", "level"),
    [
        ("interrupted", "stopped", "info"),
        ("interrupted", "cancelled", "info"),
        ("interrupted", "the lease was lost", "warning"),
        ("invalid", "5 of 5 answers were errors", "error"),
    ],
)
def test_a_stop_is_no_problem(status, reason, level):
    """A run that a person stopped is told among the events, and is none of the problems that pages count."""
    assert _level(Done(Pair("mine", "slow"), RunOutcome(1, status, reason), reason)) == level


def test_a_backend_that_hangs_does_not_hold_the_collector(slow_home, db):
    """A call that does not come back is left behind: the collector is gone within 10 s, its run resumable."""
    with Process(slow_home, "collect", SLOW_S="600") as collector:
        ask(db, suite="mine", backend="slow")
        row = until(lambda: queries.progress(db), "the run is under way")[0]
        collector.send_signal(signal.SIGTERM)
        assert collector.wait(timeout=10) == 0
    assert queries.run(db, row.id).status == "interrupted"
