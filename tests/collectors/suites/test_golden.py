"""From lines to scenarios: who shares a namespace with whom, under which names and hashes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from collectors.suite import (
    Amend,
    Forget,
    ForgetUser,
    Memory,
    Plant,
    Probe,
    Reopen,
    Session,
    SuiteConfig,
    SuiteError,
    load,
)
from collectors.suites.golden import SHIPPED_WORLDS
from collectors.suites.golden_format import MAX_DEPTH
from tests.collectors.suites.lines import (
    LAB,
    STEP,
    Reader,
    a_case,
    asked,
    hashes_of,
    of_steps,
    planted,
    written,
)


def test_a_byte_order_mark_blank_lines_and_crlf_are_no_matter(folder: Path):
    """A file that went through another editor reads the same."""
    path = folder / "mine.jsonl"
    lines = [json.dumps(a_case("a")), "", json.dumps(a_case("b")), ""]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert [probe.case for probe in load(SuiteConfig("mine", path)).probes] == ["a", "b"]


def test_unicode_line_separators_do_not_break_a_line(reading: Reader):
    """Only a newline ends a line: U+2028 and U+0085 may stand in a text."""
    odd = json.dumps(a_case(writes=["over\u2028two\u0085lines"]), ensure_ascii=False)
    assert planted(reading(odd))[0].text == "over\u2028two\u0085lines"


def test_a_folder_is_read_in_name_order_and_its_worlds_are_no_suites(folder: Path):
    """A suite may be a folder of files; `worlds/` beside them holds memories, not cases."""
    written(folder, (a_case("z"),), {"lab": LAB})
    (folder / "again.jsonl").write_text(json.dumps(a_case("b", world="lab")))
    assert [probe.case for probe in load(SuiteConfig("mine", folder)).probes] == ["b", "z"]


# Whose question it is


def test_a_question_is_the_worlds_users_unless_it_says_otherwise(reading: Reader):
    """The question's user is its own, else its case's, else that of the world's first memory, else `user`."""
    suite = reading(
        a_case("plain"),
        a_case("in-world", world="lab"),
        a_case("says", world="lab", user="tomas"),
        {"id": "steps", "world": "lab", "user": "tomas", "steps": [STEP, {**STEP, "user": "ana"}]},
    )
    users = {probe.case: probe.user for probe in suite.probes}
    assert users == {
        "plain": "user",
        "in-world": "rosa",
        "says": "tomas",
        "steps/1": "tomas",
        "steps/2": "ana",
    }


def test_what_a_case_writes_belongs_to_its_worlds_user(reading: Reader):
    """A write without a user is the world's user's, also when another user asks: it stays near."""
    suite = reading(a_case(world="lab", user="tomas", writes=["x", {"text": "y", "user": "ana"}]))
    owners = {memory.id: memory.user for memory in planted(suite)}
    assert owners == {
        "net-proxy-time": "rosa",
        "net-proxy-tries": "tomas",
        "net-router": "rosa",
        "keys-shed": "tomas",
        "keys-cellar": "rosa",
        "a/w1": "rosa",
        "a/w2": "ana",
    }


def test_domains_of_a_probe_outrank_those_of_its_case(reading: Reader):
    """Domains on a probe replace the case's, and an empty list asks over all of them."""
    steps = [STEP, {**STEP, "domains": ["home"]}, {**STEP, "domains": []}]
    suite = reading(of_steps(*steps, domains=["work"]))
    assert [probe.domains for probe in suite.probes] == [("work",), ("home",), ()]


def test_k_of_a_probe_outranks_that_of_its_case(reading: Reader):
    """k on a probe replaces the case's, which replaces 5."""
    steps = [STEP, {**STEP, "k": 1}]
    assert [probe.k for probe in reading(of_steps(*steps, k=3)).probes] == [3, 1]
    assert [probe.k for probe in reading(of_steps(*steps)).probes] == [5, 1]


def test_a_null_session_asks_over_all_sessions(reading: Reader):
    """No session: within the one in force. Null: over all of the user's. A name: within that one."""
    suite = reading(of_steps(*({**STEP, **said} for said in ({}, {"session": None}, {"session": "s1"}))))
    assert [(probe.session, probe.all_sessions) for probe in suite.probes] == [
        (None, False),
        (None, True),
        ("s1", False),
    ]


# Steps

ALL_STEPS = [
    {"plant": ["The lock code is 4471.", {"id": "m", "text": "The bin is green."}]},
    {"session": "s2"},
    {"amend": "m", "text": "The bin is blue."},
    {"reopen": True},
    {"probe": "What colour is the bin?", "expect_any": ["blue"]},
    {"forget": ["m", "w1"]},
    {"forget_user": "tomas"},
    {"probe": "What is the code?", "forbid_any": ["4471"], "abstain": True},
]


