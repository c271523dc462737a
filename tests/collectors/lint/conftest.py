"""Suites of a few lines, made to be looked at."""

import json

import pytest

from collectors.lint import check
from collectors.suite import SuiteConfig

NEAR = (
    "The kettle stands in the shed behind the mill.",
    "The ladder leans in the loft.",
    "Rope hangs by the door of the boathouse.",
    "Lamp oil is under the workbench.",
)
HARBOUR = [
    {"id": "ferry", "text": "The ferry to Skarholm leaves at 7:40.", "user": "runa"},
    {"id": "kiosk", "text": "The kiosk at the pier sells tickets until noon.", "user": "runa"},
    {"id": "buoy", "text": "Buoy 12 blinks green since spring.", "user": "runa"},
    {"id": "crane", "text": "The crane lifts four tonnes.", "user": "runa"},
    {"id": "wind", "text": "Above seven Beaufort nothing sails.", "user": "runa"},
]


def case(id="kettle", **fields):
    """A sound case, with some of its fields given anew; None takes a field out."""
    asked = {"query": "Where can I boil water?", "expect_any": ["shed behind the mill"], "k": 2}
    whole = {"id": id, "tags": ["recall"], "writes": list(NEAR), **asked, "source": "made up", **fields}
    return {name: value for name, value in whole.items() if value is not None}


@pytest.fixture
def checked(tmp_path):
    """(cases, worlds) -> what lint says of them as (line, case, rule)."""

    def look(*cases, **worlds):
        return [(found.line, found.case, found.rule) for found in full(*cases, **worlds)]

    def full(*cases, **worlds):
        (tmp_path / "worlds").mkdir(exist_ok=True)
        for name, memories in worlds.items():
            _write(tmp_path / "worlds" / f"{name}.jsonl", memories)
        return check(SuiteConfig("mine", _write(tmp_path / "mine.jsonl", cases))).findings

    look.full = full
    return look


def _write(path, lines):
    text = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    return path
