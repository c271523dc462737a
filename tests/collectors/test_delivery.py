"""The sender against a real server: every message arrives, none twice after the record, whatever fails."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import time_machine

from collectors.channels import Refused
from collectors.delivery import Pace, Sender, backoff_s, try_channel
from collectors.routing import route
from store import models as m
from store import queries, writes
from store.alert_life import Step, acknowledge
from store.alert_messages import frozen
from store.alert_words import Message, message
from store.database import NOW, Database
from store.sections import AlertsSection, ChannelSection
from store.writes import NewDelivery
from tests.collectors.incidents import incident, turned
from tests.collectors.slack_server import Answer, SlackServer, problems, running

QUICK = Pace(first_s=0.001, rest_s=0.0, timeout_s=20.0)
SECRET = "s3cretpath"


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with running() as server:
        yield server


def section(server: SlackServer, **given: Any) -> ChannelSection:
    return ChannelSection.model_validate({"type": "slack", "url": server.url, "rate": 10_000, **given})


def told(key: str, severity: str = "high", number: int = 12) -> Message:
    made = message(incident(id=number), Step("opened"), key, "https://memtrend.example.org")
    return made._replace(severity=severity)


def queue(db: Database, *keys: str, channel: str = "team", severity: str = "high") -> None:
    urgent = severity == "critical"
    writes.send_later(
        db,
        [NewDelivery(key, channel, "alert", frozen(told(key, severity)), urgent) for key in keys],
    )


def flood(db: Database, n: int) -> None:
    """As many alerts at once, in one insert."""
    with db.write() as connection:
        columns = {"channel": "team", "kind": "alert", "urgent": False, "state": "queued", "attempts": 0}
        now = datetime.now(UTC)
        rows = [
            {**columns, "key": f"alert {i}", "payload": frozen(told(f"alert {i}", number=i))}
            | {"queued_at": now, "due": now}
            for i in range(n)
        ]
        connection.execute(m.delivery.insert(), rows)


def send(db: Database, channel: ChannelSection, pace: Pace = QUICK) -> int:
    with closing(Sender(db, {"team": channel}, pace)) as sender:
        return sender.send_due()


def until(condition: Callable[[], Any], again: Callable[[], Any] = lambda: None) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        again()
        time.sleep(0.01)


def states(db: Database) -> dict[str, str]:
    return {row.key: row.state for row in queries.deliveries(db, limit=20_000)}


def row(db: Database, key: str) -> queries.DeliveryRow:
    return next(row for row in queries.deliveries(db) if row.key == key)


# It arrives


def test_a_message_arrives_once(db: Database, slack: SlackServer) -> None:
    """What waits is sent in its order, recorded with the answer, and never sent again."""
    queue(db, "one", "two")
    assert send(db, section(slack)) == 2
    assert send(db, section(slack)) == 0
    assert [post.key for post in slack.accepted] == ["one", "two"]
    assert row(db, "one").state == "sent"
    assert row(db, "one").status == 200
    assert row(db, "one").sent_at is not None


def test_an_alert_is_told_from_its_opening_to_its_end(db: Database, slack: SlackServer) -> None:
    """From the record through routing and sender: opened, fell further, resolved, each with the alert's
    number; a channel that was added in between hears nothing of the end."""
    sections = {"team": section(slack)}
    path = route(sections, AlertsSection())
    writes.turn_alerts(db, lambda known: [turned(incident(), "opened")], path)
    writes.turn_alerts(db, lambda known: [turned(known[0], "grew")], path)
    later = route({**sections, "late": section(slack)}, AlertsSection())
    writes.turn_alerts(db, lambda known: [turned(known[0]._replace(state="resolved"), "resolved")], later)
    assert send(db, sections["team"]) == 3
    assert [post.told["text"].split(":")[0] for post in slack.accepted] == [
        "High",
        "Fell further",
        "Resolved",
    ]
    assert all(post.key.startswith("alert 1 step ") for post in slack.accepted)
    assert {row.channel for row in queries.deliveries(db)} == {"team"}


@pytest.mark.parametrize(
    "trouble", [Answer(500), Answer(503), Answer(429), Answer(408), Answer(302), Answer(drop=True)], ids=str
)
def test_what_passes_is_tried_again(db: Database, slack: SlackServer, trouble: Answer) -> None:
    """After an error of the server, a dropped connection or a refusal for now the same message goes again."""
    slack.answers = [trouble, trouble]
    queue(db, "one")
    until(lambda: states(db) == {"one": "sent"}, lambda: send(db, section(slack)))
    assert [post.key for post in slack.posts] == ["one"] * 3
    assert [post.key for post in slack.accepted] == ["one"]


def test_a_server_that_hangs_is_left(db: Database, slack: SlackServer) -> None:
    """A message whose answer does not come in time goes again later."""
    never = threading.Event()
    slack.answers = [Answer(first=never)]
    queue(db, "one")
    with closing(Sender(db, {"team": section(slack)}, QUICK._replace(timeout_s=0.1))) as sender:
        sender.round()
    assert row(db, "one").error == "no answer (ReadTimeout)"
    never.set()
    until(lambda: states(db) == {"one": "sent"}, lambda: send(db, section(slack)))


@pytest.mark.parametrize(
    "asked",
    [
        {"Retry-After": "600"},
        {"Date": "Mon, 30 Nov 2026 03:00:00 GMT", "Retry-After": "Mon, 30 Nov 2026 03:10:00 GMT"},
    ],
    ids=["seconds", "date"],
)
def test_retry_after_is_honoured(db: Database, slack: SlackServer, asked: dict[str, str]) -> None:
    """A channel that wants to be left alone for ten minutes is, with all that waits for it."""
    slack.answers = [Answer(429, asked)]
    queue(db, "one", "two")
    with closing(Sender(db, {"team": section(slack)}, QUICK)) as sender:
        sender.send_due()
        sender.send_due()
    assert len(slack.posts) == 1
    wait = row(db, "one").due - datetime.now(UTC)
    assert timedelta(minutes=9) < wait < timedelta(minutes=11)


@pytest.mark.parametrize("days", [-2, 2])
def test_a_clock_that_is_set_changes_no_wait(db: Database, slack: SlackServer, days: int) -> None:
    """While a message waits for its next attempt, the sender's clock may be set: it goes neither early nor
    never."""
    slack.answers = [Answer(503, {"Retry-After": "600"})]
    queue(db, "one")
    send(db, section(slack))
    with time_machine.travel(datetime.now(UTC) + timedelta(days=days)):
        assert send(db, section(slack)) == 0
        with db.write() as connection:
            connection.execute(m.delivery.update().values(due=NOW))
        assert send(db, section(slack)) == 1
    assert states(db) == {"one": "sent"}


def test_waits_grow_and_differ() -> None:
    """Each wait is about twice the one before, up to an hour, the same for one key and spread over many."""
    waits = [backoff_s("one", attempt) for attempt in range(1, 33)]
    assert all(1.2 < later / sooner < 3.1 for sooner, later in pairwise(waits[:9]))
    assert max(waits) <= 3600
    assert 16 < sum(waits) / 3600 < 24
    assert backoff_s("one", 3) == backoff_s("one", 3)
    assert len({backoff_s(f"key {n}", 3) for n in range(100)}) == 100


# It does not arrive


@pytest.mark.parametrize("status", [400, 403, 413])
def test_what_will_never_be_taken_is_given_up(db: Database, slack: SlackServer, status: int) -> None:
    """A message that is refused for good fails with an event, and holds up no other."""
    slack.answers = [Answer(status)]
    queue(db, "one", "two")
    send(db, section(slack))
    assert states(db) == {"one": "failed", "two": "sent"}
    assert len(slack.posts) == 2
    assert "one was not delivered" in queries.events(db)[0].message


def test_after_a_day_it_is_given_up(db: Database, slack: SlackServer) -> None:
    """After its last attempt a message fails with an event."""
    slack.answers = [Answer(500)] * 3
    queue(db, "one")
    pace = QUICK._replace(attempts=3)
    until(lambda: states(db) == {"one": "failed"}, lambda: send(db, section(slack), pace))
    assert len(slack.posts) == 3
    assert queries.events(db)[0].level == "error"


def test_what_kills_its_sender_is_given_up(db: Database, slack: SlackServer) -> None:
    """A message whose senders all died of it is not sent for ever."""
    queue(db, "one")
    for _ in range(3):
        assert writes.claim_delivery(db, "team", "the dead", seconds=0.0)
    send(db, section(slack), QUICK._replace(attempts=3))
    assert states(db) == {"one": "failed"}
    assert slack.posts == []


@pytest.mark.parametrize("status", [404, 410])
def test_a_channel_that_is_gone_is_disabled(db: Database, slack: SlackServer, status: int) -> None:
    """It is sent nothing more, what waits for it waits, and another url gets all of it."""
    slack.answers = [Answer(status)]
    queue(db, "one", "two")
    assert send(db, section(slack)) == 1
    assert send(db, section(slack)) == 0
    assert states(db) == {"one": "queued", "two": "queued"}
    (seen,) = queries.channel_rows(db, ["team"], datetime(2020, 1, 1, tzinfo=UTC))
    assert seen.disabled_at is not None
    assert seen.reason == f"HTTP {status}: it is gone; set its new url, or: memtrend alerts test team"
    assert send(db, section(slack, url=f"{slack.url}/new")) == 2
    assert queries.disabled_channels(db) == {}


def test_a_test_enables_a_channel(db: Database, slack: SlackServer) -> None:
    """A real message, recorded with what became of it; one that arrives lets the others through again."""
    slack.answers = [Answer(410), Answer(404)]
    queue(db, "one")
    send(db, section(slack))
    with pytest.raises(Refused):
        try_channel(db, "team", section(slack))
    assert send(db, section(slack)) == 0
    assert try_channel(db, "team", section(slack)) == 200
    assert "nothing is wrong" in slack.accepted[0].told["text"]
    assert send(db, section(slack)) == 1
    tests = [row.state for row in queries.deliveries(db) if row.kind == "test"]
    assert tests == ["sent", "failed"]


def test_one_bad_channel_holds_up_no_other(db: Database, slack: SlackServer) -> None:
    """While one channel cannot be opened, and another is dead, the third hears all."""
    queue(db, "one", "two")
    queue(db, "three", channel="dead")
    queue(db, "four", channel="odd")
    odd = section(slack, url="nonsense")
    dead = section(slack, url="http://127.0.0.1:9/")
    with closing(Sender(db, {"odd": odd, "dead": dead, "team": section(slack)}, QUICK)) as sender:
        until(lambda: len(slack.accepted) == 2, sender.round)
    assert states(db) == {"one": "sent", "two": "sent", "three": "queued", "four": "queued"}


def test_no_secret_is_kept(db: Database, slack: SlackServer, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither the record nor a log holds the address, whatever a server repeats of it."""
    slack.answers = [Answer(500), Answer(400), Answer(410)]
    queue(db, "one", "two", "three")
    for _ in range(4):
        send(db, section(slack))
    with db.read() as connection:
        for table in ("delivery", "event", "channel_state"):
            rows = connection.exec_driver_sql(f"SELECT * FROM {table}").all()
            assert rows
            assert SECRET not in str(rows)
    assert SECRET not in "".join(capfd.readouterr())


