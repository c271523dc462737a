"""Alerts in the record: kept whole with what is to be told of them, decided once, whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest

from store import models as m
from store import queries, retention, writes
from store.alert_life import Facts, Incident, Step, Turned, acknowledge, advance, judge, mute, unmute
from store.database import Database, open_database
from store.errors import StoreError
from store.records import CaseRecord, SuiteRecord, VerdictEntry
from store.sections import RetentionSection
from store.sightings import Key, Sighting, Standing
from tests.store.processes import PROCESSES
from tests.store.seeding import START, Seed, outcome, scenario
from tests.store.told import LOOKS, worse

REGRESSION = Key("regression", "golden", "keyword")
SOON = timedelta(hours=2)


def sighting(standing: Standing = "sure", key: Key = REGRESSION, depth: float = 0.1, **more: Any) -> Sighting:
    return Sighting(key, standing, depth, cases=("a", "b"), content={"difference": None, **more})


def see(db: Database, *seen: Sighting, run_id: int | None = None, **facts: Any) -> list[Turned]:
    told = Facts(datetime.now(UTC), run_id, **facts)
    return writes.turn_alerts(db, lambda known: advance(known, seen, told), to_team)


def to_team(incident: Incident, step: Step, step_id: int) -> Iterable[writes.NewDelivery]:
    key = f"alert {incident.id} step {step_id} channel team"
    yield writes.NewDelivery(key, "team", "alert", {"action": step.action})


def actions(db: Database, alert_id: int = 1) -> list[tuple[str, str]]:
    return [(step.action, step.author) for step in queries.alert_steps(db, alert_id)]


@pytest.fixture
def night(seed: Seed) -> int:
    """A run of today."""
    return seed.run(seed.suite(), ["a"])


@pytest.fixture
def opened(db: Database, night: int) -> int:
    """An alert of that run that was told."""
    (turned,) = see(db, sighting(), run_id=night)
    assert turned.incident.id is not None
    return turned.incident.id


# Kept


def test_it_comes_back_as_it_was_put_in(db: Database, night: int) -> None:
    """All that the next night's decision needs."""
    (turned,) = see(
        db, sighting(now=0.5), run_id=night, suspect="mem0ai: 1 -> 2", shared=True, context={"cases": 4},
        last_good_run_id=night, tags={"a": ["keys"]}, owner="team",
    )  # fmt: skip
    row = queries.alert(db, 1)
    assert row is not None
    (signal,) = row.incident.signals
    assert row.incident._replace(signals=()) == turned.incident._replace(signals=())
    assert signal._replace(id=None) == turned.incident.signals[0]
    assert (row.suite, row.backend, row.first_bad_run_id, row.closed_at) == ("golden", "keyword", night, None)
    assert [one.key for one in queries.open_signals(db, "regression")] == [REGRESSION]


def test_a_step_and_its_messages_are_written_together(db: Database, opened: int) -> None:
    """Whoever sees the step sees what is to be told of it, once."""
    assert actions(db) == [("opened", "memtrend")]
    (delivery,) = queries.deliveries(db, alert_id=opened)
    (step,) = queries.alert_steps(db, opened)
    assert (delivery.key, delivery.state) == (f"alert {opened} step {step.id} channel team", "queued")
    assert delivery.payload == {"action": "opened"}


def test_what_cannot_be_routed_is_not_kept(db: Database, night: int, count: Callable[[str], int]) -> None:
    """A fault between the alert and its messages leaves neither, and the run is looked at again."""

    def broken(*told: object) -> Iterable[writes.NewDelivery]:
        raise RuntimeError("a fault")

    def decide(known: Sequence[Incident]) -> list[Turned]:
        return advance(known, [sighting()], Facts(START, night))

    with pytest.raises(RuntimeError):
        writes.turn_alerts(db, decide, broken, run_id=night)
    assert [count(table) for table in ("alert", "alert_signal", "alert_step", "delivery")] == [0] * 4
    assert queries.undetected(db) == [night]


def test_a_run_is_looked_at_once(db: Database, night: int) -> None:
    """Whoever comes second changes nothing, though it had decided otherwise."""

    def looked(depth: float) -> list[Turned]:
        seen, facts = [sighting(depth=depth)], Facts(START, night)
        return writes.turn_alerts(db, lambda known: advance(known, seen, facts), run_id=night)

    first, second = looked(0.1), looked(0.5)
    assert (len(first), second, queries.undetected(db)) == (1, [], [])


