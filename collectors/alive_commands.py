"""`memtrend alive`: for a health check, so cheap: no backend is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from collectors.arguments import BAD
from collectors.commands import say

if TYPE_CHECKING:
    from collectors.supervise import Address
    from store.settings import Settings

ANSWER_S = 5.0


def alive(
    stand_by: Annotated[
        bool, typer.Option("--stand-by", help="A collector elsewhere will do: this one waits for its end.")
    ] = False,
) -> None:
    """Does what runs on this machine live? Exit 1 when it does not. Asks the dashboard, where one listens at
    the configured address, and the record for the collector's heartbeat."""
    from store.settings import load_settings

    if problem := what_is_dead(load_settings(), stand_by=stand_by):
        say(f"memtrend: {problem}")
        raise typer.Exit(BAD)


def what_is_dead(of: Settings, *, stand_by: bool = False) -> str | None:
    """None for nothing. A dashboard may be alone; without one, a collector of this machine is asked for, or
    with `stand_by` any."""
    from collectors.supervise import Address
    from store.errors import DatabaseError
    from store.health_words import is_alive

    address = Address(of.dashboard.host, of.dashboard.port)
    told = _told_by(address)
    if told and not told["ok"]:
        return str(told["error"])
    if told and told["collector_alive"]:
        return None
    try:
        silent = _collectors_silence(of, everywhere=stand_by)
    except DatabaseError as error:
        seen = str(error)
    else:
        if is_alive(silent) or (told and silent is None):
            return None
        seen = (
            "none has said that it lives" if silent is None else f"the last word of one is {silent:.0f} s old"
        )
    return f"no collector lives here: {seen}" + ("" if told else f"; no dashboard listens at {address.url}")


def _told_by(address: Address) -> dict[str, Any] | None:
    """What /healthz says there, None where nobody listens."""
    import json
    from http.client import HTTPConnection, HTTPException

    wrong = f"what listens at {address.url} does not answer as a dashboard does"
    connection = HTTPConnection(address.reachable, address.port, timeout=ANSWER_S)
    try:
        connection.request("GET", "/healthz")
        return {"ok": False, "error": wrong, "collector_alive": False, **json.load(connection.getresponse())}
    except ConnectionRefusedError:
        return None
    except (OSError, HTTPException, ValueError, TypeError) as error:
        return {"ok": False, "error": f"{wrong}: {error}"}
    finally:
        connection.close()


def _collectors_silence(of: Settings, *, everywhere: bool) -> float | None:
    """Seconds since a collector of this machine, or of any, last said that it lives; None when none did. A
    check has no time to make or upgrade the record. Raises `DatabaseError`."""
    from contextlib import closing
    from datetime import UTC, datetime
    from socket import gethostname

    from store import health_words, queries
    from store.database import open_as_it_stands

    with closing(open_as_it_stands(of.database.url.get_secret_value())) as db:
        beats = queries.heartbeats(db)
    counted = (beat for beat in beats if everywhere or beat.host == gethostname())
    return health_words.silence(counted, datetime.now(UTC))
