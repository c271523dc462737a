"""The shipped suites keep their word: what they ask can be answered, and only by what they say answers it.

No backend is asked. Each probe is read beside what its scenario has planted, amended and forgotten before.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest
import regex

from collectors.history import History
from collectors.matching import any_matches
from collectors.scorers import Want, wants
from collectors.suite import SHIPPED, Amend, Forget, Memory, Plant, Probe, Session, Step, Suite, load
from collectors.suites.golden import SHIPPED_WORLDS, World, read_world

MAIN_TAGS = (
    "recall",
    "preference",
    "identifier",
    "supersession",
    "temporal",
    "speaker",
    "domain",
    "user-isolation",
    "forgetting",
    "paraphrase",
)

TAGS = (
    *MAIN_TAGS,
    "reused-session-ids",
    "session-bleed",
    "durability",
    "amend",
    "collateral-loss",
    "typo-and-alias",
    "negation",
    "multi-fact",
    "aggregation",
    "abstention",
    "near-duplicates",
    "long-text",
    "code-and-markdown",
    "non-English",
    "numbers-units-dates",
    "hidden-instructions",
)

CONTRACT_TAGS = (
    "limit",
    "ids",
    "isolation",
    "forgetting",
    "durability",
    "session",
    "amend",
    "query-safety",
    "unicode",
)


class Moment(NamedTuple):
    """A probe, what a right store may answer from (its user, domains and session), and all that it might
    wrongly answer from: whatever was planted so far, as it reads now and as it read before."""

    probe: Probe
    eligible: tuple[Memory, ...]
    planted: tuple[Memory, ...]


def _moments(suite: Suite) -> Iterator[Moment]:
    for scenario in suite.scenarios:
        history, session = History(), None
        for step in scenario.steps:
            if isinstance(step, Probe):
                yield _moment(step, history, session)
            elif isinstance(step, Session):
                session = step.id
            elif isinstance(step, Plant):
                history.follow(Plant(tuple(replace(m, session=m.session or session) for m in step.memories)))
            else:
                history.follow(step)


def _moment(probe: Probe, history: History, session: str | None) -> Moment:
    wanted_session = None if probe.all_sessions else probe.session or session
    held = tuple(history.held.values())
    eligible = tuple(
        memory
        for memory in held
        if memory.user == probe.user
        and (not probe.domains or memory.domain in probe.domains)
        and wanted_session in (None, memory.session)
    )
    return Moment(probe, eligible, (*held, *history.forgotten.values(), *history.replaced.values()))


@cache
def shipped(name: str) -> Suite:
    return load(SHIPPED[name])


@cache
def moments(name: str) -> tuple[Moment, ...]:
    return tuple(_moments(shipped(name)))


@cache
def worlds() -> dict[str, World]:
    return {path.stem: read_world(path, path.stem) for path in SHIPPED_WORLDS.glob("*.jsonl")}


@cache
def written(name: str, world: str) -> tuple[Memory, ...]:
    """All memories of a world and of the suite's cases that are asked in it, each once."""
    around = [s for s in shipped(name).scenarios if any(of_world(p, world) for p in s.probes)]
    plants = [step for s in around for step in s.steps if isinstance(step, Plant)]
    mine = (memory for plant in plants for memory in plant.memories)
    return tuple({memory.id: memory for memory in (*worlds()[world].memories, *mine)}.values())


def of_world(probe: Probe, world: str) -> bool:
    return probe.background.endswith(f" of world {world}")


@cache
def cases(name: str) -> dict[str, Probe]:
    """One probe for each line of the suite's files."""
    return {line_of(probe): probe for probe in shipped(name).probes}


def line_of(probe: Probe) -> str:
    return probe.case.partition("/")[0]


def answers(want: Want, memories: tuple[Memory, ...]) -> list[Memory]:
    return [memory for memory in memories if want.met_by(memory.id, memory.text)]


def forbidden(probe: Probe) -> list[str]:
    kinds = ("unwanted", "unwanted_first")
    return [pattern for e in probe.expectations if e.kind in kinds for pattern in e.patterns]


ALL = pytest.mark.parametrize("name", ["golden", "holdout", "contract"])
OF_WORLDS = pytest.mark.parametrize("name", ["golden", "holdout"])


def test_golden_has_two_hundred_cases_and_eight_of_each_tag() -> None:
    """Every kind of failure has at least eight cases, and some that exist for it; all for 4,000 plants."""
    found = Counter(tag for probe in cases("golden").values() for tag in set(probe.tags))
    assert len(cases("golden")) >= 200
    assert set(found) == {*TAGS, "smoke"}
    assert min(found[tag] for tag in TAGS) >= 8, found
    assert {probe.tags[0] for probe in cases("golden").values()} == set(TAGS)
    assert shipped("golden").plants <= 4_000


def test_holdout_is_no_part_of_golden() -> None:
    """Holdout is twenty further questions that no run of golden or smoke has asked."""
    assert sum(len(scenario.probes) for scenario in shipped("holdout").scenarios) == 20
    assert not set(cases("holdout")) & {*cases("golden"), *cases("smoke")}


