"""The suites of the record to look at, and text in one of their cases that tries to be markup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from store.records import CaseRecord, SuiteRecord
from tests.dashboard.facts import FACTS, HOSTILE, HOSTILE_CASE, Fact


def golden(cases: int, *, edited: bool = False, hostile: bool = True) -> SuiteRecord:
    """The edited version has two cases more, and asks one differently."""
    made = [_case(number, edited and number == 5) for number in range(cases + 2 * edited)]
    version = "5a1d20ce93b84f07" if edited else "91c07d3be2f6a85d"
    return SuiteRecord(
        "golden", "golden", "starter", version, 168, (*made, *([_hostile_case()] if hostile else []))
    )


def contract(cases: int) -> SuiteRecord:
    made = tuple(_case(number, tags=(("isolation", "forgetting")[number % 2],)) for number in range(cases))
    return SuiteRecord("contract", "golden", "starter", "0c4e77aa19d2b3f6", 31, made)


def _case(number: int, changed: bool = False, tags: Sequence[str] = ()) -> CaseRecord:
    fact = FACTS[number % len(FACTS)]
    query = f"Quick one: {fact.asked}" if changed else fact.asked
    known = tuple(tags) or (fact.tag, *(("numbers",) if any(c.isdigit() for c in fact.new) else ()))
    name = f"{fact.slug}-{number // len(FACTS) + 1:02}"
    return CaseRecord(
        name, f"{number:04x}{changed:04x}{'c3' * 4}", query, tags=known,
        critical=fact.tag in ("forgetting", "isolation"), source="made up for looking at the pages",
        story=_story(fact, query),
    )  # fmt: skip


def _story(fact: Fact, query: str) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [
        {
            "plant": [
                {
                    "id": "w1",
                    "text": fact.old,
                    "role": "user",
                    "at": "2026-03-02T09:00:00+00:00",
                    "user": "noor",
                }
            ]
        },
        {"session": "s-2026-05-19"},
        {
            "plant": [
                {
                    "id": "w2",
                    "text": fact.new,
                    "role": "user",
                    "at": "2026-05-19T18:30:00+00:00",
                    "user": "noor",
                }
            ]
        },
    ]
    if fact.tag == "forgetting":
        steps.append({"forget": ["w1"]})
    expectations = [
        {"kind": "any", "patterns": [fact.pattern]},
        {"kind": "unwanted_first", "patterns": [fact.old[:18]]},
    ]
    return {
        "background": "161 memories of the world software", "steps": steps, "query": query, "k": 5,
        "user": "noor", "domains": [], "session": None, "leg": None, "abstain": False,
        "expectations": expectations,
    }  # fmt: skip


def _hostile_case() -> CaseRecord:
    fact = Fact("odd", HOSTILE_CASE, HOSTILE, f"Second: {HOSTILE}", HOSTILE, "<script>.*")
    return CaseRecord(
        HOSTILE_CASE,
        "deadbeef00000000",
        HOSTILE,
        tags=("odd", "<i>tag</i>"),
        source=HOSTILE,
        story=_story(fact, HOSTILE),
    )
