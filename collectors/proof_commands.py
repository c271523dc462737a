"""`memtrend alerts proof` and `memtrend alerts test`: does an alarm arrive? They are rows of the group in
`alerts_commands.py`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from collectors.arguments import BAD, NO_ANSWER, Refused, chosen
from collectors.commands import Json, database, print_json, say, settings

if TYPE_CHECKING:
    from collectors.drill import Receipt
    from store.database import Database
    from store.settings import Settings


def proof(
    suite: Annotated[str, typer.Option("--suite", "-s", help="The suite that is played.")] = "smoke",
    backend: Annotated[
        str, typer.Option("--backend", "-b", help="The backend that a fault is put into.")
    ] = "hybrid",
    json: Json = False,
) -> None:
    """Put a fault into a backend, and see that it is detected, confirmed and delivered: a drill, now. Exit 1
    when it is not; 3 when no channel takes drills, or a run has the backend."""
    from collectors.configured import backend_names, suite_names, undrillable
    from collectors.drill import drill_channels

    of = settings()
    chosen([suite], suite_names(of), "suite")
    chosen([backend], backend_names(of), "backend")
    if problem := undrillable(of, backend):
        raise Refused(problem)
    if not drill_channels(of):
        raise Refused("no channel takes drills: give one of [channels] drills = true", NO_ANSWER)
    receipt = _drilled(of, suite, backend)
    print_json(_document(receipt)) if json else _print(receipt)
    if receipt.error:
        say(receipt.error)
    raise typer.Exit(BAD if receipt.error else 0)


def _drilled(of: Settings, suite: str, backend: str) -> Receipt:
    """Whether a collector leads or not: what is due is sent from here too. What a failed drill makes known,
    is on its way before the command ends."""
    from datetime import UTC, datetime

    from collectors.alerting import route
    from collectors.calls import Stopped
    from collectors.drill import Drill
    from collectors.lease import InstanceBusy
    from collectors.pairs import Pair
    from collectors.process import INTERRUPTED, stop_on_signals
    from collectors.proofs import detect_unproven

    with database(of) as db, stop_on_signals() as stop, _sending(db, of):
        try:
            receipt = Drill(db, of, Pair(suite, backend), route(of), stop.asked).run()
        except InstanceBusy as error:
            raise Refused(str(error), NO_ANSWER) from error
        except Stopped as error:
            say(f"memtrend: {error}")
            raise typer.Exit(INTERRUPTED) from error
        detect_unproven(db, of, datetime.now(UTC), route(of))
    return receipt


@contextmanager
def _sending(db: Database, of: Settings) -> Iterator[None]:
    from collectors.delivery import Sender

    sender, stop = Sender(db, of.channels), threading.Event()
    thread = threading.Thread(target=sender.run, args=(stop,), name="memtrend-sender", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    sender.send_due()
    sender.close()


def _document(receipt: Receipt) -> dict[str, bool | float]:
    steps = ("detected", "confirmed", "delivered")
    told = {name: getattr(receipt, name) is not None for name in steps}
    return {**told, "seconds": round(receipt.seconds, 3)}


def _print(receipt: Receipt) -> None:
    for name in ("detected", "confirmed", "delivered"):
        after = getattr(receipt, name)
        typer.echo(f"{name:<10} {'no' if after is None else f'after {after:.1f} s'}")


def send_test(
    channel: Annotated[str, typer.Argument(help="The channel, as memtrend.toml names it.")],
    json: Json = False,
) -> None:
    """Send a real message through a channel, and say what became of it. One that was disabled and takes it is
    sent to again. Exit 1 when it is refused."""
    from collectors.channels import Refused as NotTaken
    from collectors.delivery import try_channel

    of = settings()
    chosen([channel], list(of.channels), "channel")
    status, error = None, None
    with database(of) as db:
        try:
            status = try_channel(db, channel, of.channels[channel])
        except NotTaken as refused:
            status, error = refused.status, str(refused)
    if json:
        print_json({"channel": channel, "sent": error is None, "status": status, "error": error})
    else:
        answered = f", HTTP {status}" if status else ""
        say(f"channel {channel} does not take it: {error}") if error else typer.echo(f"sent{answered}")
    raise typer.Exit(BAD if error else 0)
