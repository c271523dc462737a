"""Leases: one holder at a time, on one clock, and a token that only rises."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

import time_machine

from store import queries, writes
from store.database import Database, open_database
from tests.store.processes import PROCESSES

ROUNDS = 20


def _wait_for(db: Database, name: str) -> int:
    """The token once the lease is free; the test's own timeout bounds the wait."""
    while (token := writes.acquire_lease(db, name, "next", 60)) is None:
        time.sleep(0.01)
    return token


def test_a_lease_has_one_holder(db: Database) -> None:
    """A held lease is given to no one else, not even to its holder's namesake."""
    assert writes.acquire_lease(db, "one", "me", 60) == 1
    assert writes.acquire_lease(db, "one", "you", 60) is None
    assert writes.acquire_lease(db, "one", "me", 60) is None
    assert writes.acquire_lease(db, "two", "you", 60) == 1


def test_a_token_rises_with_each_holder(db: Database) -> None:
    """Given back or expired, a lease is taken again with a higher token."""
    first = writes.acquire_lease(db, "one", "me", 60)
    assert first is not None
    assert writes.release_lease(db, "one", first)
    assert writes.acquire_lease(db, "one", "you", 0.05) == first + 1
    assert _wait_for(db, "one") == first + 2


def test_who_lost_a_lease_is_told(db: Database) -> None:
    """Renewing or giving back works for the holder's token alone."""
    old = writes.acquire_lease(db, "one", "me", 0.01)
    assert old is not None
    new = _wait_for(db, "one")
    assert not writes.renew_lease(db, "one", old, 60)
    assert not writes.release_lease(db, "one", old)
    assert writes.renew_lease(db, "one", new, 60)
    assert [(lease.token, lease.held) for lease in queries.leases(db)] == [(new, True)]


def test_renewing_moves_the_expiry(db: Database) -> None:
    """A renewed lease is held from now on for its time, however short it was before."""
    token = writes.acquire_lease(db, "one", "me", 5)
    assert token is not None
    before = queries.leases(db)[0].expires
    assert writes.renew_lease(db, "one", token, 500)
    assert queries.leases(db)[0].expires - before > timedelta(seconds=400)


def test_the_databases_clock_counts(db: Database) -> None:
    """A process whose own clock is a day ahead takes no lease away."""
    writes.acquire_lease(db, "one", "me", 60)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=1)):
        assert writes.acquire_lease(db, "one", "you", 60) is None
        assert queries.leases(db)[0].held


def test_what_was_left_is_taken_as_it_was_seen(db: Database) -> None:
    """A lease whose holder was found to be gone is taken though it has not expired, but not once that holder
    has renewed it after all, nor once another has taken it."""
    token = writes.acquire_lease(db, "one", "me", 60)
    assert token is not None
    (seen,) = queries.leases(db)
    assert writes.renew_lease(db, "one", token, 70)
    assert writes.acquire_lease(db, "one", "you", 60, left=seen) is None
    (seen,) = queries.leases(db)
    assert writes.acquire_lease(db, "one", "you", 60, left=seen) == token + 1
    assert writes.acquire_lease(db, "one", "they", 60, left=seen) is None


def _race(url: str, barrier: Barrier, won: Queue[list[int | None]]) -> None:
    db = open_database(url)
    tokens = []
    for round_ in range(ROUNDS):
        barrier.wait(60)
        tokens.append(writes.acquire_lease(db, f"lease {round_}", "racer", 60))
    won.put(tokens)


def test_of_two_that_race_one_wins(db: Database, url: str) -> None:
    """Two processes that ask for the same lease at the same moment never both get it, and one always does."""
    barrier = PROCESSES.Barrier(2)
    won: Queue[list[int | None]] = PROCESSES.Queue()
    racers = [PROCESSES.Process(target=_race, args=(url, barrier, won)) for _ in range(2)]
    for racer in racers:
        racer.start()
    results = [won.get(timeout=120) for _ in racers]
    for racer in racers:
        racer.join(60)
    assert [sorted(pair, key=bool) for pair in zip(*results, strict=True)] == [[None, 1]] * ROUNDS
