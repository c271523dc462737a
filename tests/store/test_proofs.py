"""Drills in the record: begun, finished, called off, and what one leaves behind that was killed."""

from __future__ import annotations

from store import queries, writes
from store.database import Database
from store.writes.proofs import DIED

DRILL = ("smoke", "hybrid", "question-mark", "team")


def test_a_receipt_is_kept_as_it_was_taken(db: Database) -> None:
    """A drill that arrived has passed, with its seconds; under way it has neither passed nor ended."""
    proof_id = writes.begin_proof(db, *DRILL)
    [begun] = queries.proofs(db)
    assert (begun.finished_at, begun.passed) == (None, False)
    writes.finish_proof(db, proof_id, None, 0.5, 1.0, 2.5, None)
    [row] = queries.proofs(db)
    assert (row.suite, row.backend, row.fault, row.channel) == DRILL
    assert (row.detected_s, row.confirmed_s, row.delivered_s) == (0.5, 1.0, 2.5)
    assert row.passed


def test_a_drill_that_nobody_finished_has_failed_when_the_next_begins(db: Database) -> None:
    """What killed it said nothing, so the next one says it."""
    writes.begin_proof(db, *DRILL)
    writes.begin_proof(db, *DRILL)
    second, first = queries.proofs(db)
    assert (first.passed, first.error) == (False, DIED)
    assert first.finished_at is not None
    assert second.finished_at is None


def test_a_drill_that_was_called_off_is_none(db: Database) -> None:
    """Stopped on purpose, it neither passed nor failed."""
    writes.call_off_proof(db, writes.begin_proof(db, *DRILL))
    assert queries.proofs(db) == []


def test_what_has_not_arrived_with_its_drill_arrives_no_more(db: Database) -> None:
    """The end of a drill drops what waits of drills, and nothing else."""
    for kind in ("drill", "alert"):
        writes.send_later(db, [writes.NewDelivery(kind, "team", kind, {})])
    writes.finish_proof(db, writes.begin_proof(db, *DRILL), None, 0.5, 1.0, None, "HTTP 500")
    states = {row.kind: row.state for row in queries.deliveries(db)}
    assert states == {"drill": "dropped", "alert": "queued"}


def test_what_a_killed_drill_had_claimed_is_not_sent_again(db: Database) -> None:
    """Its claim would end some time, and the message go out after all."""
    writes.send_later(db, [writes.NewDelivery("drill", "team", "drill", {})])
    assert writes.claim_delivery(db, "team", "one that was killed") is not None
    writes.begin_proof(db, *DRILL)
    assert [row.state for row in queries.deliveries(db)] == ["dropped"]
