"""Requests, heartbeats, schedules and events: what keeps it going."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

import pytest

from store import queries, writes
from store.database import Database, open_database
from store.errors import StoreError
from tests.store.processes import PROCESSES


def test_a_request_lives_from_asked_to_done(db: Database) -> None:
    """A request is queued, claimed once, and ends with the runs it made."""
    request_id = writes.add_request(db, "run", {"suite": "golden"}, "ann")
    claimed = writes.claim_request(db)
    assert claimed is not None
    assert (claimed.id, claimed.kind, claimed.payload, claimed.author) == (
        request_id,
        "run",
        {"suite": "golden"},
        "ann",
    )
    assert writes.claim_request(db) is None
    writes.finish_request(db, request_id, [4, 5])
    (done,) = queries.requests(db)
    assert (done.state, done.run_ids, done.error) == ("done", [4, 5], None)
    assert done.finished_at is not None
    assert done.claimed_at is not None
    assert done.created_at <= done.claimed_at <= done.finished_at


def test_a_failed_request_keeps_its_error(db: Database) -> None:
    """What went wrong stands with the request, and states select."""
    request_id = writes.add_request(db, "run", {})
    writes.claim_request(db)
    writes.finish_request(db, request_id, [], "no such suite")
    assert [(row.state, row.error) for row in queries.requests(db, ["failed"])] == [
        ("failed", "no such suite")
    ]
    assert queries.requests(db, ["queued", "done"]) == []
    with pytest.raises(StoreError, match="is not claimed"):
        writes.finish_request(db, request_id, [])
    with pytest.raises(StoreError, match="is not claimed, so it cannot be queued again"):
        writes.put_back_request(db, request_id, [], None)


def test_requests_are_claimed_oldest_first(db: Database) -> None:
    """Who asked first is served first; lists show the newest first."""
    ids = [writes.add_request(db, "run", {}) for _ in range(3)]
    assert [row.id for row in queries.requests(db, limit=2)] == [ids[2], ids[1]]
    claimed = [writes.claim_request(db) for _ in range(3)]
    assert [row.id for row in claimed if row] == ids


def _claim_all(url: str, barrier: Barrier, claimed: Queue[list[int]]) -> None:
    db = open_database(url)
    barrier.wait(60)
    rows = iter(lambda: writes.claim_request(db), None)
    claimed.put([row.id for row in rows])


def test_no_request_is_claimed_twice(db: Database, url: str) -> None:
    """Two processes that claim at the same time share the requests out between them."""
    ids = [writes.add_request(db, "run", {}) for _ in range(40)]
    barrier = PROCESSES.Barrier(2)
    claimed: Queue[list[int]] = PROCESSES.Queue()
    claimers = [PROCESSES.Process(target=_claim_all, args=(url, barrier, claimed)) for _ in range(2)]
    for claimer in claimers:
        claimer.start()
    shares = [claimed.get(timeout=100) for _ in claimers]
    for claimer in claimers:
        claimer.join(60)
    assert sorted(itertools.chain(*shares)) == ids


def test_a_heartbeat_knows_a_new_start(db: Database) -> None:
    """Beats of one process keep its start; another pid, or another host, is a new start."""
    writes.beat(db, "collector", 1, "here")
    (first,) = queries.heartbeats(db)
    writes.beat(db, "collector", 1, "here")
    (again,) = queries.heartbeats(db)
    assert again.at > first.at
    assert again.started_at == first.started_at == first.at
    writes.beat(db, "collector", 2, "here")
    (restarted,) = queries.heartbeats(db)
    assert restarted.started_at == restarted.at > again.at
    assert restarted.pid == 2


def test_schedules_are_told_by_name(db: Database) -> None:
    """When each fires next, and whether it is in force, stands by its name; what is written last counts."""
    first, following = datetime(2026, 3, 1, 3, tzinfo=UTC), datetime(2026, 3, 2, 3, tzinfo=UTC)
    writes.record_schedule(db, "nightly", first, enabled=True)
    writes.record_schedule(db, "nightly", following, enabled=False)
    writes.record_schedule(db, "never", None, enabled=True)
    assert [tuple(row) for row in queries.schedules(db)] == [
        ("never", None, None, True),
        ("nightly", None, following, False),
    ]


def test_a_deposed_collector_takes_and_answers_nothing(db: Database) -> None:
    """Once another collector leads, the former can neither take a request nor answer the one that it took."""
    old = writes.acquire_lease(db, writes.LEADER_LEASE, "old", 60)
    request_id = writes.add_request(db, "run", {})
    assert old is not None
    assert writes.claim_request(db, old) is not None
    writes.release_lease(db, writes.LEADER_LEASE, old)
    new = writes.acquire_lease(db, writes.LEADER_LEASE, "new", 60)
    assert new is not None
    with pytest.raises(writes.Deposed, match="another collector has taken over"):
        writes.finish_request(db, request_id, [], leader=old)
    writes.add_request(db, "run", {})
    with pytest.raises(writes.Deposed):
        writes.claim_request(db, old)
    assert [row.state for row in queries.requests(db)] == ["queued", "claimed"]
    writes.finish_request(db, request_id, [], "ask again", new)


def test_events_come_newest_first_by_level(db: Database) -> None:
    """Events are listed newest first, and levels select."""
    for level, text in (("info", "started"), ("error", "failed"), ("info", "stopped")):
        writes.add_event(db, level, "collector", text)
    assert [event.message for event in queries.events(db, limit=2)] == ["stopped", "failed"]
    assert [event.message for event in queries.events(db, levels=["error"])] == ["failed"]


def test_events_have_a_beginning(db: Database) -> None:
    """Older events than asked for are left out."""
    writes.add_event(db, "error", "collector", "failed")
    (event,) = queries.events(db, since=datetime.now(UTC) - timedelta(minutes=1))
    assert queries.events(db, since=event.at + timedelta(seconds=1)) == []


def test_the_databases_clock_can_be_asked(db: Database) -> None:
    """The clock that leases go by is told in UTC."""
    before = datetime.now(UTC)
    asked = queries.clock(db)
    assert before - timedelta(seconds=1) <= asked <= datetime.now(UTC) + timedelta(seconds=1)
