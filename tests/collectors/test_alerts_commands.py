"""`memtrend alerts`: listed, shown, acted on with who and why; and that a run tells of one at once."""

import json
import re
import shutil
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from collectors.commands import author
from collectors.runner import run
from store import models as m
from store import queries, writes
from store.alert_life import Facts, acknowledge, advance, close
from store.database import NOW
from store.sightings import Key, Sighting
from tests.collectors.playground import CONFIG, LINES, one_document, opened, plan, project, suite
from tests.collectors.slack_server import Answer, running

FIXED = {"id", "kind", "state", "backend", "suite", "opened_at", "cases", "suspects"}
SUSPECT = {"name": "mem0ai", "old": "1.0.5", "new": "1.0.6", "sentence": "mem0ai 1.0.5 → 1.0.6"}


@pytest.fixture
def folder(tmp_path):
    return project(tmp_path, CONFIG, LINES)


@pytest.fixture
def told(folder, ask):
    """The document of a command, and its exit code."""

    def call(*arguments, code=0):
        ran = ask(folder, "alerts", *arguments, "--json")
        assert ran.returncode == code, ran.stderr
        return one_document(ran)

    return call


@pytest.fixture
def refused(folder, ask):
    """What a command says that does nothing: its exit code and its words."""

    def call(*arguments):
        ran = ask(folder, "alerts", *arguments)
        assert ran.stdout == ""
        return ran.returncode, ran.stderr

    return call


@pytest.fixture(scope="module")
def alarmed(tmp_path_factory):
    """A record with a regression of a run that there is, and a schedule that was missed."""
    folder = tmp_path_factory.mktemp("alarmed")
    with closing(opened(folder)) as db:
        assert run(plan(suite(folder, LINES), name="shelf"), db).status == "whole"
        content = {
            "difference": None,
            "verdict": "worse",
            "stage": "confirmed",
            "looks": [],
            "reason": "asked",
        }
        key = Key("regression", "small", "shelf")
        seen = [Sighting(key, "sure", 0.1, ("case-basil",), content)]
        facts = Facts(datetime.now(UTC), 1, suspects=[SUSPECT])
        writes.turn_alerts(db, lambda known: advance(known, seen, facts))
        late = [
            Sighting(Key("missed", "", "", "nightly"), "sure", 1.0, content={"times": ["2026-03-01T03:00Z"]})
        ]
        writes.turn_alerts(db, lambda known: advance(known, late, Facts(datetime.now(UTC))))
    return folder / "record.db"


@pytest.fixture
def one(alarmed, folder):
    """A copy for each test."""
    shutil.copy(alarmed, folder / "record.db")


def test_the_list(told, one):
    """Every alert that stands has the fields that scripts rely on; what is over is listed on demand."""
    missed, regression = told("list")["alerts"]
    assert regression.keys() >= FIXED
    assert (regression["id"], regression["kind"], regression["state"]) == (1, "regression", "open")
    assert (regression["backend"], regression["suite"]) == ("shelf", "small")
    assert regression["cases"] == ["case-basil"]
    assert regression["suspects"] == [{"name": "mem0ai", "old": "1.0.5", "new": "1.0.6"}]
    assert datetime.fromisoformat(regression["opened_at"]).tzinfo
    assert (missed["kind"], missed["backend"], missed["suite"]) == ("missed", None, None)
    told("resolve", "2", "--reason", "the disk was full")
    assert [row["id"] for row in told("list")["alerts"]] == [1]
    assert [row["state"] for row in told("list", "--all")["alerts"]] == ["open", "resolved"]


@pytest.mark.parametrize(
    ("narrowed", "ids"),
    [
        (["--kind", "missed"], [2]), (["--backend", "shelf"], [1]), (["--suite", "small"], [1]),
        (["--state", "open"], [2, 1]), (["--state", "resolved"], []), (["--backend", "bare"], []),
    ],
)  # fmt: skip
def test_the_list_narrowed(told, one, narrowed, ids):
    """By state, kind, backend and suite."""
    assert [row["id"] for row in told("list", *narrowed)["alerts"]] == ids


