"""A secret in every key that may hold one, and a memory that everything quotes: where do they come out?

Real processes run over one such configuration, with an adapter that prints, logs, warns of and raises all
that it was given. The tests look at what is left of it.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel
from streamlit.testing.v1 import AppTest

import dashboard
from collectors import cli
from store import hiding
from store.origins import keys_in_force
from store.settings import SettingsError, load_settings, public
from tests.planted import NAME, WAYS, Planted, leaks, leaves, places, planted
from tests.waiting import until

WAIT_S = 120.0
MARKER = "zebraquill"
"""Stands in every memory, question and answer of the suite, and in nothing else."""
PAGES = ("overview", "trends", "runs", "suites", "health", "settings", "run", "case", "alerts")
WITHHELD = "a library has something to say"

ADAPTER = """
import json, logging, sys, warnings

class Indiscreet:
    def __init__(self, **options):
        self.options, self.texts = options, []
        self.tell("opened", "")
    def tell(self, what, text):
        told = f"{what} {text} {json.dumps(self.options)} {self.options!r}"
        print(told)
        print(told, file=sys.stderr)
        logging.getLogger("indiscreet").error("%s", told, extra={"text": told})
        logging.getLogger("indiscreet").error("%s %s", told)
        warnings.warn(told, stacklevel=1)
        return told
    def versions(self):
        return {"server": self.tell("versions", "")}
    def reset(self, scope):
        self.texts = []
    def remember(self, scope, memories):
        self.texts += [(memory.id, memory.text) for memory in memories]
    def recall(self, scope, query, k, leg=None):
        told = self.tell("recall", f"{query} {self.texts}")
        if "fails" in query:
            raise ValueError(told) from OSError(told)
        return self.texts[:k]
"""

BASE: dict[str, Any] = {
    "suites": {NAME: {"path": "small.jsonl"}},
    "backends": {NAME: {"type": "indiscreet:Indiscreet"}},
    "schedules": {NAME: {"cron": "0 3 1 1 *", "suites": [NAME]}},
    "channels": {NAME: {"type": "webhook"}},
    "limits": {"max_error_rate": 1.0, "attempts": 1, "diagnose": {"max_cases": 1}},
    "log": {"level": "debug"},
}
CASES = [
    {
        "id": f"case-{name}",
        "writes": [f"the {name} {MARKER} opens the door", f"nobody found the {MARKER} box of {name}"],
        "query": f"what opens the door of the {MARKER} {name}",
        "expect_any": [f"{wanted} {MARKER} opens"],
        "k": 1,
    }
    for name, wanted in (("amber", "amber"), ("basil", "wrong"), ("fails", "fails"))
]


@pytest.fixture(autouse=True, scope="module")
def forgetful() -> Iterator[None]:
    """What these tests let this process remember, and how they let it log, is no other's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hiding, "_remembered", set())
        patch.setattr(warnings, "showwarning", warnings.showwarning)
        patch.setattr(logging.root, "handlers", [*logging.root.handlers])
        yield