def test_steps_are_compiled_in_order(reading: Reader):
    """Every step becomes the step of that name, with the ids that were planted."""
    (scenario,) = reading(of_steps(*ALL_STEPS)).scenarios
    planted = Plant((Memory("a/w1", "The lock code is 4471."), Memory("a/m", "The bin is green.")))
    assert scenario.id == "a"
    assert scenario.reopens
    assert scenario.plants == 2
    assert [step if not isinstance(step, Probe) else step.case for step in scenario.steps] == [
        planted,
        Session("s2"),
        Amend("a/m", "The bin is blue."),
        Reopen(),
        "a/1",
        Forget(("a/m", "a/w1")),
        ForgetUser("tomas"),
        "a/2",
    ]


def test_a_probes_story_is_what_came_before_it(reading: Reader):
    """The story holds the case's own steps before the question, and no probe."""
    first, second = asked(reading(of_steps(*ALL_STEPS, world="lab")))
    assert [type(step) for step in first.story] == [Plant, Session, Amend, Reopen]
    assert [type(step) for step in second.story] == [Plant, Session, Amend, Reopen, Forget, ForgetUser]
    assert first.background == "5 memories of world lab"


def test_each_of_several_probes_is_a_case_of_its_own(reading: Reader):
    """Several probes are id/1, id/2 with hashes of their own; a single one bears the case's id."""
    suite = reading({"id": "two", "steps": [STEP, STEP]}, {"id": "one", "steps": [STEP]})
    assert [probe.case for probe in suite.probes] == ["two/1", "two/2", "one"]
    assert len(set(hashes_of(suite).values())) == 3


# Names


def test_ids_are_qualified_by_theircase(reading: Reader):
    """Two cases may use the same id; each means its own memory, or one of the world."""
    a = a_case("a", world="lab", writes=[{"id": "m", "text": "x"}], expect_ids=["m", "keys-shed"])
    b = a_case("b", world="lab", writes=[{"id": "m", "text": "y"}], forbid_ids=["m"])
    probes = {probe.case: probe.expectations[1] for probe in reading(a, b).probes}
    assert probes["a"].ids == ("a/m", "keys-shed")
    assert probes["b"].ids == ("b/m",)


def test_near_takes_ids_and_prefixes_of_its_world(reading: Reader):
    """`near` names ids or prefix-*; each memory comes once, in the world's order, whatever matches it."""
    (scenario,) = reading(
        a_case(world="lab", near=["keys-*", "net-router", "keys-shed"], writes=["x"]),
    ).scenarios
    assert [memory.id for memory in scenario.steps[0].memories] == ["net-router", "keys-shed", "keys-cellar"]


def test_without_a_world_a_namespace_holds_nothing_else(reading: Reader):
    """A case that names no world is asked among its own writes alone, beside others that share one."""
    suite = reading(a_case("alone", writes=["x"]), a_case("shared", world="lab"))
    alone = next(scenario for scenario in suite.scenarios if scenario.id == "alone")
    assert [memory.id for memory in alone.steps[0].memories] == ["alone/w1"]


# Groups


def _groups(count: int, reading: Reader) -> dict[str, str]:
    """Case -> id of the scenario that asks it."""
    suite = reading(*(a_case(f"case-{n}", world="lab") for n in range(count)))
    return {probe.case: scenario.id for scenario in suite.scenarios for probe in scenario.probes}


def test_groups_hold_about_forty(reading: Reader):
    """Some 40 ask-only cases share one planting: no group is empty, none more than half as large again."""
    found = list(_groups(400, reading).values())
    sizes = [found.count(group) for group in set(found)]
    assert len(sizes) == 10
    assert all(20 <= size <= 60 for size in sizes)


def test_a_new_case_moves_no_other(reading: Reader):
    """As long as the number of groups stays, a case that is added leaves every other where it was."""
    before, after = _groups(361, reading), _groups(400, reading)
    assert len(set(before.values())) == len(set(after.values())) == 10
    assert before.items() <= after.items()


def test_a_new_group_draws_its_share_only(reading: Reader):
    """When a group is added, about one in n cases moves, and all of them into the new group."""
    before, after = _groups(360, reading), _groups(361, reading)
    moved = {case for case in before if before[case] != after[case]}
    assert {after[case] for case in moved} == {"lab-10"}
    assert 0.05 < len(moved) / len(before) < 0.15


