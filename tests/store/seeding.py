"""Fills a record for the tests, through the same writes that everyone uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from store import models as m
from store import queries, writes
from store.database import Database
from store.records import CaseOutcome, CaseRecord, ClosedStatus, NewRun, Rollup, ScenarioOutcome, SuiteRecord
from store.rollups import roll_up

START = datetime(2026, 3, 1, 3, tzinfo=UTC)


class Seed:
    def __init__(self, db: Database) -> None:
        self.db = db

    def suite(self, name: str = "golden", cases: Mapping[str, str] | None = None, **fields: Any) -> int:
        """cases: name -> hash. The version follows from them."""
        hashes = cases or {"a": "1", "b": "1", "c": "1", "d": "1"}
        records = tuple(
            CaseRecord(case, hash_, f"what of {case}?", tags=("even",) if i % 2 else ("odd", "all"))
            for i, (case, hash_) in enumerate(hashes.items())
        )
        version = "-".join(f"{case}{hash_}" for case, hash_ in hashes.items())
        origin = str(fields.get("origin", "own"))
        return writes.register_suite(self.db, SuiteRecord(name, "golden", origin, version, 7, records))

    def backend(self, name: str = "keyword", type: str | None = None) -> int:
        return writes.register_backend(self.db, name, type or name, {"k": 1}, "team")

    def open(
        self, version: int, backend: str = "keyword", *, trials: int = 1, **fields: Any
    ) -> tuple[int, int]:
        """A run that is going on, under its backend's lease: (run id, token)."""
        backend_id = self.backend(backend)
        token = writes.acquire_lease(self.db, writes.backend_lease(backend), "test", 60)
        assert token is not None
        given: dict[str, Any] = {"environment_id": None, "trigger": "cli", "scorer_version": "1", **fields}
        new = NewRun(
            version, backend_id, token=token, cases_total=4, scenarios_total=1, trials=trials, **given
        )
        return writes.open_run(self.db, new), token

    def close(
        self,
        run_id: int,
        token: int,
        backend: str = "keyword",
        status: ClosedStatus = "whole",
        at: datetime | None = None,
    ) -> None:
        """Close with the rollup of what is stored; the lease is given back."""
        rolled = roll_up(queries.case_scores(self.db, run_id), queries.scenario_stats(self.db, run_id))
        writes.close_run(self.db, run_id, status, rolled, token=token)
        writes.release_lease(self.db, writes.backend_lease(backend), token)
        if at is not None:
            self.at(run_id, at)

    def at(self, run_id: int, at: datetime) -> None:
        """A run of another day; only tests turn back the clock."""
        with self.db.write() as connection:
            moved = m.run.update().where(m.run.c.id == run_id)
            connection.execute(moved.values(started_at=at, finished_at=at + timedelta(minutes=1)))

    def run(
        self,
        version: int,
        passed: Sequence[str],
        *,
        cases: Sequence[str] = ("a", "b", "c", "d"),
        backend: str = "keyword",
        day: int = 0,
        status: ClosedStatus = "whole",
        **fields: Any,
    ) -> int:
        """A closed run of one trial in which the named cases passed."""
        run_id, token = self.open(version, backend, **fields)
        outcomes = tuple(outcome(case, passed=case in passed) for case in cases)
        writes.save_scenario(self.db, run_id, scenario(outcomes), token)
        self.close(run_id, token, backend, status, START + timedelta(days=day))
        return run_id


def outcome(case: str, *, passed: bool | None = True, trial: int = 1, status: Any = "ok") -> CaseOutcome:
    """`passed` None: no score."""
    scores = {} if passed is None else {"pass": float(passed), "recall@k": 1.0 if passed else 0.5}
    failure = None if passed else "not stored"
    detail = {"hits": [{"id": "m1", "text": f"first for {case}", "score": 0.5}], "reply": None}
    return CaseOutcome(case, trial, status, failure, 2.0, 1, 5, scores, detail)


def scenario(cases: Sequence[CaseOutcome], name: str = "s1", trial: int = 1) -> ScenarioOutcome:
    return ScenarioOutcome(name, trial, "ok", 7, 10.0, 1.0, 1, 20, 0.5, cases=tuple(cases))


def rollups(mean: float = 0.5, metric: str = "pass") -> list[Rollup]:
    return [Rollup(metric, "", 4, mean, 0.1, 0.9)]
