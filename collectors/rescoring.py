"""Scores derived again from stored answers: a new scorer judges old runs without asking a backend."""

from __future__ import annotations

from collectors.matching import MatchTimeout
from collectors.record import asked, observed
from collectors.scorers import SCORER_VERSION, judge
from store import queries, writes
from store.database import Database
from store.errors import StoreError
from store.rollups import roll_up


def runs_of_older_scorers(db: Database) -> list[int]:
    """Ended runs whose scores come from another version of the scorers, oldest first."""
    return queries.runs_scored_otherwise(db, SCORER_VERSION)


def rescore(db: Database, run_id: int) -> str:
    """Judge the run's answers as today's scorers do; its old scores stay in the record. Returns a line that
    says what was done. Raises `StoreError` for a run without stored answers."""
    stored = queries.stored_answers(db, run_id)
    answers = [answer for answer in stored if answer.status == "ok"]
    if not stored or any("hits" not in answer.detail for answer in answers):
        raise StoreError(f"run {run_id}: no stored answers; it is not in the record, or they were deleted")
    scores = {(answer.case, answer.trial): _scores(answer) for answer in answers}
    rows = [
        row._replace(scores=scores.get((row.case, row.trial), {})) for row in queries.case_scores(db, run_id)
    ]
    rollups = roll_up(rows, queries.scenario_stats(db, run_id))
    scored = [(answer.case_result_id, scores[answer.case, answer.trial]) for answer in answers]
    writes.rescore(db, run_id, SCORER_VERSION, scored, rollups)
    unjudged = sum(not found for found in scores.values())
    return f"run {run_id}: {len(answers) - unjudged} answers scored by version {SCORER_VERSION}" + (
        f", {unjudged} could not be judged in time" if unjudged else ""
    )


def _scores(answer: queries.StoredAnswer) -> dict[str, float]:
    try:
        return judge(asked(answer.case, answer.story), observed(answer.detail))[1]
    except MatchTimeout:
        return {}
