"""Runs that end are looked at for alerts, once each: from the record, with what is known beside them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from collectors import alerting, detection
from collectors.alerting import Alerting
from collectors.backend import BackendConfig
from collectors.configured import configured
from collectors.configured import plan as configured_plan
from collectors.detection import detect, detect_missed, worst_tags
from collectors.runner import run
from store import alert_words, queries, writes
from store.alert_life import mute
from tests.collectors import collecting
from tests.collectors.collecting import Running, answered, ask, told, until
from tests.collectors.odd_backends import ODD
from tests.collectors.playground import (
    LOSING,
    LOST,
    case,
    cases,
    plan,
    project,
    suite,
    write_suite,
)

pytestmark = pytest.mark.usefixtures("no_pauses")
SCHEDULED = '[schedules.nightly]\ncron = "0 3 * * *"\nsuites = ["small"]\nbackends = ["mine"]\n'


def configure(tmp_path, monkeypatch, more=""):
    config = LOSING.format(type="Shelf") + more
    project(tmp_path, config, cases(16))
    monkeypatch.chdir(tmp_path)
    return configured()


@pytest.fixture
def db(good_record):
    return good_record


@pytest.fixture
def nights(tmp_path, good, monkeypatch):
    """The settings, and the plan of the good nights in the record `db`."""
    return configure(tmp_path, monkeypatch, '[suites.small.confirm]\nafter = "0s"\n'), good[1]


def losing(plan, **fields):
    backend = BackendConfig("mine", plan.backend.type, {"lost": "r key opens"}, "wordllama", None)
    return replace(plan, backend=backend, **fields)


def states(db):
    return [row.incident.state for row in queries.alerts(db)]


def actions(db, alert_id=1):
    return [step.action for step in queries.alert_steps(db, alert_id)]


def test_a_suspected_fall(db, nights):
    """Two looks make a suspected alert, with the lost cases, how and among which tags they were lost, what
    changed since the last good run, and who has the suite; nobody is told of it yet."""
    of, plan = nights
    outcome = run(losing(plan, meta={"deploy": "4.12"}), db)
    detect(db, of)
    (row,) = queries.alerts(db)
    it = row.incident
    assert (it.state, it.told_at, it.kind.name) == ("suspected", None, "regression")
    assert (row.suite, row.backend, row.first_bad_run_id) == ("small", "mine", outcome.run_id)
    assert [*it.cases] == LOST
    assert it.context["failures"] == {"not stored": 3}
    assert it.context["tags"] == [["keys", 3, 16]]
    assert it.last_good_run_id == 6
    assert [one["sentence"] for one in it.suspects] == ["deploy 4.12 added"]
    assert actions(db) == ["suspected"]
    assert detect(db, of) == []


def test_the_worst_tags():
    """Those that most of the lost cases bear; what every case bears says nothing of where, and comes last."""
    tags = {"a": ["all", "x"], "b": ["all", "x"], "c": ["all", "y"], "d": ["all"]}
    cases = [SimpleNamespace(case=name, tags=borne) for name, borne in tags.items()]
    assert worst_tags(cases, {"a", "b", "c"}) == [["x", 2, 2], ["y", 1, 1], ["all", 3, 4]]


def test_a_third_look_tells(db, nights):
    """What the collector suspects it asks once more, when its time has come, and then it is an alarm: one
    step of each, and no look more."""
    with Running(db):
        answered(db, ask(db, suite="small", backend="mine"))
        until(lambda: states(db) == ["open"], "the third look makes it an alarm")
        (look,) = [row for row in queries.requests(db) if row.kind == "look"]
        assert answered(db, look.id).state == "done"
    assert actions(db) == ["suspected", "opened"]
    assert queries.verdict(db, 7).looks == 3
    assert queries.owed_looks(db) == []
    assert queries.undetected(db) == []


def test_a_third_look_that_costs_too_much(db, nights, tmp_path, monkeypatch):
    """It stays suspected, and says so, on the alert and as an event; once."""
    _, plan = nights
    run(losing(plan), db)
    of = configure(tmp_path, monkeypatch, '[suites.small.confirm]\nafter = "0s"\nmax_cost = 0.01\n')
    works = Alerting(db, 0)
    for minute in range(3):
        works.tick(of, datetime.now(UTC) + timedelta(minutes=2 * minute))
    (row,) = queries.alerts(db)
    assert row.incident.state == "suspected"
    said = alert_words.evidence(row.incident)
    assert "asking once more would cost about $0.05, more than max_cost = 0.01" in said, said
    assert len([event for event in queries.events(db) if "is not looked at again" in event.message]) == 1
    assert queries.requests(db) == []


def test_the_level_of_the_first_look(db, nights, tmp_path, monkeypatch):
    """What a suite asks for is what its runs are judged by, and is kept with the verdict."""
    of = configure(tmp_path, monkeypatch, "[suites.small.confirm]\nlevel = 0.01\n")
    confirm = configured_plan(of, "small", "mine").confirm
    assert confirm.level == 0.01
    outcome = run(replace(nights[1], confirm=confirm), db)
    assert queries.verdict(db, outcome.run_id).content["level"] == 0.01


def test_a_third_look_waits_for_its_time(db, nights, tmp_path, monkeypatch):
    """`confirm.after` the last look, and not before."""
    _, plan = nights
    run(losing(plan), db)
    of = configure(tmp_path, monkeypatch, '[suites.small.confirm]\nafter = "2h"\n')
    works, now = Alerting(db, 0), datetime.now(UTC)
    for minutes, asked in ((0, 0), (119, 0), (122, 1), (130, 1)):
        works.tick(of, now + timedelta(minutes=minutes))
        assert len(queries.requests(db)) == asked, minutes


def test_a_look_that_cannot_be_taken(db, nights, tmp_path):
    """Its suite has changed: the alert says so, an event too, and nobody asks again. What is no look at all
    is answered with what is wrong."""
    _, plan = nights
    run(losing(plan), db)
    write_suite(tmp_path / "small.jsonl", [*cases(15), case("other")])
    with Running(db):
        said = told(db, "is not looked at again")
        assert "no run 99" in answered(db, ask(db, "look", run=99)).error
        assert "run: " in answered(db, ask(db, "look", run="7; DROP")).error
        until(lambda: "untaken" in queries.alerts(db)[0].incident.context, "the alert says so")
    assert "suite small has changed since" in said.message
    assert (states(db), queries.owed_looks(db)) == (["suspected"], [])


def test_what_an_adapter_says_is_not_told(db, nights, tmp_path, monkeypatch):
    """Why a look is void it says in words of its own, which may hold a memory: they stay with the request,
    and neither the alert nor what is told of it has them."""
    _, plan = nights
    run(losing(plan), db)
    broken = LOSING.format(type="Broken") + '[suites.small.confirm]\nafter = "0s"\n'
    project(tmp_path, broken, cases(16))
    with Running(db):
        told(db, "run 7 is not looked at again")
        (request,) = queries.requests(db)
        assert "unknown key" in answered(db, request.id).error
    (of_the_fall,) = queries.alerts(db, kinds=["regression"])
    said = alert_words.evidence(of_the_fall.incident)
    assert f"request {request.id} on the page of runs says why" in said
    kept = [str(one) for one in (*queries.alerts(db), *queries.alert_steps(db, of_the_fall.id))]
    assert not any("unknown key" in one for one in kept)


def test_a_look_that_a_stop_ends_is_for_the_next(db, nights):
    """A claimed look of a collector that died is taken by the one after it."""
    of, plan = nights
    run(losing(plan), db)
    detect(db, of)
    assert writes.ask_for_look(db, 7)
    assert writes.claim_request(db).kind == "look"
    with Running(db):
        until(lambda: states(db) == ["open"], "the look is taken after all")


def test_a_run_that_fails(db, nights):
    """What changed since the last run that did not is suspected first: an upgrade takes a backend down as
    well as it makes it worse. Two good runs end it, and its metrics say nothing meanwhile."""
    of, plan = nights
    down = replace(plan, backend=BackendConfig("mine", f"{ODD}Refusing", {"word": "door"}, "wordllama", None))
    for deploy in ("4.12", "4.13"):
        assert run(replace(down, meta={"deploy": deploy}), db).status == "invalid"
        detect(db, of)
    it = queries.alerts(db)[0].incident
    assert (it.kind.name, it.state, it.last_good_run_id) == ("failing", "open", 6)
    assert "deploy 4.12 added" in [one["sentence"] for one in it.suspects]
    for _ in range(2):
        run(plan, db)
        detect(db, of)
    assert (states(db), actions(db)) == (["resolved"], ["opened", "resolved"])


def test_a_suspicion_that_a_look_takes_back(db, nights):
    """The run was lost once and not again: where both are over before anybody looks, it is a good run."""
    of, plan = nights
    moody = "tests.collectors.test_looks:Moody"
    run(replace(plan, backend=BackendConfig("mine", moody, {"run_id": 7}, "wordllama", None)), db)
    assert detect(db, of) == []


def test_a_bar_that_breaks(db, tmp_path, good, monkeypatch):
    """What the suite asks for is held against each whole run of it: a mean beyond it makes an alarm once the
    look breaks it too, while the fall itself waits for its third look."""
    of = configure(tmp_path, monkeypatch, "[suites.small.bars]\npass = 0.9\n")
    run(losing(good[1]), db)
    detect(db, of)
    (row,) = queries.alerts(db)
    assert (row.incident.kind.name, actions(db)) == ("threshold", ["suspected", "opened"])
    kinds = {one.key.kind: one.standing for one in row.incident.standing}
    assert kinds == {"threshold": "sure", "regression": "suspected"}


def test_what_alerts_are_not_for(db, nights):
    """Runs of a part of the suite, and gates, which hold what is not in force, are only ticked off."""
    of, plan = nights
    run(losing(plan, subset="keys"), db)
    run(losing(plan, trigger=queries.GATE), db)
    assert detect(db, of) == []
    assert (queries.undetected(db), states(db)) == ([], [])


def test_a_suite_of_which_nothing_applies_is_no_failure(db, tmp_path, monkeypatch):
    """Its runs are void for that reason, night by night, and nothing is wrong."""
    of = configure(tmp_path, monkeypatch)
    by_id = case("amber", expect_any=[], expect_ids=["i"], writes=[{"id": "i", "text": "amber"}])
    assert run(plan(suite(tmp_path, [by_id]), "Bare"), db).status == "void"
    assert detect(db, of) == []


def test_missed_schedules(db, tmp_path, monkeypatch):
    """What did not run is one alert, written once, which the next run ends."""
    of = configure(tmp_path, monkeypatch, SCHEDULED)
    now = datetime.now(UTC)
    writes.record_schedule(db, "nightly", now, enabled=True)
    assert detect_missed(db, of, now) == []
    collecting.expect(db, "nightly", now - timedelta(days=2), now - timedelta(days=1))
    (turned,) = detect_missed(db, of, now)
    assert alert_words.title(turned.incident) == "Schedule nightly did not run"
    assert "It should have run 2 times" in alert_words.evidence(turned.incident)
    assert detect_missed(db, of, now) == []
    late = now - timedelta(days=1)
    assert writes.claim_fire(db, "nightly", late, 0)
    writes.start_fire(db, "nightly", late, 0, late=True)
    writes.finish_fire(db, "nightly", late, "done", None, 0)
    detect_missed(db, of, now)
    assert states(db) == ["resolved"]


def test_a_mute_ends(db, nights):
    """When its time is over, the alert is heard again, and the timeline says so."""
    of, plan = nights
    run(losing(plan), db)
    works, now = Alerting(db, 0), datetime.now(UTC)
    works.tick(of, now)
    writes.act_on_alert(db, 1, lambda it: mute(it, now + timedelta(hours=2), now, "ann"))
    for hours in (1, 3, 5):
        works.tick(of, now + timedelta(hours=hours))
    assert actions(db) == ["suspected", "muted", "unmuted"]


def test_a_fault_in_one_run_leaves_the_others(db, nights, monkeypatch):
    """It is told once, and the next run is looked at all the same."""
    of, plan = nights
    run(plan, db)
    run(losing(plan), db)
    real = detection.seen_in

    def faulty(db, settings, run_id):
        if run_id == 7:
            raise RuntimeError("a fault of ours")
        return real(db, settings, run_id)

    monkeypatch.setattr(detection, "seen_in", faulty)
    works = Alerting(db, 0)
    for _ in range(2):
        works.tick(of, datetime.now(UTC))
    assert states(db) == ["suspected"]
    assert queries.undetected(db) == [7]
    said = [event.message for event in queries.events(db) if event.level == "error"]
    assert said == ["run 7 could not be looked at for alerts: RuntimeError"]


def test_a_fault_in_what_time_brings_leaves_the_rest(db, nights, monkeypatch):
    """It is told once, and neither ends the collector nor keeps a third look from being asked for."""
    of, plan = nights
    run(losing(plan), db)

    def faulty(*_):
        raise KeyError("a fault of ours")

    monkeypatch.setattr(alerting, "remind", faulty)
    works, now = Alerting(db, 0), datetime.now(UTC)
    for minutes in (0, 2):
        works.tick(of, now + timedelta(minutes=minutes))
    assert [request.kind for request in queries.requests(db)] == ["look"]
    said = [event.message for event in queries.events(db) if event.level == "error"]
    assert said == ["alerts: reminders could not be seen to: KeyError"]
