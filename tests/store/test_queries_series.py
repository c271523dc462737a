"""How it went over time: trends, what changed meanwhile, and where everything stands."""

from __future__ import annotations

from datetime import timedelta

import pytest

from store import queries, writes
from store.database import Database
from store.metrics import METRICS
from tests.store.seeding import START, Seed, rollups


def test_a_trend_has_whole_runs_of_the_whole_suite(db: Database, seed: Seed) -> None:
    """Invalid, interrupted and running runs, and runs of a part of the suite, are on no chart."""
    version = seed.suite()
    second = seed.run(version, ["a", "b"], day=1)
    first = seed.run(version, ["a"], day=0)
    seed.run(version, [], day=2, status="invalid")
    seed.run(version, [], day=3, status="interrupted")
    seed.run(version, [], day=4, subset="odd")
    seed.open(version)
    points = queries.trend(db, "golden", "pass")
    assert [(point.run_id, point.mean, point.n) for point in points] == [(first, 0.25, 4), (second, 0.5, 4)]
    assert points[0].started_at == START


def test_a_trend_by_tag_backend_and_start(db: Database, seed: Seed) -> None:
    """Tag, backends and start narrow a trend; a tag's points are of its cases alone."""
    version = seed.suite()
    seed.run(version, ["a"], day=0)
    late = seed.run(version, ["a", "c"], day=1)
    dense = seed.run(version, [], day=2, backend="dense")
    assert [(p.mean, p.n) for p in queries.trend(db, "golden", "pass", tag="odd")] == [
        (0.5, 2),
        (1, 2),
        (0, 2),
    ]
    assert [p.run_id for p in queries.trend(db, "golden", "pass", backends=["dense"])] == [dense]
    since = START + timedelta(days=1)
    assert [p.run_id for p in queries.trend(db, "golden", "pass", since=since)] == [late, dense]
    assert queries.trend(db, "nowhere", "pass") == []


def test_several_metrics_in_one_question(db: Database, seed: Seed) -> None:
    """Every metric asked for has its point for each run, by name."""
    run_id = seed.run(seed.suite(), ["a", "b"])
    points = {point.metric: point for point in queries.trends(db, "golden", ["pass", "recall@k"])}
    assert {point.run_id for point in points.values()} == {run_id}
    assert (points["pass"].mean, points["recall@k"].mean) == (0.5, 0.75)


def test_the_metrics_of_a_suite_are_those_of_its_newest_runs(db: Database, seed: Seed) -> None:
    """What the newest whole run of each backend was measured by is told, in the usual order; a suite without
    one has none."""
    assert queries.measured_metrics(db, "golden") == []
    seed.run(seed.suite(), ["a"])
    metrics = queries.measured_metrics(db, "golden")
    assert metrics[:2] == ["pass", "recall@k"]
    assert metrics == [name for name in METRICS if name in metrics]


def test_a_trend_follows_the_scorer_in_force(db: Database, seed: Seed) -> None:
    """After a rescore, the chart has the new scorer's value, once."""
    run_id = seed.run(seed.suite(), ["a"])
    writes.rescore(db, run_id, "2", [], rollups(0.9))
    assert [point.mean for point in queries.trend(db, "golden", "pass")] == [0.9]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # the other one plans by how much there is
def test_a_trend_reads_a_range_of_the_rollups_key(db: Database, seed: Seed) -> None:
    """The rollup's primary key answers a trend: no scan of the table, no sort."""
    seed.run(seed.suite(), ["a"])
    asked: list[str] = []
    with db.read() as connection:
        sqlite = connection.connection.driver_connection
        assert sqlite is not None
        sqlite.set_trace_callback(asked.append)
    queries.trend(db, "golden", "pass")
    question = next(sql for sql in asked if "FROM rollup" in sql)
    with db.read() as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {question}")]
    assert plan[0].startswith(
        "SEARCH rollup USING PRIMARY KEY (backend_id=? AND suite_id=? AND metric_id=? AND tag=?"
    )
    assert not [step for step in plan if step.startswith("SCAN")]


def test_environment_changes_are_between_whole_runs_of_a_backend(db: Database, seed: Seed) -> None:
    """What changed is told at the first whole run that has it, by dotted names, for each backend alone."""
    version = seed.suite()
    old = writes.register_environment(db, {"packages": {"a": "1", "gone": "1"}, "python": "3.11"})
    new = writes.register_environment(db, {"packages": {"a": "2", "fresh": "1"}, "python": "3.11"})
    seed.run(version, [], day=0, environment_id=old)
    seed.run(version, [], day=1, environment_id=new, status="invalid")
    seed.run(version, [], day=2, backend="dense", environment_id=new)
    changed = seed.run(version, [], day=3, environment_id=new)
    seed.run(version, [], day=4, environment_id=new)
    changes = queries.environment_changes(db, "golden")
    assert [(change.backend, change.run_id, change.at) for change in changes] == [
        ("keyword", changed, START + timedelta(days=3))
    ]
    assert changes[0].changes == [
        ("packages.a", "1", "2"),
        ("packages.fresh", None, "1"),
        ("packages.gone", "1", None),
    ]
    assert queries.environment_changes(db, "golden", backends=["dense"]) == []
    assert queries.environment_changes(db, "golden", since=START + timedelta(days=3, hours=1)) == []


