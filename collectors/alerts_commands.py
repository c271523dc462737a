"""`memtrend alerts`: what is wrong, and whether somebody would be told."""

from __future__ import annotations

import typer

from collectors.proof_commands import proof, send_test

alerts_app = typer.Typer(
    help="Alerts: what is wrong, what becomes of it, and the proof that somebody would be told.",
    no_args_is_help=True,
)
alerts_app.command("test")(send_test)
alerts_app.command()(proof)
