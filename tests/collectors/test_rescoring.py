"""Scores derived again: a changed scorer judges old answers, and no backend is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from collectors import matching, rescoring, scorers
from collectors.plans import RunPlan
from collectors.rescoring import rescore, runs_of_older_scorers
from collectors.runner import run
from store import models as m
from store import queries
from store.database import Database
from store.errors import StoreError
from tests.collectors.playground import case, journal, plan, suite

OLD, NEW = scorers.SCORER_VERSION, "none but this test's"
LINES = [
    case("amber"),
    case("daisy"),
    case("basil", "where did the basil box go"),
    case("cedar", "refuse to say", tags=["doors"]),
]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The journal of all calls that the backend got."""
    return tmp_path / "journal"


@pytest.fixture
def plan_of(tmp_path: Path, notes: Path) -> Any:
    """A plan for these lines, over a backend that refuses questions with `refuse` in them."""

    def planned(*lines: dict[str, Any], type: str = "Refusing", **more: Any) -> RunPlan:
        return plan(suite(tmp_path, lines), type, options={"journal": str(notes)}, **more)

    return planned


@pytest.fixture
def done(db: Database, plan_of: Any) -> int:
    """A whole run of two trials: two cases pass, one is lost, one is an error."""
    return run(plan_of(*LINES, trials=2), db).run_id


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scorers of another version, for which a case passes when it was lost, and recall is unknown."""
    changed = {name: scorer for name, scorer in scorers.SCORERS.items() if name != "recall@k"}
    changed["pass"] = lambda probe, evidence: 1 - scorers.passed(probe, evidence)
    monkeypatch.setattr(scorers, "SCORERS", changed)
    monkeypatch.setattr(rescoring, "SCORER_VERSION", NEW)


def _results(db: Database, run_id: int) -> dict[tuple[str, int], queries.CaseResult]:
    return {
        (row.case, one.trial): one
        for row in queries.run_cases(db, run_id)
        for one in queries.case_results(db, row.case_id, run_id)
    }


def _stored_scores(db: Database, version: str) -> set[tuple[int, int, float]]:
    """(result, metric, value) as the scorers of that version gave them."""
    score = m.score.c
    query = sa.select(score.case_result_id, score.metric_id, score.value).join(
        m.scorer, m.scorer.c.id == score.scorer_id
    )
    with db.read() as connection:
        return {tuple(row) for row in connection.execute(query.where(m.scorer.c.version == version))}


def _cannot_be_judged(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Any pattern takes too long on that text."""
    matches = matching.matches

    def slow(pattern: str, against: str) -> bool:
        if text in against:
            raise matching.MatchTimeout(pattern)
        return matches(pattern, against)

    monkeypatch.setattr(scorers, "any_matches", lambda found, against: any(slow(p, against) for p in found))


def test_the_same_scorers_give_the_same_scores(db: Database, done: int):
    """From what is stored alone, every score and every rollup comes out as in the run."""
    before, whole, tags = _results(db, done), queries.run(db, done), queries.run_tags(db, done)
    assert {one.scores.get("pass") for one in before.values()} == {0, 1, None}
    assert rescore(db, done) == f"run {done}: 6 answers scored by version {OLD}"
    assert (_results(db, done), queries.run(db, done), queries.run_tags(db, done)) == (before, whole, tags)


def test_a_changed_scorer_judges_the_old_answers(db: Database, done: int, newer: None):
    """Scores are those of the new scorers; answers, times and errors stay, and no case that passes now has
    a kind of failure."""
    before = _results(db, done)
    assert rescore(db, done) == f"run {done}: 6 answers scored by version {NEW}"
    after = _results(db, done)
    assert {key: one._replace(scores={}, failure=None) for key, one in after.items()} == {
        key: one._replace(scores={}, failure=None) for key, one in before.items()
    }
    assert before["case-basil", 1].failure == "returned but too low"
    assert {one.failure for one in after.values()} == {None, "backend error"}
    for key, one in after.items():
        told = {**before[key].scores, "pass": 1 - before[key].scores.get("pass", 0)}
        told.pop("recall@k", None)
        assert one.scores == (told if before[key].scores else {})


def test_rollups_follow_the_new_scores(db: Database, done: int, newer: None):
    """The run shows the new means; errors stay errors, and what is no more scored has no mean."""
    before = queries.run(db, done).metrics
    rescore(db, done)
    shown = queries.run(db, done)
    assert shown.scorer == NEW
    assert (before["pass"].n, before["pass"].mean) == (3, pytest.approx(2 / 3))
    assert (shown.metrics["pass"].n, shown.metrics["pass"].mean) == (3, pytest.approx(1 / 3))
    assert "recall@k" not in shown.metrics
    assert shown.metrics["error_rate"] == before["error_rate"]
    assert shown.metrics["plant_ms"] == before["plant_ms"]
    assert {tag.metric for tag in queries.run_tags(db, done) if tag.tag == "doors"} == {
        "error_rate", "first_try_errors", "attempts",
    }  # fmt: skip


