"""The proof of the alarm: drills over a loopback channel, their receipts, and what is said without one."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pydantic import SecretStr

from collectors.alerting import route
from collectors.configured import configured
from collectors.dead_man import DeadMan
from collectors.delivery import Pace, Sender
from collectors.drill import NAME, Drill
from collectors.lease import BackendLease, InstanceBusy
from collectors.pairs import Pair
from collectors.proofs import LONGEST, detect_unproven
from store import queries, writes
from store.alert_life import close
from store.settings import SettingsError
from store.writes.proofs import DIED
from tests.collectors import collecting
from tests.collectors.collecting import until
from tests.collectors.slack_server import Answer, running

PAIR = Pair("mine", "key")

CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.key]
type = "keyword"
[backends.floor]
type = "everything"
[suites.mine]
path = "mine.jsonl"
[schedules.drill]
kind = "proof"
cron = "0 6 * * *"
suites = ["mine"]
backends = ["key"]
[channels.drills]
type = "slack"
url = "{drills}"
drills = true
[channels.team]
type = "slack"
url = "{team}"
"""


class Dead(SimpleHTTPRequestHandler):
    """Stands for whoever watches the dead-man switch."""

    def do_GET(self):
        self.server.heard.append(self.path)
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def watcher():
    with ThreadingHTTPServer(("127.0.0.1", 0), Dead) as server:
        server.heard, server.status, server.daemon_threads = [], 200, True
        server.url = SecretStr(f"http://127.0.0.1:{server.server_port}/ping/s3cret")
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def drills():
    with running() as slack:
        yield slack


@pytest.fixture
def team():
    with running() as slack:
        yield slack


@pytest.fixture
def of(home, drills, team):
    (home / "memtrend.toml").write_text(CONFIG.format(drills=drills.url, team=team.url))
    return configured()


