"""How a side of a comparison is named, and which runs it is made of."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from store import queries, writes
from store.queries import COMPARED, NothingToCompare
from store.sides import BadSide, Side, side
from tests.store.seeding import START, Seed

ALL = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mem0", Side("mem0", "mem0")),
        ("165", Side("165", run_ids=(165,))),
        ("165, 166", Side("165, 166", run_ids=(165, 166))),
        ("mem0@2.0.20", Side("mem0@2.0.20", "mem0", (), "at", "2.0.20")),
        ("mem0<deploy 41", Side("mem0<deploy 41", "mem0", (), "before", "deploy 41")),
        ("mem0>deploy 41", Side("mem0>deploy 41", "mem0", (), "after", "deploy 41")),
    ],
)
def test_a_side_is_named(text, told):
    """A backend, a release of it, runs, or what lies before and after a mark."""
    assert side(text) == told


def test_days_are_told_from_marks():
    """A day, or several with both ends, are days; anything else is a text."""
    assert side("mem0@2026-03-01")[5:] == (date(2026, 3, 1), date(2026, 3, 1))
    assert side("mem0@2026-03-01..2026-03-04")[5:] == (date(2026, 3, 1), date(2026, 3, 4))
    assert side("mem0@2026-03-32").since is None


@pytest.mark.parametrize("text", ["", " ", "@2.0", "mem0@", "<deploy", "mem0@ "])
def test_what_names_no_side_says_how_one_is_named(text):
    """The error shows the forms that there are."""
    with pytest.raises(BadSide, match="deploy 41"):
        side(text)


def ids(db, text: str) -> list[int]:
    return [row.id for row in queries.side_runs(db, "golden", side(text))]


def environment(db, version: str, embedder: str = "small") -> int:
    content = {
        "packages": {"mem0ai": version},
        "of_backend": {"mem0ai": {}},
        "backend": {"embedder": embedder},
    }
    return writes.register_environment(db, content)


@pytest.fixture
def nights(db, seed: Seed) -> dict[str, int]:
    """Two releases, three nights each, with marks between, and runs that are no sides."""
    suite = seed.suite()
    old, new = environment(db, "1.0.0"), environment(db, "2.0.0")
    made = {f"old{n}": seed.run(suite, ALL, day=n, environment_id=old) for n in range(3)}
    made |= {f"new{n}": seed.run(suite, ALL, day=n + 3, environment_id=new) for n in range(3)}
    seed.run(suite, ALL, day=7, status="invalid", environment_id=new)
    seed.run(suite, ALL, day=7, subset="even", environment_id=new)
    writes.add_mark(db, "deploy 41", START.replace(hour=12))
    writes.add_mark(db, "upgrade", START.replace(day=3, hour=12))
    return made


def test_a_backend_is_its_newest_runs_of_one_system(db, nights):
    """What ran on another release is no trial of the one that runs now; parts and invalid runs are none."""
    assert ids(db, "keyword") == [nights[name] for name in ("new0", "new1", "new2")]


def test_a_release_is_found_by_its_version(db, nights):
    """As a version, or as a pin."""
    old = [nights[name] for name in ("old0", "old1", "old2")]
    assert ids(db, "keyword@1.0.0") == ids(db, "keyword@mem0ai==1.0.0") == old


def test_marks_and_days_bound_a_side(db, nights):
    """Before means before and after means after; at a mark is up to the next one."""
    assert ids(db, "keyword<upgrade") == [nights[name] for name in ("old0", "old1", "old2")]
    assert ids(db, "keyword>upgrade") == [nights[name] for name in ("new0", "new1", "new2")]
    assert ids(db, "keyword@deploy 41") == [nights["old1"], nights["old2"]]
    assert ids(db, "keyword@2026-03-01..2026-03-02") == [nights["old0"], nights["old1"]]
    assert ids(db, "keyword<2026-03-02") == [nights["old0"]]
    assert ids(db, "keyword>2026-03-05") == [nights["new2"]]


def test_after_a_mark_come_the_first_runs_of_what_came(db, seed, nights):
    """A later release is no part of what a mark brought."""
    seed.run(seed.suite(), ALL, day=6, environment_id=environment(db, "3.0.0"))
    assert ids(db, "keyword>upgrade") == [nights[name] for name in ("new0", "new1", "new2")]


def test_runs_of_a_comparison_count_and_ten_trials_are_enough(db, seed, nights):
    """The newest come first, as many as give ten trials."""
    new = environment(db, "2.0.0")
    more = [
        seed.run(seed.suite(), ALL, day=8 + n, subset=COMPARED, trials=4, environment_id=new)
        for n in range(2)
    ]
    assert ids(db, "keyword") == [nights["new1"], nights["new2"], *more]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("dense", "memtrend run --suite golden --backend dense"),
        ("keyword@9.9", "release, a day or a mark"),
        ("keyword<deploy 7", "no mark and no day; the newest marks: 'deploy 41', 'upgrade'"),
        ("keyword<2026-03-01", "lies before"),
        ("99", "no run 99"),
    ],
)
def test_a_side_without_runs_says_what_to_do(db, nights, text, why):
    """No side is silently another one."""
    with pytest.raises(NothingToCompare, match=why):
        ids(db, text)


def test_named_runs_are_of_one_suite_and_backend_and_whole(db, seed, nights):
    """A run of another suite, of another backend, or of a part, is refused with the reason."""
    other = seed.run(seed.suite("other", {"a": "1"}), ["a"], cases=["a"], backend="dense")
    part = seed.run(seed.suite(), ALL, subset="even")
    second = seed.run(seed.suite(), ALL, backend="dense")
    for text, why in (
        (f"{other}", "is of other, not of golden"),
        (f"{part}", "a part of golden"),
        (f"{nights['new2']},{second}", "one backend"),
    ):
        with pytest.raises(NothingToCompare, match=why):
            ids(db, text)


def test_every_side_that_is_offered_has_runs(db, nights):
    """Backends, releases, what lies before and after marks, days and runs: each can be compared as it is."""
    offered = queries.side_choices(db, "golden")
    assert {one.kind for one in offered} == {"newest", "release", "before", "after", "day", "run"}
    assert all(ids(db, one.text) for one in offered)


def test_a_run_is_of_the_system_that_it_ran_on(db, nights):
    """The backend's packages, what it tells of itself and its configuration decide."""
    row = queries.run(db, nights["old0"])
    ran_on = queries.environment(db, row.environment_id)
    assert queries.is_of_system(db, row, ran_on)
    assert queries.is_of_system(db, row, {**ran_on, "git": {"revision": "other"}})
    assert not queries.is_of_system(db, row, {**ran_on, "packages": {"mem0ai": "9"}})