def test_holdout_asks_for_every_tag() -> None:
    """Holdout's cases exist for sixteen reasons or more, and each tag is on one of them."""
    assert len({probe.tags[0] for probe in cases("holdout").values()}) >= 16
    assert {tag for probe in cases("holdout").values() for tag in probe.tags} == {*TAGS, "holdout"}


def test_the_worlds_are_large_and_told_in_full() -> None:
    """Three worlds of 150 memories and more surround the answers, each memory with a time and a domain, and
    with one of the two users of its world."""
    assert {name: len({memory.user for memory in world.memories}) for name, world in worlds().items()} == {
        "personal": 2,
        "software": 2,
        "support": 2,
    }
    assert all(len(world.memories) >= 150 for world in worlds().values())
    assert sum(len(world.memories) for world in worlds().values()) >= 400
    assert all(memory.at and memory.domain for world in worlds().values() for memory in world.memories)


def test_own_namespaces_hold_near_misses() -> None:
    """A case with a namespace of its own has 10 to 20 memories beside its own to confuse it."""
    alone = [s for s in shipped("golden").scenarios if s.id in cases("golden")]
    sizes = {s.id: sum("/" not in m.id for m in s.steps[0].memories) for s in alone if s.steps}
    assert sizes
    assert all(10 <= size <= 20 for size in sizes.values()), sizes


@ALL
def test_every_expectation_can_be_met(name: str) -> None:
    """Whatever is wanted stands in a memory that the question's user, domains and session may see."""
    lost = [
        (moment.probe.case, want)
        for moment in moments(name)
        for want in wants(moment.probe)
        if not answers(want, moment.eligible)
    ]
    assert not lost


@ALL
def test_no_expectation_is_ambiguous(name: str) -> None:
    """A wanted pattern is met by one memory alone of those that the question is about."""
    doubled = [
        (moment.probe.case, want.patterns, [memory.id for memory in found])
        for moment in moments(name)
        for want in wants(moment.probe)
        if len(found := answers(want, moment.eligible)) > 1
    ]
    assert not doubled


@OF_WORLDS
@pytest.mark.parametrize("world", ["personal", "software", "support"])
def test_no_other_case_or_memory_of_the_world_answers(name: str, world: str) -> None:
    """Beside every other case of its world, and for any user, a wanted pattern is still met by its answer
    alone."""
    strays = [
        (moment.probe.case, want.patterns, memory.id)
        for moment in moments(name)
        if of_world(moment.probe, world)
        for want in wants(moment.probe)
        for memory in answers(want, written(name, world))
        if line_of(moment.probe) != memory.id.partition("/")[0]
        and memory.id not in {memory.id for memory in answers(want, moment.eligible)}
    ]
    assert not strays


@OF_WORLDS
def test_a_pattern_names_a_fact_and_quotes_no_sentence(name: str) -> None:
    """No pattern holds four words as they were written: a memory in other words passes too."""
    quoted = [
        (probe.case, pattern)
        for scenario in shipped(name).scenarios
        for probe in scenario.probes
        for pattern in (*(p for want in wants(probe) for p in want.patterns), *forbidden(probe))
        if longest_quote(pattern) > 3
    ]
    assert not quoted


def longest_quote(pattern: str) -> int:
    """The words of the longest stretch without a wildcard, a choice or an anchor."""
    literal = regex.sub(r"\\([^\w\s])", "_", pattern)
    return max(len(part.split()) for part in regex.split(r"\\[a-zA-Z]|[\[\](){}|.*+?^$]", literal))


@OF_WORLDS
def test_nearly_every_case_says_what_must_not_come_back(name: str) -> None:
    """All but one in twenty forbid a near-miss, or look at more of a memory than its text."""
    mute = {line_of(p) for s in shipped(name).scenarios for p in s.probes} - {
        line_of(probe)
        for scenario in shipped(name).scenarios
        for probe in scenario.probes
        if any(e.kind in ("unwanted", "unwanted_first", "metadata") for e in probe.expectations)
    }
    assert len(mute) <= len(cases(name)) / 20, mute


@pytest.mark.parametrize(("tag", "field"), [("speaker", "role"), ("temporal", "at")])
def test_golden_notices_a_lost_speaker_or_time(tag: str, field: str) -> None:
    """Of the cases about who said it or when it happened, four and more want just that back."""
    told = [
        probe.case
        for probe in cases("golden").values()
        if tag in probe.tags
        for expectation in probe.expectations
        if expectation.kind == "metadata" and field in dict(expectation.values)
    ]
    assert len(set(told)) >= 4


@ALL
def test_nothing_forbidden_is_wanted(name: str) -> None:
    """A right answer is never punished."""
    punished = [
        (moment.probe.case, memory.id)
        for moment in moments(name)
        for want in wants(moment.probe)
        for memory in answers(want, moment.eligible)
        if any_matches(tuple(forbidden(moment.probe)), memory.text)
    ]
    assert not punished


