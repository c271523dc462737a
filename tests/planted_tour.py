"""A tour through everything that memtrend says, over a configuration with a secret in every place, with an
adapter that prints, logs, warns of and raises all that it was given."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from collectors import cli
from store import hiding
from tests.planted import NAME, Planted, planted
from tests.waiting import until

WAIT_S = 120.0
MARKER = "zebraquill"
"""Stands in every memory, question and answer of the suite, and in nothing else."""

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


LEFT = ("database.url",)
"""A file has no password: what a server's does has a test of its own."""


def taken(folder: Path) -> Tour:
    """Through all that says something, in a folder of its own."""
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
