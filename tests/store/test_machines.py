"""What machines ask for and read."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from store import queries, writes
from store.database import Database
from store.records import NewControl, NewRun
from tests.store.seeding import START, Seed

PAYLOAD = {"suite": "golden", "backend": "keyword", "tag": "", "meta": {}}


def test_a_key_stands_for_one_request(db: Database) -> None:
    """The same payload under one key is asked for once; without a key each time."""
    assert [writes.ask_for_run(db, PAYLOAD, "k") for _ in range(3)] == [1, 1, 1]
    assert writes.ask_for_run(db, PAYLOAD | {"backend": "mem0"}, "k") == 2
    assert [writes.ask_for_run(db, PAYLOAD) for _ in range(2)] == [3, 4]
    assert len(queries.requests(db)) == 4


def test_a_key_of_a_request_is_none_of_a_mark(db: Database) -> None:
    """Marks and requests have keys of their own, and a mark's moment is part of what it is."""
    writes.ask_for_run(db, PAYLOAD, "k")
    made = [writes.draw_mark(db, "4.12", at, {}, "k") for at in (START, START, None, None)]
    assert made == [1, 1, 2, 2]


def test_many_at_once_under_one_key_make_one(db: Database) -> None:
    """Callers that come at the same moment all get the id of the one request."""
    together, made = threading.Barrier(8), []

    def ask() -> None:
        together.wait()
        made.append(writes.ask_for_run(db, PAYLOAD, "k"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1] * 8
    assert len(queries.requests(db)) == 1


def test_a_mark_is_shown_at_once_and_a_request_is_not_shown(db: Database) -> None:
    """Caches of what is shown outlive a request, and not a mark."""
    before = queries.data_version(db)
    writes.ask_for_run(db, PAYLOAD, "k")
    assert queries.data_version(db) == before
    writes.draw_mark(db, "4.12", None, {}, "k")
    assert queries.data_version(db) != before


def test_an_answer_is_that_of_its_own_run(db: Database, seed: Seed) -> None:
    """A request runs with the run that was begun for it after it was claimed: not with that of a schedule, of
    another suite, or of a time before."""
    version = seed.suite()
    earlier, token = seed.open(version, trigger="request:api")
    assert queries.answer(db, writes.ask_for_run(db, PAYLOAD)) is not None
    writes.claim_request(db)
    seed.at(earlier, START)

    def state() -> str:
        found = queries.answer(db, 1)
        assert found is not None
        return found.state

    assert state() == "claimed"
    seed.close(earlier, token)
    other, token = seed.open(version, "mem0", trigger="request:api")
    assert state() == "claimed"
    seed.close(other, token, "mem0")
    nightly, token = seed.open(version, trigger="schedule:nightly")
    assert state() == "claimed"
    seed.close(nightly, token)
    own, token = seed.open(version, trigger="request:api")
    assert queries.answer(db, 1)[1:] == ("running", [own])  # type: ignore[index]
    writes.release_lease(db, writes.backend_lease("keyword"), token)
    assert state() == "claimed"


def test_a_run_that_is_gone_on_with_is_that_of_its_request(db: Database, seed: Seed) -> None:
    """A request that was queued again runs with the run that it had begun before it was claimed anew."""
    run_id, _ = seed.open(seed.suite(), trigger="request:api")
    request = writes.ask_for_run(db, PAYLOAD)
    writes.claim_request(db)
    writes.put_back_request(db, request, [run_id], None)
    assert queries.answer(db, request)[1:] == ("queued", [run_id])  # type: ignore[index]
    assert queries.waiting_requests(db) == [], "it waits for nothing but its turn"
    writes.claim_request(db)
    assert queries.answer(db, request)[1:] == ("running", [run_id])  # type: ignore[index]


def test_there_is_no_answer_to_what_was_not_asked(db: Database) -> None:
    """An unknown id has none."""
    assert queries.answer(db, 1) is None


def test_standings_are_of_the_newest_that_ended(db: Database, seed: Seed) -> None:
    """By name, the newest run that ended and the newest whole one; no part of a suite, none that goes on."""
    version = seed.suite()
    seed.run(version, ["a", "b", "c"], backend="mem0", day=0)
    whole = seed.run(version, ["a"], backend="mem0", day=2)
    seed.run(version, [], backend="mem0", day=1)
    void = seed.run(version, [], backend="mem0", day=3, status="void")
    seed.run(version, [], backend="mem0", day=4, subset="odd")
    seed.run(version, ["a", "b"], backend="dense", day=9, status="invalid")
    seed.open(version, "mem0")
    dense, mem0 = queries.standings(db)
    assert (dense.backend, dense.ended.status, dense.whole) == ("dense", "invalid", None)
    assert (mem0.backend, mem0.ended.id, mem0.whole and mem0.whole.id) == ("mem0", void, whole)
    assert mem0.whole is not None
    assert mem0.whole.metrics["pass"].mean == 0.25
    assert mem0.ended.started_at == START + timedelta(days=3)


def test_standings_leave_out_controls(db: Database, seed: Seed) -> None:
    """The frozen release beside a backend is none of the team's."""
    new = NewRun(seed.suite(), seed.backend("mem0"), None, "cli", 1, 4, 1, "1")
    tokens = {
        name: writes.acquire_lease(db, writes.backend_lease(name), "test", 60) for name in ("mem0", "old")
    }
    pair = writes.open_pair(db, new, NewControl("old", "mem0", {}, "mem0ai==1.0.0", None, tokens["old"] or 0))
    for run_id, token in zip(pair, tokens.values(), strict=True):
        writes.close_run(db, run_id, "whole", [], token=token or 0)
    assert [one.backend for one in queries.standings(db)] == ["mem0"]


@pytest.mark.parametrize("payload", [{}, {"suite": 5, "backend": None}])
def test_the_queue_counts_what_waits(db: Database, payload: dict[str, object]) -> None:
    """By suite and backend, until it is answered; a request that makes no sense is counted too."""
    for _ in range(2):
        writes.ask_for_run(db, PAYLOAD)
    writes.add_request(db, "run", payload)
    assert queries.queue(db)["golden", "keyword"] == 2
    assert sum(queries.queue(db).values()) == 3
    writes.claim_request(db)
    assert queries.queue(db)["golden", "keyword"] == 2
    writes.finish_request(db, 1, [])
    assert queries.queue(db)["golden", "keyword"] == 1