def test_groups_do_not_hang_on_the_order_of_lines(reading: Reader):
    """The same cases in another order fall into the same groups."""
    cases = [a_case(f"case-{n}", world="lab") for n in range(100)]
    one, other = (
        {scenario.id: {probe.case for probe in scenario.probes} for scenario in suite.scenarios}
        for suite in (reading(*cases), reading(*reversed(cases)))
    )
    assert one == other


def test_two_worlds_do_not_mix(reading: Reader):
    """Cases of two worlds never share a scenario."""
    suite = reading(a_case("a", world="lab"), a_case("b", world="annex"), annex=LAB[:2])
    assert {scenario.id: scenario.plants for scenario in suite.scenarios} == {"annex-1": 2, "lab-1": 5}


# Hashes


def test_a_hash_changes_with_each_field_of_its_case(reading: Reader):
    """Whatever is edited in a line makes it another case."""
    base = a_case(world="lab", writes=["x"])
    edits = [
        {"query": "Where?"}, {"expect_any": ["there"]}, {"writes": ["y"]}, {"k": 4}, {"tags": ["t"]},
        {"critical": True}, {"cluster": "c"}, {"source": "s"}, {"user": "u"}, {"domains": ["d"]},
        {"session": "s"}, {"leg": "l"}, {"abstain": True}, {"near": ["keys-*"]}, {"at_most": 2},
    ]  # fmt: skip
    hashes = [hashes_of(reading({**base, **edit}))["a"] for edit in [{}, *edits]]
    assert len(set(hashes)) == len(edits) + 1


def test_a_hash_leaves_its_neighbours_out(reading: Reader):
    """Adding, editing and reordering other cases of its group changes no case's hash."""
    case, other = a_case("a", world="lab", writes=["x"]), a_case("b", world="lab", writes=["y"])
    alone = hashes_of(reading(case))["a"]
    assert hashes_of(reading(other, case))["a"] == alone
    assert hashes_of(reading({**other, "writes": ["z"]}, case))["a"] == alone


def test_a_hash_changes_with_its_world(reading: Reader):
    """A case among its world's memories is another one when any of them is edited, added or taken away."""
    worlds = [
        LAB,
        LAB[:-1],
        [*LAB, {"id": "n", "text": "new"}],
        [*LAB[:-1], {**LAB[-1], "role": "tool"}],
    ]
    hashes = {hashes_of(reading(a_case(world="lab"), lab=world))["a"] for world in worlds}
    assert len(hashes) == 4


def test_a_hash_changes_with_its_near_memories_only(reading: Reader):
    """A case with chosen near-misses is another one when one of these changes, and no other."""
    case = a_case(world="lab", near=["keys-*"])
    far = [{**LAB[0], "text": "The proxy is gone."}, *LAB[1:]]
    near = [*LAB[:-1], {**LAB[-1], "text": "The cellar key is lost."}]
    before, with_far, with_near = (hashes_of(reading(case, lab=world))["a"] for world in (LAB, far, near))
    assert with_far == before
    assert with_near != before


def test_a_hash_changes_with_the_user_who_asks(reading: Reader):
    """The world's user asks; when the world is another user's, the question is another one."""
    case = a_case(world="lab", near=["keys-shed"])
    hashes = {
        hashes_of(reading(case, lab=[{**LAB[0], "user": user}, *LAB[1:]]))["a"] for user in ("rosa", "ben")
    }
    assert len(hashes) == 2


def test_the_version_is_that_of_the_questions(reading: Reader):
    """The order of lines leaves a suite's version alone; an edit and another case change it."""
    a, b = a_case("a"), a_case("b")
    version = reading(a, b).version
    assert reading(b, a).version == version
    assert reading(a).version != version
    assert reading(a, {**b, "k": 4}).version != version


# Selection


def test_only_and_without_select_by_tags(reading: Reader):
    """Selected are the cases with every tag of `only` and none of `without`; their hashes stay."""
    cases = [a_case("a", tags=["x", "y"]), a_case("b", tags=["x"]), a_case("c", tags=["y"]), a_case("d")]
    whole = hashes_of(reading(*cases))
    picked = {
        (only, without): hashes_of(reading(*cases, only=only, without=without))
        for only, without in [(("x",), ()), (("x", "y"), ()), ((), ("x",)), (("y",), ("x",))]
    }
    assert [list(found) for found in picked.values()] == [["a", "b"], ["a"], ["c", "d"], ["c"]]
    assert all(found.items() <= whole.items() for found in picked.values())


def test_a_selection_that_is_empty_says_so(reading: Reader):
    """No case with these tags is an error that names the suite, never a run of nothing."""
    with pytest.raises(SuiteError, match=r"suite mine: no cases in .*; check the path and the selected tags"):
        reading(a_case(tags=["x"]), only=("y",))


