"""Rows of the record as the JSON that scripts rely on: the command line and the HTTP API print the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from store import alert_words, verdict_words

if TYPE_CHECKING:
    from store.comparisons import Comparison, SideTold, Turned
    from store.queries import AlertRow, CaseRow, CaseStanding, DeliveryRow, LogRow, RunRow, StepRow


def run_list(rows: Iterable[RunRow]) -> dict[str, Any]:
    return {"runs": [run(row) for row in rows]}


def run(row: RunRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "suite": row.suite,
        "suite_version": row.suite_version,
        "backend": row.backend,
        "status": row.status,
        "reason": row.reason,
        "started_at": moment(row.started_at),
        "finished_at": moment(row.finished_at),
        "trials": row.trials,
        "trigger": row.trigger,
        "subset": row.subset,
        "control_of": row.control_of,
        "meta": row.meta,
        "cases_done": row.cases_done,
        "cases_total": row.cases_total,
        "metrics": {name: rolled._asdict() for name, rolled in sorted(row.metrics.items())},
    }


def run_with_cases(row: RunRow, cases: Iterable[CaseRow]) -> dict[str, Any]:
    return {**run(row), "cases": [case(one) for one in cases]}


def case(row: CaseRow) -> dict[str, Any]:
    """`passed` is None where no answer says: an error, or a case that does not apply."""
    return {
        "case": row.case,
        "tags": list(row.tags),
        "critical": row.critical,
        "passed": row.passed,
        "status": row.status,
        "failure": row.failure,
        "passes": row.passes,
        "trials": row.trials,
    }


def verdict(content: Mapping[str, Any], suspects: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """`content`: the evidence as the record keeps it; `suspects`: {name, old, new}, likeliest first.
    `interval` is of the difference of the pass rates; None where there is none, as `control` is."""
    difference = content["difference"]
    told = (
        "verdict",
        "stage",
        "provisional",
        "lost",
        "gained",
        "critical",
        "blind_spot",
        "drift",
        "moved",
        "leak",
    )
    return {
        **{name: content[name] for name in told},
        "evidence": verdict_words.evidence(content),
        "reason": content["reason"],
        "interval": [difference["low"], difference["high"]] if difference else None,
        "difference": difference,
        "beats_dense": content["beats_dense"],
        "looks": content["looks"],
        "baseline": content["baseline"],
        "anchor": content["anchor"],
        "control": _control(content),
        "suspects": list(suspects),
    }


def _control(content: Mapping[str, Any]) -> dict[str, Any] | None:
    found = content.get("control")
    return {**found, "evidence": verdict_words.control(content)} if found else None


def comparison(c: Comparison) -> dict[str, Any]:
    """As `compare --json` prints it, without texts of memories. `lost` and `gained` are the confirmed ones;
    what only looks so is in `turned`. Shares are shares, `interval` is of the difference at `level`."""
    from store import comparison_words as said
    from store.comparisons import VERSION

    found = c.migration
    return {
        "suite": c.suite,
        "suite_version": c.suite_version,
        "licence": c.licence,
        "citation": c.citation,
        "a": _side(c.a),
        "b": _side(c.b),
        "verdict": found.verdict,
        "provisional": bool(c.warnings),
        "evidence": said.evidence(c),
        "margin": found.margin,
        "difference": found.difference,
        "interval": [found.low, found.high],
        "level": 1 - 2 * found.alpha,
        "cases": c.cases,
        "dropped": dict(c.dropped),
        "blind_spot": c.blind_spot,
        "cannot_rule_out": c.cannot_rule_out,
        "settle": said.settle(c),
        "needed": found.needed,
        "lost": [one.case for one in said.confirmed(c.lost)],
        "gained": [one.case for one in said.confirmed(c.gained)],
        "open": list(c.open),
        "turned": [_turned(one, side) for side in ("lost", "gained") for one in getattr(c, side)],
        "tags": [row._asdict() for row in c.tags],
        "metrics": [row._asdict() for row in c.metrics],
        "ratios": [row._asdict() for row in c.ratios],
        "references": [row._asdict() for row in c.references],
        "suspects": [
            {"name": one.name, "old": one.old, "new": one.new}
            for one in (c.changes.suspects if c.changes else ())
        ],
        "foresight": {**c.foresight._asdict(), "can_conclude": c.foresight.can_conclude},
        "method": found.method,
        "seed": found.seed,
        "version": VERSION,
        "warnings": list(c.warnings),
    }


def _side(told: SideTold) -> dict[str, Any]:
    named = ("name", "backend", "release", "trials", "rate", "low", "high")
    return {**{name: getattr(told, name) for name in named}, "runs": [row.id for row in told.runs]}


def _turned(one: Turned, side: str) -> dict[str, Any]:
    named = (
        *("case", "tags", "critical", "confirmed", "failure"),
        *("a_passes", "a_trials", "b_passes", "b_trials"),
    )
    return {"change": side, **{name: getattr(one, name) for name in named}}


def suite_log(suite: str, rows: Iterable[LogRow]) -> dict[str, Any]:
    """`reason` and `author` are None where nobody gave a reason."""
    return {"suite": suite, "log": [_log_row(row) for row in rows]}


def _log_row(row: LogRow) -> dict[str, Any]:
    return {
        "at": moment(row.at),
        "what": row.what,
        "subject": row.subject,
        "reason": row.reason or None,
        "author": row.author or None,
        "owner": row.owner or None,
        "expires": moment(row.expires),
    }


def standings(suite: str, rows: Iterable[CaseStanding]) -> dict[str, Any]:
    """`gates`: whether its loss may fail a deploy. What was decided is None where nothing was."""
    return {"suite": suite, "cases": [_standing(row) for row in rows]}


def _standing(row: CaseStanding) -> dict[str, Any]:
    return {
        "case": row.case,
        "standing": row.standing,
        "gates": row.gates,
        "stretch": row.stretch,
        "owner": row.owner or None,
        "reason": row.reason or None,
        "author": row.author or None,
        "at": moment(row.at),
        "expires": moment(row.expires),
    }


def alert_list(rows: Iterable[AlertRow]) -> dict[str, Any]:
    return {"alerts": [alert(row) for row in rows]}


def alert(row: AlertRow) -> dict[str, Any]:
    """`suite` and `backend` are None where it is of several, or of none."""
    it = row.incident
    return {
        "id": row.id,
        "kind": it.kind.name,
        "state": it.state,
        "severity": it.kind.severity,
        "backend": row.backend or None,
        "suite": row.suite or None,
        "title": alert_words.title(it),
        "evidence": alert_words.evidence(it),
        "opened_at": moment(it.opened_at),
        "told_at": moment(it.told_at),
        "closed_at": moment(row.closed_at),
        "muted_until": moment(it.muted_until),
        "acknowledged_by": it.acknowledged_by,
        "owner": it.owner,
        "judged": it.judged,
        "first_bad_run": row.first_bad_run_id,
        "last_good_run": it.last_good_run_id,
        "cases": list(it.cases),
        "suspects": [{name: one[name] for name in ("name", "old", "new")} for one in it.suspects],
    }


def alert_with_steps(
    row: AlertRow, steps: Iterable[StepRow], deliveries: Iterable[DeliveryRow]
) -> dict[str, Any]:
    return {
        **alert(row),
        "signals": [
            {**one.key._asdict(), "standing": one.standing, "depth": one.depth, "run": one.run_id}
            for one in row.incident.signals
        ],
        "steps": [_step(step) for step in steps],
        "deliveries": [_delivery(one) for one in deliveries],
    }


def _step(row: StepRow) -> dict[str, Any]:
    told = {"action": row.action, "author": row.author, "reason": row.reason, "run": row.run_id}
    return {"at": moment(row.at), **told}


def _delivery(row: DeliveryRow) -> dict[str, Any]:
    told = ("key", "channel", "kind", "state", "attempts", "status", "error")
    return {**{name: getattr(row, name) for name in told}, "sent_at": moment(row.sent_at)}


def moment(at: datetime | None) -> str | None:
    """ISO 8601 in UTC, to the second."""
    return None if at is None else at.isoformat(timespec="seconds").replace("+00:00", "Z")
