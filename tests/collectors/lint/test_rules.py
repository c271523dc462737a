"""Each rule: something that it finds, and something like it that is right."""

import pytest

from collectors.lint import RULES
from collectors.lint.cases import LEGS
from collectors.lint.rules import BY_NAME
from tests.collectors.lint.conftest import HARBOUR, NEAR, case

TAR = "The ferry to Tarnvik leaves at 8:10."
FORGET = [
    {
        "plant": [
            {"id": "code", "text": "The gate code is 4471."},
            {"id": "bins", "text": "Bins go out on Monday."},
            {"id": "rain", "text": "The gate sticks in the rain."},
        ]
    },
    {"forget": ["code"]},
]


def steps(*probes, **fields):
    return {"id": "gate", "tags": ["forgetting"], "source": "made up", "steps": [*FORGET, *probes], **fields}


BAD = {
    "malformed": [case(k=0)],
    "duplicate-id": [
        case("twice"),
        case("twice", query="And where is the ladder?", expect_any=["in the loft"]),
    ],
    "invalid-regex": [case(expect_any=["shed (behind"])],
    "catastrophic-regex": [case(expect_any=[r"(\w+\s?)+mill\."])],
    "no-writes": [case(writes=None)],
    "underivable": [case(expect_any=["cellar"])],
    "forbidden-matches-wanted": [case(forbid_any=["kettle"])],
    "no-room": [case(expect_any=None, expect_all=["shed", "loft", "boathouse"])],
    "other-metadata": [
        case(
            writes=[{"id": "k", "text": NEAR[0], "metadata": {"lang": "en"}}, *NEAR[1:]],
            expect_metadata={"k": {"lang": "no", "role": "user"}},
        )
    ],
    "abstain-expects": [case(abstain=True)],
    "forbidden-nothing": [case(forbid_top1=["trumpet"])],
    "ambiguous": [case(world="harbour", user="runa", writes=[TAR], expect_any=["ferry.*leaves"])],
    "too-common": [case(expect_any=["the"])],
    "k-too-large": [case(k=4)],
    "duplicate-story": [case(), case("again", expect_any=["^The kettle"], source="another")],
    "missing-source": [case(source=None)],
    "unknown-leg": [case(leg="keywrod")],
    "question-tells": [case(query="Is the kettle in the shed behind the mill?")],
    "undated": [case(writes=[*NEAR, "Yesterday the mill was painted."])],
    "idle-step": [steps({"probe": "What opens the gate?", "forbid_any": ["4471"]}, {"forget": ["bins"]})],
    "forgetting-unseen": [steps({"probe": "When are the bins due?", "expect_any": ["on Monday"], "k": 1})],
    "secret": [case(writes=[*NEAR, "The token is ghp_" + "a1B2" * 9 + "."])],
    "personal-data": [case(writes=[*NEAR, "Ask Odd at odd.lund@havnekontoret.no."])],
}
FLOORS = {"passed-by-nothing", "passed-by-everything", "passed-by-both"}


@pytest.mark.parametrize("rule", sorted(BAD))
def test_a_bad_case_is_found(rule, checked):
    """Each rule finds its bad case, at the last line of the file, with its own level and what to do."""
    found = checked.full(*BAD[rule], harbour=HARBOUR)
    assert [one.rule for one in found] == [rule]
    (one,) = found
    assert one.file.endswith("mine.jsonl")
    assert (one.line, one.case) == (len(BAD[rule]), BAD[rule][-1]["id"])
    assert (one.severity, one.hint) == (BY_NAME[rule].severity, BY_NAME[rule].hint)
    assert one.message


def test_every_rule_has_a_bad_case():
    """A rule without an example of what it finds would be a rule that is not tested."""
    assert set(BAD) | FLOORS == {rule.name for rule in RULES}


