"""`memtrend backend`: what is configured, what there is, and the environments that releases run in."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collectors.arguments import Refused
from collectors.commands import Json, print_json, settings

if TYPE_CHECKING:
    from collectors.envs import Env

backend_app = typer.Typer(
    help="The backends configured, the types there are, the environments of releases.", no_args_is_help=True
)


@backend_app.command("list")
def list_backends(json: Json = False) -> None:
    """The backends configured, without their secrets."""
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
        bool, typer.Option("--make", help="Make those of all configured backends now, before a run does.")
    ] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove those that nobody used for `environments.keep`.")
    ] = False,
    older_than: Annotated[
        str | None, typer.Option(help="With --clean: for so long instead, such as 7d or 12h.")
    ] = None,
    json: Json = False,
) -> None:
    """The environments that releases run in. What is in use is never removed."""
    from collectors import envs, tables
    from collectors.configured import backend_config

    of = settings()
    if older_than and not clean:
        raise Refused("--older-than goes with --clean")
    removed: list[Env] = []
    home = of.environments.directory
    if clean:
        removed = envs.clean(_age(older_than or of.environments.keep), home)
    if make:
        for isolation in filter(None, (backend_config(of, name).isolation for name in of.backends)):
            with envs.using(isolation):
                continue
    found = envs.listed(home, sizes=True)
    if json:
        print_json({"environments": [*map(_document, found)], "removed": [env.name for env in removed]})
    else:
        tables.print_environments(found, removed)


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
