"""What a deploy may ask for: answered by the app itself, over a record that is written to."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
import time_machine
import yaml

from dashboard import api, machines
from dashboard.limiter import RateLimit
from store import queries, writes
from store.records import NewControl, NewRun
from tests.dashboard.browser import served
from tests.dashboard.calls import BEARER, RUN, TOKEN, Call
from tests.store.seeding import Seed

# Runs -----------------------------------------------------------------------------------------------------


def test_a_deploy_asks_for_a_run(call: Call, record: Seed) -> None:
    """A run that is asked for stands in the queue as the collector takes it, and under its own address."""
    asked = RUN | {"subset": "odd", "meta": {"build": "412"}}
    answer = call("POST", "/api/runs", json=asked)
    assert answer.status_code == 202
    assert answer.json() == {"id": "request-1", "url": "/api/runs/request-1", "state": "queued"}
    assert answer.headers["Location"] == "/api/runs/request-1"
    (row,) = queries.requests(record.db)
    assert (row.kind, row.author, row.state) == ("run", "api", "queued")
    assert row.payload == RUN | {"tag": "odd", "meta": {"build": "412"}}
    told = call("GET", f"/api/runs/{answer.json()['id']}").json()
    assert {name: told[name] for name in asked} == asked
    assert (told["state"], told["run_ids"], told["error"]) == ("queued", [], None)


def test_the_collector_takes_what_the_api_asks_for(call: Call, record: Seed) -> None:
    """The payload is one that the collector understands."""
    from collectors.requested import RunRequest

    call("POST", "/api/runs", json=RUN | {"subset": "odd", "meta": {"build": "412"}})
    (row,) = queries.requests(record.db)
    taken = RunRequest(**row.payload)
    assert (taken.suite, taken.backend, taken.meta) == ("golden", "keyword", {"build": "412"})


def test_a_request_is_followed_to_its_end(call: Call, record: Seed) -> None:
    """A request is queued, claimed, running with its run, finished with it; or failed, with the reason."""
    version = record.suite()
    first, second = (call("POST", "/api/runs", json=RUN).json()["id"] for _ in range(2))

    def states() -> list[tuple[str, list[int]]]:
        told = [call("GET", f"/api/runs/{one}").json() for one in (first, second)]
        return [(one["state"], one["run_ids"]) for one in told]

    for _ in range(2):
        writes.claim_request(record.db)
    assert states() == [("claimed", []), ("claimed", [])]
    run_id, _ = record.open(version, "keyword", trigger="request:api")
    assert states() == [("running", [run_id]), ("claimed", [])]
    writes.finish_request(record.db, 1, [run_id])
    writes.finish_request(record.db, 2, [], "mem0 did not answer")
    assert states() == [("finished", [run_id]), ("failed", [])]
    assert call("GET", f"/api/runs/{second}").json()["error"] == "mem0 did not answer"


def test_a_run_and_a_request_of_one_number_are_told_apart(call: Call, record: Seed) -> None:
    """A bare number is the run of that id, as ever; a request has its prefix."""
    record.open(record.suite(), "mem0")
    call("POST", "/api/runs", json=RUN)
    assert call("GET", "/api/runs/1").json()["backend"] == "mem0"
    assert call("GET", "/api/runs/request-1").json()["backend"] == "keyword"


@pytest.mark.parametrize(
    ("changed", "field", "says"),
    [
        ({"suite": "gold"}, "suite", "'gold'; known: golden"),
        ({"backend": "mem1"}, "backend", "'mem1'; known: keyword, mem0"),
        ({"subset": "night"}, "subset", "'night'; known: all, even, odd"),
        ({"subset": ""}, "subset", "at least 1 character"),
        ({"suite": 5}, "suite", "should be a valid string"),
        ({"suite": None}, "suite", "should be a valid string"),
        ({"meta": []}, "meta", "should be an object"),
        ({"meta": {"build": 412}}, "meta.build", "should be a valid string"),
        ({"meta": {str(i): "" for i in range(51)}}, "meta", "at most 50"),
        ({"meta": {"note": "x" * 1001}}, "meta.note", "at most 1000"),
        ({"meta": {"note": "\0"}}, "meta.note", "without control characters"),
        ({"meta": {"no\nte": ""}}, "meta.no\nte", "one line"),
        ({"meta": {"note": {"deep": "x"}}}, "meta.note", "should be a valid string"),
        ({"trials": 3}, "trials", "unknown key; known: suite, backend, subset, meta"),
    ],
)
def test_a_run_that_cannot_be_is_refused_by_field(
    changed: dict[str, Any], field: str, says: str, call: Call, record: Seed
) -> None:
    """400 names the field, and what is known where a name is not; nothing is asked for."""
    answer = call("POST", "/api/runs", json=RUN | changed)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert says in answer.json()["error"]
    assert queries.requests(record.db) == []


@pytest.mark.parametrize(
    ("content", "field", "says"),
    [
        (b"", "body", "JSON"),
        (b"{", "body", "JSON"),
        (b"suite=golden&backend=keyword", "body", "JSON"),
        (b'["golden", "keyword"]', "body", "should be a JSON object"),
        (b"\xff\xfe", "body", "JSON"),
        (b'{"suite": "\\ud800"}', "body", "JSON"),
        (b"[" * 10_000, "body", "JSON"),
        (b"{}", "suite", "is missing"),
        (b'{"suite": "' + b"x" * 70_000 + b'"}', "body", "larger than 65536 bytes"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(content: bytes, field: str, says: str, call: Call) -> None:
    """What is no JSON object, or too large, is 400 and says so."""
    answer = call("POST", "/api/runs", content=content)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert says in answer.json()["error"]


def test_before_the_first_start_no_name_is_known(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that no collector has written to says who writes the names."""
    monkeypatch.setenv("MEMTREND_DATABASE__URL", f"sqlite:///{tmp_path}/empty.db")
    machines.forget()
    answer = call("POST", "/api/runs", json=RUN)
    assert (answer.status_code, answer.json()["field"]) == (400, "suite")
    assert "a collector writes them when it starts" in answer.json()["error"]