def test_only_runs_that_have_ended_are_looked_at(db: Database, seed: Seed) -> None:
    """In the order of their ends; neither what goes on nor what was interrupted."""
    version = seed.suite()
    going_on, token = seed.open(version, "slow")
    interrupted = seed.run(version, ["a"], backend="other", status="interrupted")
    ended = [seed.run(version, ["a"], backend=name) for name in ("one", "two")]
    assert queries.undetected(db) == ended
    seed.close(going_on, token, "slow")
    assert queries.undetected(db) == [*ended, going_on]
    assert interrupted not in queries.undetected(db)


def _look(url: str, run_id: int, ready: Barrier, found: Queue[int]) -> None:
    db = open_database(url)

    def decide(known: Sequence[Incident]) -> list[Turned]:
        return advance(known, [sighting()], Facts(START, run_id))

    ready.wait(60)
    found.put(len(writes.turn_alerts(db, decide, to_team, run_id=run_id)))


@pytest.mark.timeout(120)
def test_two_processes_look_at_one_run(
    db: Database, url: str, night: int, count: Callable[[str], int]
) -> None:
    """At the same moment: one alert, one step, one message."""
    ready, found = PROCESSES.Barrier(3), PROCESSES.Queue()
    both = [PROCESSES.Process(target=_look, args=(url, night, ready, found)) for _ in range(2)]
    for process in both:
        process.start()
    ready.wait(60)
    for process in both:
        process.join(60)
    assert sorted(found.get(timeout=5) for _ in both) == [0, 1]
    assert [count(table) for table in ("alert", "alert_signal", "alert_step", "delivery")] == [1] * 4


def test_what_is_over_stays_and_the_next_is_another(db: Database, opened: int) -> None:
    """A fall after a resolution is a new alert; of a series one signal at most is open."""
    for _ in range(2):
        see(db, sighting("clear"))
    row = queries.alert(db, opened)
    assert row is not None
    assert (row.incident.state, row.closed_at is not None) == ("resolved", True)
    see(db, sighting())
    assert [one.id for one in queries.alerts(db)] == [2, 1]
    assert queries.count_alerts(db) == {"open": 1, "resolved": 1}
    assert len(queries.open_signals(db, "regression")) == 1


def test_a_drill_of_a_series_whose_alert_is_open(db: Database, opened: int) -> None:
    """Both are kept, and each goes on by itself."""
    assert see(db, sighting(), drill=True)[0].incident.id == opened + 1
    see(db, sighting("clear"))
    see(db, sighting("clear"))
    assert queries.count_alerts(db) == {"resolved": 1}
    assert [row.incident.state for row in queries.alerts(db, drills=True)] == ["open"]


HOSTILE = 'x"; DROP TABLE alert; --<!channel> & <b>\u202e  '


def test_hostile_names_are_kept_as_text(db: Database, seed: Seed) -> None:
    """A backend, a suite, a case and a reason may say anything, and come back as they were."""
    record = SuiteRecord(HOSTILE, "golden", "own", "1", 1, (CaseRecord(HOSTILE, "1", "what?"),))
    writes.register_suite(db, record)
    seed.backend(HOSTILE)
    see(db, Sighting(Key("regression", HOSTILE, HOSTILE, HOSTILE), "sure", 0.1, (HOSTILE,)))
    writes.act_on_alert(db, 1, lambda it: acknowledge(it, HOSTILE, HOSTILE))
    row = queries.alert(db, 1)
    assert row is not None
    assert (row.suite, row.backend, row.incident.cases) == (HOSTILE, HOSTILE, (HOSTILE,))
    step = queries.alert_steps(db, 1)[-1]
    assert (step.author, step.reason) == (HOSTILE, HOSTILE)
    assert [one.id for one in queries.alerts(db, suite=HOSTILE, backend=HOSTILE)] == [1]


# Asked for


def test_alerts_are_asked_for_by_what_they_are_of(db: Database, night: int) -> None:
    """By state, kind, suite, backend, owner and run; drills apart."""
    see(db, sighting(), run_id=night, owner="team")
    see(db, Sighting(Key("missed", "", "", "nightly"), "sure", 1.0))
    see(db, sighting(key=Key("leak", "golden", "zep")), drill=True)
    assert [row.id for row in queries.alerts(db, kinds=["missed"])] == [2]
    assert [row.id for row in queries.alerts(db, suite="golden")] == [1]
    assert [row.id for row in queries.alerts(db, backend="keyword", run_id=night)] == [1]
    assert [row.id for row in queries.alerts(db, owner="team")] == [1]
    assert queries.alerts(db, states=["resolved"]) == []
    assert [row.id for row in queries.alerts(db, drills=True)] == [3]
    assert [row.id for row in queries.alerts(db, limit=1)] == [2]
    assert queries.alert(db, 99) is None
    assert queries.alert_owners(db) == ["default", "team"]


