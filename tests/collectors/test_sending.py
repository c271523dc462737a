"""The collector's sender, and what it is given to send beside what runs show."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from collectors.alerting import Alerting, remind
from collectors.configured import configured
from collectors.delivery import Pace
from collectors.sending import Sending
from store import queries, writes
from store.alert_life import Facts, acknowledge, advance, mute
from store.sections import ChannelSection
from store.sightings import Key, Sighting
from tests.collectors.collecting import until
from tests.collectors.slack_server import Answer, running

QUICK = Pace(first_s=0.05, rest_s=0.05, poll_s=0.02)


@pytest.fixture
def slack():
    with running() as server:
        yield server


@pytest.fixture
def of(home, slack):
    with (home / "memtrend.toml").open("a") as file:
        file.write(f'[channels.team]\ntype = "slack"\nurl = "{slack.url}"\n')
    return configured()


def queue(db, channel, *keys):
    told = {"action": "test", "alert_id": None, "kind": "test", "severity": "normal", "state": ""}
    row = {**told, "title": "a title", "evidence": "an evidence"}
    writes.send_later(
        db,
        [
            writes.NewDelivery(key, channel, "test", {"key": key, **row, "cases": [], "listed": []})
            for key in keys
        ],
    )


def alarmed(db, at, route=writes.nobody):
    seen = [Sighting(Key("failing", "mine", "floor"), "sure", 1.0, content={"status": "invalid"})]
    return writes.turn_alerts(db, lambda known: advance(known, seen, Facts(at)), route)[0].incident


def test_the_sender_follows_the_channels(db, slack):
    """A channel that is configured later is sent to from then on, and what waits for one that is gone is not
    sent."""
    sending = Sending(db, QUICK)
    try:
        queue(db, "old", "one", "under way")
        assert writes.claim_delivery(db, "old", "a sender that was killed")
        sending.follow({})
        assert {row.state for row in queries.deliveries(db)} == {"dropped"}
        sending.follow({"team": ChannelSection(type="slack", url=slack.url)})
        queue(db, "team", "two")
        until(lambda: [post.key for post in slack.accepted] == ["two"], "the message arrives")
    finally:
        sending.end()


def test_a_channel_that_hangs_holds_up_no_other(db, slack):
    """While one server does not answer, the messages of another channel leave."""
    never = threading.Event()
    with running() as slow:
        slow.answers = [Answer(first=never)]
        sending = Sending(db, QUICK._replace(timeout_s=600.0))
        try:
            queue(db, "slow", "stuck")
            sending.follow({name: ChannelSection(type="slack", url=one.url)
                            for name, one in (("slow", slow), ("team", slack))})  # fmt: skip
            until(lambda: slow.posts, "the slow one has it")
            queue(db, "team", "one", "two")
            until(lambda: [post.key for post in slack.accepted] == ["one", "two"], "the messages arrive")
            assert slow.accepted == []
        finally:
            never.set()
            sending.end()


def test_an_end_waits_for_no_channel(db, slack):
    """After the end nothing more is sent."""
    sending = Sending(db, QUICK)
    sending.follow({"team": ChannelSection(type="slack", url=slack.url)})
    sending.end()
    queue(db, "team", "late")
    assert not any(thread.name.startswith("memtrend-sender") for thread in threading.enumerate())
    assert queries.deliveries(db)[0].state == "queued"


def test_what_somebody_does_on_a_page_is_told(db, of):
    """The page knows no channel: the next tick asks them."""
    now = datetime.now(UTC)
    it = alarmed(db, now, lambda it, step, step_id: [writes.NewDelivery("first", "team", "alert", {})])
    writes.act_on_alert(db, it.id, lambda one: acknowledge(one, "ann"))
    assert len(queries.deliveries(db)) == 1
    Alerting(db, 0).tick(of, now)
    assert sorted(row.kind for row in queries.deliveries(db)) == ["alert", "update"]
    Alerting(db, 0).tick(of, now)
    assert len(queries.deliveries(db)) == 2


def test_a_clock_that_is_set_ends_a_mute_once(db, of):
    """A mute lasts until its time by the clock that is right now: one that is set back makes it no longer
    than that, one that is set there and back tells of its end once."""
    now = datetime.now(UTC)
    it = alarmed(db, now)
    writes.act_on_alert(db, it.id, lambda one: mute(one, now + timedelta(hours=8), now, "ann"))
    collector = Alerting(db, 0)
    for hours in (0, -48, 1, 7):
        collector.tick(of, now + timedelta(hours=hours))
        assert queries.deliveries(db) == []
    for hours in (9, -48, 9, 10):
        collector.tick(of, now + timedelta(hours=hours))
    told = [row.payload["action"] for row in queries.deliveries(db) if row.kind != "daily"]
    assert told == ["unmuted"]


def test_a_channel_is_reminded_once_a_day(db, of):
    """Of what was told before today, after seven o'clock, however often time is asked."""
    opened = datetime.now(UTC).replace(hour=12)
    alarmed(db, opened)
    days = (opened + timedelta(days=n) for n in range(3))
    for day in days:
        for hour in (5, 8, 20):
            remind(db, of, day.replace(hour=hour))
    keys = [row.key for row in queries.deliveries(db)]
    assert keys == [f"daily {(opened + timedelta(days=n)).date()} channel team" for n in (2, 1)]