def test_no_secret_of_a_reason_is_told(db: Database, slack: SlackServer) -> None:
    """What a person pastes as a reason leaves without the password in it, and is not kept with it."""
    path = route({"team": section(slack)}, AlertsSection())
    opened = writes.turn_alerts(db, lambda known: [turned(incident(), "opened")], path)[0].incident
    assert opened.id is not None
    why = "see https://ann:hunter22@example.org/"
    writes.act_on_alert(db, opened.id, lambda it: acknowledge(it, "ann", why), path)
    send(db, section(slack))
    kept = [str(row.payload) for row in queries.deliveries(db)] + [str(queries.alert_steps(db, opened.id))]
    assert "ann:" in slack.accepted[1].body.decode()
    assert not any("hunter22" in one for one in (*kept, str(slack.accepted)))


def test_a_library_that_raises_is_a_refusal(db: Database) -> None:
    """Whatever a channel's library raises, the message waits, and only the type of the error is kept."""

    class Odd:
        def send(self, message: Message) -> None:
            raise RuntimeError(SECRET)

        def close(self) -> None:
            pass

    queue(db, "one")
    given = ChannelSection.model_validate({"type": "slack", "url": "https://hooks.example/x"})
    with closing(Sender(db, {"team": given}, Pace(), lambda *_: Odd())) as sender:
        sender.send_due()
    assert (row(db, "one").state, row(db, "one").error) == ("queued", "it could not be sent (RuntimeError)")


