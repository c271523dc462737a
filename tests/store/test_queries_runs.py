"""Which runs there are, how they go, and what they came to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from store import queries, writes
from store.database import Database
from store.errors import StoreError
from tests.store.seeding import START, Seed, outcome, rollups, scenario


def test_runs_come_newest_first_in_pages(db: Database, seed: Seed) -> None:
    """The newest run is first, pages follow each other without gap, and the count is of them all."""
    version = seed.suite()
    ids = [seed.run(version, [], day=day) for day in (2, 0, 1)]
    newest_first = [ids[0], ids[2], ids[1]]
    assert [run.id for run in queries.runs(db)] == newest_first
    assert [run.id for run in queries.runs(db, limit=2)] == newest_first[:2]
    assert [run.id for run in queries.runs(db, limit=2, offset=2)] == newest_first[2:]
    assert queries.count_runs(db) == 3


def test_every_filter_narrows(db: Database, seed: Seed) -> None:
    """Suite, backend, status, start, ids and text each select, and list and count agree."""
    golden, smoke = seed.suite("golden"), seed.suite("smoke", {"x": "1"})
    one = seed.run(golden, ["a"], day=0, meta={"commit": "9f3c 50%_off"})
    two = seed.run(golden, [], backend="dense", day=1, status="invalid", trigger="schedule")
    three = seed.run(smoke, [], cases=["x"], day=2)
    asked: list[tuple[dict[str, object], list[int]]] = [
        ({"suites": ["golden"]}, [two, one]),
        ({"backends": ["dense"]}, [two]),
        ({"statuses": ["whole"]}, [three, one]),
        ({"statuses": []}, []),
        ({"since": START + timedelta(days=1)}, [three, two]),
        ({"ids": [one, three]}, [three, one]),
        ({"text": "9F3C"}, [one]),
        ({"text": "0%_o"}, [one]),
        ({"text": "%"}, [one]),
        ({"text": "schedule"}, [two]),
        ({"text": f"#{two}"}, [two]),
        ({"suites": ["golden"], "statuses": ["whole"]}, [one]),
        ({"text": "nowhere"}, []),
    ]
    for filters, expected in asked:
        assert [run.id for run in queries.runs(db, **filters)] == expected, filters  # type: ignore[arg-type]
        assert queries.count_runs(db, **filters) == len(expected), filters  # type: ignore[arg-type]


def test_a_run_has_all_that_a_page_shows(db: Database, seed: Seed) -> None:
    """A run comes with its suite, backend, environment, progress and metrics over all cases."""
    environment = writes.register_environment(db, {"python": "3.11"})
    run_id = seed.run(
        seed.suite(origin="starter"), ["a", "b", "c"], environment_id=environment, meta={"by": "ann"}
    )
    run = queries.run(db, run_id)
    assert run is not None
    assert (run.suite, run.kind, run.origin, run.backend) == ("golden", "golden", "starter", "keyword")
    assert (run.status, run.trigger, run.subset, run.trials, run.meta) == (
        "whole",
        "cli",
        "",
        1,
        {"by": "ann"},
    )
    assert (run.started_at, run.environment_id) == (START, environment)
    assert (run.cases_total, run.cases_done, run.errors) == (4, 4, 0)
    passed = run.metrics["pass"]
    assert (passed.mean, passed.n) == (0.75, 4)
    assert passed.low is not None
    assert passed.high is not None
    assert 0 < passed.low < 0.75 < passed.high < 1
    assert run.metrics["plant_ms"].mean == pytest.approx(10 / 7)
    assert queries.run(db, 99) is None


def test_a_run_without_its_lease_reads_as_interrupted(db: Database, seed: Seed) -> None:
    """A run is running only while it holds its backend's lease, whatever its row says."""
    run_id, token = seed.open(seed.suite())
    assert [run.id for run in queries.progress(db)] == [run_id]
    assert writes.renew_lease(db, "backend:keyword", token, -1)
    assert queries.progress(db) == []
    assert [run.status for run in queries.runs(db, statuses=["interrupted"])] == ["interrupted"]