class Tour(NamedTuple):
    """What was said on the way, by who said it."""

    folder: Path
    planted: Planted
    said: dict[str, str]

    @property
    def logs(self) -> str:
        return self.said["collect"] + self.said["dashboard"]


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Tour:
    folder = tmp_path_factory.mktemp("planted")
    (folder / "indiscreet.py").write_text(ADAPTER, encoding="utf-8")
    (folder / "small.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES), encoding="utf-8")
    made = Tour(
        folder, planted(folder, BASE | {"database": {"url": "sqlite:///record.db"}}, "file", LEFT), {}
    )
    _command(made, "run", "--json", "--suite", NAME)
    _command(made, "--debug", "doctor", NAME, "--json")
    for command in INSIDE:
        inside(made, command)
    _serve(made)
    _broken_suite(made)
    return made


INSIDE = (
    "show 1 --json",
    "--debug show 99",
    "export --output cases.csv",
    "export --format parquet --output cases.parquet",
    "backup copy.db",
    f"lint {NAME} --json",
    "backend list --json",
    f"alerts test {NAME}",
)
"""Commands that are run in this process, which has loaded what takes its time."""


def inside(made: Tour, command: str) -> int:
    """What a command ends with; what it says is kept."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(said):
        patch.chdir(made.folder)
        patch.setattr(sys, "argv", ["memtrend", *command.split()])
        patch.setattr(sys, "path", [*sys.path])
        for name, value in made.planted.environment.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            sys.exit(cli.main())
    made.said[command] = said.getvalue()
    return int(ended.value.code or 0)


LEFT = ("database.url",)
"""A file has no password: what a server's does has a test of its own."""


def _start(made: Tour, *arguments: str) -> subprocess.Popen[bytes]:
    said = (made.folder / f"said-{len(made.said)}").open("wb")
    with said:
        return subprocess.Popen(
            [sys.executable, "-m", "collectors.cli", *arguments],
            cwd=made.folder,
            env={**os.environ, **made.planted.environment},
            stdout=said,
            stderr=subprocess.STDOUT,
        )


def _command(made: Tour, *arguments: str) -> int:
    name = " ".join(arguments)
    path = made.folder / f"said-{len(made.said)}"
    process = _start(made, *arguments)
    try:
        code = process.wait(WAIT_S)
    finally:
        process.kill()
    made.said[name] = path.read_text(encoding="utf-8")
    path.unlink()
    return code


def _broken_suite(made: Tour) -> None:
    """A collector that cannot start, and a command that cannot run, with a traceback."""
    lines = (made.folder / "small.jsonl").read_text(encoding="utf-8")
    (made.folder / "small.jsonl").write_text(f'{{"id": "x", "{MARKER}": "{MARKER}"}}\n')
    assert _command(made, "--debug", "collect") == 2
    (made.folder / "small.jsonl").write_text(lines, encoding="utf-8")


# Over HTTP ------------------------------------------------------------------------------------------------


def _serve(made: Tour) -> None:
    """Collector and dashboard run; a run is asked for by those who may, and by those who may not."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    started = []
    try:
        for name, arguments in (("collect", ()), ("dashboard", ("--port", str(port)))):
            started.append(_start(made, name, *arguments))
            made.said[name] = f"said-{len(made.said)}"
        _ask(made, f"http://127.0.0.1:{port}")
    finally:
        for process in started:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(WAIT_S) for process in started]
    for name in ("collect", "dashboard"):
        path = made.folder / made.said[name]
        made.said[name] = path.read_text(encoding="utf-8")
        path.unlink()
    assert codes == [0, 0], made.said


def _ask(made: Tour, url: str) -> None:
    until(lambda: _answer(f"{url}/healthz"), "the dashboard answers", WAIT_S)
    token = (made.folder / made.planted.config["api"]["token_file"]).read_text(encoding="utf-8")
    core = token[:10]
    asked = json.dumps({"suite": NAME, "backend": NAME}).encode()
    made.said["asked"] = _answer(f"{url}/api/runs", asked, token)
    assert "request-1" in made.said["asked"]
    made.said["refused"] = _answer(f"{url}/api/runs", asked, "nobody's")
    made.said["wrong"] = _answer(f"{url}/api/marks", b'{"text": 1}', token)
    _answer(f"{url}/api/runs?limit={MARKER}&token={core}")  # what one asks stands in the answer
    until(lambda: '"finished"' in _answer(f"{url}/api/runs/request-1"), "the run ends", WAIT_S)
    for path in ("", "api/runs", "api/runs/1", "api/runs/99", "metrics", "healthz", "api/nothing"):
        made.said[f"/{path}"] = _answer(f"{url}/{path}")
    _break_the_configuration(made)
    _take_the_record_away(made, f"{url}/api/runs")


def _break_the_configuration(made: Tour) -> None:
    file = made.folder / "memtrend.toml"
    sound = file.read_text(encoding="utf-8")
    file.write_text(f"{sound}\n[nonsense]\n", encoding="utf-8")
    until(lambda: "is broken, so the former" in _so_far(made, "collect"), "the collector refuses it", WAIT_S)
    file.write_text(sound, encoding="utf-8")


def _take_the_record_away(made: Tour, url: str) -> None:
    away = made.folder / "away"
    away.mkdir()
    for part in made.folder.glob("record.db*"):
        part.rename(away / part.name)
    made.said["gone"] = _answer(url)
    until(lambda: "could not be answered" in _so_far(made, "dashboard"), "the dashboard tells it", WAIT_S)
    for part in away.iterdir():
        part.rename(made.folder / part.name)


def _so_far(made: Tour, name: str) -> str:
    return (made.folder / made.said[name]).read_text(encoding="utf-8")


def _answer(url: str, body: bytes | None = None, token: str = "") -> str:
    request = urllib.request.Request(url, body, {"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""


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


# Settings by themselves -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_settings_show_no_secret(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a secret is given, it is in force, and neither repr, nor what is public, nor a text that quotes
    it tells it."""
    made = planted(tmp_path, BASE, way)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    settings = load_settings(tmp_path / "memtrend.toml")
    in_force = repr(settings.model_dump()) + _revealed(settings)
    assert leaks(in_force, made.cores) == made.cores
    shown = f"{settings} {settings!r} {public(settings)} {keys_in_force(settings)}"
    assert leaks(shown, made.cores) == {}
    assert leaks(hiding.redacted(in_force), made.cores) == {}


def _revealed(settings: Any) -> str:
    return "".join(_secrets(settings))


def _secrets(value: Any) -> Iterator[str]:
    if hasattr(value, "get_secret_value"):
        yield value.get_secret_value()
    elif isinstance(value, Mapping | BaseModel):
        inner = value.values() if isinstance(value, Mapping) else vars(value).values()
        for one in inner:
            yield from _secrets(one)


LEAVES = [".".join(path) for path, _ in leaves()]


@pytest.mark.parametrize("wrong", ["text", "list", "table"])
def test_nonsense_is_refused_without_being_quoted(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret that was put under the wrong key, or in the wrong form, is not told by what refuses it."""
    secret = "qu4rtz999x"
    value = {"text": f'"{secret}"', "list": f'["{secret}", 1]', "table": f'{{ {secret} = "{secret}" }}'}[
        wrong
    ]
    refused = 0
    for leaf in LEAVES:
        top, _, inner = leaf.partition(".")
        text = f"[{top}]\n{inner} = {value}\n" if inner else f"{top} = {value}\n"
        (tmp_path / "memtrend.toml").write_text(text, encoding="utf-8")
        with suppress(SettingsError):
            load_settings(tmp_path / "memtrend.toml")
            continue
        refused += 1
        with pytest.raises(SettingsError) as raised:
            load_settings(tmp_path / "memtrend.toml")
        assert f'"{secret}"' not in str(raised.value), leaf
        assert (
            wrong == "table" or secret not in f"{raised.value} {raised.value!r} {raised.value.__cause__}"
        ), leaf
    assert refused > len(LEAVES) / 3


@pytest.mark.parametrize("command", ["run --json", "--debug doctor --json", "collect"])
def test_a_server_that_cannot_be_reached_tells_no_password(command: str, tmp_path: Path) -> None:
    """The URL of a database is told without its password, where it cannot be opened too."""
    made = Tour(tmp_path, planted(tmp_path, BASE, "inline"), {})
    for name in ("small.jsonl", "indiscreet.py"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert inside(made, command) != 0
    said = made.said[command]
    assert "127.0.0.1" in said
    assert leaks(said, made.planted.cores) == {}
