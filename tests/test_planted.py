"""A secret in every key that may hold one, and a memory that everything quotes: where do they come out?

Real processes run over one such configuration. The tests look at what is left of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import dashboard
from tests.planted import NAME, leaks, places
from tests.planted_tour import CASES, LEFT, MARKER, Tour, forgetful, taken

__all__ = ["forgetful"]
"""A fixture of each test here."""

PAGES = ("overview", "trends", "runs", "suites", "health", "settings", "run", "case", "alerts")
WITHHELD = "a library has something to say"


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Tour:
    return taken(tmp_path_factory.mktemp("planted"))


# What is left ---------------------------------------------------------------------------------------------


def test_every_place_is_planted(tour: Tour) -> None:
    """Each key that may hold a secret has one here, but for those that say why not."""
    told = {place.partition(", ")[0] for place in tour.planted.cores.values()}
    assert told | set(LEFT) == {str(place) for place in places()}


def test_no_output_tells_a_secret(tour: Tour) -> None:
    """Whatever commands, servers, their logs and tracebacks say, none of it is a secret."""
    for name, said in tour.said.items():
        assert said, name
        assert leaks(said, tour.planted.cores) == {}, name
    assert "Traceback" in tour.said["--debug show 99"]


def test_no_file_tells_a_secret(tour: Tour) -> None:
    """Record, backup and exports hold what was remembered and why it failed, and no secret."""
    for pattern in ("record.db*", "copy.db", "cases.csv", "cases.parquet"):
        found = list(tour.folder.glob(pattern))
        assert found, pattern
        for path in found:
            assert leaks(path.read_bytes(), tour.planted.cores) == {}, path.name
    record = (tour.folder / "record.db").read_bytes()
    assert record.count(MARKER.encode()) > 10
    assert b"versions" in record, "the fingerprint has what the backend says of itself"


@pytest.fixture
def pages(tour: Tour, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """All that a page says, in any form."""
    monkeypatch.chdir(tour.folder)
    for name, value in tour.planted.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(tour.folder)

    def page(name: str) -> str:
        at = AppTest.from_file(str(Path(dashboard.__file__).parent / "app.py"), default_timeout=60)
        at.query_params["run"] = "1"
        at.query_params["case"] = "1"
        at.run()
        at = at if name == "overview" else at.switch_page(f"views/{name}.py").run()
        return "".join(f"{node.proto}" for node in _nodes(at._tree) if hasattr(node, "proto"))

    return page


def _nodes(block: Any) -> Iterator[Any]:
    for node in getattr(block, "children", {}).values():
        yield node
        yield from _nodes(node)


@pytest.mark.parametrize("name", PAGES)
def test_no_page_tells_a_secret(name: str, pages: Callable[[str], str], tour: Tour) -> None:
    """A page shows what is configured and why runs fail, and no secret."""
    told = pages(name)
    assert len(told) > 1000
    assert leaks(told, tour.planted.cores) == {}


# Logs -----------------------------------------------------------------------------------------------------


def _entries(said: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.splitlines()]


def test_logs_hold_no_memory(tour: Tour) -> None:
    """What an adapter prints, logs, warns of and raises, and what somebody searches for, is in no log."""
    assert MARKER not in tour.logs
    assert MARKER not in tour.said["--debug collect"]


def test_a_log_is_json_and_nothing_else(tour: Tour) -> None:
    """Each line that a collector or a dashboard says, to its last word, is an entry with time, level, logger
    and event."""
    for name in ("collect", "dashboard", "--debug collect"):
        entries = _entries(tour.said[name])
        assert entries, name
        for entry in entries:
            assert list(entry)[:4] == ["timestamp", "level", "logger", "event"]
            assert re.fullmatch(r"[\d-]{10}T[\d:]{8}\.\d{6}Z", entry["timestamp"])


def test_what_is_said_within_a_case_bears_its_ids(tour: Tour) -> None:
    """A library's entry names run, suite, backend and case, on whatever thread it spoke; its words are left
    out, and where they are in the code is told."""
    said = [entry for entry in _entries(tour.said["collect"]) if entry["logger"] == "indiscreet"]
    assert {entry["event"] for entry in said} == {WITHHELD}
    of_cases = [entry for entry in said if "case" in entry]
    assert {entry["case"] for entry in of_cases} == {case["id"] for case in CASES}
    assert {(entry["run"], entry["suite"], entry["backend"]) for entry in of_cases} == {(2, NAME, NAME)}
    assert all(re.search(r"indiscreet\.py:\d+$", entry["at"]) for entry in said)


def test_a_run_is_told_from_its_beginning_to_its_end(tour: Tour) -> None:
    """The log of a collector has when a run began and how it ended, with who asked, and the cases without an
    answer."""
    told = {entry["event"]: entry for entry in _entries(tour.said["collect"])}
    assert told["run began"] | {"run": 2, "request": 1} == told["run began"]
    assert told["run ended"] | {"run": 2, "status": "whole", "errors": 1} == told["run ended"]
    assert told["a case has no answer"]["case"] == "case-fails"


DOCUMENTED = re.compile(r"^\| `(\w+)`(?:, `(\w+)`)*", re.MULTILINE)


def test_the_fields_are_those_that_are_documented(tour: Tour) -> None:
    """docs/operations.md has a row for each field that an entry has here, and for no other."""
    text = (Path(__file__).parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text.partition("## Logs\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    documented = {field for row in rows for field in re.findall(r"`(\w+)`", row)}
    seen = {
        field for said in (tour.logs, tour.said["--debug collect"]) for one in _entries(said) for field in one
    }
    assert seen <= documented
    elsewhere = {"schedule", "url", "verdict"}
    assert documented - elsewhere <= seen