@pytest.mark.parametrize("option", ["--backend", "--suite", "--state", "--kind"])
def test_a_name_that_nobody_knows_is_no_empty_list(folder, ask, option):
    """A misspelt name is refused with the known ones, or "no alert" would be read as good news."""
    ran = ask(folder, "alerts", "list", option, "gloden")
    assert ran.returncode == 2
    assert "gloden" in ran.stderr
    assert "known: " in ran.stderr


def test_an_empty_list(told, folder, ask):
    """A record without an alert says so, and is fine."""
    assert told("list") == {"alerts": []}
    assert ask(folder, "alerts", "list").stdout == "no alert\n"


def test_what_a_person_reads(folder, ask, one):
    """The list and the alert in words: what is wrong, why, what is suspected, and what to do next."""
    assert "shelf on small got worse" in ask(folder, "alerts", "list").stdout
    ran = ask(folder, "alerts", "show", "1")
    for part in ("alert 1: shelf on small got worse", "Asked.", "cases: case-basil", "mem0ai 1.0.5 → 1.0.6"):
        assert part in ran.stdout
    assert "memtrend: opened" in ran.stdout
    assert "memtrend alerts ack 1" in ran.stderr


def test_who_was_told_of_what(folder, ask, told, one):
    """Each message says what it told of and when, in the order of the story; who had what is over, has it no
    more, and nothing of it is muted."""

    def to_team(incident, step, step_id):
        return [writes.NewDelivery(f"step {step_id}", "team", "update", {})]

    told("mute", "2", "--for", "8h")
    with closing(opened(folder)) as db:
        writes.act_on_alert(db, 2, lambda it: acknowledge(it, "ann"), to_team)
        standing = ask(folder, "alerts", "show", "2").stdout
        writes.act_on_alert(db, 2, lambda it: close(it, "resolved", "ann", "mended"), to_team)
    assert ("muted until" in standing, "ann has it" in standing) == (True, True)
    shown = ask(folder, "alerts", "show", "2").stdout
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
    assert re.findall(rf"^  message to team, (\w+): queued {when}$", shown, re.M) == [
        "acknowledged",
        "resolved",
    ]
    assert re.search(rf"^  {when} ann: resolved: mended$", shown, re.M)
    assert ("muted until" in shown, "it was ann's" in shown) == (False, True)
    assert "muted" not in ask(folder, "alerts", "list", "--all").stdout


def test_who_has_it(told, one):
    """An acknowledgement bears the name of who gave the command, and the reason."""
    found = told("ack", "1", "--reason", "mine")
    assert (found["state"], found["acknowledged_by"]) == ("acknowledged", author())
    step = found["steps"][-1]
    assert (step["action"], step["author"], step["reason"]) == ("acknowledged", author(), "mine")
    assert told("show", "1") == found


def test_mute(told, refused, one):
    """For a while, or until a time; one of the two, and it lies ahead."""
    until = datetime.fromisoformat(told("mute", "1", "--for", "8h")["muted_until"])
    assert timedelta(hours=7) < until - datetime.now(UTC) <= timedelta(hours=8)
    assert told("mute", "1", "--until", "2100-01-01T00:00+00:00")["muted_until"] == "2100-01-01T00:00:00Z"
    for wrong, part in (
        ([], "say until when"),
        (["--for", "8h", "--until", "2100-01-01"], "say until when"),
        (["--for", "tomorrow"], "should be such as"),
        (["--for", "99999999999999d"], "should be such as"),
        (["--until", "2001-01-01"], "that is past"),
    ):
        code, said = refused("mute", "1", *wrong)
        assert (code, part in said) == (2, True), said


def test_a_mute_is_lifted(told, refused, one):
    """By hand, under the name of who did it; what is not muted has nothing to lift."""
    told("mute", "1", "--for", "8h")
    found = told("unmute", "1")
    assert found["muted_until"] is None
    assert (found["steps"][-1]["action"], found["steps"][-1]["author"]) == ("unmuted", author())
    assert refused("unmute", "1") == (2, "memtrend: alert 1: it is not muted\n")


def test_what_was_meant_begins_the_baseline(told, folder, one):
    """It is over, and later runs are held against the run that showed it."""
    assert told("intended", "1", "--reason", "the new ranking")["state"] == "intended"
    with closing(opened(folder)) as db:
        (decision,) = queries.baseline_decisions(db, "small", "shelf")
    assert (decision.action, decision.run_ids, decision.reason) == ("intended", (1,), "the new ranking")
    assert decision.author == author()


