"""The golden reader under lines that nobody would write, and under all that are well written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collectors.suite import Memory, Plant, Scenario, Suite, SuiteConfig, SuiteError, load
from collectors.suites.golden_format import FILL_IN, STEPS, Case, Write
from tests.collectors.suites.lines import LAB, STEP, Line, a_case, of_steps, written

TEXTS = (
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
    .filter(str.strip)
    .filter(lambda text: not text.startswith(FILL_IN))  # a draft, which is refused
)
GOOD_PATTERNS = st.sampled_from(["x", "a|b", r"\d+", "(?i)x", "(?P<n>x)", r"\p{L}"])


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for every example of a property."""
    return tmp_path_factory.mktemp("shelf")


def _load(shelf: Path, lines: Sequence[Line], lab: Sequence[Line] = LAB) -> Suite:
    return load(SuiteConfig("mine", written(shelf, lines, {"lab": lab})))


# Lines that nobody would write

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
NAMES = st.sampled_from(["a", "b", "w1", "w2", "lab", "keys-*", "keys-shed", "a/w1", "", "../lab", "user"])
PATTERNS = GOOD_PATTERNS | st.sampled_from(["(", "[", "a{2,1}", "*", ""])
NEARLY = st.one_of(VALUES, NAMES, PATTERNS, st.lists(NAMES | PATTERNS, max_size=3), st.integers(-1, 9))
FIELDS = st.sampled_from([*Case.model_fields, *Write.model_fields, *STEPS, "other"])
OBJECTS = st.dictionaries(FIELDS, NEARLY, max_size=3)
STEPS_IN_USE = st.sampled_from(
    [
        STEP,
        {**STEP, "expect_ids": ["w1"]},
        {"plant": ["x", {"id": "b", "text": "y"}]},
        {"amend": "w1", "text": "z"},
        {"forget": ["keys-shed"]},
        {"forget_user": "user"},
        {"session": "s"},
        {"reopen": True},
    ]
)
WORLD_LINES = st.builds(lambda id: {"id": f"more-{id}", "text": "x"}, NAMES)
SELDOM = st.integers(0, 7).map(lambda n: n == 0)


@st.composite
def spoilt(draw: st.DrawFn, whole: st.SearchStrategy[Any]) -> Any:
    """Most often as it should be, at times with other fields, at times anything."""
    value = draw(whole)
    if draw(SELDOM):
        value = value | draw(OBJECTS) if isinstance(value, dict) else draw(VALUES)
    return draw(NEARLY) if draw(SELDOM) else value


@st.composite
def odd_cases(draw: st.DrawFn) -> Any:
    """Something like a case, of either form, in its world, near some of it or alone."""
    place = draw(st.sampled_from([{}, {"world": "lab"}, {"world": "lab", "near": ["keys-*"]}]))
    writes = st.lists(spoilt(TEXTS | st.builds(lambda id: {"id": id, "text": "x"}, NAMES)), max_size=3)
    short = st.builds(lambda id, writes: a_case(id, writes=writes), NAMES, writes)
    long = st.lists(spoilt(STEPS_IN_USE), max_size=5).map(lambda found: of_steps(*found, STEP))
    case = draw(spoilt(short | long))
    return case | place if isinstance(case, dict) else case


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=4))
@example(['{"id": "a", "query": "q", "expect_any": ["x"], "k": 1e400}'])
@example(["9" * 5000])
@example(['{"": ' * 400 + "1" + "}" * 400])
def test_no_text_raises_anything_but_a_suite_error(shelf: Path, lines: list[str]):
    """Whatever stands in a file, reading it gives a suite or a SuiteError."""
    with suppress(SuiteError):
        _load(shelf, lines)


@given(st.lists(odd_cases(), min_size=1, max_size=2), st.lists(spoilt(WORLD_LINES), max_size=1))
def test_no_json_raises_anything_but_a_suite_error(shelf: Path, cases: list[Line], lab: list[Line]):
    """Whatever a case and a world are made of, reading them gives a suite or a SuiteError."""
    with suppress(SuiteError):
        _load(shelf, cases, [*LAB, *lab])


# Lines that are well written

WRITES = TEXTS | st.fixed_dictionaries(
    {"text": TEXTS},
    optional={
        "role": TEXTS,
        "at": st.dates().map(lambda day: day.isoformat()),
        "user": TEXTS,
        "domain": TEXTS,
        "session": TEXTS,
        "metadata": st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=2),
    },
)
GOOD_CASES = st.fixed_dictionaries(
    {"query": TEXTS, "expect_any": st.lists(GOOD_PATTERNS, min_size=1, max_size=2)},
    optional={
        "writes": st.lists(WRITES, max_size=4),
        "forbid_any": st.lists(GOOD_PATTERNS, max_size=2),
        "at_most": st.integers(0, 9),
        "k": st.integers(1, 50),
        "leg": TEXTS,
        "user": TEXTS,
        "domains": st.lists(TEXTS, max_size=2),
        "session": st.none() | TEXTS,
        "abstain": st.booleans(),
        "tags": st.lists(TEXTS, max_size=3),
        "source": st.text(max_size=5),
        "critical": st.booleans(),
        "cluster": TEXTS,
    },
)


@given(st.lists(GOOD_CASES, min_size=1, max_size=4))
def test_a_good_case_arrives_whole(shelf: Path, cases: list[dict[str, Any]]):
    """What a valid line says stands in its scenario, field by field, and nothing else does."""
    lines = [{"id": f"c{n}", **fields} for n, fields in enumerate(cases)]
    for line, scenario in zip(lines, _load(shelf, lines).scenarios, strict=True):
        assert _as_written(scenario) == _filled_in(line)


def _as_written(scenario: Scenario) -> dict[str, Any]:
    """What a compiled scenario of the short form says, in the words of the format."""
    (probe,) = scenario.probes
    plants = [step for step in scenario.steps if isinstance(step, Plant)]
    told = {e.kind: list(e.patterns) if e.n is None else e.n for e in probe.expectations}
    same = ("query", "k", "leg", "user", "abstain", "source", "critical", "cluster")
    return {name: getattr(probe, name) for name in same} | {
        "id": probe.case,
        "writes": [_write(memory) for plant in plants for memory in plant.memories],
        "expect_any": told.pop("any"),
        "forbid_any": told.pop("unwanted", []),
        "at_most": told.pop("at_most", None),
        "session": (probe.session, probe.all_sessions),
        "domains": list(probe.domains),
        "tags": list(probe.tags),
        "besides": told,
    }


def _write(memory: Memory) -> dict[str, Any]:
    fields = {name: getattr(memory, name) for name in Memory.__slots__ if name != "id"}
    return {**fields, "at": memory.at and memory.at.date().isoformat(), "metadata": dict(memory.metadata)}


def _filled_in(line: dict[str, Any]) -> dict[str, Any]:
    """A valid line with every default written out."""
    plain = {"role": "user", "at": None, "user": "user", "domain": None, "session": None, "metadata": {}}
    defaults = {
        "forbid_any": [], "at_most": None, "domains": [], "k": 5, "leg": None, "user": "user",
        "abstain": False, "source": "", "critical": False, "cluster": None,
    }  # fmt: skip
    return {
        **defaults,
        **line,
        "writes": [plain | ({"text": w} if isinstance(w, str) else w) for w in line.get("writes", [])],
        "session": (line.get("session"), "session" in line and line["session"] is None),
        "tags": list(dict.fromkeys(line.get("tags", []))),
        "besides": {},
    }
