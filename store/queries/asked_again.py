"""What came of asking a case again, in doubt."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from store import models as m
from store.database import Database
from store.metrics import METRICS
from store.queries.common import suite_id
from store.queries.verdicts import CONFIRM, looked_at

PASS = METRICS["pass"].id


class Again(NamedTuple):
    """`passes` of the `trials` that were judged, over all looks at one run."""

    passes: int
    trials: int


def asked_again(db: Database, suite: str, name: str) -> dict[int, Again]:
    """By the run in doubt: what its looks found of a case."""
    result, case, run, score = m.case_result.c, m.case.c, m.run.c, m.score.c
    is_pass = sa.and_(
        score.case_result_id == result.id, score.metric_id == PASS, score.scorer_id == run.scorer_id
    )
    with db.read() as connection:
        query = (
            sa.select(run.trigger, score.value)
            .select_from(m.case_result)
            .join(m.case, case.id == result.case_id)
            .join(m.run, run.id == result.run_id)
            .join(m.score, is_pass)
            .where(case.suite_id == suite_id(connection, suite), case.name == name)
            .where(run.subset == CONFIRM, run.status == "whole")
        )
        rows = connection.execute(query).all()
    found: dict[int, Again] = {}
    for trigger, value in rows:
        before = found.get(looked_at(trigger), Again(0, 0))
        found[looked_at(trigger)] = Again(before.passes + (value > 0.5), before.trials + 1)
    return found