def test_a_baseline_begun_anew_closes_the_alert(told, folder, ask, one):
    """`baseline intended` says the same of it."""
    assert ask(folder, "baseline", "intended", "1", "--reason", "the new ranking").returncode == 0
    assert told("show", "1")["state"] == "intended"


def test_right_or_wrong(told, one):
    """What people make of an alarm is kept, also of one that is over."""
    assert told("real", "1")["judged"] == "real"
    assert told("noise", "2", "--reason", "the clock was set")["judged"] == "noise"


@pytest.mark.parametrize("command", ["resolve", "intended", "noise"])
def test_a_reason_is_asked_for(refused, one, command):
    """Neither left out nor blank."""
    assert refused(command, "1")[0] == 2
    code, said = refused(command, "1", "--reason", " ")
    assert (code, "say why" in said) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["show", "99"], 3, "no alert 99; memtrend alerts list"),
        (["ack", "99"], 3, "no alert 99"),
        (["show", "9" * 20], 3, f"no alert {'9' * 20}; memtrend alerts list"),
        (["list", "--state", "shut"], 2, "unknown state 'shut'; known: suspicion"),
        (["list", "--kind", "worse"], 2, "unknown kind 'worse'; known: critical"),
        (["test", "team"], 2, "unknown channel 'team'; none is configured"),
    ],
)
def test_what_is_not_there(refused, one, arguments, code, part):
    """It is said what there is."""
    found, said = refused(*arguments)
    assert (found, part in said) == (code, True), said


def test_what_is_over_is_left_alone(told, refused, one):
    """A second decision about it is refused, and changes nothing."""
    told("resolve", "1", "--reason", "mended")
    code, said = refused("ack", "1")
    assert (code, "it is resolved already" in said) == (2, True)


BROKEN = """
class Broken:
    def write(self, text):
        raise OSError("no disk")
    def search(self, query, k):
        return []
"""


def test_a_run_tells_of_an_alert_at_once(tmp_path, ask, monkeypatch):
    """Where no collector leads, the command that made the run looks for alerts, and says what it opened."""
    (tmp_path / "broken.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    config = CONFIG + '[backends.broken]\ntype = "broken:Broken"\n'
    folder = project(tmp_path, config, LINES)
    ran = ask(folder, "run", "--backend", "broken", "--suite", "small")
    assert "alert 1: broken on small could not be measured; memtrend alerts show 1" in ran.stderr
    (alert,) = json.loads(ask(folder, "alerts", "list", "--json").stdout)["alerts"]
    assert (alert["kind"], alert["state"]) == ("failing", "open")
    assert "alert" not in ask(folder, "run", "--backend", "broken", "--suite", "small").stderr


def test_a_run_tells_the_channels(tmp_path, ask, monkeypatch):
    """Where no collector leads, the command sends what is to be told, and what waits from before: nobody else
    would."""
    (tmp_path / "broken.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    with running() as slack:
        slack.answers = [Answer(500)]
        channel = f'[channels.team]\ntype = "slack"\nurl = "{slack.url}"\n'
        folder = project(tmp_path, f'{CONFIG}[backends.broken]\ntype = "broken:Broken"\n{channel}', LINES)
        ask(folder, "run", "--backend", "broken", "--suite", "small")
        assert (len(slack.posts), slack.accepted) == (1, [])
        with closing(opened(folder)) as db, db.write() as connection:
            connection.execute(m.delivery.update().values(due=NOW))
        ask(folder, "run", "--backend", "shelf", "--suite", "small")
        assert ["could not be measured" in post.told["text"] for post in slack.accepted] == [True]


def test_a_run_leaves_alerts_to_the_collector_that_leads(folder, ask):
    """Which looks within a second, and sends."""
    with closing(opened(folder)) as db:
        writes.acquire_lease(db, writes.LEADER_LEASE, "host:1", 60)
        writes.send_later(db, [writes.a_test("team")])
        with running() as slack:
            with (folder / "memtrend.toml").open("a") as file:
                file.write(f'[channels.team]\ntype = "slack"\nurl = "{slack.url}"\n')
            ask(folder, "run", "--backend", "shelf", "--suite", "small")
            assert (queries.undetected(db), slack.posts) == ([1], [])
