"""`memtrend alive`: for a health check, so cheap: no backend is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from collectors.arguments import BAD
from collectors.commands import database, say

if TYPE_CHECKING:
    from collectors.supervise import Address
    from store.queries import HeartbeatRow
    from store.settings import Settings

ANSWER_S = 5.0


def alive() -> None:
    """Does what runs on this machine live? Exit 1 when it does not. Asks the dashboard, where one listens at
    the configured address, and the record for the collector's heartbeat."""
    from store.settings import load_settings

    if problem := what_is_dead(load_settings()):
        say(f"memtrend: {problem}")
        raise typer.Exit(BAD)


def what_is_dead(of: Settings) -> str | None:
    """None for nothing. A collector counts where no dashboard listens, be it one that another stands by for,
    or where it is of this machine: a dashboard alone lives without one."""
    from collectors.supervise import Address

    address = Address(of.dashboard.host, of.dashboard.port)
    told = _told_by(address)
    if told is None:
        silent = _collectors_silence(of, everywhere=True)
        return silent and f"no dashboard listens at {address.url}, and {silent}"
    if not told["ok"]:
        return str(told["error"])
    return None if told["collector_alive"] else _collectors_silence(of, everywhere=False)


def _told_by(address: Address) -> dict[str, Any] | None:
    """What /healthz says there, None where nobody listens."""
    import json
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(address.reachable, address.port, timeout=ANSWER_S)
    try:
        connection.request("GET", "/healthz")
        return {"ok": False, "error": "", "collector_alive": False, **json.load(connection.getresponse())}
    except ConnectionRefusedError:
        return None
    except (OSError, HTTPException, ValueError, TypeError) as error:
        return {"ok": False, "error": f"{address.url} does not answer as a dashboard does: {error}"}
    finally:
        connection.close()


def _collectors_silence(of: Settings, *, everywhere: bool) -> str | None:
    """What is wrong with the collector; None while it lives, and where this machine has none."""
    from datetime import UTC, datetime
    from socket import gethostname

    from store import health_words, queries

    def counts(beat: HeartbeatRow) -> bool:
        return everywhere or beat.host == gethostname()

    with database(of) as db:
        beats = [beat for beat in queries.heartbeats(db) if counts(beat)]
    silent = health_words.silence(beats, datetime.now(UTC))
    if health_words.is_alive(silent) or not (beats or everywhere):
        return None
    seen = "never said that it lives" if silent is None else f"last said {silent:.0f} s ago that it lives"
    return f"the collector {seen}"
