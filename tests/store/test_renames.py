"""A backend under another name is the same series."""

from __future__ import annotations

import pytest

from store import models as m
from store import queries, writes
from store.database import Database
from store.errors import StoreError
from store.records import ScenarioOutcome
from tests.store.seeding import Seed, outcome


def test_the_series_goes_on(db: Database, seed: Seed) -> None:
    """Runs before and after a rename are one series, with its baseline and what was decided about it."""
    version = seed.suite()
    runs = [seed.run(version, ["a"], backend="old", day=day) for day in range(3)]
    writes.decide_baseline(db, "golden", "old", "pin", runs[:1], "good", "ann")
    waiting = writes.add_request(db, "run", {"suite": "golden", "backend": "old"})
    assert writes.rename_backend(db, "old", "new", "ann") == (3, None)
    after = seed.run(version, ["a"], backend="new", day=3)
    assert [row.id for row in queries.runs(db, backends=["new"])] == [after, *reversed(runs)]
    assert [row.name for row in queries.backends(db)] == ["new"]
    assert queries.baseline_now(db, "golden", "new").anchor == tuple(runs[:1])
    assert {row.id: row.payload["backend"] for row in queries.requests(db)} == {waiting: "new"}
    assert queries.events(db)[0].message == "ann renamed backend old to new"


def test_a_name_with_a_series_is_taken(db: Database, seed: Seed) -> None:
    """Two series are never made one, but a name that has none is free; an unknown one is refused."""
    version = seed.suite()
    seed.run(version, ["a"], backend="old")
    seed.run(version, ["a"], backend="other")
    seed.backend("configured")
    with pytest.raises(StoreError, match="other has a series of its own"):
        writes.rename_backend(db, "old", "other", "ann")
    with pytest.raises(StoreError, match="no backend 'nobody'"):
        writes.rename_backend(db, "nobody", "new", "ann")
    writes.rename_backend(db, "old", "configured", "ann")
    assert sorted(row.name for row in queries.backends(db)) == ["configured", "other"]


@pytest.mark.parametrize("held", ["old", "new"])
def test_a_backend_in_use_keeps_its_name(db: Database, seed: Seed, held: str) -> None:
    """While a run has either name, nothing is renamed."""
    seed.run(seed.suite(), ["a"], backend="old")
    writes.acquire_lease(db, writes.backend_lease(held), "there:7", 60)
    with pytest.raises(StoreError, match=f"backend {held} is in use"):
        writes.rename_backend(db, "old", "new", "ann")
    assert [row.name for row in queries.backends(db)] == ["old"]


def test_a_collector_that_leads_is_stopped_first(db: Database, seed: Seed) -> None:
    """While a collector leads, which would go on with the old name, nothing is renamed; then it is."""
    seed.run(seed.suite(), ["a"], backend="old")
    token = writes.acquire_lease(db, writes.LEADER_LEASE, "there:7", 60)
    assert token is not None
    with pytest.raises(StoreError, match="stop the collector first: there:7 leads"):
        writes.rename_backend(db, "old", "new", "ann")
    assert [row.name for row in queries.backends(db)] == ["old"]
    writes.release_lease(db, writes.LEADER_LEASE, token)
    assert writes.rename_backend(db, "old", "new", "ann").runs == 1


def test_who_held_the_old_name_writes_no_more(db: Database, seed: Seed) -> None:
    """A run that was taken for dead cannot write under the new name, and the next token is higher."""
    run_id, token = seed.open(seed.suite(), "old")
    writes.release_lease(db, writes.backend_lease("old"), token)
    writes.rename_backend(db, "old", "new", "ann")
    later = writes.acquire_lease(db, writes.backend_lease("new"), "there:8", 60)
    assert later is not None
    assert later > token
    late = ScenarioOutcome("s1", 1, "ok", cases=(outcome("a"),))
    with pytest.raises(writes.LeaseLost):
        writes.save_scenario(db, run_id, late, token)


def test_a_control_follows(db: Database, seed: Seed) -> None:
    """The control of a backend gets the name that goes with the new one."""
    run_id = seed.run(seed.suite(), ["a"], backend="old")
    beside = seed.run(seed.suite(), ["a"], backend="old-control")
    with db.write() as connection:
        connection.execute(m.control.insert().values(control_id=beside, run_id=run_id, release="x==1"))
    assert writes.rename_backend(db, "old", "new", "ann") == (1, "new-control")
    assert queries.controls(db)[0][:2] == ("new", "new-control")


def test_a_name_alike_is_no_control(db: Database, seed: Seed) -> None:
    """A backend that is only called like a control keeps its name."""
    seed.run(seed.suite(), ["a"], backend="old")
    seed.run(seed.suite(), ["a"], backend="old-control")
    assert writes.rename_backend(db, "old", "new", "ann").control is None
    assert sorted(row.name for row in queries.backends(db)) == ["new", "old-control"]
