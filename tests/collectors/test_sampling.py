"""A part of a suite: as much of each kind as its share, and the same for the same seed."""

from collections import Counter
from dataclasses import replace
from threading import Event

import pytest

from collectors.configured import configured
from collectors.pairs import Asked, Pair, run_pair
from collectors.runner import run
from collectors.runs import interrupted
from collectors.sampling import Sample, draw, sampled
from collectors.suite import SHIPPED, Plant, load
from store import queries, words
from tests.collectors.playground import case, plan, results, suite

NIGHTLY = "nightly 2026-03-05T03:00Z"


@pytest.fixture(scope="module")
def golden():
    return load(SHIPPED["golden"])


def names(of):
    return [probe.case for probe in of.probes]


def tagged(folder):
    """60 cases of which 30 are easy, 20 hard and 10 odd."""
    kinds = ["easy"] * 3 + ["hard"] * 2 + ["odd"]
    return suite(folder, [case(f"k{place}", tags=[kinds[place % 6]]) for place in range(60)])


@pytest.mark.parametrize(("size", "number"), [("20%", 12), ("7", 7), ("1", 1), ("1000", 60), ("0.5%", 1)])
def test_the_size_is_kept(tmp_path, size, number):
    """So many cases are drawn, a share of them rounded: one at least, and all at most."""
    assert len(names(draw(tagged(tmp_path), Sample(size, NIGHTLY)))) == number


def test_every_tag_has_its_share(tmp_path):
    """Of 30, 20 and 10 cases a tenth is 3, 2 and 1, whatever the seed."""
    of = tagged(tmp_path)
    for seed in map(str, range(50)):
        drawn = draw(of, Sample("10%", seed))
        assert Counter(tag for probe in drawn.probes for tag in probe.tags) == {
            "easy": 3,
            "hard": 2,
            "odd": 1,
        }


def test_the_same_seed_draws_the_same(golden):
    """The cases drawn depend on nothing but suite and seed, and another fire draws others."""
    sample = Sample("20%", NIGHTLY)
    assert names(draw(golden, sample)) == names(draw(golden, sample))
    backwards = replace(golden, scenarios=golden.scenarios[::-1])
    assert set(names(draw(backwards, sample))) == set(names(draw(golden, sample)))
    assert names(draw(golden, sample)) != names(draw(golden, Sample("20%", "nightly 2026-03-06T03:00Z")))


def test_every_case_comes_up(tmp_path):
    """Over many fires no case is left out, and none is favoured."""
    of = tagged(tmp_path)
    times = Counter(name for seed in range(400) for name in names(draw(of, Sample("20%", str(seed)))))
    assert len(times) == 60
    assert 40 < min(times.values()) <= max(times.values()) < 130


def test_a_case_keeps_its_world(golden):
    """A case that is drawn is the case it was: same hash, and all that is planted before it."""
    whole = {probe.case: probe.hash for probe in golden.probes}
    planted = {one.id: [step for step in one.steps if isinstance(step, Plant)] for one in golden.scenarios}
    drawn = draw(golden, Sample("20%", NIGHTLY))
    assert all(whole[probe.case] == probe.hash for probe in drawn.probes)
    for scenario in drawn.scenarios:
        assert [step for step in scenario.steps if isinstance(step, Plant)] == planted[scenario.id]
        assert scenario.probes


def test_a_sample_stands_in_its_run():
    """What a run holds as its subset names the sample again; of other subsets there is none."""
    for sample in (Sample("20%", NIGHTLY), Sample("20", "a schedule of two words 2026-03-05T03:00Z")):
        assert Sample.of(str(sample)) == sample
    assert [Sample.of(subset) for subset in ("", "tag", queries.CONFIRM, queries.CALIBRATION)] == [None] * 4


def test_a_sample_is_told_in_words():
    """Lists of runs say how much of a suite was run, and not how it was drawn."""
    told = [words.part(str(Sample(size, NIGHTLY))) for size in ("20%", "20")]
    assert told == ["20% of its cases", "20 cases"]


def test_a_sample_is_no_night(tmp_path, db):
    """A run of a sample has no verdict, stands in no series and leaves the suite in force whole."""
    whole = plan(tagged(tmp_path))
    first = run(whole, db)
    part = run(sampled(whole, Sample("20%", NIGHTLY)), db)
    assert (part.status, part.verdict, queries.run(db, part.run_id).cases_total) == ("whole", None, 12)
    (row,) = queries.overview(db)
    assert row.last_whole.id == first.run_id
    assert [point.run_id for point in queries.trend(db, "small", "pass")] == [first.run_id]
    assert len(queries.suite_cases(db, "small")) == 60


def test_an_interrupted_sample_goes_on_with_its_cases(folder, monkeypatch, db):
    """Resuming a sample plays the rest of the cases that were drawn, and no others."""
    monkeypatch.chdir(folder)
    settings = configured()
    sample = Sample("3", NIGHTLY)
    done = run_pair(settings, db, Pair("small", "shelf"), Asked("schedule:nightly", sample=sample), Event())
    cases = results(db, done.outcome.run_id)
    with db.write() as connection:
        connection.exec_driver_sql("UPDATE run SET status = 'interrupted', finished_at = NULL")
    (todo,) = interrupted(db, settings, [done.outcome.run_id])
    assert todo.plan.subset == str(sample)
    assert {(name, 1) for name in names(todo.plan.suite)} == set(cases)