def test_who_has_what_stands(db: Database, opened: int) -> None:
    """State and holder of each, drills and what is over left out."""
    see(db, sighting(key=Key("leak", "golden", "zep")), drill=True)
    see(db, sighting("suspicion", key=Key("slower", "own", "zep", "recall_ms")))
    writes.act_on_alert(db, opened, lambda it: acknowledge(it, "ann"))
    assert sorted(queries.holders(db)) == [("acknowledged", "ann"), ("suspicion", None)]


def test_what_was_closed_since(db: Database) -> None:
    """Of that kind and about that alone; neither what stands, nor what was closed before."""
    before = datetime.now(UTC) - SOON
    see(db, *(Sighting(Key("missed", "", "", name), "sure", 1.0) for name in ("nightly", "hourly")))
    assert not queries.was_closed(db, "missed", before, "nightly")
    see(db, *(Sighting(Key("missed", "", "", name), "clear") for name in ("nightly", "hourly")))
    assert queries.was_closed(db, "missed", before, "nightly")
    assert not queries.was_closed(db, "missed", before, "weekly")
    assert not queries.was_closed(db, "proof", before)
    assert not queries.was_closed(db, "missed", before + 2 * SOON, "nightly")


# What people do


def test_who_did_what_and_why(db: Database, opened: int) -> None:
    """Each act is a step with its author and reason; a secret in a reason is not kept."""
    writes.act_on_alert(db, opened, lambda it: acknowledge(it, "ann", "mine"), to_team)
    until = datetime.now(UTC) + SOON
    writes.act_on_alert(db, opened, lambda it: mute(it, until, datetime.now(UTC), "ann"), to_team)
    writes.act_on_alert(db, opened, lambda it: judge(it, "noise", "ben", "api_key=sk-abcdefghijklmnop12345"))
    assert actions(db) == [
        ("opened", "memtrend"), ("acknowledged", "ann"), ("muted", "ann"), ("judged", "ben"),
    ]  # fmt: skip
    assert "abcdefghijklmnop" not in str(queries.alert_steps(db, opened)[-1].reason)
    row = queries.alert(db, opened)
    assert row is not None
    assert (row.incident.acknowledged_by, row.incident.judged) == ("ann", "noise")
    assert row.incident.muted_until == until
    assert (queries.judged(db).noise, queries.judged(db, until).noise) == (1, 0)


def test_what_cannot_be_done_is_refused(db: Database, opened: int) -> None:
    """An alert that is not there, and one that is over; nothing is written."""
    with pytest.raises(StoreError, match="no alert 99; memtrend alerts list"):
        writes.act_on_alert(db, 99, lambda it: acknowledge(it, "ann"))
    for _ in range(2):
        see(db, sighting("clear"))
    with pytest.raises(StoreError, match=f"alert {opened}: it is resolved already"):
        writes.act_on_alert(db, opened, lambda it: acknowledge(it, "ann"))
    assert [action for action, _ in actions(db)] == ["opened", "resolved"]


def test_what_a_page_does_is_routed_later(db: Database, opened: int) -> None:
    """Who does not know the channels leaves it to the collector, which puts it to them once."""
    writes.act_on_alert(db, opened, lambda it: acknowledge(it, "ann"))
    assert len(queries.deliveries(db)) == 1
    assert writes.route_people(db, to_team) == 1
    assert writes.route_people(db, to_team) == 0
    assert [one.payload["action"] for one in queries.deliveries(db)] == ["acknowledged", "opened"]


def test_an_intended_change_begins_the_baseline_anew(
    db: Database, seed: Seed, opened: int, night: int
) -> None:
    """In one act, with the reason: the alert is over, and the series begins with the run that showed it."""
    writes.intend_alert(db, opened, "ann", "the new ranking", to_team)
    assert actions(db)[-1] == ("intended", "ann")
    (decision,) = queries.baseline_decisions(db, "golden", "keyword")
    assert (decision.action, decision.run_ids, decision.author) == ("intended", (night,), "ann")
    assert decision.reason == "the new ranking"
    with pytest.raises(StoreError, match="it is intended already"):
        writes.intend_alert(db, opened, "ann", "again")
    assert len(queries.baseline_decisions(db, "golden", "keyword")) == 1