def test_runs_that_were_named_are_all_taken_or_refused(db, seed, nights):
    """Nothing that a person named is left out in silence: more than ten trials stay, another release is
    refused by name."""
    new = environment(db, "2.0.0")
    many = [seed.run(seed.suite(), ALL, day=8 + n, trials=4, environment_id=new) for n in range(4)]
    assert ids(db, ",".join(map(str, many))) == many
    with pytest.raises(NothingToCompare, match=f"memtrend diff {nights['old2']} {nights['new0']}"):
        ids(db, f"{nights['old2']},{nights['new0']}")


def test_a_release_comes_before_a_mark_of_its_name(db, seed, nights):
    """A mark may outlast the release that it announced; the release is meant."""
    writes.add_mark(db, "1.0.0", START.replace(hour=1))
    assert ids(db, "keyword@1.0.0") == [nights[name] for name in ("old0", "old1", "old2")]


def test_a_backend_of_just_this_name_comes_first(db, seed, nights):
    """A release that was compared has runs under a name of its own, and what the page offers is found."""
    compared = seed.run(seed.suite(), ALL, backend="keyword@1.0.0", day=9, subset=COMPARED)
    assert ids(db, "keyword@1.0.0") == [compared]
    offered = [one for one in queries.side_choices(db, "golden") if one.backend == "keyword@1.0.0"]
    assert [one.kind for one in offered] == ["newest", "run"]
    assert all(ids(db, one.text) == [compared] for one in offered)


def test_what_was_going_on_at_a_mark_is_not_before_it(db, seed, nights):
    """A run counts as before something when it had ended by then."""
    writes.add_mark(db, "deploy 42", START + timedelta(seconds=30))
    with pytest.raises(NothingToCompare, match="lies before"):
        ids(db, "keyword<deploy 42")


@pytest.mark.parametrize("text", ["mem0@9999-12-31", "mem0@20260101"])
def test_what_is_no_day_with_a_next_one_is_none(text):
    """Neither the last day of all nor a number of eight digits is a day."""
    assert side(text).since is None


def test_a_number_that_is_no_runs_names_none():
    """No run has an id beyond what a record can hold."""
    assert side("99999999999999999999").run_ids == ()