# Memory texts


def test_texts_leave_only_where_they_may(db: Database, slack: SlackServer, monkeypatch: Any) -> None:
    """A channel gets the texts of lost cases with include_text alone; the outbox never holds them."""
    made = told("one")._replace(run_id=7)
    monkeypatch.setattr(queries, "run_cases", lambda db, run_id: [_lost_case()])
    for key in ("one", "two"):
        payload = frozen(made._replace(key=key))
        writes.send_later(db, [NewDelivery(key, "team", "alert", payload)])
        send(db, section(slack, include_text=key == "two"))
    without, with_texts = (str(post.told) for post in slack.accepted)
    assert "the PIN is 4711" not in without
    assert "the PIN is 4711" in with_texts
    assert all("4711" not in str(row.payload) for row in queries.deliveries(db))


def _lost_case() -> queries.CaseRow:
    given = dict.fromkeys(queries.CaseRow._fields)
    return queries.CaseRow(**{**given, "case": "c1", "query": "which PIN?", "first_hit": "the PIN is 4711"})


# Too much


def test_ten_thousand_alerts_are_one_digest(db: Database, slack: SlackServer) -> None:
    """What is too much for an hour leaves as one message that counts it; what is critical passes."""
    flood(db, 10_000)
    queue(db, "critical 1", "critical 2", severity="critical")
    send(db, section(slack, rate=20))
    keys = [post.key for post in slack.accepted]
    assert sorted(keys) == ["critical 1", "critical 2", "digest 1 to 10000 channel team"]
    digest = next(post for post in slack.accepted if post.key.startswith("digest"))
    assert "10,000 messages at once, of 10,000 alerts" in digest.told["text"]
    assert Counter(states(db).values()) == {"dropped": 10_000, "sent": 3}
    assert row(db, "alert 9999").error == "told in digest 1 to 10000 channel team"