def test_another_backends_lease_does_not_count(db: Database, seed: Seed) -> None:
    """The lease of another backend, or the next holder's of the same, keeps no run alive."""
    run_id, token = seed.open(seed.suite())
    seed.open(seed.suite(), "dense")
    writes.release_lease(db, "backend:keyword", token)
    assert writes.acquire_lease(db, "backend:keyword", "next", 60)
    run = queries.run(db, run_id)
    assert run is not None
    assert run.status == "interrupted"


def test_metrics_by_tag(db: Database, seed: Seed) -> None:
    """The metrics of a run by tag are of the cases that bear the tag."""
    run_id = seed.run(seed.suite(), ["a", "b"])  # a, c: odd and all; b, d: even
    passed = {row.tag: (row.n, row.mean) for row in queries.run_tags(db, run_id) if row.metric == "pass"}
    assert passed == {"odd": (2, 0.5), "all": (2, 0.5), "even": (2, 0.5)}


def test_the_previous_run_is_the_last_whole_one_of_the_series(db: Database, seed: Seed) -> None:
    """Invalid runs, runs of a part, and those of other backends or suites are not what a run follows."""
    version, other = seed.suite(), seed.suite("smoke", {"x": "1"})
    first = seed.run(version, [], day=0)
    seed.run(version, [], day=1, status="invalid")
    seed.run(version, [], day=2, subset="odd")
    seed.run(version, [], day=3, backend="dense")
    seed.run(other, [], cases=["x"], day=4)
    this = seed.run(version, [], day=5)
    seed.run(version, [], day=6)
    previous = queries.previous_run(db, this)
    assert previous is not None
    assert previous.id == first
    assert queries.previous_run(db, first) is None
    assert queries.previous_run(db, 99) is None


def test_the_data_version_changes_with_what_is_shown(db: Database, seed: Seed) -> None:
    """The key of caches changes with runs, suites, backends and marks, and with nothing else."""
    version = seed.suite()
    seed.backend()
    run_id, token = seed.open(version)
    shown: list[Callable[[], object]] = [
        lambda: writes.close_run(db, run_id, "whole", rollups(), token=token),
        lambda: writes.rescore(db, run_id, "2", [], rollups()),
        lambda: writes.add_mark(db, "deploy"),
        lambda: seed.suite(cases={"a": "2"}),
        lambda: seed.backend("dense"),
        lambda: seed.open(version, "hybrid"),
    ]
    for change in shown:
        before = queries.data_version(db)
        change()
        assert queries.data_version(db) != before
    hidden: list[Callable[[], object]] = [
        lambda: writes.beat(db, "collector", 1, "host"),
        lambda: writes.add_event(db, "info", "test", "nothing"),
        lambda: queries.runs(db),
    ]
    for change in hidden:
        before = queries.data_version(db)
        change()
        assert queries.data_version(db) == before


def test_an_unknown_metric_is_named(db: Database) -> None:
    """A question about a metric that does not exist lists those that do."""
    with pytest.raises(StoreError, match=r"unknown metric 'beauty'; known: pass, recall@k"):
        queries.trend(db, "golden", "beauty")


def test_a_broken_file_is_an_error_in_words(db: Database, seed: Seed) -> None:
    """A record that lacks a table gives an error of ours, with its name."""
    with db.write() as connection:
        connection.exec_driver_sql("DROP TABLE mark")
    with pytest.raises(
        StoreError, match=r"cannot read .*//.*: (no such table: mark|relation .mark. does not)"
    ):
        queries.marks(db)


def test_finished_scenarios_are_those_stored(db: Database, seed: Seed) -> None:
    """What a resumed run need not do again is every (scenario, trial) in the record."""
    run_id, token = seed.open(seed.suite(), trials=2)
    writes.save_scenario(db, run_id, scenario([outcome("a")], "one"), token)
    writes.save_scenario(db, run_id, scenario([outcome("a", trial=2)], "one", 2), token)
    assert queries.finished_scenarios(db, run_id) == {("one", 1), ("one", 2)}
