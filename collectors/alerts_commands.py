"""`memtrend alerts`: what is wrong, what people do about it, and whether somebody would be told."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from collectors.arguments import NO_ANSWER, Refused, ahead, chosen, refuse_unknown
from collectors.commands import Json, author, database, print_json, say, settings
from collectors.proof_commands import proof, send_test

if TYPE_CHECKING:
    from store.alert_life import Incident, Turned
    from store.database import Database
    from store.queries import AlertRow
    from store.settings import Settings
    from store.writes import Route

alerts_app = typer.Typer(
    help="Alerts: what is wrong, what becomes of it, and the proof that somebody would be told.",
    no_args_is_help=True,
)

Id = Annotated[int, typer.Argument(help="The alert, as `memtrend alerts list` numbers it.")]
Why = Annotated[str, typer.Option("--reason", help="Why, for whoever comes later.")]
Reason = Annotated[str, typer.Option(help="Why: kept with your name and the date.")]
Several = list[str] | None


@alerts_app.command("list")
def list_alerts(
    state: Annotated[Several, typer.Option(help="Such as open; may be given again.")] = None,
    kind: Annotated[Several, typer.Option(help="Such as regression; may be given again.")] = None,
    backend: Annotated[str | None, typer.Option("--backend", "-b", help="Of this backend.")] = None,
    suite: Annotated[str | None, typer.Option("--suite", "-s", help="Of this suite.")] = None,
    all: Annotated[bool, typer.Option("--all", help="Those that are over too.")] = False,
    json: Json = False,
) -> None:
    """What is wrong now, newest first; --all lists what is over too."""
    from collectors import alert_tables
    from store import queries, shapes
    from store.alert_kinds import KINDS
    from store.alert_life import STANDING_STATES
    from store.alert_words import STATES

    states = chosen(state, list(STATES), "state") if state or all else list(STANDING_STATES)
    kinds = chosen(kind, list(KINDS), "kind") if kind else None
    with database() as db:
        refuse_unknown(db, settings(), [suite] if suite else None, [backend] if backend else None)
        rows = queries.alerts(db, states=states, kinds=kinds, backend=backend, suite=suite, limit=None)
        over = queries.count_alerts(db)
    print_json(shapes.alert_list(rows)) if json else alert_tables.print_alerts(rows, over)


@alerts_app.command()
def show(alert: Id, json: Json = False) -> None:
    """One alert: its evidence, cases and suspects, what became of it, and who was told."""
    with database() as db:
        _tell(db, _known(db, alert), json)


@alerts_app.command()
def ack(alert: Id, reason: Why = "", json: Json = False) -> None:
    """Say that you have it: it is told again only when it falls further."""
    from store.alert_life import acknowledge

    _act(alert, json, lambda it, who: acknowledge(it, who, reason))


@alerts_app.command()
def mute(
    alert: Id,
    until: Annotated[str | None, typer.Option(help="A date or time, such as 2026-03-04T09:00.")] = None,
    for_: Annotated[str | None, typer.Option("--for", help="Or how long: 30m, 8h, 7d.")] = None,
    reason: Why = "",
    json: Json = False,
) -> None:
    """Say nothing of it for a while, whatever becomes of it."""
    from datetime import UTC, datetime

    from store import alert_life

    end = ahead(until, for_)
    _act(alert, json, lambda it, who: alert_life.mute(it, end, datetime.now(UTC), who, reason))


@alerts_app.command()
def unmute(alert: Id, json: Json = False) -> None:
    """Hear of it again before its mute is over."""
    from store.alert_life import unmute as heard_again

    _act(alert, json, lambda it, who: heard_again(it, who))


@alerts_app.command()
def resolve(alert: Id, reason: Reason, json: Json = False) -> None:
    """Say that it is over. Should it stand still, the next run opens another."""
    from store.alert_life import close

    _act(alert, json, lambda it, who: close(it, "resolved", who, reason))


@alerts_app.command()
def intended(alert: Id, reason: Reason, json: Json = False) -> None:
    """Say that the change was meant: later runs are held against the new state."""
    from store import writes

    _write(json, lambda db, of: writes.intend_alert(db, alert, author(), reason, _route(of)), alert)


@alerts_app.command()
def noise(alert: Id, reason: Reason, json: Json = False) -> None:
    """Say that it was a false alarm, which the precision of all alarms is reckoned from."""
    _judge(alert, "noise", reason, json)


@alerts_app.command()
def real(alert: Id, reason: Why = "", json: Json = False) -> None:
    """Say that the alarm was right."""
    _judge(alert, "real", reason, json)


alerts_app.command("test")(send_test)
alerts_app.command()(proof)


# What they share


def _judge(alert: int, judged: Literal["real", "noise"], reason: str, json: bool) -> None:
    from store.alert_life import judge

    _act(alert, json, lambda it, who: judge(it, judged, who, reason))


def _act(alert: int, json: bool, change: Callable[[Incident, str], Turned]) -> None:
    from store import writes

    _write(
        json,
        lambda db, of: writes.act_on_alert(db, alert, lambda it: change(it, author()), _route(of)),
        alert,
    )


def _write(json: bool, write: Callable[[Database, Settings], Turned], alert: int) -> None:
    """Do it, and tell what the alert is now. What an alert is in no state for is refused: exit 2."""
    from store.errors import DatabaseError, StoreError

    of = settings()
    with database(of) as db:
        _known(db, alert)
        try:
            write(db, of)
        except DatabaseError:
            raise
        except StoreError as error:
            raise Refused(str(error)) from None
        _tell(db, _known(db, alert), json)


def _route(of: Settings) -> Route:
    from collectors.alerting import route

    return route(of)


def _known(db: Database, alert: int) -> AlertRow:
    from store import queries

    row = queries.alert(db, alert)
    if row is None:
        raise Refused(f"no alert {alert}; memtrend alerts list shows them", NO_ANSWER)
    return row


def _tell(db: Database, row: AlertRow, json: bool) -> None:
    from collectors import alert_tables
    from store import queries, shapes

    steps, deliveries = queries.alert_steps(db, row.id), queries.deliveries(db, alert_id=row.id)
    if json:
        print_json(shapes.alert_with_steps(row, steps, deliveries))
        return
    alert_tables.print_alert(row, steps, deliveries)
    if row.incident.state == "open":
        say(f"memtrend alerts ack {row.id} says that you have it")