def test_a_control_is_not_asked_for(call: Call, record: Seed) -> None:
    """The frozen release beside a backend runs when that one does, and is no name that is known."""
    new = NewRun(record.suite(), record.backend("mem0"), None, "cli", 1, 4, 1, "1")
    writes.open_pair(record.db, new, NewControl("mem0-control", "mem0", {}, "mem0ai==1.0.0", None, 1))
    answer = call("POST", "/api/runs", json=RUN | {"backend": "mem0-control"})
    assert answer.json()["error"] == "backend: unknown name 'mem0-control'; known: keyword, mem0"


def test_what_is_kept_with_a_run_has_no_secret(call: Call, record: Seed) -> None:
    """A value whose name or look is that of a secret is hidden before it is written."""
    call("POST", "/api/runs", json=RUN | {"meta": {"token": "abc", "at": "https://u:hunter22@h/"}})
    (row,) = queries.requests(record.db)
    assert row.payload["meta"] == {"token": "***", "at": "https://u:***@h/"}


# Marks ----------------------------------------------------------------------------------------------------


def test_a_deploy_draws_a_mark(call: Call, record: Seed) -> None:
    """A mark stands where it was said to, in whatever zone, or now, with its data."""
    before = datetime.now(UTC)
    asked = {"text": " agent 4.12 ", "at": "2026-03-04T09:30:00+01:00", "meta": {"by": "noor"}}
    answer = call("POST", "/api/marks", json=asked)
    assert (answer.status_code, answer.json()) == (
        201,
        {"id": 1, "text": "agent 4.12", "meta": {"by": "noor"}},
    )
    call("POST", "/api/marks", json={"text": "now"})
    first, second = queries.marks(record.db)
    assert (first.text, first.at) == ("agent 4.12", datetime(2026, 3, 4, 8, 30, tzinfo=UTC))
    assert (first.author, first.meta) == ("api", {"by": "noor"})
    assert before <= second.at <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("asked", "field", "says"),
    [
        ({}, "text", "is missing"),
        ({"text": "  "}, "text", "should say something"),
        ({"text": "\u200b"}, "text", "one line"),
        ({"text": "evil\u202etxt"}, "text", "one line"),
        ({"text": "one\u2028two"}, "text", "one line"),
        ({"text": "nul\0"}, "text", "one line"),
        ({"text": "x" * 501}, "text", "at most 500"),
        ({"text": "two\nlines"}, "text", "one line"),
        ({"text": "x", "at": "noon"}, "at", "2026-03-04T09:30:00Z"),
        ({"text": "x", "at": "2026-03-04T09:30:00"}, "at", "with its zone"),
        ({"text": "x", "at": 1772613000}, "at", "with its zone"),
        ({"text": "x", "at": "0001-01-01T00:00:00+14:00"}, "at", "between 1970 and 2100"),
        ({"text": "x", "at": "9999-12-31T23:59:59-01:00"}, "at", "between 1970 and 2100"),
        ({"text": "x", "at": "2100-12-31T23:59:59-14:00"}, "at", "between 1970 and 2100"),
        ({"text": "x", "when": "now"}, "when", "unknown key; known: text, at, meta"),
    ],
)
def test_a_mark_that_cannot_be_is_refused_by_field(
    asked: dict[str, Any], field: str, says: str, call: Call, record: Seed
) -> None:
    """400 names the field, and nothing is drawn."""
    answer = call("POST", "/api/marks", json=asked)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert says in answer.json()["error"]
    assert queries.marks(record.db) == []