def test_old_scores_stay(db: Database, done: int, newer: None):
    """What the earlier scorers gave is in the record still, beside the new."""
    before = _stored_scores(db, OLD)
    rescore(db, done)
    assert before
    assert _stored_scores(db, OLD) == before
    assert len(_stored_scores(db, NEW)) == len(before) - 6  # no recall in the six answers


def test_scoring_again_replaces_what_the_same_scorers_gave(db: Database, done: int, newer: None):
    """Twice is as good as once."""
    rescore(db, done)
    once = _stored_scores(db, NEW)
    rescore(db, done)
    assert _stored_scores(db, NEW) == once


def test_no_backend_is_asked(db: Database, done: int, newer: None, notes: Path):
    """Scoring again makes no call."""
    calls = journal(notes)
    rescore(db, done)
    assert journal(notes) == calls


def test_runs_of_older_scorers_are_found_until_they_are_scored(
    db: Database, done: int, plan_of: Any, monkeypatch: pytest.MonkeyPatch
):
    """With newer scorers every ended run is found, oldest first; once it is scored again it is not."""
    later = run(plan_of(case("daisy")), db).run_id
    assert runs_of_older_scorers(db) == []
    monkeypatch.setattr(rescoring, "SCORER_VERSION", NEW)
    assert runs_of_older_scorers(db) == [done, later]
    rescore(db, done)
    assert runs_of_older_scorers(db) == [later]


def test_a_run_of_errors_alone_is_scored_again_too(db: Database, plan_of: Any, newer: None):
    """It has no answers to judge and is not in the way of other runs: its error rate is rolled up again."""
    failed = run(plan_of(case("amber", "refuse")), db).run_id
    assert rescore(db, failed) == f"run {failed}: 0 answers scored by version {NEW}"
    shown = queries.run(db, failed)
    assert (shown.status, shown.scorer, shown.metrics["error_rate"].mean) == ("invalid", NEW, 1.0)
    assert "pass" not in shown.metrics


def test_what_was_skipped_stays_skipped(db: Database, plan_of: Any, newer: None):
    """A case that does not apply to the backend is scored by no scorer."""
    skipping = run(plan_of(case("amber"), case("basil", expect_ids=["w1"]), type="Bare"), db).run_id
    rescore(db, skipping)
    results = _results(db, skipping)
    assert results["case-basil", 1].status == "skipped"
    assert results["case-basil", 1].scores == {}
    assert results["case-amber", 1].scores["pass"] == 0


def test_an_answer_that_takes_too_long_to_judge_has_no_score(
    db: Database, done: int, monkeypatch: pytest.MonkeyPatch
):
    """It leaves the means and is an error of the judge, of which the line says how many there are."""
    _cannot_be_judged(monkeypatch, "amber")
    assert (
        rescore(db, done) == f"run {done}: 4 answers scored by version {OLD}, 2 could not be judged in time"
    )
    assert _results(db, done)["case-amber", 1].scores == {}
    shown = queries.run(db, done)
    assert (shown.metrics["pass"].n, shown.metrics["error_rate"].mean, shown.errors) == (2, 0.5, 4)
    unjudged = _results(db, done)["case-amber", 1]
    assert (unjudged.status, unjudged.failure) == ("error", "judge error")
    assert unjudged.detail["error"]


def test_what_could_not_be_judged_is_judged_again(db: Database, done: int, monkeypatch: pytest.MonkeyPatch):
    """An error of the judge is no error of the backend: its answer is kept, and scored once it can be."""
    before = _results(db, done), queries.run(db, done)
    with monkeypatch.context() as slowly:
        _cannot_be_judged(slowly, "amber")
        rescore(db, done)
    assert rescore(db, done) == f"run {done}: 6 answers scored by version {OLD}"
    assert (_results(db, done), queries.run(db, done)) == before


def test_a_case_that_is_lost_now_says_why(db: Database, done: int, monkeypatch: pytest.MonkeyPatch):
    """Its kind of failure and the marks of its hits follow the new judgement."""
    monkeypatch.setattr(scorers, "any_matches", lambda patterns, text: False)
    rescore(db, done)
    lost = _results(db, done)["case-amber", 1]
    assert (lost.scores["pass"], lost.failure) == (0, "not returned")
    assert not any("wanted" in hit for hit in lost.detail["hits"])
    assert _results(db, done)["case-basil", 1].failure == "returned but too low", "as the run knew it"


def test_without_its_answers_a_run_is_not_scored(db: Database, done: int, newer: None):
    """A run whose answers were deleted keeps its scores: an answer that is gone is no empty answer."""
    before = queries.run(db, done)
    with db.write() as connection:
        connection.execute(m.detail.delete())
    with pytest.raises(StoreError, match=f"run {done}: no stored answers"):
        rescore(db, done)
    assert queries.run(db, done) == before


def test_an_unknown_run_is_named(db: Database):
    """A run that is not in the record is an error that says so."""
    with pytest.raises(StoreError, match="run 41: no stored answers; it is not in the record, or they were"):
        rescore(db, 41)