RIGHT = {
    "the sound case": case(),
    "no tags and no forbidden": case(tags=[]),
    "one pattern of several": case(expect_any=["cellar", "shed behind the mill"]),
    "a group that repeats with something between": case(expect_any=[r"(\w+ ){2}behind the mill"]),
    "nested repeats that nothing follows": case(expect_any=[r"behind (\w+\s?)+"]),
    "a near-miss may not come first": case(forbid_top1=["ladder"]),
    "the stale sentence": case(
        writes=[*NEAR, "We moved from MySQL to Postgres."], expect_any=["to Postgres"], forbid_top1=["ladder"]
    ),
    "a near-miss of the world that is forbidden": case(
        world="harbour", user="runa", writes=[TAR], expect_any=["ferry.*leaves"], forbid_any=["Skarholm"]
    ),
    "one ferry of two": case(world="harbour", user="runa", writes=[TAR], expect_any=[r"\b8:10"]),
    "asked of the world": case(world="harbour", writes=None, expect_any=[r"\b7:40"]),
    "one of three": case(writes=NEAR[:3], expect_any=["shed"], k=1),
    "k as large, and something must stay away": case(
        writes=[*NEAR, {"text": "Anna's kettle is blue.", "user": "anna"}], k=5, forbid_any=["Anna's"]
    ),
    "a user who stored nothing": case(
        user="newcomer", expect_any=None, at_most=0, forbid_any=["kettle"], abstain=True, k=None
    ),
    "silence is right": case(
        query="Who plays the organ?", expect_any=None, forbid_any=["kettle"], abstain=True
    ),
    "an identifier, asked of one index": case(
        writes=[*NEAR, "PAY_US_MS is 12000."],
        leg="keyword",
        query="PAY_US_MS",
        expect_any=[r"PAY_US_MS\b.*12000"],
    ),
    "by id": case(
        writes=[{"id": "a", "text": "Watered the ferns."}, {"id": "b", "text": "Watered the ferns."}, *NEAR],
        expect_any=None,
        expect_ids=["a", "b"],
    ),
    "forgotten": steps({"probe": "What opens the gate?", "forbid_any": ["4471"], "abstain": True}),
    "kept beside the forgotten": steps(
        {"probe": "When are the bins due?", "expect_any": ["on Monday"], "forbid_any": ["4471"]}
    ),
    "amended": {
        **steps(),
        "steps": [
            {"plant": [{"id": "k", "text": "The kettle is in the shed."}, *NEAR[1:]]},
            {"amend": "k", "text": "The kettle is in the cellar."},
            {"probe": "Where is the kettle?", "expect_any": ["cellar"], "forbid_any": ["shed"], "k": 2},
        ],
    },
    "session": {
        **steps(),
        "steps": [
            {"session": "monday"},
            {"plant": list(NEAR)},
            {"session": "friday"},
            {"plant": ["The kettle is lent out.", "Rain."]},
            {"probe": "Kettle?", "expect_any": ["lent"], "forbid_any": ["shed"], "k": 1},
            {"probe": "Kettle, ever?", "session": None, "expect_all": ["lent", "shed"], "k": 3},
        ],
    },
    "asked by its name": case(tags=["identifier"], query="behind the mill", expect_any=["behind the mill"]),
    "facts that share a memory": case(expect_any=None, expect_all=["kettle", "shed", "mill"], k=1),
    "two of three": case(expect_any=None, expect_all=["shed", "loft"], k=2),
    "metadata as planted": case(
        writes=[{"id": "k", "text": NEAR[0], "at": "2026-03-04", "metadata": {"lang": "en"}}, *NEAR[1:]],
        expect_metadata={"k": {"lang": "en", "role": "user", "at": "2026-03-04T00:00:00Z"}},
    ),
    "a set of two, and a word of one": case(
        writes=[{"id": "a", "text": NEAR[0]}, *NEAR[1:]], only_ids=["a"], at_most=1
    ),
    "yesterday, of a day": case(writes=[*NEAR, {"text": "Yesterday the mill burnt.", "at": "2026-03-04"}]),
    "in the last week of May": case(writes=[*NEAR, "The miller is away in the last week of May."]),
    "words that all are part of longer ones": case(
        writes=["Repainted the mill.", "Repainting the mill.", *NEAR], expect_any=["paint"]
    ),
    "a number and its unit": case(
        writes=["The limit is 45 days.", "Retention: 45d since May.", *NEAR], expect_any=[r"\b45"]
    ),
    "a script without spaces": case(
        writes=["住むのは東京。", "東京都の塔を見た。", *NEAR], expect_any=["東京"]
    ),
    "numbers of their own": case(
        writes=["The limit is 45 days.", "In Fenwick it is 450 days, in Orrin 145, in Rill 1.45.", *NEAR],
        expect_any=[r"\b45 days"],
    ),
    "made-up details": case(
        writes=[*NEAR, "Write to desk@example.com, call 555-0123 or +44 1632 960983, order 2026-03-04/17."]
    ),
}


@pytest.mark.parametrize("what", RIGHT)
def test_what_is_right_is_left_alone(what, checked):
    """Shapes that good suites have are no findings."""
    assert checked(RIGHT[what], harbour=HARBOUR) == []


