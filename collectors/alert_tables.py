"""Alerts as a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import typer
from rich.text import Text

from collectors.tables import plain_table, wide_console
from store import alert_titles, alert_words, words
from store.alert_life import STANDING_STATES, Incident
from store.queries import AlertRow, DeliveryRow, StepRow


def print_alerts(rows: Sequence[AlertRow], counts: Mapping[str, int]) -> None:
    """`counts`: of all alerts by state."""
    if not rows:
        over = sum(n for state, n in counts.items() if state not in STANDING_STATES)
        typer.echo(
            "no alert" + (f"; {words.count(over, 'is', 'are')} over: --all lists them" if over else "")
        )
        return
    drawn = plain_table("alert", "state", "what", "severity", "since (UTC)", "who has it")
    for row in rows:
        it = row.incident
        state = alert_words.STATES[it.state].lower() + (", muted" if _is_muted(it) else "")
        told = (alert_words.title(it), it.kind.severity, f"{it.opened_at:%Y-%m-%d %H:%M}")
        drawn.add_row(str(row.id), state, *map(Text, told), Text(it.acknowledged_by or ""))
    wide_console().print(drawn)


def print_alert(row: AlertRow, steps: Sequence[StepRow], deliveries: Sequence[DeliveryRow]) -> None:
    typer.echo("\n".join(_lines(row, steps, deliveries)))


def _lines(row: AlertRow, steps: Sequence[StepRow], deliveries: Sequence[DeliveryRow]) -> Iterator[str]:
    it = row.incident
    yield f"alert {row.id}: {alert_words.title(it)}"
    yield f"  {alert_words.STATES[it.state].lower()}, {it.kind.severity}; {alert_words.evidence(it)}"
    yield from _beside(it)
    for step in steps:
        why = f": {step.reason}" if step.reason else ""
        yield f"  {_minute(step.at)} {step.author}: {step.action}{why}"
    of = {step.id: step.action for step in steps}
    for one in reversed(deliveries):
        failed = f": {one.error}" if one.error and one.state != "sent" else ""
        what, at = of.get(one.step_id or 0, one.kind), _minute(one.sent_at or one.queued_at)
        yield f"  message to {one.channel}, {what}: {one.state} {at}{failed}"


def _beside(it: Incident) -> Iterator[str]:
    if it.muted_until and _is_muted(it):
        yield f"  muted until {_minute(it.muted_until)}"
    if it.acknowledged_by:
        yield f"  {alert_titles.holder(it)}"
    if it.judged:
        yield f"  {it.judged}, as people judge"
    if it.cases:
        yield f"  cases: {', '.join(it.cases)}"
    for number, one in enumerate(it.suspects[:5], start=1):
        yield f"  suspect {number}: {one['sentence']}"


def _is_muted(it: Incident) -> bool:
    """Of what is over nothing is silenced."""
    return it.muted_until is not None and it.state in STANDING_STATES


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
