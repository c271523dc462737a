"""`memtrend backend`: what is configured, what there is, and the environments that releases run in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collectors.arguments import BAD, Refused
from collectors.commands import Json, author, database, print_json, say, settings

if TYPE_CHECKING:
    from collectors.envs import Env
    from store.settings import Settings

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

backend_app = typer.Typer(
    help="The backends configured, the types there are, the environments of releases.", no_args_is_help=True
)


@backend_app.command("list")
def list_backends(json: Json = False) -> None:
    """The backends configured: type, release and control of each; with --json the whole section, without its
    secrets."""
    from collectors import tables
    from collectors.configured import backend_public

    of = settings()
    rows = [{"name": name, **backend_public(of, name)} for name in of.backends]
    print_json({"backends": rows}) if json else tables.print_backends(rows)


@backend_app.command("types")
def list_types(json: Json = False) -> None:
    """The types of backend there are."""
    from collectors.backend import BACKENDS

    print_json({"types": sorted(BACKENDS)}) if json else typer.echo("\n".join(sorted(BACKENDS)))


@backend_app.command("envs")
def environments(
    make: Annotated[
        bool,
        typer.Option(
            "--make",
            help="Make those of all configured backends, and of their controls, now, before a run does.",
        ),
    ] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove those that nobody used for `environments.keep`.")
    ] = False,
    older_than: Annotated[
        str | None, typer.Option(help="With --clean: for so long instead, such as 7d or 12h.")
    ] = None,
    json: Json = False,
) -> None:
    """The environments that releases run in, each in a folder of its NAME within `environments.directory`, by
    default ~/.cache/memtrend/envs. Its lock is "tested": the one that memtrend brings, by hash; or
    "resolved": uv chose the packages, and lock.txt in the folder keeps them. What is in use is never
    removed."""
    from collectors import envs, tables

    of = settings()
    if older_than and not clean:
        raise Refused("--older-than goes with --clean")
    home = of.environments.directory
    removed = envs.clean(_age(older_than or of.environments.keep), home) if clean else None
    failed = [*_made(of)] if make else []
    found = envs.listed(home, sizes=True)
    if json:
        print_json({"environments": [*map(_document, found)], "removed": removed or [], "failed": failed})
    else:
        tables.print_environments(found, removed)
        say("\n".join(failed)) if failed else None
    raise typer.Exit(BAD if failed else 0)


def _made(of: Settings) -> Iterator[str]:
    """Makes them all; what was wrong with those that could not be."""
    from collectors import envs
    from collectors.backend import BackendError
    from collectors.calls import describe
    from collectors.configured import backend_config, control_config

    configs = (config(of, name) for name in of.backends for config in (backend_config, control_config))
    for config in configs:
        if config and config.isolation:
            say(f"{config.name}: {config.isolation.package}")
            try:
                with envs.using(config.isolation):
                    continue
            except BackendError as error:
                yield f"{config.name}: {describe(error)}"


def _age(text: str) -> timedelta:
    from store.sections import time_of

    try:
        return time_of(text)
    except ValueError as error:
        raise Refused(f"--older-than {error}") from None


def _document(env: Env) -> dict[str, Any]:
    return {
        "name": env.name,
        "package": env.package,
        "with": list(env.extra),
        "python": env.python,
        "made_at": env.made.isoformat(),
        "seconds": env.seconds,
        "locked": env.locked,
        "used_at": env.used.isoformat(timespec="seconds"),
        "in_use": env.in_use,
        "bytes": env.bytes,
    }


@backend_app.command("rename")
def rename(
    old: Annotated[str, typer.Argument(help="The name in the record.")],
    new: Annotated[str, typer.Argument(help="The name it gets.")],
    json: Json = False,
) -> None:
    """Give a backend another name in the record: its runs, charts and baseline stay one series, and a control
    follows. Rename it in memtrend.toml too."""
    from collectors.lease import release_those_of_the_dead
    from store import writes

    if not NAME.fullmatch(new):
        raise Refused(f"{new!r} is no name: letters, digits, '.', '_' and '-', the first no sign")
    with database() as db:
        release_those_of_the_dead(db)
        done = writes.rename_backend(db, old, new, author())
    if json:
        print_json({"old": old, "new": new, **done._asdict()})
    else:
        control = f", its control {done.control}" if done.control else ""
        typer.echo(f"{old} is {new}{control}: {done.runs} runs keep their series")
    say(f"rename [backends.{old}] to [backends.{new}] in memtrend.toml, and in `backends` of its schedules")
