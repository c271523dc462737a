"""`memtrend demo`: a full product to look at, before anything is connected."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from collectors.arguments import Refused
from collectors.commands import say, settings

Where = Annotated[Path, typer.Option("--dir", help="Its folder: a new one, or one with a demo.")]
Once = Annotated[bool, typer.Option("--once", help="Build it, and exit.")]
Host = Annotated[str | None, typer.Option(help="Address that the dashboard listens on.")]
Port = Annotated[int | None, typer.Option(min=1, max=65535, help="Port of the dashboard.")]


def demo(
    dir: Where = Path("memtrend-demo"), once: Once = False, host: Host = None, port: Port = None
) -> None:
    """Thirty nights of a made-up team in a record of its own, and the dashboard on it, until ^C."""
    from collectors.demo import folder, receiver
    from collectors.ending import running_long
    from collectors.supervise import Address, check_port, up
    from store.sections import DashboardSection

    place, usual = dir.absolute(), DashboardSection()
    address = Address(host or usual.host, port or usual.port)
    if not once:
        check_port(address)  # before two minutes are spent
    if not folder.is_demo(place):
        _build(place, address.url)
    folder.enter(place)
    if once:
        typer.echo("\n".join(_told(place)))
        return
    say(f"the dashboard comes up at {address.url}   (^C stops it; the demo stays in {place})")
    with receiver.receiving(place), running_long():
        code = up(settings(), host=address.host, port=address.port, first_runs=False)
    raise typer.Exit(code)


def _build(place: Path, dashboard: str) -> None:
    """Beside its place, so that what lies there is a whole demo always."""
    import signal
    import sys
    from datetime import UTC, datetime
    from tempfile import TemporaryDirectory

    from collectors.demo import folder, story

    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise Refused(f"{place} holds something else than a demo; name another folder with --dir")
    say(f"building thirty nights in {place}: a minute or two")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # what was begun is removed
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".memtrend-demo-", dir=place.parent) as temporary:
            building = Path(temporary) / "demo"
            building.mkdir()
            folder.enter(building)
            story.build(building, datetime.now(UTC), dashboard, say)
            building.rename(place)
    except OSError as error:
        raise Refused(f"cannot write {error.filename or place}: {error.strerror}") from None


def _told(place: Path) -> list[str]:
    """What was built, and how to look at it."""
    from collectors.demo import folder

    first, last = (night[:10] for night in folder.read_story(place)["nights"])
    config = f"memtrend --config {place / folder.CONFIG}"
    return [
        f"built in {place}: 30 nights of 30 cases on five backends, {first} to {last}",
        "look at it:",
        f"  memtrend demo --dir {place}       # the dashboard, and a collector that goes on",
        f"  {config} alerts list --all",
        f"  {config} alerts show 1",
        f"  {place / folder.COMPARED} and {place / folder.REPORTED} in a browser",
        f"  {config} runs",
    ]
