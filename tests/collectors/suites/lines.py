"""Suites written for a test: lines, a small world, and the files they stand in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from collectors.suite import Memory, Plant, Probe, Suite

Line = Mapping[str, Any] | str
"""A line of a file: an object, or the text itself."""

LAB: list[dict[str, Any]] = [
    {
        "id": "net-proxy-time",
        "text": "The proxy gives up after 40 seconds.",
        "user": "rosa",
        "at": "2026-01-09",
    },
    {"id": "net-proxy-tries", "text": "The proxy tries three times.", "user": "tomas"},
    {"id": "net-router", "text": "The router in the hall is rebooted on Mondays.", "domain": "office"},
    {"id": "keys-shed", "text": "The shed key hangs behind the fern.", "user": "tomas"},
    {"id": "keys-cellar", "text": "The cellar key is with the neighbour.", "session": "s-old"},
]
"""A world."""

STEP = {"probe": "Where is it?", "expect_any": ["here"]}


class Reader(Protocol):
    """Writes lines as a suite's file, and worlds by name (`lab` is there already), and loads the suite."""

    def __call__(
        self,
        *cases: Line,
        only: tuple[str, ...] = (),
        without: tuple[str, ...] = (),
        **worlds: Sequence[Line],
    ) -> Suite: ...


def written(folder: Path, cases: Sequence[Line], worlds: Mapping[str, Sequence[Line]]) -> Path:
    """The suite's file."""
    (folder / "worlds").mkdir(exist_ok=True)
    for name, lines in worlds.items():
        (folder / "worlds" / f"{name}.jsonl").write_text(_text(lines), encoding="utf-8")
    path = folder / "mine.jsonl"
    path.write_text(_text(cases), encoding="utf-8")
    return path


def _text(lines: Sequence[Line]) -> str:
    return "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)


def a_case(id: str = "a", **fields: Any) -> dict[str, Any]:
    """The smallest case, with other fields."""
    return {"id": id, "query": "Where is it?", "expect_any": ["here"], **fields}


def of_steps(*steps: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "a", "steps": list(steps), **fields}


def asked(suite: Suite) -> list[Probe]:
    return list(suite.probes)


def planted(suite: Suite) -> list[Memory]:
    """All that a suite plants, in order."""
    plants = [step for scenario in suite.scenarios for step in scenario.steps if isinstance(step, Plant)]
    return [memory for plant in plants for memory in plant.memories]


def hashes_of(suite: Suite) -> dict[str, str]:
    return {probe.case: probe.hash for probe in suite.probes}
