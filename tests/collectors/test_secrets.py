"""One secret, planted wherever a configuration may hold one, is told by nothing: not by the record, which
keeps what an adapter complains of, not by an output, and not by a log."""

import json

import pytest

from collectors import collector
from store import hiding, queries, writes
from store.settings import load_settings
from tests.collectors.playground import cases, memtrend, project

SECRET = 'q7"qu4rtz/+x9'

ADAPTER = """
import json, os, urllib.parse, sys

class Indiscreet:
    when = ""
    def __init__(self, **options):
        self.options, self.texts = options, []
        self.tell("open")
    def tell(self, verb):
        if os.environ.get("FAILING") == verb:
            plain = self.options["plain"]
            quoted = urllib.parse.quote(plain), urllib.parse.quote(plain, safe="")
            raise OSError(f"{verb} {plain} {quoted} {json.dumps(self.options)} {self.options!r}")
    def reset(self):
        self.tell("reset")
    def write(self, text):
        self.tell("write")
        self.texts.append(text)
    def settle(self):
        self.tell("settle")
    def search(self, query, k):
        self.tell("search" if "amber" not in query else "")
        return self.texts[:k]
"""

CONFIG = """
[database]
url = "sqlite:///record.db"
[api]
token_file = "token"
[suites.small]
path = "small.jsonl"
[limits]
max_error_rate = 1.0
[backends.shown]
type = "indiscreet:Indiscreet"
plain = "${env:VENDOR}"
api_key = QUOTED
filed = "bearer of ${file:token}"
[backends.shown.config]
password = QUOTED
headers = { Authorization = BEARER, Cookie = QUOTED }
arguments = ["--token", QUOTED]
credentials = [{ user = "u", value = QUOTED }]
url = "https://u:${env:VENDOR}@host/v1?sig=${env:VENDOR}"
[backends.endpoint]
type = "dense"
embedder = { url = "http://127.0.0.1:9/${env:VENDOR}", model = "m", key = QUOTED, attempts = 1 }
""".replace("QUOTED", json.dumps(SECRET)).replace("BEARER", json.dumps(f"Bearer {SECRET}"))


@pytest.fixture
def folder(tmp_path):
    project(tmp_path, CONFIG, cases(2))
    (tmp_path / "indiscreet.py").write_text(ADAPTER)
    (tmp_path / "token").write_text(SECRET)
    return tmp_path


def told(text):
    """Whether a text tells the secret, or the half of it that every way of writing it has."""
    return "qu4rtz" in text


def stored(folder):
    return b"".join(path.read_bytes() for path in folder.glob("record.db*")).decode(errors="replace")


@pytest.mark.parametrize("failing", ["open", "settle", "search"])
def test_a_run_tells_no_secret(folder, failing):
    """An adapter that quotes its whole configuration in its errors gets none of it into record or output."""
    ran = memtrend(folder, "run", "--suite", "small", "--json", VENDOR=SECRET, FAILING=failing)
    assert "Traceback" not in ran.stderr
    assert "retry" not in ran.stderr
    assert not told(ran.stdout + ran.stderr)
    assert f"{failing} " in stored(folder)
    assert not told(stored(folder))


def test_no_command_tells_a_secret(folder):
    """Neither the doctor, nor a list of backends, nor a traceback tells what the configuration holds."""
    for command in ("doctor --json", "doctor shown", "backend list --json"):
        ran = memtrend(folder, *command.split(), VENDOR=SECRET, FAILING="write")
        assert "write " in ran.stdout or "backend" in command
        assert not told(ran.stdout + ran.stderr), command
    (folder / "small.jsonl").unlink()
    ran = memtrend(folder, "--debug", "run", "--suite", "small", VENDOR=SECRET)
    assert "Traceback" in ran.stderr
    assert not told(ran.stderr)


def test_events_and_requests_tell_no_secret(db, folder, monkeypatch, caplog):
    """What the collector notes, answers and logs is without secrets, whoever raised it."""
    monkeypatch.setattr(hiding, "_remembered", set())
    monkeypatch.setenv("VENDOR", SECRET)
    load_settings(folder / "memtrend.toml")
    writes.add_event(db, "error", "collector", f"refused: {SECRET}")
    request = writes.add_request(db, "run", {})
    writes.claim_request(db)
    writes.finish_request(db, request, [], f"refused: {SECRET}")
    collector.Collector._failed(None, OSError(f"refused: {SECRET}"))
    assert queries.events(db)[0].message == "refused: ***"
    assert queries.requests(db, ["failed"])[0].error == "refused: ***"
    assert "OSError" in caplog.text
    assert not told(caplog.text)


def test_a_backend_may_be_named_like_a_secret(folder, monkeypatch):
    """`[backends.token]` is a backend like any other, shown with its type."""
    (folder / "memtrend.toml").write_text('[backends.token]\ntype = "keyword"\n')
    ran = memtrend(folder, "backend", "list", "--json")
    assert json.loads(ran.stdout)["backends"][0]["type"] == "keyword"