@pytest.mark.parametrize(
    ("writes", "asked", "told"),
    [
        ([{"text": "The violin is in the loft.", "user": "anna"}, *NEAR], {}, "(user anna)"),
        (
            [{"text": "The violin is in the loft.", "domain": "home"}, *NEAR],
            {"domains": ["work"]},
            "domain home",
        ),
        ([{"text": "The violin is out.", "session": "s1"}, *NEAR], {"session": "s2"}, "session s1"),
    ],
)
def test_out_of_reach_is_told_with_its_place(writes, asked, told, checked):
    """What is planted for another user, domain or session is no answer; the finding says where it is."""
    found = checked.full(case(writes=writes, expect_any=["violin"], **asked))
    assert [one.rule for one in found] == ["underivable"]
    assert "does not reach" in found[0].message
    assert told in found[0].message


def test_what_is_planted_later_is_no_answer(checked):
    """A question is answered from what was planted before it."""
    late = [
        {"plant": list(NEAR)},
        {"probe": "Fiddle?", "expect_any": ["violin"], "k": 2},
        {"plant": ["The violin is here."]},
        {"probe": "And now?", "expect_any": ["violin is"], "k": 1},
    ]
    assert checked({**steps(), "steps": late}) == [(1, "gate/1", "underivable")]


def test_what_is_forgotten_is_no_answer(checked):
    """A question cannot be answered from what was forgotten before it."""
    asked = {"probe": "What opens the gate?", "expect_any": ["4471"], "forbid_any": ["rain"], "k": 1}
    found = checked(steps(asked))
    assert found == [(1, "gate", "underivable")]


def test_an_id_that_is_not_planted_is_underivable(checked):
    """A wanted id that nothing bears keeps the suite from loading, and is told as what it is."""
    assert checked(case(expect_ids=["nobody"])) == [(1, "kettle", "underivable")]


def test_the_answer_of_another_case_is_no_answer(checked):
    """A case of a world may move to another group, and its neighbours' writes with it or without it."""
    neighbour = case("neighbour", world="harbour", user="runa", writes=[TAR], expect_any=["Tarnvik"])
    leaning = case("leaning", world="harbour", writes=None, query="Tarnvik?", expect_any=["Tarnvik leaves"])
    assert checked(neighbour, leaning, harbour=HARBOUR) == [
        (2, "leaning", "underivable"),
    ]


def test_a_neighbours_write_that_passes_for_the_answer_is_ambiguous(checked):
    """A new write of one case that matches what another one wants is reported at that other one."""
    old = case("old", world="harbour", writes=None, query="When to Skarholm?", expect_any=[r"ferry.*7:40"])
    new = case(
        "new",
        world="harbour",
        user="runa",
        writes=["The other ferry also leaves at 7:40."],
        expect_any=["other"],
    )
    assert checked(
        old, new, harbour=[*HARBOUR, *({"id": f"x{n}", "text": f"Mast {n}"} for n in range(3))]
    ) == [(1, "old", "ambiguous")]


def test_what_may_not_come_first_is_not_the_answer(checked):
    """A wanted pattern that also finds what the case itself calls stale passes with the stale fact alone."""
    stale = case(
        writes=["Stand-up is at 9:15.", "Stand-up moved: 9:45, was 9:15.", *NEAR],
        expect_any=["9:15"],
        forbid_top1=["^Stand-up is"],
    )
    assert checked(stale) == [(1, "kettle", "ambiguous")]


def test_the_right_answer_may_not_be_kept_from_the_first_place(checked):
    """Where every memory that answers is forbidden first, the best memory loses."""
    assert checked(case(forbid_top1=["kettle"])) == [(1, "kettle", "forbidden-matches-wanted")]


def test_a_pattern_that_runs_away_is_one_finding(checked):
    """However many cases bear it, and whatever else would follow from it, it is told once."""
    lines = [
        case(f"c{n}", query=f"Question {n}?", expect_any=["^(a|aa)+$"], forbid_any=["^(a|aa)+$"])
        for n in range(3)
    ]
    assert checked(*lines) == [(1, "c0", "catastrophic-regex")]


def test_a_pattern_that_only_trying_tells_is_one_finding(checked):
    """What does not look like it, and never ends on what is planted, is given up and told once."""
    lines = [
        case(
            f"c{n}",
            query=f"{n}?",
            writes=[f"{'ab' * 60}{i}" for i in range(5)],
            expect_any=["^(a|b|ab)*[cd]$"],
        )
        for n in range(3)
    ]
    assert checked(*lines) == [(1, "c0", "catastrophic-regex")]


def test_one_malformed_line_hides_no_other_finding(checked):
    """Of a file that cannot be loaded all is told: each broken line, and what is wrong with the rest."""
    found = checked(
        "{", case("short", expect_any=["cellar"]), case("k", k="many"), case("fine", query="Water?")
    )
    assert found == [(1, "", "malformed"), (2, "short", "underivable"), (3, "k", "malformed")]


