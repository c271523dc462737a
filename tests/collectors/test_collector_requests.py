"""What dashboard and API ask for: the collector takes it, does it, and answers."""

import pytest

from collectors.collector import POLL_S
from store import queries, writes
from tests.collectors.collecting import Running, answered, ask, until


def test_a_request_becomes_a_run(home, db):
    """What was asked for is run as it was asked for, and the request names the run."""
    with Running(db):
        request = ask(db, suite="mine", backend="floor", trials=2, meta={"deploy": "4.12"})
        row = answered(db, request)
    run, meta = queries.run(db, row.run_ids[0]), {"deploy": "4.12", "request": f"request-{request}"}
    assert (row.state, row.error, run.status) == ("done", None, "whole")
    assert (run.trigger, run.trials, run.meta) == ("request:tester", 2, meta)


def test_requests_are_picked_up_within_two_seconds(home, db):
    """The record is asked for requests more than twice in the two seconds that are promised."""
    assert POLL_S * 2 < 2.0


def test_requests_are_picked_up_while_a_run_is_under_way(slow_home, db, monkeypatch):
    """A run does not keep the collector from claiming what is asked for next; cancelled, it ends alone."""
    monkeypatch.syspath_prepend(slow_home)
    with Running(db) as running:
        first = ask(db, suite="mine", backend="slow")
        row = until(lambda: queries.progress(db), "the run is under way")[0]
        second = ask(db, suite="mine", backend="slow")
        until(lambda: len(queries.requests(db, ["claimed"])) == 2, "both are claimed")
        writes.cancel_run(db, row.id, "tester")
        assert answered(db, first) == queries.requests(db, ["done"])[-1]
        until(lambda: [r for r in queries.progress(db) if r.id != row.id], "the second run begins")
        assert not running.stop.is_set()
    assert queries.run(db, row.id).status == "interrupted"
    assert queries.run(db, row.id).reason == "cancelled"
    (stopped,) = queries.requests(db, ["queued"])
    assert (stopped.id, len(stopped.run_ids), stopped.error) == (second, 1, None)


@pytest.mark.parametrize(
    ("kind", "payload", "part"),
    [
        (
            "run",
            {"suite": "mime", "backend": "floor"},
            "unknown suite 'mime'; known: contract, golden, holdout, mine, smoke",
        ),
        ("run", {"suite": "mine", "backend": "flour"}, "unknown backend 'flour'; known: floor"),
        ("run", {"suite": "mine"}, "backend: Field required"),
        ("run", {"suite": "mine", "backend": "floor", "trials": 0}, "trials: "),
        (
            "run",
            {"suite": "mine", "backend": "floor", "tag": "no-such"},
            "suite mine: no case bears the tag 'no-such'",
        ),
        ("proof", {"suite": "mine", "backend": "flour"}, "unknown backend 'flour'"),
        (
            "proof",
            {"suite": "mine", "backend": "floor"},
            "these types alone: dense, hybrid, keyword; floor is none",
        ),
        ("dance", {}, "unknown kind of request 'dance'; known: run, look, proof"),
    ],
)
def test_a_request_that_cannot_be_done_says_why(home, db, kind, payload, part):
    """Nonsense is answered with what is wrong, and the next request is done all the same."""
    with Running(db):
        wrong, right = ask(db, kind, **payload), ask(db, suite="mine", backend="floor")
        refused = answered(db, wrong)
        assert answered(db, right).state == "done"
    assert (refused.state, refused.run_ids) == ("failed", [])
    assert part in refused.error


def test_what_a_dead_collector_had_taken_is_done(home, db):
    """A request that was claimed by a collector that died is done by the next."""
    request = ask(db, suite="mine", backend="floor")
    writes.claim_request(db)
    with Running(db):
        row = answered(db, request)
    assert (row.state, len(row.run_ids)) == ("done", 1)
