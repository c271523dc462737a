"""The gate: run a suite once, look again where that is suspicious, and say whether to ship.

What is worse is said by `store/verdicts.py`, and what fails by `store/gates.py`; here stands where the
baseline comes from, and what is done where there is none yet.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from collectors.arguments import refuse_unwritable
from collectors.configured import plan, suite_bars
from collectors.environment import git_revision
from collectors.pairs import Todo
from collectors.plans import RunPlan
from collectors.process import Stop
from collectors.runs import run_all
from store import portable, queries, writes
from store.baselines import Decision
from store.database import Database
from store.errors import StoreError
from store.evidence import Verdict, entry, plain
from store.gates import Bar, Gate, first, gate, kept, ship_bars
from store.portable import Against, Carried
from store.queries import CaseRow
from store.settings import Settings

PRIME_TRIALS = 5
"""Trials that a first baseline is made of."""
RECORD, GREEN = "baseline", "green:"
OWN = Against(())
"""The baseline that the series has in the record."""
CI_BRANCHES = ("GITHUB_REF_NAME", "CI_COMMIT_BRANCH")
"""Where a runner of CI, whose checkout has no branch, says on which it is."""


class NoAnswer(StoreError):
    """The gate cannot tell: its run did not end whole, or there is nothing to hold it against."""

    code = 3


class NotUsable(StoreError):
    """What a run was to be held against is no such thing: a mistake of whoever asks, and no regression."""

    code = 2


class Asked(NamedTuple):
    """`against`: baseline, green:BRANCH or "run ID"; `file`: a baseline that travels, in place of that;
    `renew`: when nothing in it can be compared with, write it anew."""

    suite: str
    backend: str
    against: str = RECORD
    file: Path | None = None
    margin: float | None = None
    meta: Mapping[str, str] = {}
    renew: bool = False


class Ended(NamedTuple):
    """What a gate came to. `cases`: of its run; `against`: None where there was nothing to hold it against.
    Then `written` says where a first baseline stands, None where what was run is not fit to be one, and
    `outdated` why the file that was there before is one no more."""

    asked: Asked
    run_id: int
    verdict: Verdict
    gate: Gate
    cases: Sequence[CaseRow]
    against: Against | None
    written: str | None = None
    outdated: str | None = None


def held(db: Database, settings: Settings, asked: Asked, stop: Stop) -> Ended:
    """Run and judge. Raises `NoAnswer`, and `NotUsable` for what it cannot be held against."""
    ended = _held(db, settings, asked, _against(db, asked), stop)
    if not (asked.renew and _is_outdated(ended)):
        return ended
    return _held(db, settings, asked, None, stop)._replace(outdated=ended.verdict.reason)


def _is_outdated(ended: Ended) -> bool:
    """Whether the file can be held against no run of today: it is of another scorer, embedder or suite. What
    fails the gate all the same is no reason to forget it."""
    carried = ended.against is not None and ended.against.carried is not None
    return carried and not ended.verdict.looks and not ended.gate.failed


def _held(db: Database, settings: Settings, asked: Asked, against: Against | None, stop: Stop) -> Ended:
    primes = against is None
    trigger, trials = (queries.PRIME, PRIME_TRIALS) if primes else (queries.GATE, 1)
    planned = plan(settings, asked.suite, asked.backend, trials=trials, trigger=trigger, meta=_meta(asked))
    if against and against != OWN:
        planned = replace(planned, against=against)
    run_id, verdict = _judged(db, planned, stop)
    bars = _bars(db, settings, asked, run_id, verdict)
    found = first(bars) if primes else _gate(db, planned, run_id, verdict, bars, asked.margin)
    told = {**plain(verdict), "gate": kept(found, str(asked.file or asked.against), first=primes)}
    writes.record_verdict(db, entry(run_id, verdict)._replace(content=told))
    written = _written(db, asked) if primes and not found.failed else None
    return Ended(asked, run_id, verdict, found, queries.run_cases(db, run_id), against, written)


def _meta(asked: Asked) -> dict[str, str]:
    ci = next((os.environ[name] for name in CI_BRANCHES if os.environ.get(name)), None)
    return {**({"branch": ci} if ci else {}), **asked.meta}


def _judged(db: Database, planned: RunPlan, stop: Stop) -> tuple[int, Verdict]:
    done = next(iter(run_all(db, [Todo(planned)], stop)), None)
    if done is None or done.outcome is None or done.outcome.verdict is None:
        raise NoAnswer(f"no answer: {done.problem if done else 'stopped before it began'}")
    return done.outcome.run_id, done.outcome.verdict


def _bars(db: Database, settings: Settings, asked: Asked, run_id: int, verdict: Verdict) -> list[Bar]:
    cases, scenarios = queries.case_scores(db, run_id), queries.scenario_stats(db, run_id)
    return ship_bars(cases, scenarios, suite_bars(settings, asked.suite), verdict.aside)


def _gate(
    db: Database, planned: RunPlan, run_id: int, verdict: Verdict, bars: list[Bar], margin: float | None
) -> Gate:
    record = queries.verdict_record(db, run_id, against=planned.against)
    assert record is not None, "a run that has just ended is in the record"
    return gate(record, verdict, bars, margin)


def _written(db: Database, asked: Asked) -> str:
    """Where the first baseline stands from now on."""
    if asked.file is None:
        return "the record"
    carried = queries.carried_baseline(db, asked.suite, asked.backend)
    if carried is None:
        raise NoAnswer(f"nothing written: {asked.suite} on {asked.backend} is held to other runs; reset that")
    write_file(asked.file, carried)
    return str(asked.file)


def write_file(path: Path, carried: Carried) -> None:
    try:
        path.write_text(portable.written(carried), encoding="utf-8")
    except OSError as error:
        raise NotUsable(f"cannot write {path}: {error.strerror}") from None


def read_file(path: Path) -> Carried:
    """Raises `NotUsable` for what is no baseline, or was changed."""
    try:
        return portable.read(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise NotUsable(f"cannot read {path}: no such file, or no text") from None
    except StoreError as error:
        raise NotUsable(f"{path}: {error}") from None


# What to hold it against


def _against(db: Database, asked: Asked) -> Against | None:
    """None where a first baseline is to be written."""
    if asked.file:
        if asked.file.exists():
            return _of_file(asked)
        refuse_unwritable(asked.file)
        return None
    if asked.against == RECORD:
        found = queries.baseline_now(db, asked.suite, asked.backend)
        return OWN if found.recent or found.held else None
    if asked.against.startswith(GREEN):
        return _of_green(db, asked, asked.against.removeprefix(GREEN))
    return _alone([_run_named(db, asked)], asked.against)


def _of_file(asked: Asked) -> Against:
    assert asked.file is not None
    carried = read_file(asked.file)
    if (carried.suite, carried.backend) != (asked.suite, asked.backend):
        raise NotUsable(f"{asked.file} is a baseline of {carried.suite} on {carried.backend}")
    return Against(carried.decisions, carried)


def _of_green(db: Database, asked: Asked, branch: str) -> Against | None:
    """A first baseline is made by the branch itself and by no other, which may be what is bad."""
    if green := queries.green_runs(db, asked.suite, asked.backend, branch):
        return _alone(green, asked.against)
    if _branch(asked) == branch:
        return None
    raise NoAnswer(
        f"no gate of {asked.suite} on {asked.backend} has passed on {branch} yet; run it there first"
    )


def _branch(asked: Asked) -> str:
    return _meta(asked).get("branch") or str(git_revision(Path.cwd()).get("branch", ""))


def _run_named(db: Database, asked: Asked) -> int:
    number = asked.against.removeprefix("run").strip(" :#")
    row = queries.run(db, int(number)) if number.isdecimal() else None
    if row is None or (row.suite, row.backend, row.status, row.subset) != (
        asked.suite,
        asked.backend,
        "whole",
        "",
    ):
        raise NotUsable(
            f"--against {asked.against!r}: should be baseline, green:BRANCH, or run ID of a whole run of "
            f"{asked.suite} on {asked.backend}; memtrend runs lists them"
        )
    return row.id


def _alone(run_ids: Sequence[int], why: str) -> Against:
    """These runs and no others."""
    return Against([Decision("hold", tuple(run_ids), why, "gate", datetime.now(UTC))])
