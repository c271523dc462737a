"""The outbox as it is emptied: one sender a message, on the database's clock, and nothing lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest
import time_machine

from store import models as m
from store import queries, writes
from store.alert_life import Incident, Step
from store.database import NOW, Database, open_database
from store.hiding import remember_secret
from store.writes import Claim, NewDelivery
from tests.collectors.incidents import incident, turned
from tests.store.processes import PROCESSES
from tests.store.seeding import START, Seed

ROWS = 60


def queue(db: Database, *names: str, channel: str = "team", **given: Any) -> None:
    writes.send_later(db, [NewDelivery(name, channel, "alert", {"n": name}, **given) for name in names])


def claim(db: Database, owner: str = "me", **given: Any) -> Claim:
    found = writes.claim_delivery(db, "team", owner, **given)
    assert found is not None
    return found


def states(db: Database) -> dict[str, str]:
    return {row.key: row.state for row in queries.deliveries(db)}


def test_a_message_has_one_sender(db: Database) -> None:
    """What is claimed is given to nobody else, and once it is sent to nobody at all."""
    queue(db, "one", "two")
    first, second = claim(db, "me"), claim(db, "you")
    assert (first.key, first.payload, first.attempts) == ("one", {"n": "one"}, 1)
    assert second.key == "two"
    assert writes.claim_delivery(db, "team", "you") is None
    assert writes.mark_sent(db, first, 200)
    assert states(db) == {"one": "sent", "two": "claimed"}
    assert not writes.mark_sent(db, first, 200)


def test_who_was_away_too_long_has_lost_it(db: Database) -> None:
    """A claim that ended is taken by another sender, and whatever the first one says then changes nothing."""
    queue(db, "one")
    old = claim(db, seconds=0.0)
    new = claim(db, "you")
    assert (new.key, new.attempts) == ("one", 2)
    assert not writes.mark_sent(db, old, 200)
    assert not writes.put_off(db, old, 1, 500, "no")
    assert not writes.give_up(db, old, 400, "no")
    assert writes.mark_sent(db, new, 200)


def test_the_same_sender_twice_is_fenced_too(db: Database) -> None:
    """An attempt that ended is another one than the next, whoever makes it."""
    queue(db, "one")
    old, new = claim(db, seconds=0.0), claim(db)
    assert not writes.mark_sent(db, old, 200)
    assert writes.mark_sent(db, new, 200)


@pytest.mark.parametrize("days", [-1, 1])
def test_only_the_databases_clock_counts(db: Database, days: int) -> None:
    """A process whose clock is a day off sends nothing early, takes no claim away, and forgets nothing."""
    queue(db, "held", "off")
    claim(db)
    assert writes.put_off(db, claim(db), 600, 500, "no")
    with time_machine.travel(datetime.now(UTC) + timedelta(days=days)):
        assert writes.claim_delivery(db, "team", "you") is None
        queue(db, "new")
        assert claim(db, "you").key == "new"


@pytest.mark.parametrize("state", ["queued", "claimed"])
def test_a_clock_that_was_set_back_holds_nothing_up(db: Database, state: str) -> None:
    """What would be due in a day, or claimed until then, was written by another clock, and goes at once."""
    queue(db, "one")
    claim(db)
    values = {"state": state, "due": NOW + 86_400, "claimed_until": NOW + 86_400}
    with db.write() as connection:
        connection.execute(m.delivery.update().values(**values))
    assert claim(db, "you").key == "one"


def test_a_clock_that_is_corrected_takes_no_claim_away(db: Database) -> None:
    """Seconds back are no reason to send a message that another sender has just claimed."""
    queue(db, "one")
    claim(db)
    with db.write() as connection:
        connection.execute(m.delivery.update().values(claimed_until=NOW + writes.CLAIM_S + 5))
    assert writes.claim_delivery(db, "team", "you") is None


def test_what_is_put_off_waits(db: Database) -> None:
    """It goes when its time has come, with the reason kept and the secret in it hidden."""
    remember_secret("s3cretpath")
    queue(db, "one")
    assert writes.put_off(db, claim(db), 600, 503, "no answer from s3cretpath")
    (row,) = queries.deliveries(db)
    assert (row.state, row.status, row.error) == ("queued", 503, "no answer from ***")
    assert writes.claim_delivery(db, "team", "me") is None
    with db.write() as connection:  # its time goes by
        connection.execute(m.delivery.update().values(due=NOW))
    assert claim(db).attempts == 2


def test_an_alert_is_told_in_its_order(db: Database) -> None:
    """While an earlier message of an alert waits for its next attempt, no later one overtakes it."""
    alert_id = _alert(db)
    with db.write() as connection:
        for name in ("opened", "resolved"):
            writes.alerts.queue_delivery(connection, NewDelivery(name, "team", "alert", {}), alert_id)
    queue(db, "other")
    first = claim(db)
    assert first.key == "opened"
    assert writes.put_off(db, first, 60, 500, "no")
    assert claim(db).key == "other"
    assert writes.claim_delivery(db, "team", "me") is None
    with db.write() as connection:
        connection.execute(m.delivery.update().where(m.delivery.c.id == first.id).values(due=NOW))
    assert writes.mark_sent(db, claim(db), 200)
    assert claim(db).key == "resolved"


def _alert(db: Database) -> int:
    found = writes.turn_alerts(db, lambda known: [turned(incident(), "opened")])[0].incident.id
    assert found is not None
    return found


def test_the_end_is_told_where_the_beginning_was(db: Database) -> None:
    """What follows goes to the channels that were told of the alert, and to no channel that came later."""

    def route(it: Incident, step: Step, step_id: int) -> list[NewDelivery]:
        names = ["team"] if step.action == "opened" else ["team", "late"]
        follows = step.action != "opened"
        return [NewDelivery(f"{step_id} {name}", name, "alert", {}, follows=follows) for name in names]

    writes.turn_alerts(db, lambda known: [turned(incident(), "opened")], route)
    writes.turn_alerts(db, lambda known: [turned(known[0]._replace(state="resolved"), "resolved")], route)
    assert [row.channel for row in queries.deliveries(db)] == ["team", "team"]


@pytest.mark.parametrize(("state", "error", "hears"), [
    ("sent", None, True), ("dropped", "told in digest 1 to 2 channel team", True),
    ("failed", "HTTP 400", False), ("dropped", "its channel is not configured any more", False),
])  # fmt: skip
def test_the_end_is_told_where_the_beginning_arrived(
    db: Database, state: str, error: str | None, hears: bool
) -> None:
    """A digest has told of it; a message that was refused, or dropped with its channel, has not."""
    alert_id = _alert(db)
    with db.write() as connection:
        queued = writes.alerts.queue_delivery
        queued(connection, NewDelivery("opened", "team", "alert", {}), alert_id)
        connection.execute(m.delivery.update().values(state=state, error=error))
        end = NewDelivery("resolved", "team", "update", {}, follows=True)
        assert queued(connection, end, alert_id) is hears


def test_what_did_not_arrive(db: Database) -> None:
    """What failed first, however much waits; what was sent, and what a digest told of, has arrived."""
    queue(db, "refused", "sent", "folded", "its channel is gone", "waits", "last")
    with db.write() as connection:
        for key, state, error in (
            ("refused", "failed", "HTTP 400"),
            ("sent", "sent", None),
            ("folded", "dropped", "told in digest 3 to 4 channel team"),
            ("its channel is gone", "dropped", None),
        ):
            row = m.delivery.update().where(m.delivery.c.key == key)
            connection.execute(row.values(state=state, error=error))
    assert [row.key for row in queries.undelivered(db)] == ["refused", "last", "waits", "its channel is gone"]
    assert [row.key for row in queries.undelivered(db, limit=1)] == ["refused"]


def test_a_test_that_failed_is_over_after_a_success(db: Database) -> None:
    """A channel that takes messages again is not held against its failed test; an alert that nobody heard
    of, and the test of another channel, still are."""
    for channel, error in (("team", "HTTP 404"), ("ops", "HTTP 404"), ("team", None)):
        writes.record_test(db, writes.a_test(channel), 200, error)
    assert [row.channel for row in queries.undelivered(db)] == ["ops"]


def test_urgent_ones_go_alone(db: Database) -> None:
    """Asked for what waits for no rate, older messages are passed over."""
    queue(db, "one")
    queue(db, "two", urgent=True)
    assert claim(db, urgent=True).key == "two"
    assert writes.claim_delivery(db, "team", "me", urgent=True) is None


def test_a_digest_takes_the_place_of_all_or_of_none(db: Database) -> None:
    """The messages that it is of are dropped and name it; where they are others by now, nothing changes."""
    queue(db, "one", "two", "three")
    queue(db, "critical", urgent=True)
    queue(db, "elsewhere", channel="others")
    before, digest = states(db), NewDelivery("digest", "team", "digest", {})
    upto = queries.waiting(db, "team")[1].id
    assert not writes.fold(db, digest, upto, 3)
    assert states(db) == before
    assert writes.fold(db, digest, upto, 2)
    rows = {row.key: (row.state, row.error) for row in queries.deliveries(db)}
    assert rows["one"] == rows["two"] == ("dropped", "told in digest")
    assert {name for name, row in rows.items() if row[0] == "queued"} == {
        "three", "critical", "elsewhere", "digest",
    }  # fmt: skip
    assert queries.channel_load(db, "team") == (0, 1, None)


def test_what_was_sent_counts_for_an_hour(db: Database) -> None:
    """The load of a channel is what it was sent in the last hour, urgent messages apart."""
    queue(db, "one", "two", "three")
    queue(db, "critical", urgent=True)
    for _ in range(4):
        writes.mark_sent(db, claim(db), 200)
    assert queries.channel_load(db, "team") == (3, 0, None)
    with db.write() as connection:
        old = m.delivery.update().where(m.delivery.c.key == "one")
        connection.execute(old.values(sent_at=NOW - 3601))
    assert queries.channel_load(db, "team") == (2, 0, None)


def test_a_channel_that_is_gone_keeps_what_waits(db: Database) -> None:
    """A disabled channel says since when and why, and what waits for it waits on until it is enabled."""
    queue(db, "one")
    writes.disable_channel(db, claim(db), 410, "HTTP 410: it is gone", "address")
    (off,) = queries.disabled_channels(db).values()
    assert (off.name, off.reason, off.address) == ("team", "HTTP 410: it is gone", "address")
    assert states(db) == {"one": "queued"}
    assert writes.enable_channel(db, "team", "it took a test")
    assert not writes.enable_channel(db, "team", "again")
    assert not queries.disabled_channels(db)
    assert [event.level for event in queries.events(db)] == ["info", "error"]


def test_what_is_given_up_is_an_event(db: Database) -> None:
    """A message that will not be sent is told where failures are told."""
    queue(db, "one")
    assert writes.give_up(db, claim(db), 400, "HTTP 400")
    assert states(db) == {"one": "failed"}
    assert queries.events(db)[0].message == "one was not delivered, after 1 attempt: HTTP 400"


def test_what_waits_for_nobody_is_dropped(db: Database) -> None:
    """Messages for a channel that is not configured any more do not wait for ever."""
    queue(db, "one")
    queue(db, "two", channel="gone")
    assert writes.drop_others(db, ["team"]) == 1
    assert states(db) == {"one": "queued", "two": "dropped"}


@pytest.mark.parametrize("error", [None, "HTTP 500 of https://hooks.example.org/T1/s3cret-words"])
def test_a_test_is_kept_as_it_went(db: Database, error: str | None) -> None:
    """A message that was sent at once is over, whether it arrived or not, and names no secret."""
    remember_secret("s3cret-words")
    writes.record_test(db, writes.a_test("team"), 500 if error else 200, error)
    (row,) = queries.deliveries(db)
    assert (row.state, row.attempts, row.sent_at is None) == ("failed" if error else "sent", 1, bool(error))
    assert (row.status, "s3cret" in str(row)) == (500 if error else 200, False)
    assert writes.claim_delivery(db, "team", "me") is None


def _claim_all(url: str, barrier: Barrier, got: Queue[list[str]], owner: str) -> None:
    db = open_database(url)
    barrier.wait(60)
    keys = []
    while (one := writes.claim_delivery(db, "team", owner)) is not None:
        keys.append(one.key)
        assert writes.mark_sent(db, one, 200)
    got.put(keys)


def test_of_two_senders_one_gets_each(db: Database, url: str) -> None:
    """Two processes that empty the outbox at once never get one message both, and none is left."""
    queue(db, *(f"message {n}" for n in range(ROWS)))
    barrier, got = PROCESSES.Barrier(2), PROCESSES.Queue()
    senders = [
        PROCESSES.Process(target=_claim_all, args=(url, barrier, got, owner)) for owner in ("me", "you")
    ]
    for sender in senders:
        sender.start()
    keys = [key for _ in senders for key in got.get(timeout=100)]
    for sender in senders:
        sender.join(60)
    assert sorted(keys) == sorted(f"message {n}" for n in range(ROWS))


def test_looks_are_counted_by_pair(db: Database, seed: Seed) -> None:
    """What false alarms may come of: whole runs since then, by suite and backend, with whose they are; the
    suite's owner before the backend's."""
    golden, smoke = seed.suite("golden"), seed.suite("smoke")
    with db.write() as connection:
        owned = m.suite.update().where(m.suite.c.name == "smoke")
        connection.execute(owned.values(owner="search-team"))
    for day in (0, 1, 2):
        seed.run(golden, ["a"], day=day)
    seed.run(golden, ["a"], day=3, subset="tag")
    seed.run(golden, ["a"], day=3, trigger=queries.GATE)
    seed.run(smoke, ["a"], day=3)
    found = queries.looks_a_month(db, START + timedelta(days=1))
    assert found == [("golden", "keyword", "team", 2), ("smoke", "keyword", "search-team", 1)]