@contextmanager
def sending(db, of):
    sender, stop = Sender(db, of.channels, Pace(first_s=0.05, rest_s=0.05, poll_s=0.05)), threading.Event()
    thread = threading.Thread(target=sender.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def held(db, of, **how):
    with sending(db, of):
        return Drill(db, of, PAIR, route(of), threading.Event(), **how).run()


def text(post):
    """What a message says, in whichever of its blocks."""
    return json.dumps(post.told, ensure_ascii=False)


def told(db, of, now=None):
    """What is made of the proofs now, and sent."""
    turned = detect_unproven(db, of, now or datetime.now(UTC), route(of))
    sender = Sender(db, of.channels)
    sender.send_due()
    sender.close()
    return [step.action for one in turned for step in one.steps]


def test_a_drill_arrives_and_its_receipt_says_how_soon(db, of, drills, team):
    """A fault that is put in is detected, confirmed and told to the channel for drills alone, as a drill."""
    receipt = held(db, of)
    assert receipt.error is None
    assert 0 < receipt.detected <= receipt.confirmed <= receipt.delivered <= receipt.seconds
    [row] = queries.proofs(db)
    assert row.passed
    assert (row.suite, row.backend, row.fault, row.channel) == ("mine", "key", "question-mark", "drills")
    assert (row.detected_s, row.confirmed_s) == (receipt.detected, receipt.confirmed)
    assert row.delivered_s == receipt.delivered
    [post] = drills.accepted
    assert "DRILL" in post.told["text"]
    assert "a question mark finds nothing" in text(post)
    assert "*Lost*  3 (" in text(post)
    assert team.posts == []


def test_nothing_of_a_drill_is_seen_where_the_team_looks(db, of):
    """No run, backend, night, open alert or judged alarm comes of a drill, and its own alert is over."""
    writes.register_backend(db, "key", "keyword", {}, "default")
    held(db, of)
    assert queries.runs(db) == []
    assert [row.name for row in queries.backends(db)] == ["key"]
    assert queries.overview(db) == queries.standings(db) == queries.alerts(db) == []
    assert queries.queue(db) == queries.count_alerts(db) == {}
    assert sum(queries.judged(db)) == 0
    assert queries.undetected(db) == []
    [alert] = queries.alerts(db, drills=True)
    assert alert.incident.state == "resolved"
    assert {signal.key.backend for signal in alert.incident.signals} == {NAME}
    assert queries.proofs(db)[0].alert_id == alert.id


def test_a_drill_without_its_fault_fails(db, of, home, drills):
    """What is healthy is not detected, whatever bar it is beyond on every night: the drill says that, and
    tells nobody."""
    bars = 'path = "mine.jsonl"\nbars = { recall_ms = 0 }'
    text = (home / "memtrend.toml").read_text().replace('path = "mine.jsonl"', bars)
    (home / "memtrend.toml").write_text(text)
    of = configured()
    receipt = held(db, of, fault="")
    assert receipt.error.startswith("not detected")
    assert (receipt.detected, receipt.confirmed, receipt.delivered) == (None, None, None)
    assert not queries.proofs(db)[0].passed
    assert drills.posts == []


def test_a_dead_channel_is_told_of_through_the_others(db, of, drills, team):
    """A drill that is not delivered is an alert of its own, once, which ends with one that arrives."""
    drills.answers = [Answer(404)]
    receipt = held(db, of)
    assert receipt.confirmed is not None
    assert receipt.delivered is None
    assert "drills" in receipt.error
    assert "404" in receipt.error
    assert told(db, of) == ["opened"]
    assert told(db, of) == []
    [alert] = queries.alerts(db)
    assert alert.incident.kind.name == "proof"
    assert "404" in text(team.accepted[0])
    writes.enable_channel(db, "drills", "a test")
    assert held(db, of).error is None
    assert told(db, of) == ["resolved"]
    assert len(team.accepted) == 2


def too_long(once):
    """A clock by which a drill has waited too long, once that is so."""
    return lambda: 1000.0 if once() else 0.0


def test_what_has_not_arrived_by_the_end_of_a_drill_is_not_sent_later(db, of, drills):
    """A channel that wakes up later hears of no drill that is over."""
    drills.answers = [Answer(500)] * 1000
    clock = too_long(lambda: any(row.error for row in queries.deliveries(db)))
    assert "HTTP 500" in held(db, of, clock=clock).error
    assert queries.deliveries(db, states=["queued", "claimed"]) == []


def test_what_is_under_way_at_the_end_of_a_drill_is_not_tried_again(db, of, drills):
    """A channel that refuses after the drill is over, when it had hung until then, hears no more of it."""
    over = threading.Event()
    drills.answers = [Answer(500, first=over)]
    with sending(db, of):
        drill = Drill(db, of, PAIR, route(of), threading.Event(), clock=too_long(lambda: drills.posts))
        assert "not delivered to channel drills (claimed)" in drill.run().error
        over.set()
    assert [(row.channel, row.state) for row in queries.deliveries(db)] == [("drills", "dropped")]


HANG = """
import sys, threading
from collectors.alerting import route
from collectors.configured import configured
from collectors.delivery import Sender
from collectors.drill import Drill
from collectors.pairs import Pair
from store.database import open_database
of = configured()
db = open_database("sqlite:///record.db")
threading.Thread(target=Sender(db, of.channels).run, args=(threading.Event(),), daemon=True).start()
Drill(db, of, Pair("mine", "key"), route(of), threading.Event()).run()
"""


def test_a_drill_that_is_killed_has_failed_and_the_next_one_is_clean(db, of, home, drills):
    """Killed with -9 while its message is on its way, it counts as failed; the next one finds nothing of it
    in its way."""
    hold = threading.Event()
    drills.answers = [Answer(first=hold, drop=True)]
    process = subprocess.Popen([sys.executable, "-c", HANG], cwd=home, env={**os.environ})
    try:
        until(lambda: drills.posts, "the drill's message arrives")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    hold.set()
    assert queries.proofs(db)[0].finished_at is None
    assert held(db, of).error is None
    last, killed = queries.proofs(db)
    assert last.passed
    assert killed.error == DIED
    states = [row.incident.state for row in queries.alerts(db, drills=True)]
    assert states == ["resolved", "resolved"]


def test_a_drill_that_never_ended_has_failed(db, of, team):
    """Nobody need hold another one to be told of it."""
    writes.begin_proof(db, "mine", "key", "question-mark", "drills")
    now = datetime.now(UTC)
    assert told(db, of, now + LONGEST / 2) == []
    assert told(db, of, now + LONGEST * 2) == ["opened"]
    assert len(team.accepted) == 1


def failed(db):
    writes.finish_proof(
        db, writes.begin_proof(db, *PAIR, "question-mark", "drills"), None, 0.1, None, None, "not confirmed"
    )


def test_drills_that_go_on_failing_are_told_seldom(db, of, team):
    """Of drills that fail in a row the first is told, and the third; and what a person closed stays closed
    until another one fails."""
    actions = []
    for _ in range(3):
        failed(db)
        actions.append(told(db, of))
    assert actions == [["opened"], [], ["grew"]]
    [alert] = queries.alerts(db)
    writes.act_on_alert(db, alert.id, lambda it: close(it, "resolved", "ann", "seen to"), writes.nobody)
    assert told(db, of) == []
    failed(db)
    assert told(db, of) == ["opened"]
    assert len(team.accepted) == 3


def test_a_proof_is_late_after_two_periods(db, of, team):
    """With a drill a day, two days without one that arrived are an alert, and no drill at all is one too."""
    start = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
    assert told(db, of, start) == []
    collecting.expect(db, "drill", start)
    assert told(db, of, start + timedelta(hours=23)) == []
    assert told(db, of, start + timedelta(hours=25)) == ["opened"]
    assert "No drill has arrived since 2026-03-02 06:00 UTC, by schedule drill." in text(team.accepted[0])
    proof_id = writes.begin_proof(db, "mine", "key", "question-mark", "drills")
    writes.finish_proof(db, proof_id, None, 0.1, 0.2, 0.3, None)
    now = datetime.now(UTC)
    assert told(db, of, now) == ["resolved"]
    assert told(db, of, now + timedelta(hours=47)) == []
    assert told(db, of, now + timedelta(hours=49)) == ["opened"]


def test_a_drill_is_held_alone(db, of):
    """Neither beside a run of its backend nor beside another drill."""
    for name in ("key", NAME):
        with BackendLease(db, name, threading.Event()), pytest.raises(InstanceBusy):
            held(db, of)
    assert queries.proofs(db) == []


@pytest.mark.parametrize("backends", ['["*"]', '["floor"]', '["key", "floor"]'])
def test_a_drill_comes_near_no_backend_of_the_teams(of, home, backends):
    """It is refused on what is not ours before anything runs."""
    text = (home / "memtrend.toml").read_text().replace('backends = ["key"]', f"backends = {backends}")
    (home / "memtrend.toml").write_text(text)
    with pytest.raises(SettingsError, match=r"schedules\.drill"):
        configured()


def test_drills_follow_their_schedule(db, of, drills):
    """A collector holds a drill when its time has come, and the calendar says that it was done."""
    with collecting.Running(db) as collector:
        collector.fire("drill")
        [fire] = until(lambda: collecting.ended(db, "drill"), "the drill is over")
    assert (fire.state, fire.reason) == ("done", None)
    assert queries.proofs(db)[0].passed
    assert len(drills.accepted) == 1


def test_a_drill_is_held_for_who_asks(db, of, drills):
    """A page asks the collector for one, as the command holds it; one that a collector died over failed."""
    killed = writes.add_request(db, "proof", PAIR._asdict())
    assert writes.claim_request(db).id == killed
    asked = writes.add_request(db, "proof", PAIR._asdict())
    with collecting.Running(db):
        assert collecting.answered(db, asked).state == "done"
        assert collecting.answered(db, killed).error == DIED
    [receipt] = queries.proofs(db)
    assert receipt.passed
    assert len(drills.accepted) == 1


# The dead-man switch


def test_the_dead_man_hears_once_a_minute(db, watcher):
    """However often the collector ticks; and the record says when it was last answered."""
    now = [0.0]
    dead_man, url = DeadMan(db, lambda: now[0]), watcher.url
    for at in (0, 0.5, 59.9, 60, 119.9, 120, 179.9):
        now[0] = at
        dead_man.tick(url)
        dead_man.end()
    assert watcher.heard == ["/ping/s3cret"] * 3
    [beat] = queries.heartbeats(db)
    assert beat.name == "dead-man"


def test_a_dead_man_that_is_gone_harms_nothing(db, watcher):
    """It is told once an hour, without its address, and ticks wait for nothing."""
    now, watcher.status = [0.0], 503
    dead_man, url = DeadMan(db, lambda: now[0]), watcher.url
    for at in range(0, 3660, 600):
        now[0] = at
        dead_man.tick(url)
        dead_man.end()
    said = [event.message for event in queries.events(db)]
    assert len(watcher.heard) == 7
    assert len(said) == 2
    assert "503" in said[0]
    assert "s3cret" not in "".join(said)
    assert queries.heartbeats(db) == []


def test_a_dead_man_that_nobody_answers_for_is_told_without_its_address(db):
    """Whatever an address is wrong in, its own words are not repeated."""
    for url in ("http://127.0.0.1:1/ping/s3cret", "no address/s3cret"):
        dead_man = DeadMan(db)
        dead_man.tick(SecretStr(url))
        dead_man.end()
    said = [event.message for event in queries.events(db)]
    assert len(said) == 2
    assert "ConnectError" in said[1]
    assert "s3cret" not in "".join(said)


def test_no_dead_man_is_pinged_where_none_is_configured(db, watcher):
    """Without an address nothing happens."""
    dead_man = DeadMan(db)
    dead_man.tick(None)
    dead_man.end()
    assert watcher.heard == queries.events(db) == []


# The commands


def test_a_drill_on_command_says_what_it_came_to(ask, of, home, drills):
    """Its document has the four keys that are promised; exit 0 when it was delivered, 1 when it was not."""
    done = ask(home, "alerts", "proof", "--suite", "mine", "--backend", "key", "--json")
    told = json.loads(done.stdout)
    assert list(told) == ["detected", "confirmed", "delivered", "seconds"]
    assert told["detected"] is told["confirmed"] is told["delivered"] is True
    assert (done.returncode, len(drills.accepted)) == (0, 1)
    drills.answers = [Answer(404)]
    done = ask(home, "alerts", "proof", "--suite", "mine", "--backend", "key", "--json")
    assert json.loads(done.stdout)["delivered"] is False
    assert "404" in done.stderr
    assert done.returncode == 1


def test_a_failed_drill_on_command_is_told_before_it_ends(ask, of, home, drills, team):
    """Whether a collector leads or not, the other channels have heard of it."""
    drills.answers = [Answer(404)]
    ask(home, "alerts", "proof", "--suite", "mine", "--backend", "key")
    assert len(team.accepted) == 1


def test_a_drill_is_refused_where_it_could_prove_nothing(ask, of, home):
    """Without a channel for drills there is no answer; on a backend of the team's it is a wrong use."""
    asked = ("alerts", "proof", "--suite", "mine", "--json")
    assert ask(home, *asked, "--backend", "floor").returncode == 2
    text = (home / "memtrend.toml").read_text().replace("drills = true", "")
    (home / "memtrend.toml").write_text(text)
    done = ask(home, *asked, "--backend", "key")
    assert (done.returncode, done.stdout) == (3, "")
    assert "drills = true" in done.stderr


def test_a_test_on_command_uses_a_channel_again(db, ask, of, home, drills):
    """A channel that was disabled and takes a test is sent to again; one that refuses it says why."""
    drills.answers = [Answer(410)]
    held(db, of)
    assert list(queries.disabled_channels(db)) == ["drills"]
    done = ask(home, "alerts", "test", "drills", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told) == (0, {"channel": "drills", "sent": True, "status": 200, "error": None})
    assert queries.disabled_channels(db) == {}
    drills.answers = [Answer(403)]
    done = ask(home, "alerts", "test", "drills")
    assert (done.returncode, "403" in done.stderr) == (1, True)
    assert ask(home, "alerts", "test", "nobody").returncode == 2