@pytest.mark.parametrize(("reason", "kind"), [("", "regression"), ("the new bar", "threshold")])
def test_an_intended_change_that_is_none(db: Database, night: int, reason: str, kind: str) -> None:
    """Without a reason, and where nothing is held against a baseline, neither is done."""
    see(db, sighting(key=Key(kind, "golden", "keyword", "pass")), run_id=night)
    with pytest.raises(StoreError, match=r"say why|nothing in it is held against a baseline"):
        writes.intend_alert(db, 1, "ann", reason)
    assert [row.incident.state for row in queries.alerts(db)] == ["open"]
    assert queries.baseline_decisions(db, "golden", "keyword") == []


@pytest.mark.parametrize("action", ["intended", "reset"])
def test_a_decision_about_the_baseline_closes_the_alert(
    db: Database, opened: int, night: int, action: Any
) -> None:
    """Whoever decides it elsewhere has said of the alert that it was meant; it is told when it is routed."""
    runs = [night] if action == "intended" else []
    writes.decide_baseline(db, "golden", "keyword", action, runs, "the new ranking", "ann")
    row = queries.alert(db, opened)
    assert row is not None
    assert (row.incident.state, actions(db)[-1]) == ("intended", ("intended", "ann"))
    assert writes.route_people(db, to_team) == 1


def test_other_decisions_leave_alerts_alone(db: Database, opened: int, night: int) -> None:
    """A pin says nothing of what fell since."""
    writes.decide_baseline(db, "golden", "keyword", "pin", [night], "release 4", "ann")
    assert [row.incident.state for row in queries.alerts(db)] == ["open"]


def test_a_renamed_backend_keeps_its_alerts(db: Database, opened: int) -> None:
    """They go on under the new name, and the next night of it is put to them."""
    writes.rename_backend(db, "keyword", "found", "ann")
    assert see(db, sighting(key=REGRESSION._replace(backend="found")))[0].incident.id == opened
    row = queries.alert(db, opened)
    assert row is not None
    assert (row.backend, row.incident.signals[0].key.backend) == ("found", "found")


# What is waited for


def suspected(db: Database, seed: Seed, *, stage: str = "suspected", depth: float = 0.1) -> tuple[int, int]:
    """A run of which something is suspected, and the look that was taken at once."""
    version = seed.suite()
    run_id = seed.run(version, ["a"], day=1)
    look = seed.run(version, ["a"], subset=queries.CONFIRM, trigger=queries.look_trigger(run_id))
    told = worse(stage, depth, lost=("a", "b", *(("c",) if depth > 0.1 else ())))
    told["looks"][-1]["run_id"] = look
    writes.record_verdict(db, VerdictEntry(run_id, LOOKS[stage], "worse", stage, False, False, told))
    see(db, sighting("suspected"), run_id=run_id)
    return run_id, look


def test_a_third_look_is_owed(db: Database, seed: Seed) -> None:
    """From the end of the second one on, with what that cost, until somebody asks for it: once."""
    run_id, look = suspected(db, seed)
    (owed,) = queries.owed_looks(db)
    assert (owed.run_id, owed.suite, owed.backend) == (run_id, "golden", "keyword")
    assert owed.ended_at == queries.runs(db, ids=[look])[0].finished_at
    assert owed.cost == pytest.approx(0.5)
    assert writes.ask_for_look(db, run_id)
    assert not writes.ask_for_look(db, run_id)
    assert queries.owed_looks(db) == []
    (request,) = queries.requests(db)
    assert (request.kind, request.payload, request.state) == ("look", {"run": run_id}, "queued")


def test_a_look_is_owed_of_the_first_run(db: Database, seed: Seed) -> None:
    """Where a schedule fires more often than a third look is waited for, newer runs that show the same put
    it off no further; once it was asked for, and did not settle it, the newest is."""
    first, _ = suspected(db, seed)
    second, _ = suspected(db, seed)
    assert [owed.run_id for owed in queries.owed_looks(db)] == [first]
    assert writes.ask_for_look(db, first)
    assert [owed.run_id for owed in queries.owed_looks(db)] == [second]


