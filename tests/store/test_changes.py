"""What changed between two runs, by kind, and in which order it is suspected."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import queries, writes
from store.changes import PLAIN_KINDS, Change, changes, git_range, moved_among, sentence, title
from tests.store.seeding import START

OLD = {
    "packages": {"mem0ai": "1.0.5", "openai": "2.1", "streamlit": "1.67", "torch": "2.5"},
    "of_backend": {"mem0ai": {"openai": {}, "torch": {}}},
    "python": "3.11.2",
    "backend": {
        "mem0ai": "1.0.5", "embedder": "minilm", "embedder.model_sha256": "a" * 64, "llm.model": "gpt-4o",
        "extraction_prompt": "b" * 64, "server": "1.9", "image": "sha256:" + "c" * 64, "judge": "gpt-5",
        "keyword_search": "on",
    },
    "config": {"type": "mem0", "config": {"top_k": 5, "custom_prompt": "Be kind."}},
    "git": {"revision": "1" * 40, "branch": "main", "changed": False},
    "suite": "golden d4",
    "scorer": "4",
    "meta": {"build": "411", "scheduled_for": "2026-11-03T03:00Z"},
}  # fmt: skip
NEW = {
    "packages": {"mem0ai": "1.0.6", "openai": "2.2", "streamlit": "1.68", "tenacity": "9.0"},
    "of_backend": {"mem0ai": {"openai": {}, "tenacity": {}}},
    "python": "3.11.4",
    "backend": {
        "mem0ai": "1.0.6", "embedder": "minilm", "embedder.model_sha256": "e" * 64, "llm.model": "gpt-5",
        "extraction_prompt": "f" * 64, "server": "2.0", "image": "sha256:" + "0" * 64, "judge": "gpt-6",
        "keyword_search": "off",
    },
    "config": {"type": "mem0", "config": {"top_k": 9, "custom_prompt": "Be brief."}},
    "git": {"revision": "2" * 40, "branch": "main", "changed": False},
    "suite": "golden d5",
    "scorer": "5",
    "meta": {"build": "412", "scheduled_for": "2026-11-04T03:00Z"},
}  # fmt: skip

plain = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
names = st.sampled_from(["mem0ai", "numpy", "llm.model", "embedder", "prompt", "image", "k", "judge"])
values = st.dictionaries(
    names, plain | st.lists(plain, max_size=2) | st.dictionaries(names, plain), max_size=5
)
versions = st.dictionaries(names, st.sampled_from(["1.0", "1.1", "2.0"]))
gits = st.fixed_dictionaries(
    {}, optional={"revision": st.sampled_from(["a1", "b2"]), "branch": st.text(max_size=3)}
)
sides = st.fixed_dictionaries(
    {"packages": versions, "backend": versions, "config": values, "meta": versions, "git": gits},
    optional={"of_backend": st.dictionaries(names, st.dictionaries(names, st.just({})))},
)


def told(found):
    return [(change.name, change.old, change.new) for change in found]


def test_every_kind():
    """Each kind of change is found under its name, with what was and what is."""
    found = changes(OLD, NEW)
    assert told(found.packages.added) == [("tenacity", None, "9.0")]
    assert told(found.packages.removed) == [("torch", "2.5", None)]
    assert [change.name for change in found.packages.moved] == ["mem0ai", "openai", "streamlit"]
    assert told(found.models) == [("llm.model", "gpt-4o", "gpt-5")]
    assert told(found.embedder) == [("embedder.model_sha256", "a" * 64, "e" * 64)]
    assert [change.name for change in found.prompts] == ["extraction_prompt", "config.custom_prompt"]
    assert told(found.judge) == [("judge", "gpt-5", "gpt-6")]
    assert told(found.server) == [("server", "1.9", "2.0")]
    assert [change.name for change in found.container] == ["image"]
    assert told(found.configuration) == [("config.top_k", 5, 9)]
    assert told(found.backend) == [("keyword_search", "on", "off")]
    assert told(found.suite) == [("suite", "golden d4", "golden d5")]
    assert told(found.scorer) == [("scorer", "4", "5")]
    assert told(found.system) == [("python", "3.11.2", "3.11.4")]
    assert told(found.meta) == [("build", "411", "412")]
    assert git_range(found.git) == "11111111..22222222"


@pytest.mark.parametrize(
    ("pinned", "left"),
    [
        ({"package": ("mem0ai==1.0.3", "mem0ai==2.2.1")}, []),
        ({"with": (["x==1", "y==3"], ["x==2", "y==3"])}, []),
        ({"package": ("mem0ai==1.0.3", "mem0ai==2.2.0")}, ["package"]),
        ({"package": (None, "mem0ai==2.2.1")}, ["package"]),
        ({"with": (["x==1"], ["x==2", "z[more]"])}, ["with"]),
    ],
)
def test_a_release_is_told_once(pinned, left):
    """A configured release that moved is its package that moved; what the packages do not explain stays."""
    old, new = (
        {"packages": packages, "config": {key: values[side] for key, values in pinned.items()}}
        for side, packages in enumerate([{"mem0ai": "1.0.3", "x": "1"}, {"mem0ai": "2.2.1", "x": "2"}])
    )
    found = changes(old, new)
    assert told(found.packages.moved) == [("mem0ai", "1.0.3", "2.2.1"), ("x", "1", "2")]
    assert [change.name for change in found.configuration] == left
    assert len(found.suspects) == 2 + len(left)


def test_the_order_of_suspects():
    """The backend's own package comes first, then what it tells of itself and requires, then models and
    prompts, then the rest; a version told twice stands there once."""
    assert [change.name for change in changes(OLD, NEW).suspects] == [
        *("mem0ai", "keyword_search", "server", "image", "openai", "tenacity", "torch"),
        *("llm.model", "embedder.model_sha256", "config.custom_prompt", "extraction_prompt", "judge"),
        *("suite", "scorer", "config.top_k", "git", "streamlit", "python", "build"),
    ]


def test_what_changed_before_without_effect():
    """What changed among good runs already is suspected last, the rest keeps its order."""
    good = [
        {**OLD, "packages": {**OLD["packages"], "mem0ai": "1.0.4"}, "backend": {}},
        {**OLD, "backend": {}},
    ]
    harmless = moved_among(good)
    assert harmless == {"packages.mem0ai"}
    before, after = changes(OLD, NEW), changes(OLD, NEW, harmless=harmless)
    assert [change.name for change in after.suspects] == [
        *(change.name for change in before.suspects if change.name != "mem0ai"),
        "mem0ai",
    ]
    assert [change.name for change in after.suspects if change.moved_before] == ["mem0ai"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({"revision": "a1"}, {"revision": "a1", "branch": "other"}, None),
        ({"revision": "a1", "changed": True, "diff": "x"}, {"revision": "a1"}, ("a1+x", "a1", None)),
        (
            {"revision": "a1", "changed": True, "diff": "x"},
            {"revision": "b2", "changed": True, "diff": "x"},
            ("a1+x", "b2+x", "a1..b2"),
        ),
        ({"revision": "a1", "changed": True}, {"revision": "a1"}, ("a1+changes", "a1", None)),
        ({}, {"revision": "b2"}, (None, "b2", None)),
    ],
)
def test_git(old, new, said):
    """Git is one change, of commits or of what is not committed; another name of the branch is none."""
    git = changes({"git": old}, {"git": new}).git
    assert (git and (git.old, git.new, git_range(git))) == said


@given(side=sides)
def test_a_side_is_equal_to_itself(side):
    """Nothing changed from a side to itself."""
    found = changes(side, side)
    assert found.suspects == ()
    assert not any(found[1:])
    assert found.packages == ((), (), ())
    assert title(found) == "Nothing that is recorded changed"


@given(one=sides, other=sides)
def test_swapping_the_sides(one, other):
    """The other way round, what was added was removed, and every change is turned around."""
    there, back = changes(one, other), changes(other, one)

    def turned(found):
        return sorted((change.path, repr(change.new), repr(change.old)) for change in found)

    def straight(found):
        return sorted((change.path, repr(change.old), repr(change.new)) for change in found)

    assert straight(there.packages.added) == turned(back.packages.removed)
    assert straight(there.packages.moved) == turned(back.packages.moved)
    assert straight(there.suspects) == turned(back.suspects)


@given(one=sides, other=sides)
def test_suspects_are_all_that_changed(one, other):
    """Every change is a suspect once, and those that changed before are behind all others."""
    found = changes(one, other, harmless={"packages.mem0ai", "config.k", "git"})
    by_kind = [*sum(found.packages, ()), *(change for kind in PLAIN_KINDS for change in getattr(found, kind))]
    assert sorted(map(repr, found.suspects)) == sorted(
        map(repr, [*by_kind, *([found.git] if found.git else [])])
    )
    moved = [change.moved_before for change in found.suspects]
    assert moved == sorted(moved)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("mem0ai", "1.0.5", "1.0.6"), "mem0ai 1.0.5 → 1.0.6"),
        (("tenacity", None, "9.0"), "tenacity 9.0 added"),
        (("torch", "2.5", None), "torch 2.5 removed"),
        (("image", "sha256:" + "a1" * 32, "sha256:" + "b2" * 32), "image sha256:a1a1a1a1 → sha256:b2b2b2b2"),
        (("rerank", False, ["a", 1]), 'rerank false → ["a", 1]'),
        (("prompt", "Be kind\nand brief.", "Be brave."), "prompt Be kind and brief. → Be brave."),
        (("prompt", "a " * 90 + "b", "a " * 90 + "c"), f"prompt changed: {'a ' * 23}a…"),
    ],
)
def test_sentences(change, said):
    """A change is a short sentence, whatever the values are."""
    name, old, new = change
    assert sentence(Change(name, "backend", old, new, name)) == said


def test_the_title_names_the_first_suspects():
    """The first three are named, the others counted."""
    said = title(changes(OLD, NEW))
    assert said == "mem0ai 1.0.5 → 1.0.6, keyword_search on → off, server 1.9 → 2.0, and 16 more"


# Of the record --------------------------------------------------------------------


@pytest.fixture
def nights(db, seed):
    """Four runs, a night apart: mem0ai moves each night but the last, numpy in the last one."""

    def night(day, mem0ai, numpy):
        content = {"packages": {"mem0ai": mem0ai, "numpy": numpy}, "of_backend": {"mem0ai": {}}}
        environment = writes.register_environment(db, content)
        return seed.run(version, ["a"], day=day, environment_id=environment, meta={"night": str(day)})

    version = seed.suite()
    return [night(0, "1.0", "2.1"), night(1, "1.1", "2.1"), night(2, "1.2", "2.1"), night(3, "1.3", "2.2")]


def test_between_two_runs(db, nights):
    """Two runs by their ids, with what the runs themselves were given."""
    found = queries.changes_between(db, nights[0], nights[3])
    assert (found.before.id, found.after.id) == (nights[0], nights[3])
    assert told(found.changes.packages.moved) == [("mem0ai", "1.0", "1.3"), ("numpy", "2.1", "2.2")]
    assert told(found.changes.meta) == [("night", "0", "3")]
    assert not found.changes.suite


def test_another_version_of_the_suite(db, seed, nights):
    """Questions that changed, and a scorer that did, are changes as any other."""
    content = {"packages": {"mem0ai": "1.3", "numpy": "2.2"}}
    given = {"environment_id": writes.register_environment(db, content), "scorer_version": "2"}
    changed = seed.run(seed.suite(cases={"a": "2"}), [], cases=["a"], day=4, meta={"night": "3"}, **given)
    found = queries.changes_between(db, nights[3], changed).changes
    assert told(found.suspects) == [("suite", "golden a1-b1-c1-d1", "golden a2"), ("scorer", "1", "2")]


def test_runs_of_two_suites(db, seed, nights):
    """That two runs were asked other questions is no change, and explains nothing."""
    content = {"packages": {"mem0ai": "1.3", "numpy": "2.3"}}
    given = {"environment_id": writes.register_environment(db, content), "meta": {"night": "3"}}
    other = seed.run(seed.suite("smoke"), ["a"], day=4, **given)
    found = queries.changes_between(db, nights[3], other)
    assert not found.is_of_one_suite
    assert told(found.changes.suspects) == [("numpy", "2.2", "2.3")]


def test_cases_that_turned(db, seed):
    """A case turned where both runs asked the same and judged it; an edited one is another case."""
    first = seed.run(seed.suite(), ["a", "b", "c"], day=1)
    second = seed.run(seed.suite(cases={"a": "1", "b": "1", "c": "2", "d": "1"}), ["a", "d"], day=2)
    assert queries.turned_between(db, first, second) == (["b"], ["d"])
    assert queries.turned_between(db, second, first) == (["d"], ["b"])


def test_good_runs_speak_for_what_moved(db, nights):
    """What moved from one good run to the next is suspected last, whatever the order they are named in; what
    moved to a run that is not known to be good speaks for nothing."""
    first, second, third, fourth = nights
    ranked = queries.changes_between(db, third, fourth, good=[second, first]).changes.suspects
    assert [(change.name, change.moved_before) for change in ranked] == [
        ("numpy", False),
        ("mem0ai", True),
        ("night", True),
    ]
    assert queries.changes_between(db, third, fourth, good=[third]).changes.suspects[0].name == "mem0ai"


def test_marks_between(db, nights):
    """The marks after the start of the earlier run, up to that of the later one, whichever is named first."""
    for hours in (-1, 1, 23, 24, 25):
        writes.add_mark(db, f"{hours} h", START + timedelta(hours=hours))
    for one, other in (nights[:2], nights[1::-1]):
        marks = queries.changes_between(db, one, other).changes.marks
        assert [mark.text for mark in marks] == ["1 h", "23 h", "24 h"]


def test_nothing_to_compare(db, seed, nights):
    """A run that there is not, and one whose environment is not recorded, are named."""
    with pytest.raises(queries.NothingToCompare, match="no run 99"):
        queries.changes_between(db, nights[0], 99)
    bare = seed.run(seed.suite(), [], status="void", day=4)
    with pytest.raises(queries.NothingToCompare, match=f"run {bare} is void: what it ran on is not recorded"):
        queries.changes_between(db, nights[0], bare)
