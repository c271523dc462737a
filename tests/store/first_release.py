"""A record as the first release left it, or a later one: made by the revisions up to then alone, with rows in
every table."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from store.database import MIGRATIONS, REVISIONS

RUNS, CASES = 3, ("keys", "cake")
_PROJECT = {"project": "default", "owner": "default"}


def make(url: str, revision: str = "0001") -> None:
    """Write it, a revision after the other, each with the rows that are its own."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for one in REVISIONS[: REVISIONS.index(revision) + 1]:
            _upgrade(connection, one)
            tables = sa.MetaData()
            tables.reflect(connection)
            for name, rows in (_rows() if one == "0001" else _later().get(one, {})).items():
                connection.execute(tables.tables[name].insert(), rows)
                _count_on(connection, tables.tables[name])
    engine.dispose()


def _upgrade(connection: sa.Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _count_on(connection: sa.Connection, table: sa.Table) -> None:
    """The next id that PostgreSQL gives is behind those that were given here."""
    if connection.dialect.name == "postgresql" and "id" in table.c:
        last = f'(SELECT max(id) FROM "{table.name}")'
        connection.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('\"{table.name}\"', 'id'), {last})")


def rows_of(url: str) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, by column, but for the revision and what lies ahead, which a collector writes
    anew."""
    engine = sa.create_engine(url)
    tables = sa.MetaData()
    with engine.connect() as connection:
        tables.reflect(connection)
        found = {
            table.name: sorted(map(dict, connection.execute(table.select()).mappings()), key=repr)
            for table in tables.tables.values()
            if table.name not in ("expected_run", "alembic_version")
        }
    engine.dispose()
    return found


def _rows() -> dict[str, list[dict[str, Any]]]:
    return {**_known(), **_runs(), **_results(), **_operation()}


def _day(day: int) -> datetime:
    return datetime(2026, 1, day, 3)  # noqa: DTZ001  as it is stored: UTC without a zone


def _known() -> dict[str, list[dict[str, Any]]]:
    story = json.dumps({"steps": [], "expect": []})
    asked = {"k": 5, "tags": '["keys"]', "critical": False, "cluster": None, "source": "", "story": story}
    suite = {"id": 1, "name": "golden", "kind": "golden", "origin": "own", "version": "v1", **_PROJECT}
    return {
        "suite": [suite],
        "suite_version": [
            {"id": 1, "suite_id": 1, "version": "v1", "cases": 2, "plants": 4, "created_at": _day(1)}
        ],
        "case": [
            {
                "id": n,
                "suite_id": 1,
                "name": name,
                "hash": "h",
                "query": f"the {name}?",
                "created_at": _day(1),
            }
            | asked
            for n, name in enumerate(CASES, 1)
        ],
        "suite_version_case": [{"suite_version_id": 1, "case_id": n} for n in (1, 2)],
        "backend": [{"id": 1, "name": "mem0", "type": "mem0", "config": '{"type":"mem0"}', **_PROJECT}],
        "environment": [{"id": 1, "hash": "e", "content": '{"python":"3.11"}', "created_at": _day(1)}],
        "scorer": [{"id": 1, "version": "1"}],
    }


def _runs() -> dict[str, list[dict[str, Any]]]:
    of = {"suite_id": 1, "suite_version_id": 1, "backend_id": 1, "environment_id": 1, "scorer_id": 1}
    told = {"reason": None, "trigger": "schedule:nightly", "subset": "", "trials": 1, "meta": "{}"}
    counts = {"token": 1, "cancel": False, "cases_total": 2, "cases_done": 2, "errors_done": 0}
    return {
        "run": [
            {"id": n, "status": "whole", "scenarios_total": 1, "started_at": _day(n), "finished_at": _day(n)}
            | of | told | counts | _PROJECT
            for n in range(1, RUNS + 1)
        ],
    }  # fmt: skip


def _results() -> dict[str, list[dict[str, Any]]]:
    ids = [(run, case, 2 * (run - 1) + case) for run in range(1, RUNS + 1) for case in (1, 2)]
    played = {"status": "ok", "plants": 4, "plant_ms": 9.0, "settle_ms": 1.0, "attempts": 1, "error": None}
    spent = {"ingest_calls": 4, "ingest_tokens": 40, "money": 0.01}
    answered = {
        "trial": 1,
        "status": "ok",
        "failure": None,
        "latency_ms": 3.0,
        "attempts": 1,
        "returned_n": 5,
    }
    detail = json.dumps({"hits": [{"id": "m1", "text": "under the mat", "score": 0.9}]})
    rolled = {"backend_id": 1, "suite_id": 1, "metric_id": 1, "tag": "", "scorer_id": 1, "n": 2, "mean": 1.0}
    return {
        "scenario_result": [
            {"id": n, "run_id": n, "trial": 1, "scenario": "s1", **played, **spent}
            for n in range(1, RUNS + 1)
        ],
        "case_result": [{"id": id, "run_id": run, "case_id": case, **answered} for run, case, id in ids],
        "score": [{"case_result_id": id, "metric_id": 1, "scorer_id": 1, "value": 1.0} for _, _, id in ids],
        "detail": [{"case_result_id": id, "content": detail} for _, _, id in ids],
        "rollup": [{"run_id": n, "low": 0.3, "high": 1.0, **rolled} for n in range(1, RUNS + 1)],
    }


def _operation() -> dict[str, list[dict[str, Any]]]:
    asked = {"kind": "run", "payload": '{"suite":"golden","backend":"mem0"}', "author": "local"}
    return {
        "mark": [
            {"id": 1, "at": _day(2), "text": "deploy", "kind": "mark", "author": "local", "meta": "{}"}
            | {"project": "default"}
        ],
        "event": [
            {"id": 1, "at": _day(2), "level": "info", "source": "collector", "message": "hello", "run_id": 1}
        ],
        "heartbeat": [{"name": "collector", "at": _day(3), "pid": 7, "host": "here", "started_at": _day(1)}],
        "schedule_state": [{"name": "nightly", "last_fire": _day(3), "next_fire": _day(4), "enabled": True}],
        "expected_run": [{"schedule": "nightly", "scheduled_for": _day(4)}],
        "request": [
            {"id": 1, "state": "done", "created_at": _day(1), "claimed_at": _day(1), "finished_at": _day(1)}
            | {"run_ids": "[1]", "error": None, **asked}
        ],
        "lease": [{"name": "backend:mem0", "owner": "here:7", "token": 1, "expires": 0.0}],
        "change": [{"name": "record", "n": 9}],
    }


def _later() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """What the tables of later revisions hold, where they are not changed by one that is later still."""
    said = {"reason": "so", "author": "ann", "at": _day(3)}
    series = {"id": 1, "suite_id": 1, "backend_id": 1}
    fire = {"schedule": "nightly", "scheduled_for": _day(4), "due": _day(4), "state": "expected"}
    ended = dict.fromkeys(("token", "claimed_at", "started_at", "finished_at", "reason"))
    state = {"id": 1, "suite_id": 1, "name": "keys", "state": "retired", "owner": "ann", "expires": None}
    finding = {"file": "f", "line": 1, "case_name": "keys", "rule": "r", "severity": "s", "message": "m"}
    mutant = {
        "id": 1,
        "suite_version_id": 1,
        "backend": "mem0",
        "fault": "f",
        "meaning": "m",
        "detected": True,
    }
    lost = {"lost": 1, "critical_lost": 0, "kind": None, "kind_right": False, "at": _day(3)}
    verdict = {"id": 1, "run_id": 2, "looks": 1, "verdict": "worse", "stage": "confirmed", "content": "{}"}
    return {
        "0002": {
            "suite_change": [{"id": 1, "suite_version_id": 1, **said}],
            "case_state": [state | said],
            "lint_report": [{"suite_version_id": 1, "rules": "1", "asked": 2, "telling": 1, "at": _day(3)}],
            "finding": [{"id": 1, "suite_version_id": 1, "hint": "h", **finding}],
            "mutant": [mutant | lost],
            "expected_count": [
                {"leg": "vector", "expected": 4, "source": "import", "author": "ann", "at": _day(3)} | series
            ],
        },
        "0003": {
            "verdict": [verdict | {"provisional": False, "accepted": False, "at": _day(3)}],
            "baseline_change": [{"action": "pin", "run_ids": "[1]", **series, **said}],
        },
        "0004": {"control": [{"control_id": 3, "run_id": 2, "release": "mem0ai==1.0"}]},
        "0005": {"journal": [{"run_id": 2, "text": "it said something"}]},
        "0006": {"fire": [fire | ended | {"run_ids": "[]"}]},
        "0007": {
            "removal": [{"run_id": 1, "what": "details", "after": "90d", "at": _day(3)}],
            "spent": [{"day": "2026-01-03", "run_id": 3, "money": 0.5}],
        },
        "0009": _alerts(),
    }


def _alerts() -> dict[str, list[dict[str, Any]]]:
    """One alert that is over, with all that became of it."""
    series = {"kind": "regression", "suite": "golden", "backend": "mem0", "subject": "", "drill": False}
    alert = {"id": 1, "kind": "regression", "state": "resolved", "severity": "high", "suite_id": 1}
    when = {"opened_at": _day(3), "closed_at": _day(3)}
    told = {"told_at": _day(3), "acknowledged_by": "ann", "muted_until": None, "judged": "real"}
    kept = {"cause": "{}", "context": "{}", "suspects": "[]", "cases": '["keys"]', "tags": "[]"}
    runs = {"backend_id": 1, "first_bad_run_id": 3, "last_good_run_id": 2}
    signal = {"id": 1, "alert_id": 1, "standing": "clear", "depth": 1.0, "told": 1.0, "good": 2, "run_id": 3}
    step = {"id": 1, "alert_id": 1, "at": _day(3), "action": "resolved", "author": "ann", "reason": "so"}
    sent = {"kind": "opened", "urgent": False, "payload": "{}", "state": "sent", "attempts": 1, "due": 0.0}
    ended = {"claimed_by": None, "claimed_until": None, "sent_at": 0.0, "status": 200, "error": None}
    proof = {"id": 1, "suite": "smoke", "backend": "hybrid", "fault": "amnesia", "channel": "team"}
    seconds = {"detected_s": 1.0, "confirmed_s": 2.0, "delivered_s": 3.0, "alert_id": None, "error": None}
    return {
        "alert": [alert | when | told | kept | runs | {"drill": False, **_PROJECT}],
        "alert_signal": [{"first_run_id": 3, "content": '{"cases":["keys"]}', **signal, **series, **when}],
        "alert_step": [{"run_id": 3, "routed": True, **step}],
        "delivery": [
            {"id": 1, "key": "k", "channel": "team", "alert_id": 1, "step_id": 1, "queued_at": _day(3)}
            | sent | ended
        ],
        "channel_state": [{"name": "team", "disabled_at": _day(3), "reason": "gone", "address": "a"}],
        "proof": [{"started_at": _day(3), "finished_at": _day(3), **proof, **seconds}],
    }  # fmt: skip
