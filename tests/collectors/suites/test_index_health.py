"""Suites of kind index_health: counts of legs, identifiers asked of each leg alone."""

import pytest

from collectors.runner import run
from collectors.suite import READERS, Forget, Plant, Probe, Scenario, Scope, SuiteConfig, SuiteError, load
from store import queries
from tests.collectors.playground import plan

STANDING = """
legs = ["keyword", "vector"]
[standing]
namespace = "support"
user = "acme"
[[probes]]
id = "bucket"
query = "qx-77"
expect_any = ["qx-77"]
[[probes]]
id = "region"
query = "eu-3"
expect_any = ["eu-3"]
legs = ["keyword"]
"""
SCRATCH = """
legs = ["keyword", "vector"]
plant = "memories.jsonl"
tolerance = 0.0
[[probes]]
id = "bucket"
query = "qx-77"
expect_any = ["qx-77"]
"""


def read(folder, text, **more):
    path = folder / "health.toml"
    path.write_text(text)
    lines = [
        '{"id": "m1", "text": "the bucket is qx-77", "user": "noor"}',
        '{"id": "m2", "text": "no bucket"}',
    ]
    (folder / "memories.jsonl").write_text("\n".join(lines))
    return load(SuiteConfig("health", path, "index_health", **more))


def test_cases(tmp_path):
    """Each leg is counted, the legs are held against each other, each identifier is asked of each leg alone,
    in the standing index and in its user's name; counts are critical."""
    suite = read(tmp_path, STANDING)
    (scenario,) = suite.scenarios
    assert scenario.standing == Scope("support", "acme")
    assert [(probe.case, probe.leg, probe.critical) for probe in suite.probes] == [
        ("count/keyword", "keyword", True),
        ("count/vector", "vector", True),
        ("legs-agree", None, True),
        ("bucket/keyword", "keyword", False),
        ("bucket/vector", "vector", False),
        ("region/keyword", "keyword", False),
    ]
    assert {probe.user for probe in suite.probes} == {"acme"}
    assert [probe.case for probe in read(tmp_path, STANDING, only=("identifier", "vector")).probes] == [
        "bucket/vector"
    ]


def test_scratch(tmp_path, db):
    """Without a standing index a fresh one is filled: what was planted is expected of every leg, and a
    backend without counts or legs is not asked."""
    suite = read(tmp_path, SCRATCH)
    whole = run(plan(suite, "hybrid", name="hybrid"), db)
    assert queries.run(db, whole.run_id).metrics["pass"][0::3] == (1.0, 5)
    assert queries.run(db, whole.run_id).metrics["leg_count"].mean == 2
    bare = run(plan(suite, "Bare", name="bare"), db)
    assert {row.status for row in queries.run_cases(db, bare.run_id)} == {"skipped"}
    one = run(plan(suite, "keyword", name="one"), db)
    states = {row.case: row.status for row in queries.run_cases(db, one.run_id)}
    assert states["count/keyword"] == states["bucket/keyword"] == "ok"
    assert states["count/vector"] == states["legs-agree"] == "skipped"


def test_an_index_that_is_not_there(tmp_path, db):
    """A standing index that does not exist is an error of every case; a backend in memory, where none can
    stand, is not asked."""
    suite = read(tmp_path, STANDING)
    ran = run(plan(suite, "hybrid", name="hybrid", directory=tmp_path / "index"), db)
    assert ran.status == "invalid"
    assert {row.status for row in queries.run_cases(db, ran.run_id)} == {"error"}
    fleeting = run(plan(suite, "hybrid", name="fleeting"), db)
    assert {row.status for row in queries.run_cases(db, fleeting.run_id)} == {"skipped"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('legs = ["keyword"]', r"either \[standing\], an index to read, or plant"),
        (SCRATCH.replace("plant =", 'standing = {namespace = "x"}\nplant ='), "either"),
        (
            STANDING.replace('legs = ["keyword"]\n', 'legs = ["graph"]\n'),
            "'region': graph should be one of legs",
        ),
        (STANDING.replace("expect_any", "expects", 1), "expects: is not a field here"),
        (STANDING.replace('["qx-77"]', '["("]'), "not a regular expression"),
        (STANDING + "[", "cannot be read as TOML"),
        (SCRATCH.replace("memories.jsonl", "none.jsonl"), "none"),
        (SCRATCH.replace("0.0", "1.5"), "tolerance"),
    ],
)
def test_refusals(tmp_path, text, message):
    """What is wrong with a file is named, with the field."""
    with pytest.raises(SuiteError, match=message):
        read(tmp_path, text)


def planting(config):
    """A reader that does what none may."""
    return (Scenario("index", (Plant(()), Probe("a", "which?", ())), Scope("support")),)


def forgetting(config):
    return (Scenario("index", (Probe("a", "which?", ()), Forget(("m1",))), Scope("support")),)


@pytest.mark.parametrize("reader", [planting, forgetting])
def test_a_standing_index_is_only_read(tmp_path, monkeypatch, reader):
    """A suite with a step that would change a standing index does not load, whatever its kind."""
    monkeypatch.setitem(READERS, "odd", f"{__name__}:{reader.__name__}")
    with pytest.raises(SuiteError, match="standing index 'support'; a standing index is only read"):
        load(SuiteConfig("health", tmp_path, "odd"))