def test_marks_are_in_order(db: Database) -> None:
    """Marks come oldest first, from a day on where asked."""
    for day, text in ((2, "later"), (1, "earlier")):
        writes.add_mark(db, text, START + timedelta(days=day), author="ann", meta={"commit": "1"})
    assert [(mark.text, mark.author, mark.meta) for mark in queries.marks(db)] == [
        ("earlier", "ann", {"commit": "1"}),
        ("later", "ann", {"commit": "1"}),
    ]
    assert [mark.text for mark in queries.marks(db, since=START + timedelta(days=2))] == ["later"]


def test_floors_are_the_newest_of_nothing_and_everything(db: Database, seed: Seed) -> None:
    """The floors of a suite are the last whole runs of the backends of those types, whatever their names."""
    version = seed.suite()
    seed.backend("empty", "nothing")
    seed.backend("all of it", "everything")
    seed.run(version, ["a", "b", "c"], day=0)
    writes.register_backend(db, "keyword", "keyword", {})
    for name, type_ in (("empty", "nothing"), ("all of it", "everything")):
        seed.run(version, ["a"], backend=name, day=1)
        seed.run(version, ["a", "b"] if type_ == "everything" else [], backend=name, day=2)
        writes.register_backend(db, name, type_, {})
    found = queries.floors(db, "golden", "pass")
    assert {name: rolled.mean for name, rolled in found.items()} == {"empty": 0.0, "all of it": 0.5}


def test_the_overview_says_where_everything_stands(db: Database, seed: Seed) -> None:
    """Each suite on each backend has its newest ended and its newest whole run, pass rates, what runs."""
    version, smoke = seed.suite(), seed.suite("smoke", {"x": "1"})
    whole = [seed.run(version, ["a"] * (day > 0), day=day) for day in range(2)]
    invalid = seed.run(version, [], day=2, status="invalid")
    seed.run(version, ["a"], day=3, subset="odd")
    running, _ = seed.open(version)
    only_running, _ = seed.open(smoke, "dense")
    rows = {(row.suite, row.backend): row for row in queries.overview(db)}
    assert list(rows) == [("golden", "keyword"), ("smoke", "dense")]
    golden = rows["golden", "keyword"]
    assert [run.id if run else None for run in (golden.latest, golden.last_whole, golden.running)] == [
        invalid,
        whole[1],
        running,
    ]
    assert [(point.run_id, point.mean) for point in golden.points] == [(whole[0], 0.0), (whole[1], 0.25)]
    smoke_row = rows["smoke", "dense"]
    assert (smoke_row.latest, smoke_row.last_whole, smoke_row.points) == (None, None, [])
    assert smoke_row.running is not None
    assert smoke_row.running.id == only_running


def test_the_overview_shows_the_last_45_whole_runs(db: Database, seed: Seed) -> None:
    """A sparkline ends with the newest run, and is not longer than 45."""
    version = seed.suite()
    ids = [seed.run(version, [], day=day) for day in range(47)]
    assert [point.run_id for point in queries.overview(db)[0].points] == ids[2:]


def test_a_killed_run_is_the_latest(db: Database, seed: Seed) -> None:
    """A run that died is not shown as running, but as what happened last."""
    version = seed.suite()
    whole = seed.run(version, [], day=0)
    dead, token = seed.open(version)
    writes.release_lease(db, "backend:keyword", token)
    row = queries.overview(db)[0]
    assert row.latest is not None
    assert row.last_whole is not None
    assert (row.latest.id, row.latest.status, row.last_whole.id, row.running) == (
        dead,
        "interrupted",
        whole,
        None,
    )


def test_an_empty_record_answers_every_question(db: Database) -> None:
    """On a new record, every question has an empty answer and none fails."""
    lists: list[object] = [
        *(question(db) for question in (queries.overview, queries.suites, queries.backends, queries.runs)),
        *(question(db) for question in (queries.marks, queries.events, queries.leases, queries.heartbeats)),
        *(question(db, "golden") for question in (queries.suite_versions, queries.suite_tags)),
        *(
            question(db, "golden")
            for question in (queries.suite_cases, queries.flaky_cases, queries.lost_cases)
        ),
        *(question(db, "golden", "a") for question in (queries.case, queries.case_history)),
        *(question(db, 1) for question in (queries.run_cases, queries.stored_answers, queries.run_tags)),
        queries.trends(db, "golden", ["pass"]),
        queries.environment_changes(db, "golden"),
        list(queries.export_cases(db)),
    ]
    assert lists == [[]] * len(lists)
    assert (queries.data_version(db), queries.next_expected(db)) == ("0", None)
    assert queries.environment(db, 1) == queries.floors(db, "golden", "pass") == {}