# Keys -----------------------------------------------------------------------------------------------------


def test_a_call_that_is_repeated_is_done_once(call: Call, record: Seed) -> None:
    """The same body under the same key gives the same id again; another body, key or kind is another call."""
    key = {"Idempotency-Key": "deploy 412"}

    def run(**changed: Any) -> str:
        found = call("POST", "/api/runs", headers=key, json=RUN | changed)
        assert found.status_code == 202
        return str(found.json()["id"])

    assert [run(), run(), run(backend="mem0"), run()] == ["request-1", "request-1", "request-2", "request-1"]
    writes.claim_request(record.db)
    assert call("POST", "/api/runs", headers=key, json=RUN).json()["state"] == "claimed"
    other = {"Idempotency-Key": "deploy 413"}
    assert call("POST", "/api/runs", headers=other, json=RUN).json()["id"] == "request-3"
    marks = [call("POST", "/api/marks", headers=key, json={"text": "4.12"}).json()["id"] for _ in range(2)]
    assert marks == [1, 1]
    assert (len(queries.requests(record.db)), len(queries.marks(record.db))) == (3, 1)


def test_a_key_is_forgotten_in_the_end(call: Call, record: Seed) -> None:
    """A day later the same call is still the one that was made; two days later it is another, and of the
    former nothing is left."""
    key, today = {"Idempotency-Key": "412"}, datetime.now(UTC)
    asked = []
    for days in (0, 1, 2):
        with time_machine.travel(today + timedelta(days=days), tick=False):
            for where, body in (("/api/runs", RUN), ("/api/marks", {"text": "4.12"})):
                asked.append(call("POST", where, headers=key, json=body).json()["id"])
    assert asked == ["request-1", 1, "request-1", 1, "request-2", 2]
    with record.db.read() as connection:
        names = [name for (name,) in connection.execute(sa.text("SELECT name FROM change")) if ":" in name]
    assert len(names) == 2


@pytest.mark.parametrize("key", ["", "x" * 201, "caf\xe9"])
def test_a_key_that_cannot_be_kept_is_refused(key: str, call: Call, record: Seed) -> None:
    """A key that is empty, long or not ASCII is 400 by the header's name, and not left out of account."""
    answer = call("POST", "/api/runs", headers={"Idempotency-Key": key.encode("latin-1")}, json=RUN)  # type: ignore[dict-item]
    assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key")
    assert queries.requests(record.db) == []


