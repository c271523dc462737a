"""Senders that die, and that race: every message arrives, under one key."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from store import models as m
from store.database import NOW, open_database
from store.sections import ChannelSection
from tests.collectors.slack_server import SlackServer
from tests.collectors.test_delivery import QUICK, queue, section, send, slack, states
from tests.databases import TEMPLATE
from tests.store.processes import PROCESSES

__all__ = ["slack"]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'shared.db'}"
    else:
        with request.getfixturevalue("databases").fresh(TEMPLATE) as fresh:
            yield fresh


def _send_all(url: str, channel: ChannelSection, claim_s: float) -> None:
    db = open_database(url)
    send(db, channel, QUICK._replace(claim_s=claim_s))
    db.close()


def test_who_is_killed_before_the_record_is_repeated(url: str, slack: SlackServer) -> None:
    """A sender that is killed -9 after its message arrived leaves it to the next one, which sends it once
    more under the same key; after that has been recorded, nobody does."""
    with closing(open_database(url)) as db:
        queue(db, "one", "two")
        sender = PROCESSES.Process(target=_send_all, args=(url, section(slack), 60.0))
        killed = threading.Event()

        def kill(post: Any) -> None:
            if post.key == "two" and not killed.is_set() and sender.pid:
                os.kill(sender.pid, signal.SIGKILL)
                killed.set()

        slack.on_post = kill
        sender.start()
        assert killed.wait(60)
        sender.join(60)
        assert states(db) == {"one": "sent", "two": "claimed"}
        assert send(db, section(slack)) == 0
        with db.write() as connection:  # the claim's time goes by
            connection.execute(m.delivery.update().values(claimed_until=NOW))
        assert send(db, section(slack)) == 1
        assert send(db, section(slack)) == 0
    assert [post.key for post in slack.accepted] == ["one", "two", "two"]


def test_two_senders_send_each_once(url: str, slack: SlackServer) -> None:
    """Two processes at once over 200 messages: each arrives, none twice."""
    with closing(open_database(url)) as db:
        keys = [f"message {n}" for n in range(200)]
        queue(db, *keys)
        senders = [PROCESSES.Process(target=_send_all, args=(url, section(slack), 60.0)) for _ in range(2)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join(100)
        assert set(states(db).values()) == {"sent"}
    assert sorted(post.key for post in slack.accepted) == sorted(keys)
