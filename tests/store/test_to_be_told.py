"""What is still to be put to the channels."""

from __future__ import annotations

from datetime import UTC, datetime

from store import queries, writes
from store.alert_life import Facts, acknowledge, advance
from store.database import Database
from store.sightings import Key, Sighting


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