@ALL
def test_whatever_is_forbidden_could_come_back(name: str) -> None:
    """A forbidden pattern is found in something planted, so that a wrong store can be caught by it."""
    idle = [
        (moment.probe.case, pattern)
        for moment in moments(name)
        for pattern in forbidden(moment.probe)
        if not any(any_matches((pattern,), memory.text) for memory in moment.planted)
    ]
    assert not idle


AS_MANY_AS_ASKED = "contract-as-many-as-asked"
"""Asks for all there are: whether they come back is the question."""


@ALL
def test_a_right_answer_has_rivals(name: str) -> None:
    """More memories could come back than are asked for, or a case would pass whatever the ranking."""
    unrivalled = [
        moment.probe.case
        for moment in moments(name)
        if wants(moment.probe) and not limited(moment.probe) and len(moment.eligible) <= moment.probe.k
        if moment.probe.case != AS_MANY_AS_ASKED
    ]
    assert not unrivalled


def limited(probe: Probe) -> bool:
    return any(expectation.kind == "at_most" for expectation in probe.expectations)


@OF_WORLDS
def test_a_question_is_not_its_answer(name: str) -> None:
    """But for identifiers, a question shares at most two longer words with what answers it."""
    telling = [
        (moment.probe.case, shared)
        for moment in moments(name)
        if moment.probe.tags[0] != "identifier"
        for want in wants(moment.probe)
        for memory in answers(want, moment.eligible)
        if len(shared := long_words(moment.probe.query) & long_words(memory.text)) > 2
    ]
    assert not telling


def long_words(text: str) -> set[str]:
    return {word for word in regex.findall(r"\w+", text.lower()) if len(word) >= 5}


def test_smoke_is_a_small_sample_of_every_kind() -> None:
    """Smoke is twenty golden cases that exist for a dozen reasons, and plants at most 300 memories."""
    asked = [probe for scenario in shipped("smoke").scenarios for probe in scenario.probes]
    assert {probe.case for probe in asked} < {
        probe.case for scenario in shipped("golden").scenarios for probe in scenario.probes
    }
    assert len(asked) == 20
    assert len({probe.tags[0] for probe in asked}) >= 12
    assert shipped("smoke").plants <= 300


@ALL
def test_every_case_says_where_its_shape_comes_from(name: str) -> None:
    """Each case names the failure that it was written after."""
    assert not [case for case, probe in cases(name).items() if not probe.source.strip()]


def test_public_reports_stand_behind_forty_cases() -> None:
    """Where a public report showed the failure, its repository and number are told."""
    both = [*cases("golden").values(), *cases("holdout").values()]
    assert sum(bool(regex.match(r"[\w.-]+/[\w.-]+ #\d+: ", probe.source)) for probe in both) >= 40


def test_one_report_is_dated_one_way() -> None:
    """Cases after the same report say of the same releases that they had it."""
    dated: dict[str, set[str]] = {}
    told = regex.compile(r"([\w.-]+/[\w.-]+ #\d+): .*?\((before [\d.]+|[\d.]+ to [\d.]+)\)")
    for probe in (*cases("golden").values(), *cases("holdout").values()):
        if found := told.match(probe.source):
            dated.setdefault(found[1], set()).add(found[2])
    assert dated["mem0ai/mem0 #3928"] == {"1.0.0 to 1.0.5"}
    assert all(len(releases) == 1 for releases in dated.values()), dated


@ALL
def test_leaks_and_failed_forgetting_are_critical(name: str) -> None:
    """Losing a case of isolation or forgetting is an alert by itself."""
    grave = {"user-isolation", "isolation", "forgetting"}
    assert not [case for case, p in cases(name).items() if grave & set(p.tags) and not p.critical]


def test_contract_covers_what_any_backend_ought_to_do() -> None:
    """The contract has some twenty cases or more, alone in their namespaces, for every promise it makes."""
    found = Counter(tag for probe in cases("contract").values() for tag in probe.tags)
    assert len(cases("contract")) >= 20
    assert found["contract"] == len(cases("contract")) == len(shipped("contract").scenarios)
    assert set(CONTRACT_TAGS) <= set(found)


def test_contract_loses_two_cases_or_a_critical_one_by_each_single_fault() -> None:
    """What is planted beside a text is asked for in two cases each; several memories are forgotten in one
    call, which is critical; and a leg is asked alone, more than once, after an amendment."""
    asked = Counter(
        name
        for probe in cases("contract").values()
        for name in {name for e in probe.expectations if e.kind == "metadata" for name, _ in e.values}
    )
    assert min(asked[name] for name in ("role", "at", "domain", "session")) >= 2, asked
    told = [probe for probe in shipped("contract").probes if any(isinstance(s, Amend) for s in probe.story)]
    assert sum(probe.leg == "keyword" for probe in told) >= 2
    assert any(p.critical for p in shipped("contract").probes if any(_forgets_several(s) for s in p.story))


def _forgets_several(step: Step) -> bool:
    return isinstance(step, Forget) and len(step.ids) > 1