def test_a_world_that_is_not_there_is_told(checked):
    """A case whose world is missing is told with its line."""
    assert checked(case(world="moon")) == [(1, "", "malformed")]


def test_a_broken_line_of_a_world_is_told_with_the_worlds_file(checked):
    """What is wrong with a world is told where it stands."""
    (found,) = checked.full(case(world="harbour"), harbour=[*HARBOUR, {"text": "no id"}])
    assert (found.file.endswith("harbour.jsonl"), found.line, found.rule) == (True, 6, "malformed")


def test_a_probe_of_steps_is_told_by_its_name_and_the_cases_line(checked):
    """Probes have no line of their own; a missing source is the case's, and told once."""
    found = checked(
        steps(
            {"probe": "Bins?", "expect_any": ["Monday"], "k": 2},
            {"probe": "Code?", "forbid_any": ["nonsense"], "abstain": True},
            source="",
        )
    )
    assert found == [
        (1, "gate/2", "forbidden-nothing"),
        (1, "gate/1", "k-too-large"),
        (1, "gate/1", "missing-source"),
    ]


def test_the_same_question_twice_in_one_case_is_a_story(checked):
    """Asking again after something changed, or asked twice in a row, is one story and not two."""
    asked = {"probe": "What opens the gate?", "forbid_any": ["4471"], "abstain": True}
    assert checked(steps(asked, asked)) == []


@pytest.mark.parametrize(
    "near", ["In Fenwick it is 450 days.", "There are 145 chairs.", "The rate is 1.45.", "It opens at 9:45."]
)
def test_a_longer_number_of_the_cases_own_is_ambiguous(near, checked):
    """45 is in 450 too: a near-miss that holds what is wanted in a longer number passes for the answer."""
    found = checked(case(writes=["The limit is 45 days.", near, *NEAR], expect_any=["45"]))
    assert found == [(1, "kettle", "ambiguous")]


def test_a_longer_word_of_the_world_is_ambiguous(checked):
    """The same holds of what the world says."""
    world = [*HARBOUR, {"id": "p", "text": "A steam crane stood here."}, {"id": "c", "text": "Cranes breed."}]
    world += [{"id": f"m{n}", "text": f"Mast {n} is of pine."} for n in range(3)]
    asked = case(world="harbour", user="runa", writes=None, expect_any=["crane"])
    assert checked(asked, harbour=world) == [(1, "kettle", "ambiguous")]


def test_more_wanted_than_may_come_back(checked):
    """No memory can give a fact where none may come back, nor three memories where two may."""
    assert checked(case(at_most=0)) == [(1, "kettle", "no-room")]
    three = case(expect_any=None, expect_all=["shed", "loft", "boathouse"], k=3)
    assert checked(three) == []
    assert checked({**three, "at_most": 2}) == [(1, "kettle", "no-room")]


def test_what_only_ids_leave_out_is_not_wanted(checked):
    """A fact that stands only in memories that may not come back loses the case for the best memory."""
    writes = [{"id": "a", "text": NEAR[1]}, NEAR[0], *NEAR[2:]]
    assert checked(case(writes=writes, only_ids=["a"])) == [(1, "kettle", "forbidden-matches-wanted")]


@pytest.mark.parametrize(
    "doing",
    [
        [{"forget": ["code"]}],
        [{"forget_user": "nobody"}],
        [{"amend": "bins", "text": "Bins go out on Monday."}],
        [{"amend": "code", "text": "The gate code is 4472."}],
    ],
)
def test_a_step_without_effect(doing, checked):
    """Forgetting what is gone, forgetting nobody, and amending to the same or what is gone are told."""
    asked = {"probe": "What opens the gate?", "forbid_any": ["4471"], "abstain": True}
    assert checked(steps(*doing, asked)) == [(1, "gate", "idle-step")]


@pytest.mark.parametrize("source", ["", "  ", "todo", "TBD", "FIXME: where from?", "n/a", "???"])
def test_a_source_still_to_be_written_is_none(source, checked):
    """A word that stands for a missing source is a missing source."""
    assert checked(case(source=source)) == [(1, "kettle", "missing-source")]


def test_a_source_that_begins_like_one(checked):
    """The name of a project is a source."""
    assert checked(case(source="todo-app/server, its second report")) == []


def test_the_legs_are_those_of_the_backends_that_we_ship():
    """A leg that lint knows is one that a shipped backend has, and the other way round."""
    from collectors.backends.dense import Dense
    from collectors.backends.hybrid import Hybrid
    from collectors.backends.keyword import Keyword

    assert set(LEGS) == {leg for backend in (Dense, Hybrid, Keyword) for leg in backend.legs}
