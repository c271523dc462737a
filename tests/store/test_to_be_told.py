"""What is still to be put to the channels."""

from __future__ import annotations

from datetime import UTC, datetime

from store import queries, writes
from store.alert_life import Facts, acknowledge, advance
from store.database import Database
from store.sightings import Key, Sighting
from tests.store.seeding import Seed, outcome, scenario


def test_what_a_person_did_waits_until_it_is_routed(db: Database) -> None:
    """Nothing waits before somebody acts, nor after it was put to the channels."""
    seen = [Sighting(Key("failing", "smoke", "keyword"), "sure", 1.0)]
    [turned] = writes.turn_alerts(db, lambda known: advance(known, seen, Facts(datetime.now(UTC))))
    assert not queries.has_unrouted(db)
    assert turned.incident.id is not None
    writes.act_on_alert(db, turned.incident.id, lambda it: acknowledge(it, "ann"))
    assert queries.has_unrouted(db)
    writes.route_people(db, writes.nobody)
    assert not queries.has_unrouted(db)


def test_a_message_is_known_by_its_key(db: Database) -> None:
    """Also when it is sent already, or will not be."""
    writes.send_later(db, [writes.NewDelivery("daily 1 channel team", "team", "daily", {})])
    writes.drop_others(db, [])
    assert queries.is_queued(db, "daily 1 channel team")
    assert not queries.is_queued(db, "daily 2 channel team")


def test_cases_that_failed_in_any_trial(db: Database, seed: Seed) -> None:
    """One failed trial is enough, and no answer is no pass; what another run lost is not among them."""
    version = seed.suite(cases={"kept": "1", "lost": "2", "broken": "3"})
    run_id, token = seed.open(version)
    first = [outcome("kept"), outcome("lost"), outcome("broken", passed=None, status="error")]
    second = [outcome("kept", trial=2), outcome("lost", passed=False, trial=2)]
    writes.save_scenario(db, run_id, scenario(first), token)
    writes.save_scenario(db, run_id, scenario(second, trial=2), token)
    assert queries.failed_cases(db, run_id) == {"lost", "broken"}
    assert queries.failed_cases(db, run_id + 1) == frozenset()
