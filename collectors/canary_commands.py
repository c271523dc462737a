"""`memtrend canary`: what a standing index should hold, and whether it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from collectors.arguments import BAD, NO_ANSWER, Refused, only_one
from collectors.commands import Json, author, database, print_json, settings

if TYPE_CHECKING:
    from collectors.canary import Canary
    from store.settings import Settings

canary_app = typer.Typer(
    help="Standing indexes: record what they should hold, check that they do.", no_args_is_help=True
)

Suite = Annotated[str | None, typer.Option("--suite", "-s", help="The suite that reads the index.")]
Backend = Annotated[str | None, typer.Option("--backend", "-b", help="The backend in which it lives.")]


def _canary(of: Settings, suite: str | None, backend: str | None) -> Canary:
    from collectors.canary import Canary, standing_suites
    from collectors.configured import backend_names

    name = only_one(suite, standing_suites(of), "suite")
    return Canary(of, name, only_one(backend, backend_names(of), "backend"))


@canary_app.command()
def record(
    expected: Annotated[int | None, typer.Option(min=1, help="Memories that each leg should hold.")] = None,
    source: Annotated[
        str | None, typer.Option(help="A command that prints that number, asked of the source of truth.")
    ] = None,
    suite: Suite = None,
    backend: Backend = None,
    leg: Annotated[
        list[str] | None, typer.Option(help="Of this leg alone; may be given again. All by default.")
    ] = None,
    json: Json = False,
) -> None:
    """Write down what the legs should hold. Exit 1 while they disagree, or one holds less."""
    from collectors.canary import CanaryError, NoAnswer, asked_of_source

    if (expected is None) == (source is None):
        raise Refused(
            "give one of --expected N and --source 'a command that prints N': the index itself is not asked"
        )
    canary = _canary(settings(), suite, backend)
    with database() as db:
        try:
            wanted = asked_of_source(source) if source else expected or 0
            counted = canary.record(db, wanted, source or "--expected", author(), leg or ())
        except CanaryError as error:
            raise Refused(str(error), NO_ANSWER if isinstance(error, NoAnswer) else BAD) from error
    document = {"suite": canary.suite.name, "backend": canary.backend, "expected": wanted, "counted": counted}
    if json:
        print_json(document)
    else:
        typer.echo(f"{canary.suite.name} on {canary.backend}: {', '.join(counted)} should hold {wanted} each")


@canary_app.command()
def check(suite: Suite = None, backend: Backend = None, json: Json = False) -> None:
    """Count and ask now, storing nothing. Exit 1 when something is missing or the index does not answer, 3
    when nothing is recorded."""
    from collectors.canary import CanaryError, NoAnswer

    canary = _canary(settings(), suite, backend)
    with database() as db:
        try:
            found = canary.check(db)
        except CanaryError as error:
            raise Refused(str(error), NO_ANSWER if isinstance(error, NoAnswer) else BAD) from error
    states = {finding.state for finding in found}
    if json:
        cases = [finding._asdict() for finding in found]
        ok = not states & {"bad", "error"}
        print_json({"suite": canary.suite.name, "backend": canary.backend, "ok": ok, "cases": cases})
    else:
        typer.echo("\n".join(f"{one.state:<7} {one.case}: {one.message}" for one in found))
    raise typer.Exit(BAD if states & {"bad", "error"} else 0)
