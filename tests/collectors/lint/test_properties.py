"""Whatever a pattern and a text are: the short ways give what the long way gives."""

import random

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.lint import lint
from collectors.lint.patterns import runs_away
from collectors.matching import PLAIN_TEXT, Haystack, folded, matches, shape
from collectors.suite import Expectation, Memory, Plant, Probe, Scenario, Suite

PIECES = (
    *(
        "a",
        "b",
        "k",
        "s",
        "i",
        "İ",
        "\u0131",
        "\u017f",
        "ß",
        "é",
        "É",
        "K",
        "4",
        "5",
        " ",
        "-",
        "_",
        "\\.",
        "\\-",
        "\\(",
        ".",
    ),
    *(
        "\\d",
        "\\w",
        "\\s",
        "\\b",
        "[a-z]",
        "[.:]",
        "[^a]",
        "[é]",
        "?",
        "*",
        "+",
        "{2}",
        "{1,3}",
        "{0,9}",
        "|",
        "^",
        "$",
    ),
    *(
        "(",
        ")",
        "(?:",
        "(?=",
        "(?i)",
        "\\A",
        "\\Z",
        "\\x61",
        "[]a]",
        "{",
        "}",
        "]",
        "a{e<=1}",
        "\\p{L}",
        "\\B",
    ),
)
TEXTS = st.text(alphabet="abkKs\u017fiİ\u0131IßSé4 5.-_(:\n", max_size=12)


@st.composite
def patterns(draw):
    return "".join(draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8)))


@settings(max_examples=400, deadline=None)
@given(patterns(), st.lists(TEXTS, max_size=4))
def test_the_short_ways_find_what_regex_finds(pattern, texts):
    """A plain pattern is valid, matches what `regex` matches, and needles rule no match out."""
    try:
        slow = regex.compile(pattern, regex.IGNORECASE)
    except (regex.error, FutureWarning):
        assert not shape(pattern).plain
        return
    holding = Haystack([folded(text) for text in texts]).holding(pattern)
    for place, text in enumerate(texts):
        found = slow.search(text) is not None
        assert matches(pattern, text) is found
        assert place in holding or not found


@settings(max_examples=200, deadline=None)
@given(patterns())
def test_whatever_the_pattern_it_is_examined_quickly(pattern):
    """Looking for repeats inside repeats ends, and raises nothing."""
    assert runs_away(pattern) in (True, False)


@pytest.mark.parametrize(
    ("pattern", "away"),
    [
        (r"(a+)+$", True),
        (r"^(\w+\s?)*$", True),
        (r"(x+x+)+y", True),
        (r"(a|aa)+b", True),
        (r"(?:[^,]+,?)+;", True),
        (r"((\d+)\.?)+ m", True),
        (r"(\w+\s?)*", False),
        (r"(\w+,)*x", False),
        (r"(foo|bar)+ baz", False),
        (r"(\d+-)+\d", False),
        (r"[(a+)+]+b", False),
        (r"\((a+)\)+b", False),
        (r"(a+) +b", False),
    ],
)
def test_what_runs_away(pattern, away):
    """A repeat inside a repeat runs away when a text can be cut up in many ways and what follows can fail."""
    assert runs_away(pattern) is away


def test_a_long_text_is_left_to_the_engine_that_can_be_stopped():
    """However plain a pattern is, on a long text it is watched."""
    assert matches("b.*c", "a" * (PLAIN_TEXT + 1) + "b c")


WORDS = ("kettle", "shed", "ladder", "loft", "rope", "door")


def _suite(seed: int) -> Suite:
    draw = random.Random(seed)
    return Suite("s", "golden", tuple(_scenario(draw, n) for n in range(6)))


def _scenario(draw: random.Random, number: int) -> Scenario:
    memories = tuple(
        Memory(f"{number}-{n}", " ".join(draw.choices(WORDS, k=3)), user=draw.choice("ab")) for n in range(5)
    )
    asked = Expectation("any", (draw.choice(WORDS),)), Expectation("unwanted", (draw.choice(WORDS),))
    place = f"f.jsonl:{number + 1}"
    probe = Probe(f"c{number}", f"q{number}", asked, k=draw.randrange(1, 6), user="a", where=place)
    return Scenario(f"s{number}", (Plant(memories), probe))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_order_changes_nothing(seed):
    """The same scenarios in another order give the same findings."""
    suite = _suite(seed)
    turned = Suite("s", "golden", suite.scenarios[::-1])
    assert lint(turned) == lint(suite)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_no_finding_without_a_reason(seed):
    """An underivable answer is one that no memory of the user matches, and the other way round."""
    suite = _suite(seed)
    told = {found.case for found in lint(suite) if found.rule == "underivable"}
    for scenario in suite.scenarios:
        plant, probe = scenario.steps
        wanted = probe.expectations[0].patterns[0]
        derivable = any(wanted in memory.text for memory in plant.memories if memory.user == "a")
        assert (probe.case in told) is not derivable