def test_beyond_the_rate_they_wait_together(db: Database, slack: SlackServer) -> None:
    """A channel gets so many messages an hour; those beyond wait until there is room for one, which is of all
    of them, while what is critical goes at once."""
    few = section(slack, rate=3)
    queue(db, "one", "two", "three")
    send(db, few)
    queue(db, "four", "five")
    queue(db, "six", severity="critical")
    send(db, few)
    assert [post.key for post in slack.accepted] == ["one", "two", "three", "six"]
    queue(db, "seven")
    send(db, few)
    with db.write() as connection:
        connection.execute(m.delivery.update().where(m.delivery.c.key == "one").values(sent_at=NOW - 3601))
    send(db, few)
    assert slack.accepted[-1].key == "digest 4 to 7 channel team"
    assert "3 messages at once" in slack.accepted[-1].told["text"]
    assert all(problems(post.body) == [] for post in slack.posts)


def test_what_turns_critical_waits_for_nothing(db: Database, slack: SlackServer) -> None:
    """Of one alert, an earlier message for which the hour had no room goes with the critical one, before it;
    so does one that was put off."""
    few = section(slack, rate=1)
    path = route({"team": few}, AlertsSection())
    queue(db, "fills the hour")
    send(db, few)
    slack.answers = [Answer(500)]
    writes.turn_alerts(db, lambda known: [turned(incident(), "opened")], path)
    send(db, few)
    content = {"looks": [{"trials": 4}]}
    worse = incident(kind="critical", content=content)
    writes.turn_alerts(db, lambda known: [turned(known[0]._replace(signals=worse.signals), "grew")], path)
    slack.answers = []
    send(db, few)
    assert [post.key for post in slack.accepted] == [
        "fills the hour",
        "alert 1 step 1 channel team",
        "alert 1 step 2 channel team",
    ]


# On a thread


def test_the_sender_runs_until_it_is_stopped(db: Database, slack: SlackServer) -> None:
    """On a thread it sends what comes, and ends when it is told to."""
    stop = threading.Event()
    sender = Sender(db, {"team": section(slack)}, QUICK._replace(poll_s=0.01))
    thread = threading.Thread(target=sender.run, args=(stop,))
    thread.start()
    queue(db, "one")
    until(lambda: len(slack.accepted) == 1)
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