# Who may --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["/api/runs", "/api/marks"])
@pytest.mark.parametrize(
    "header",
    ["", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer caf\xe9"],
)
def test_without_the_token_nothing_is_written(where: str, header: str, call: Call, record: Seed) -> None:
    """A wrong token, or none, or in another scheme, is 401 before the body is looked at."""
    answer = call("POST", where, headers={"Authorization": header.encode("latin-1")}, content=b"{")  # type: ignore[dict-item]
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert TOKEN not in answer.text


def test_the_scheme_may_be_written_in_any_case(call: Call) -> None:
    """`bearer` is as good as `Bearer`."""
    answer = call("POST", "/api/runs", headers={"Authorization": f"bearer {TOKEN}"}, json=RUN)
    assert answer.status_code == 202


@pytest.mark.parametrize("where", ["/api/runs", "/api/marks"])
def test_while_no_token_is_configured_nothing_is_taken(
    where: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """403, whatever token is brought, and the key that configures one."""
    monkeypatch.delenv("MEMTREND_API__TOKEN")
    machines.forget()
    answer = call("POST", where, json=RUN)
    assert answer.status_code == 403
    assert "api.token_file" in answer.json()["error"]


def test_too_many_calls_wait(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit a call is 429 and says for how long; then it is taken again."""
    now = [0.0]
    monkeypatch.setattr(api, "LIMIT", RateLimit(burst=2, per_second=0.1, clock=lambda: now[0]))
    codes = [call("POST", "/api/runs", json=RUN).status_code for _ in range(3)]
    assert codes == [202, 202, 429]
    refused = call("POST", "/api/marks", json={"text": "x"})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "10")
    now[0] += float(refused.headers["Retry-After"])
    assert call("POST", "/api/marks", json={"text": "x"}).status_code == 201


def test_who_has_no_token_holds_up_nobody(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guesses at the token are slowed down, and the one who has it is not."""
    monkeypatch.setattr(api, "LIMIT", RateLimit(burst=2, clock=lambda: 0.0))
    guess = {"Authorization": "Bearer guess"}
    codes = [call("POST", "/api/runs", headers=guess, json=RUN).status_code for _ in range(3)]
    assert codes == [401, 401, 429]
    assert call("POST", "/api/runs", json=RUN).status_code == 202


# What is not there ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "where", "allowed"),
    [
        ("DELETE", "/api/runs", "GET, HEAD, POST"),
        ("OPTIONS", "/api/runs", "GET, HEAD, POST"),
        ("POST", "/api/runs/1", "GET, HEAD"),
        ("GET", "/api/marks", "POST"),
        ("TRACE", "/api/marks", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("PUT", "/metrics", "GET, HEAD"),
    ],
)
def test_a_method_that_a_path_does_not_take_is_405(method: str, where: str, allowed: str, call: Call) -> None:
    """In JSON, with the methods that it takes."""
    answer = call(method, where)
    assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)
    assert allowed in answer.json()["error"]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS", "TRACE"])
@pytest.mark.parametrize(
    "where", ["/api", "/api/", "/api/run", "/api/runs/", "/api/runs/1/cases", "/api/marks/1"]
)
def test_a_path_that_is_not_there_is_404(method: str, where: str, call: Call) -> None:
    """In JSON, whatever the method, with the paths that there are."""
    answer = call(method, where)
    assert answer.status_code == 404
    assert "/api/marks" in answer.json()["error"]


def test_a_record_that_cannot_be_written_is_503(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller learns that nothing was asked for, and why."""
    (tmp_path / "bad.db").write_text("this is not a database, however long one reads on in it, line by line")
    monkeypatch.setenv("MEMTREND_DATABASE__URL", f"sqlite:///{tmp_path}/bad.db")
    machines.forget()
    answer = call("POST", "/api/runs", json=RUN)
    assert answer.status_code == 503
    assert "bad.db" in answer.json()["error"]


# Over the wire --------------------------------------------------------------------------------------------


def test_over_the_wire(record: Seed, tmp_path: Path) -> None:
    """A served dashboard takes calls with the token alone, keeps the token to itself, and tells no other
    site's page that it may read."""
    with served(str(record.db.url_public), tmp_path) as address, httpx.Client(base_url=address) as client:
        away = {"Origin": "https://elsewhere.example"}
        taken = client.post("/api/runs", headers=BEARER | away, json=RUN)
        assert taken.status_code == 202
        refused = client.post(
            "/api/runs?suite=golden", headers={"Authorization": f"Bearer {TOKEN}!"}, json=RUN
        )
        asked = client.options("/api/runs", headers=away | {"Access-Control-Request-Method": "POST"})
        assert (refused.status_code, asked.status_code) == (401, 405)
        large = client.post("/api/marks", headers=BEARER, content=iter([b"[" * 60_000] * 5))
        assert (large.status_code, large.json()["field"]) == (400, "body")
        shown = [client.get(where) for where in (taken.json()["url"], "/healthz", "/metrics", "/api/nothing")]
        assert [one.status_code for one in shown] == [200, 200, 200, 404]
        answers = [taken, refused, asked, large, *shown]
        assert not any(name.startswith("access-control") for one in answers for name in one.headers)
        assert not any(TOKEN in one.text or "Traceback" in one.text for one in answers)
    log = (tmp_path / "server.log").read_text()
    assert TOKEN not in log
    assert "Traceback" not in log


# As documented --------------------------------------------------------------------------------------------


def documented_scripts() -> list[str]:
    """What docs/operations.md lets each of the three pipelines do, as its shell gets it."""
    text = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    blocks = re.findall(
        r"^```yaml\n(.*?)^```", text.partition("## After a deploy")[2], re.MULTILINE | re.DOTALL
    )
    github, gitlab, argo = (yaml.safe_load(block) for block in blocks[:3])
    (container,) = argo["spec"]["template"]["spec"]["containers"]
    return [github[0]["run"], *gitlab["memtrend"]["script"], *container["args"]]


def in_shell(script: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-euc", script]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)


def test_the_documented_calls_work(record: Seed, tmp_path: Path) -> None:
    """What each of the three pipelines does is taken, and not done twice when it is repeated; a refusal fails
    the job and says why."""
    record.backend("hybrid")
    given = ("GITHUB_SHA", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "CI_COMMIT_SHORT_SHA", "CI_JOB_ID", "JOB")
    variables = {name: f"{name.lower()}-1" for name in given}
    scripts = documented_scripts()
    assert len(scripts) == 3
    with served(str(record.db.url_public), tmp_path) as address:
        variables |= {"MEMTREND_URL": address, "MEMTREND_TOKEN": TOKEN}
        for script in scripts * 2:
            ran = in_shell(script, variables)
            assert ran.returncode == 0, ran.stderr
        refused = in_shell(scripts[0], variables | {"MEMTREND_TOKEN": "wrong"})
        assert refused.returncode != 0
        assert "wrong token" in refused.stdout
    assert len(queries.marks(record.db)) == 3
    assert [row.payload["backend"] for row in queries.requests(record.db)] == ["hybrid"] * 3
