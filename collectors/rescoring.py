"""Scores derived again from stored answers: a new scorer judges old runs without asking a backend."""

from __future__ import annotations

from collectors.failures import JUDGE_ERROR, failure_kind
from collectors.history import History
from collectors.matching import MatchTimeout
from collectors.record import asked, observed, rejudged
from collectors.scorers import SCORER_VERSION, judge
from store import queries, writes
from store.database import Database
from store.errors import StoreError
from store.rollups import CaseRow, roll_up
from store.writes.runs import Rejudged


def runs_of_older_scorers(db: Database) -> list[int]:
    """Ended runs whose scores come from another version of the scorers, oldest first."""
    return queries.runs_scored_otherwise(db, SCORER_VERSION)


def rescore(db: Database, run_id: int) -> str:
    """Judge the run's answers as today's scorers do; its old scores stay in the record. Returns a line that
    says what was done. Raises `StoreError` for a run without stored answers."""
    stored = queries.stored_answers(db, run_id)
    answers = [answer for answer in stored if answer.status == "ok" or _was_not_judged(answer)]
    if not stored or any("hits" not in answer.detail for answer in answers):
        raise StoreError(f"run {run_id}: no stored answers; it is not in the record, or they were deleted")
    judged = {(answer.case, answer.trial): _judged(answer) for answer in answers}
    rows = [_scored(row, judged.get((row.case, row.trial))) for row in queries.case_scores(db, run_id)]
    rollups = roll_up(rows, queries.scenario_stats(db, run_id))
    writes.rescore(db, run_id, SCORER_VERSION, judged.values(), rollups)
    unjudged = sum(one.status == "error" for one in judged.values())
    return f"run {run_id}: {len(answers) - unjudged} answers scored by version {SCORER_VERSION}" + (
        f", {unjudged} could not be judged in time" if unjudged else ""
    )


def _was_not_judged(answer: queries.StoredAnswer) -> bool:
    """Whether the judge failed, and not the backend: something came back."""
    return answer.status == "error" and bool(answer.detail.get("hits") or answer.detail.get("reply"))


def _judged(answer: queries.StoredAnswer) -> Rejudged:
    """Its kind of failure is told from the answer alone: what was planted around it is not in the record."""
    probe, seen = asked(answer.case, answer.story), observed(answer.detail)
    try:
        evidence, scores = judge(probe, seen)
        failure = None if scores["pass"] else failure_kind(probe, evidence, History())
    except MatchTimeout as late:
        detail = rejudged(answer.detail, None, str(late))
        return Rejudged(answer.case_result_id, "error", JUDGE_ERROR, None, {}, detail)
    detail = rejudged(answer.detail, evidence, None)
    returned = None if seen.census else len(seen.hits)
    return Rejudged(answer.case_result_id, "ok", failure, returned, scores, detail)


def _scored(row: CaseRow, judged: Rejudged | None) -> CaseRow:
    if judged is None:
        return row._replace(scores={})
    return row._replace(status=judged.status, scores=judged.scores, returned_n=judged.returned_n)