def test_a_shipped_world_is_at_hand(reading: Reader):
    """A suite may name a world of ours; one of its own with that name comes before it."""
    shipped = SuiteConfig("golden", SHIPPED_WORLDS.parent)
    own = reading(a_case(world="software"))
    assert {memory.id for memory in planted(own)} <= {memory.id for memory in planted(load(shipped))}
    assert len(planted(own)) == 172
    assert len(planted(reading(a_case(world="software"), software=LAB))) == len(LAB)
    with pytest.raises(
        SuiteError, match=r"world: 'softwear' should be a file .*, or one of ours: .*software"
    ):
        reading(a_case(world="softwear"))


def test_one_problem_is_one_problem(reading: Reader):
    """The number of problems is told in good English."""
    with pytest.raises(SuiteError, match=r"^suite mine: 1 problem\n"):
        reading(a_case(k=0))


def test_a_world_that_no_selected_case_names_is_not_read(reading: Reader):
    """Selecting cases away also spares their world."""
    assert (
        len(asked(reading(a_case("a"), a_case("b", tags=["slow"], world="missing"), without=("slow",)))) == 1
    )


def test_everything_wrong_is_told_at_once(reading: Reader):
    """Every malformed line is named, up to twenty, and the rest are counted."""
    with pytest.raises(SuiteError) as refused:
        reading(*(a_case(f"c{n}", k=0) for n in range(25)))
    lines = str(refused.value).splitlines()
    assert lines[0] == "suite mine: 25 problems"
    assert len(lines) == 22
    assert lines[-1] == "and 5 more"
    with pytest.raises(SuiteError) as refused:
        reading(*(a_case(f"c{n}", k=0) for n in range(20)))
    assert "20 problems" in str(refused.value)
    assert "more" not in str(refused.value)


def test_metadata_may_nest_to_a_limit(reading: Reader):
    """What a memory carries may be structured, down to the deepest of its parts."""

    def nested(levels: int) -> dict[str, Any]:
        deep = json.loads("[" * levels + "]" * levels)
        return a_case(writes=[{"text": "x", "metadata": {"deep": deep, "flat": 1}}])

    around = 4  # the line, its writes, the write, its metadata
    assert planted(reading(nested(MAX_DEPTH - around)))[0].metadata["flat"] == 1
    with pytest.raises(SuiteError, match=f"nested deeper than {MAX_DEPTH} levels"):
        reading(nested(MAX_DEPTH - around + 1))


def test_an_empty_world_is_refused(reading: Reader):
    """A world without memories is no background."""
    with pytest.raises(SuiteError, match=r"lab\.jsonl: holds no memories"):
        reading(a_case(world="lab"), lab=[])


def test_an_id_that_stands_twice_names_both_places(reading: Reader, folder: Path):
    """A doubled case id is refused with the line of the first one."""
    with pytest.raises(SuiteError, match=r"mine\.jsonl:2: id: 'a' stands in .*mine\.jsonl:1 already"):
        reading(a_case("a"), a_case("a"))


def test_a_case_may_not_be_named_like_anothers_probe(reading: Reader):
    """id/1 of a case with two probes and a case of that very name would be one row."""
    with pytest.raises(SuiteError, match="case id 'a/1' occurs twice"):
        reading(of_steps(STEP, STEP), a_case("a/1"))


def test_a_case_may_not_be_named_like_a_group(reading: Reader):
    """A case with the name of a group of its world would be stored over it."""
    with pytest.raises(SuiteError, match="scenario id 'lab-1' occurs twice"):
        reading(a_case("lab-1"), a_case("b", world="lab"))


def test_no_memory_is_planted_twice(reading: Reader):
    """Ids that become one when their case's id is put before them are refused, not overwritten."""
    with pytest.raises(SuiteError, match="a/b/m would be planted twice in scenario 'lab-1'"):
        reading(
            a_case("a", world="lab", writes=[{"id": "b/m", "text": "x"}]),
            a_case("a/b", world="lab", writes=[{"id": "m", "text": "y"}]),
        )


@pytest.mark.parametrize(
    ("content", "said"), [(None, "does not exist$"), (b"\xff\xfe{}", "cannot be read: line 1 is not")]
)
def test_a_file_that_cannot_be_read_is_named(folder: Path, content: bytes | None, said: str):
    """A missing file and one in another encoding are refused by name."""
    path = folder / "mine.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SuiteError, match=rf"(?m)^\S*mine\.jsonl: {said}"):
        load(SuiteConfig("mine", path))


def test_a_folder_without_files_is_named(folder: Path):
    """A folder that holds no suite says what it lacks."""
    with pytest.raises(SuiteError, match=r"suite mine: no \*\.jsonl file in "):
        load(SuiteConfig("mine", folder))
