"""The golden format as people write it, and what is said of a line that is written wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from collectors.suite import Expectation, Forget, Memory, SuiteError
from collectors.suites.golden_format import MAX_K, STEPS, Case, Write
from tests.collectors.suites.lines import LAB, STEP, Line, Reader, a_case, asked, of_steps, planted

# Four cases in the practitioner's format, and in nothing else.
PUBLISHED = [
    {
        "id": "release-day",
        "writes": [
            "Releases go out on Tuesdays after the stand-up.",
            "The stand-up moved to half past nine.",
        ],
        "query": "When do we ship?",
        "expect_any": ["tuesday"],
        "forbid_top1": ["stand-up moved"],
        "k": 3,
        "tags": ["recall", "schedule"],
        "source": "asked twice in one week",
    },
    {
        "id": "ticket-number",
        "writes": ["The outage of the queue is HARBOR-118.", "The outage of the cache is HARBOR-181."],
        "query": "HARBOR-118",
        "expect_any": ["HARBOR-118"],
        "forbid_top1": ["HARBOR-181"],
        "k": 5,
        "tags": ["identifier"],
        "source": "digits swapped",
    },
    {
        "id": "moved-office",
        "writes": ["The office is on Pier 4.", "Since May the office is in the old mint."],
        "query": "Where should the courier go?",
        "expect_any": ["old mint", "\\bmint\\b"],
        "forbid_top1": ["Pier 4"],
        "tags": [],
        "source": "",
    },
    {
        "id": "no-peanuts",
        "writes": ["Ines cannot eat peanuts."],
        "query": "What may not be in Ines's lunch?",
        "expect_any": ["peanuts?"],
        "forbid_top1": [],
    },
]

# The practitioner's format


def test_the_practitioners_format_is_read_unchanged(reading: Reader):
    """Each case has a namespace of its own with its writes alone, and asks what its line says."""
    suite = reading(*PUBLISHED)
    assert [scenario.id for scenario in suite.scenarios] == [line["id"] for line in PUBLISHED]
    for scenario, line in zip(suite.scenarios, PUBLISHED, strict=True):
        plant, probe = scenario.steps
        assert [memory.text for memory in plant.memories] == line["writes"]
        assert (probe.case, probe.query, probe.k) == (line["id"], line["query"], line.get("k", 5))
        assert (probe.tags, probe.source) == (tuple(line.get("tags", ())), line.get("source", ""))
        expected = [Expectation("any", tuple(line["expect_any"]))]
        if line["forbid_top1"]:
            expected.append(Expectation("unwanted_first", tuple(line["forbid_top1"])))
        assert probe.expectations == tuple(expected)
        assert (probe.user, probe.domains, probe.session, probe.leg) == ("user", (), None, None)
        assert not probe.needs


# The additional fields


def test_a_write_may_say_all_that_a_memory_has(reading: Reader):
    """`{id, text, role, at, user, domain, session, metadata}` arrive as written, the id made unique."""
    write = {
        "id": "m1",
        "text": "Ship it.",
        "role": "assistant",
        "at": "2026-03-04T09:30:00+02:00",
        "user": "rosa",
        "domain": "work",
        "session": "s1",
        "metadata": {"channel": "chat", "stars": [1, 2]},
    }
    memory, plain = planted(reading(a_case(writes=[write, "Plain."])))
    at = datetime(2026, 3, 4, 9, 30, tzinfo=timezone(timedelta(hours=2)))
    metadata = {"channel": "chat", "stars": [1, 2]}
    assert memory == Memory("a/m1", "Ship it.", "assistant", at, "rosa", "work", "s1", metadata)
    assert plain == Memory("a/w2", "Plain.", "user", None, "user", None, None, {})


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2026-03-04", datetime(2026, 3, 4, tzinfo=UTC)),
        ("2026-03-04T09:30:00", datetime(2026, 3, 4, 9, 30, tzinfo=UTC)),
        ("2026-03-04T09:30:00Z", datetime(2026, 3, 4, 9, 30, tzinfo=UTC)),
        ("2026-03-04T09:30:00-05:00", datetime(2026, 3, 4, 14, 30, tzinfo=UTC)),
    ],
)
def test_event_times_are_aware(reading: Reader, written: str, moment: datetime):
    """A day is its first moment in UTC, and a time without a zone is UTC."""
    (memory,) = planted(reading(a_case(writes=[{"text": "x", "at": written}])))
    assert memory.at == moment
    assert memory.at.tzinfo is not None


METADATA = Expectation("metadata", ids=("a/m1",), values=(("role", "user"), ("box", 4)))


@pytest.mark.parametrize(
    ("field", "value", "expectation"),
    [
        ("expect_all", ["one", "two"], Expectation("all", ("one", "two"))),
        ("expect_ids", ["m1"], Expectation("all", (), ("a/m1",))),
        ("forbid_any", ["old"], Expectation("unwanted", ("old",))),
        ("forbid_ids", ["m2"], Expectation("unwanted", (), ("a/m2",))),
        ("forbid_top1", ["old"], Expectation("unwanted_first", ("old",))),
        ("only_ids", ["m1", "m2"], Expectation("only", (), ("a/m1", "a/m2"))),
        ("only_ids", [], Expectation("only")),
        ("at_most", 0, Expectation("at_most", n=0)),
        ("at_most", 3, Expectation("at_most", n=3)),
        ("expect_metadata", {"m1": {"role": "user", "box": 4}}, METADATA),
        ("stable", True, Expectation("stable")),
    ],
)
def test_each_expectation_alone_makes_acase(
    reading: Reader, field: str, value: Any, expectation: Expectation
):
    """Every field of an expectation becomes that expectation, and needs no other beside it."""
    writes = [{"id": "m1", "text": "one"}, {"id": "m2", "text": "two"}]
    (probe,) = asked(reading({"id": "a", "query": "q", "writes": writes, field: value}))
    assert probe.expectations == (expectation,)
    beside = {"metadata"} if expectation.kind == "metadata" else set()
    assert probe.needs == ({"ids"} if expectation.ids else set()) | beside


def test_metadata_is_expected_of_each_id_apart(reading: Reader):
    """Two ids with metadata are two things to hold; an unknown id, and one without values, are refused."""
    case = {"id": "a", "query": "q", "writes": ["p", "f"]}
    (probe,) = asked(reading({**case, "expect_metadata": {"w1": {"at": "2026-03-04"}, "w2": {"x": None}}}))
    assert [(e.ids, e.values) for e in probe.expectations] == [
        (("a/w1",), (("at", "2026-03-04"),)),
        (("a/w2",), (("x", None),)),
    ]
    for wrong in ({"gone": {"role": "user"}}, {"w1": {}}):
        with pytest.raises(SuiteError, match="expect_metadata"):
            reading({**case, "expect_metadata": wrong})


def test_patterns_and_ids_of_one_kind_are_one_expectation(reading: Reader):
    """expect_all with expect_ids, and forbid_any with forbid_ids, are each one thing to hold."""
    fields = {"expect_all": ["p"], "expect_ids": ["w1"], "forbid_any": ["f"], "forbid_ids": ["w2"]}
    (probe,) = asked(reading({"id": "a", "query": "q", "writes": ["p", "f"], **fields}))
    assert probe.expectations == (
        Expectation("all", ("p",), ("a/w1",)),
        Expectation("unwanted", ("f",), ("a/w2",)),
    )


@pytest.mark.parametrize(
    ("field", "value", "read"),
    [
        ("k", 12, 12),
        ("leg", "keyword", "keyword"),
        ("user", "rosa", "rosa"),
        ("domains", ["work", "home"], ("work", "home")),
        ("session", "s1", "s1"),
        ("abstain", True, True),
        ("critical", True, True),
        ("cluster", "returns", "returns"),
        ("tags", ["recall", "numbers", "recall"], ("recall", "numbers")),
        ("source", "a report", "a report"),
    ],
)
def test_each_field_of_a_question_arrives(reading: Reader, field: str, value: Any, read: Any):
    """What is said of a question stands in its probe; a tag written twice counts once."""
    (probe,) = asked(reading(a_case(**{field: value})))
    assert getattr(probe, field) == read


def test_every_field_is_tried_here():
    """A field added to the format is missing in the tests of this file until it is tried."""
    text = Path(__file__).read_text(encoding="utf-8")
    assert [
        name for name in {**Case.model_fields, **Write.model_fields, **STEPS} if f'"{name}"' not in text
    ] == []


# Three full examples, in the shape of a case that earns its place

SUPERSEDED = {
    "id": "clinic-visiting-hours-widened",
    "world": "clinic",
    "tags": ["supersession", "temporal", "numbers"],
    "writes": [
        {
            "text": "Sister Agnes told the volunteers that the ward closes to guests at 6 pm.",
            "at": "2026-02-02",
        },
        {"text": "From Lent on, guests may stay on the ward until 8:30 in the evening.", "at": "2026-03-10"},
        {"text": "Intensive care still closes at 6 pm, for everyone.", "at": "2026-03-10"},
    ],
    "query": "Her brother gets off the train at seven. Can he see her tonight?",
    "expect_any": ["8:30|half past eight"],
    "forbid_top1": ["ward closes.*6", "intensive care"],
    "k": 5,
    "source": "stale rule first after a change",
}
CANARY = {
    "id": "clinic-pager-of-the-night-shift",
    "world": "clinic",
    "tags": ["identifier", "near-duplicates"],
    "leg": "keyword",
    "writes": ["The night shift of ward B answers PGR-0417, the charge nurse carries it."],
    "query": "PGR-0417",
    "expect_any": ["PGR-0417.*charge nurse"],
    "forbid_top1": ["PGR-0471"],
    "source": "one index half gone, unseen behind the other",
}
FORGOTTEN = {
    "id": "clinic-forget-door-code-keep-diet",
    "world": "clinic",
    "tags": ["forgetting", "collateral loss"],
    "critical": True,
    "cluster": "doors",
    "near": ["door-*", "meal-soup"],
    "steps": [
        {
            "plant": [
                {"id": "p1", "text": "The medicine room opens with 5520 this month."},
                {"id": "p2", "text": "Mr Okafor gets no salt, and his tea without sugar."},
                {"id": "p3", "text": "The linen room opens with 5502."},
            ]
        },
        {"forget": ["p1"]},
        {"probe": "How do I open the medicine room?", "forbid_any": ["5520"], "abstain": True},
        {"probe": "What must not be on Mr Okafor's tray?", "expect_any": ["no salt|sugar"]},
    ],
    "source": "a delete took its neighbours with it",
}
CLINIC = [
    {"id": "door-roof", "text": "The roof door is alarmed.", "user": "agnes"},
    {"id": "door-garden", "text": "The garden door opens with 1905."},
    {"id": "meal-soup", "text": "Soup is at noon."},
    {"id": "meal-tea", "text": "Tea is at four."},
    {"id": "pager-ward-c", "text": "The night shift of ward C answers PGR-0471."},
]


def test_a_case_in_a_world_is_asked_among_its_near_misses(reading: Reader):
    """Ask-only cases of a world share one scenario: its memories, their writes, then their questions."""
    (scenario,) = reading(SUPERSEDED, CANARY, clinic=CLINIC).scenarios
    plant, stale, canary = scenario.steps
    assert [memory.id for memory in plant.memories] == [
        *(line["id"] for line in CLINIC),
        *(f"{SUPERSEDED['id']}/w{n}" for n in (1, 2, 3)),
        f"{CANARY['id']}/w1",
    ]
    assert {memory.user for memory in plant.memories} == {"agnes"}
    assert (stale.case, canary.case) == (SUPERSEDED["id"], CANARY["id"])
    assert stale.expectations == (
        Expectation("any", ("8:30|half past eight",)),
        Expectation("unwanted_first", ("ward closes.*6", "intensive care")),
    )
    assert (stale.leg, canary.leg) == (None, "keyword")
    assert [memory.at for memory in plant.memories[5:7]] == [
        datetime(2026, 2, 2, tzinfo=UTC),
        datetime(2026, 3, 10, tzinfo=UTC),
    ]
    assert [len(step.memories) for step in stale.story] == [3]  # its own writes, not the world


def test_a_case_that_writes_has_a_namespace_with_chosen_near_misses(reading: Reader):
    """Steps with `near` make one scenario: the chosen memories first, then the steps, two critical probes."""
    (scenario,) = reading(FORGOTTEN, clinic=CLINIC).scenarios
    near, plant, forget, gone, kept = scenario.steps
    assert scenario.id == FORGOTTEN["id"]
    assert [memory.id for memory in near.memories] == ["door-roof", "door-garden", "meal-soup"]
    assert forget == Forget((plant.memories[0].id,))
    assert gone.expectations == (Expectation("unwanted", ("5520",)),)
    assert kept.expectations == (Expectation("any", ("no salt|sugar",)),)
    assert (gone.abstain, kept.abstain) == (True, False)
    assert all(probe.critical and probe.cluster == "doors" for probe in (gone, kept))
    assert gone.background == "3 near-misses of world clinic"


# What is wrong with a line

MALFORMED = [
    ("{", "line", "should be one JSON object"),
    ("[1]", "line", "should be a JSON object, not list"),
    ('"text"', "line", "should be a JSON object, not str"),
    ("{} {}", "line", "should be one JSON object, on one line: Extra data"),
    ('{"query": "q", "id": "a", "id": "b"}', "line", "on one line: 'id' stands twice in one object"),
    ('{"id": "a", "metadata": NaN}', "line", "should be one JSON object"),
    ('{"id": "a", "source": "\\ud800"}', "line", "should be one JSON object"),
    ('{"metadata": ' + "[" * 40 + "]" * 40 + "}", "line", "nested deeper than 32 levels"),
    ('{"metadata": ' + "[" * 90_000 + "]" * 90_000 + "}", "line", "should be one JSON object"),
    ({"query": "q", "expect_any": ["x"]}, "id", "should be there"),
    (a_case(id=""), "id", "should not be blank"),
    (a_case(id=7), "id", "should be a valid string"),
    (a_case(query=" "), "query", "should not be blank"),
    ({"id": "a", "expect_any": ["x"]}, "line", "should have query, or steps with a probe"),
    ({"id": "a", "query": "q"}, "line", "should have at least one of expect_any, expect_all"),
    ({"id": "a", "query": "q", "abstain": True}, "line", "abstain alone forbids nothing"),
    (a_case(expect_any="x"), "expect_any", "should be a valid list"),
    (a_case(expect_any=[""]), "expect_any.0", "should not be blank"),
    (a_case(expect_any=["x", "("]), "expect_any.1", "is not a regular expression: missing )"),
    (a_case(forbid_top1=["(" * 9_000]), "forbid_top1.0", "is not a regular expression"),
    (a_case(forbid_any=["(?V0)(?V1)x"]), "forbid_any.0", "incompatible"),
    (a_case(expect_all=[3]), "expect_all.0", "should be a valid string"),
    (a_case(k=0), "k", "should be greater than 0"),
    (a_case(k=MAX_K + 1), "k", f"should be less than or equal to {MAX_K}"),
    (a_case(k="5"), "k", "should be a valid integer"),
    (a_case(k=True), "k", "should be a valid integer"),
    (a_case(at_most=-1), "at_most", "should be greater than or equal to 0"),
    (a_case(critical="yes"), "critical", "should be a valid boolean"),
    (a_case(tags=["x", ""]), "tags.1", "should not be blank"),
    (a_case(tags=None), "tags", "should be a valid list"),
    (a_case(expects=["x"]), "expects", "is not a field here; known fields: expect_any, expect_all"),
    (a_case(writes="x"), "writes", "should be a valid list"),
    (a_case(writes=[3]), "writes.0", "should be a string, or an object with a text"),
    (a_case(writes=[" "]), "writes.0.text", "should not be blank"),
    (a_case(writes=["x", {"id": "m"}]), "writes.1.text", "should be there"),
    (a_case(writes=[{"text": "x", "txt": 1}]), "writes.0.txt", "known fields: text, id, role, at, user"),
    (
        a_case(writes=[{"text": "x", "at": "yesterday"}]),
        "writes.0.at",
        "should be an ISO date or time such as",
    ),
    (a_case(writes=[{"text": "x", "at": 20260304}]), "writes.0.at", "should be an ISO date or time such as"),
    (
        a_case(writes=[{"text": "x", "at": "2026-02-30"}]),
        "writes.0.at",
        "should be an ISO date or time such as",
    ),
    (a_case(writes=[{"text": "x", "metadata": []}]), "writes.0.metadata", "should be a valid dictionary"),
    (a_case(writes=[{"id": "m", "text": "x"}, {"id": "m", "text": "y"}]), "id", "'m' is planted already"),
    (a_case(expect_ids=["m"]), "expect_ids", "'m' is not planted before this step; known here: none"),
    (
        a_case(writes=["x"], forbid_ids=["w2"]),
        "forbid_ids",
        "'w2' is not planted before this step; known here: w1",
    ),
    (a_case(writes=["x"], only_ids=["w9"]), "only_ids", "'w9' is not planted before this step"),
    (a_case(world="nowhere"), "world", "'nowhere' should be a file"),
    (a_case(world="../lab"), "world", "should match pattern"),
    (a_case(world="a\0b"), "world", "should match pattern"),
    (a_case(world="w" * 300), "world", "should match pattern"),
    (a_case(world="lab", near=["keys-*", "kyes-*"]), "near", "nothing in world 'lab' matches kyes-*"),
    (a_case(near=["keys-*"]), "line", "near picks memories of a world: give world too"),
    (
        a_case(world="lab", writes=[{"id": "net-router", "text": "x"}]),
        "id",
        "'net-router' is planted already",
    ),
    (a_case(steps=[STEP]), "line", "expect_any, query: with steps, give these inside a step"),
    (of_steps({"plant": ["x"]}), "line", "steps should hold at least one probe"),
    ({"id": "a", "steps": {}}, "steps", "should be a valid list"),
    (of_steps(3, STEP), "steps.0", "should be an object with one of probe, plant, amend"),
    (of_steps({"ask": "q"}), "steps.0", "should be an object with one of probe, plant, amend"),
    (of_steps({"plant": []}, STEP), "steps.0.plant", "should have at least 1 item"),
    (of_steps({"plant": [{}]}, STEP), "steps.0.plant.0.text", "should be there"),
    (of_steps({"plant": ["x"], "at": 1}, STEP), "steps.0.plant.at", "known fields: plant"),
    (of_steps({"probe": "q"}), "steps.0.probe", "should have at least one of expect_any"),
    (of_steps({**STEP, "kk": 1}), "steps.0.probe.kk", "is not a field here; known fields: "),
    (of_steps({"amend": "m"}, STEP), "steps.0.amend.text", "should be there"),
    (
        {"id": "a", "steps": [{"amend": "m", "text": "x"}, STEP]},
        "amend",
        "'m' is not planted before this step",
    ),
    (of_steps({"forget": []}, STEP), "steps.0.forget", "should have at least 1 item"),
    (of_steps({"forget": ["m"]}, STEP), "forget", "'m' is not planted before this step"),
    (of_steps({"forget_user": ""}, STEP), "steps.0.forget_user", "should not be blank"),
    (of_steps({"session": None}, STEP), "steps.0.session", "should be a valid string"),
    (of_steps({"reopen": False}, STEP), "steps.0.reopen", "should be true"),
]


@pytest.mark.parametrize(("line", "field", "expected"), MALFORMED)
def test_a_malformed_line_names_its_place_and_what_was_expected(
    reading: Reader, folder: Path, line: Line, field: str, expected: str
):
    """The message gives file and line, the field, and what should stand there."""
    with pytest.raises(SuiteError) as refused:
        reading(a_case("fine"), "", line)
    said = str(refused.value)
    place = f"{folder / 'mine.jsonl'}:3: {field}: "
    assert place in said
    assert expected in said.split(place, 1)[1]
    said.encode()  # can be printed


MALFORMED_WORLD = [
    ("{", "line", "should be one JSON object"),
    ({"text": "x"}, "id", "every memory of a world needs an id of its own"),
    ({"id": "keys-shed", "text": "x"}, "id", "every memory of a world needs an id of its own"),
    ({"id": "m", "text": ""}, "text", "should not be blank"),
    ({"id": "m", "text": "x", "tags": []}, "tags", "is not a field here; known fields: text, id, role"),
    ('"a string"', "line", "should be a JSON object, not str"),
]


@pytest.mark.parametrize(("line", "field", "expected"), MALFORMED_WORLD)
def test_a_malformed_world_names_its_place_too(
    reading: Reader, folder: Path, line: Line, field: str, expected: str
):
    """A line of a world is refused as one of a suite is, by file, line, field and what was expected."""
    with pytest.raises(SuiteError) as refused:
        reading(a_case(world="lab"), lab=[*LAB, line])
    place = f"{folder / 'worlds' / 'lab.jsonl'}:6: {field}: "
    assert expected in str(refused.value).split(place, 1)[1]