def test_a_look_is_owed_of_what_fell_further(db: Database, seed: Seed, opened: int) -> None:
    """What was told and seems to be worse by now is asked once more, or nobody would hear of it; what is as
    bad as it was is not."""
    suspected(db, seed)
    assert queries.owed_looks(db) == []
    deeper, _ = suspected(db, seed, depth=0.3)
    assert [(owed.run_id, owed.alert_id) for owed in queries.owed_looks(db)] == [(deeper, opened)]


def test_no_look_is_owed_of_what_needs_none(db: Database, seed: Seed) -> None:
    """What is sure, what came to nothing, and what was looked at three times."""
    run_id, _ = suspected(db, seed, stage="confirmed")
    assert queries.owed_looks(db) == []
    see(db, sighting("clear"), run_id=run_id)
    suspected(db, seed)
    see(db, sighting())
    assert queries.owed_looks(db) == []


def test_a_deposed_collector_asks_for_no_look(db: Database, seed: Seed) -> None:
    """Another leads: nothing is written."""
    run_id, _ = suspected(db, seed)
    writes.acquire_lease(db, writes.LEADER_LEASE, "other", 60)
    with pytest.raises(StoreError, match="another collector has taken over"):
        writes.ask_for_look(db, run_id, 7)
    assert queries.requests(db) == []


def test_a_mute_that_has_ended(db: Database, opened: int) -> None:
    """It is seen from its time on, while the alert stands."""
    until = datetime.now(UTC) + SOON
    assert not queries.muted_over(db, until + SOON)
    writes.act_on_alert(db, opened, lambda it: mute(it, until, datetime.now(UTC), "ann"))
    assert [queries.muted_over(db, at) for at in (until - SOON, until, until + SOON)] == [False, True, True]
    writes.act_on_alert(db, opened, unmute)
    assert not queries.muted_over(db, until + SOON)


def test_the_census_of_an_index(db: Database, seed: Seed) -> None:
    """What each leg held and should hold, and by how much less is no news; nothing of another suite."""
    story = {"expectations": [{"kind": "count", "tolerance": 0.05}]}
    case = CaseRecord("count/vector", "1", "how many?", story=story)
    version = writes.register_suite(db, SuiteRecord("index", "index-health", "own", "1", 1, (case,)))
    run_id, token = seed.open(version)
    detail = {"census": {"counted": {"vector": 90}, "expected": {"vector": 100}}}
    counted = replace(outcome("count/vector"), scores={"pass": 0.0, "leg_count": 0.9}, detail=detail)
    writes.save_scenario(db, run_id, scenario([counted]), token)
    seed.close(run_id, token)
    assert queries.census(db, run_id) == ({"vector": (90, 100)}, 0.05)
    assert queries.census(db, seed.run(seed.suite(), ["a"])) == ({}, 0.0)


def test_the_cases_that_did_not_pass(db: Database, seed: Seed) -> None:
    """Lost ones and those without an answer: neither is good news of a case that was lost."""
    version = seed.suite()
    run_id, token = seed.open(version)
    answers = [outcome("a"), outcome("b", passed=False), outcome("c", status="error")]
    writes.save_scenario(db, run_id, scenario(answers), token)
    seed.close(run_id, token)
    assert queries.failed_cases(db, run_id) == {"b", "c"}


def test_old_messages_lose_what_they_were_made_of(db: Database, opened: int) -> None:
    """Those that are over and older than details are kept; alert, steps and the row of the message stay."""
    later = datetime.now(UTC) + SOON
    assert writes.forget_payloads(db, later) == 0
    with db.write() as connection:
        connection.execute(m.delivery.update().values(state="sent"))
    assert writes.forget_payloads(db, later - 2 * SOON) == 0
    assert [writes.forget_payloads(db, later) for _ in range(2)] == [1, 0]
    (delivery,) = queries.deliveries(db, alert_id=opened)
    assert (delivery.payload, delivery.state) == ({}, "sent")
    assert actions(db) == [("opened", "memtrend")]


def test_retention_keeps_alerts(db: Database, night: int, opened: int) -> None:
    """When all that a run was told from is gone, its alert is there still."""
    writes.remove(db, night, "results", "2d")
    with db.write() as connection:
        connection.execute(m.delivery.update().values(state="sent", queued_at=START))
    retention.prune(db, RetentionSection(details="1d"))
    row = queries.alert(db, opened)
    assert row is not None
    assert (row.incident.state, row.incident.cases, row.first_bad_run_id) == ("open", ("a", "b"), night)
    assert queries.deliveries(db)[0].payload == {}
