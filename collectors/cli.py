"""The command line: the composition root, the one file that may import all three packages.

A command reads its arguments, calls what does the work, prints, and turns the outcome into an exit code:
0 fine, 1 the thing asked about is bad, 2 usage or configuration, 3 no answer possible, 130 interrupted.
Heavy imports stand inside the commands, so that `--help` stays quick.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from collectors.canary_commands import canary_app
from collectors.commands import (
    BAD,
    USAGE,
    Backends,
    Json,
    Meta,
    Refused,
    State,
    Suites,
    Tag,
    chosen,
    database,
    existing,
    give,
    given,
    moment,
    pairs,
    print_json,
    refuse_unknown,
    say,
    settings,
    stop_on_signals,
)
from collectors.lint_commands import lint
from collectors.mutant_commands import mutants
from collectors.suite_commands import suite_app

STATUSES = ["running", "whole", "invalid", "void", "interrupted"]

app = typer.Typer(
    name="memtrend",
    help="Watch an agent's memory: run suites against memory backends, keep every answer, show the trend.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
runs_app = typer.Typer(help="List runs; cancel one.", invoke_without_command=True)
backend_app = typer.Typer(help="The backends configured, and the types there are.", no_args_is_help=True)
app.add_typer(runs_app, name="runs")
app.add_typer(backend_app, name="backend")
app.add_typer(canary_app, name="canary")
app.add_typer(suite_app, name="suite")
app.command()(lint)
app.command()(mutants)


@app.callback()
def options(
    config: Annotated[
        Path | None, typer.Option(help="The configuration; ./memtrend.toml by default.")
    ] = None,
    debug: Annotated[bool, typer.Option(help="Show tracebacks.")] = False,
) -> None:
    give(State(config, debug))


def main() -> None:
    """Entry of the `memtrend` script: no traceback without --debug."""
    try:
        app()
    except Exception as error:  # noqa: BLE001  the last resort: say what happened, plainly
        sys.exit(_explain(error))


def _explain(error: Exception) -> int:
    if given().debug:
        raise error
    say(f"memtrend: {str(error) or type(error).__name__}")
    if not _is_expected(error):
        say(f"({type(error).__name__}; memtrend --debug shows where)")
    if isinstance(error, Refused):
        return error.code
    return USAGE if _is_configuration(error) else BAD


def _is_expected(error: Exception) -> bool:
    from collectors.backend import BackendError
    from collectors.lease import InstanceBusy
    from collectors.pulse import CollectorBusy
    from store.errors import StoreError

    ours = Refused | BackendError | InstanceBusy | CollectorBusy | StoreError
    return _is_configuration(error) or isinstance(error, ours)


def _is_configuration(error: Exception) -> bool:
    from collectors.suite import SuiteError
    from store.settings import SettingsError

    return isinstance(error, SettingsError | SuiteError)


# Running


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to write.")] = Path(),
    backend: Annotated[str | None, typer.Option(help="Write NAME.py, an adapter to fill in.")] = None,
) -> None:
    """Write a commented memtrend.toml and a first suite, or an adapter for a memory of your own."""
    from collectors import starter

    for line in starter.write_adapter(folder, backend) if backend else starter.write_project(folder):
        typer.echo(line)


@app.command()
def up(
    host: Annotated[str | None, typer.Option(help="Address of the dashboard.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the dashboard.")] = None,
    once: Annotated[bool, typer.Option(help="Run every suite on every backend, and exit.")] = False,
) -> None:
    """Dashboard, collector and a first run of everything, until ^C."""
    if once:
        run()
    from collectors.supervise import up as supervise

    raise typer.Exit(supervise(settings(), given().config, host=host, port=port))


@app.command()
def run(
    suite: Suites = None,
    backend: Backends = None,
    resume: Annotated[
        bool, typer.Option(help="Finish interrupted runs instead: that of RUN_ID, or the newest of each.")
    ] = False,
    run_id: Annotated[int | None, typer.Argument(help="With --resume: the run to finish.")] = None,
    trials: Annotated[int, typer.Option(min=1, help="Times each scenario is played.")] = 1,
    tag: Tag = "",
    mark: Annotated[str, typer.Option(help="Draw a line with this text on every chart, dated now.")] = "",
    meta: Meta = None,
    json: Json = False,
) -> None:
    """Run suites against backends: all of them, or those named. Exit 1 unless every run is whole."""
    from collectors import policy
    from collectors import runs as doing
    from collectors.configured import backend_names, suite_names
    from collectors.lint.noting import note_planned
    from store import queries, shapes, writes

    if resume and (trials > 1 or tag or meta):
        raise Refused("--resume finishes a run as it was begun: without --trials, --tag and --meta")
    if run_id is not None and not resume:
        raise Refused("RUN_ID goes with --resume; suites are named by --suite, backends by --backend")
    of, kept = settings(), pairs(meta)
    suites = chosen(suite, suite_names(of), "suite")
    backends = chosen(backend, backend_names(of), "backend")
    with database(of) as db, stop_on_signals() as stop, redirect_stdout(sys.stderr):
        if resume:
            todo = doing.interrupted(db, of, existing(db, [run_id] if run_id else []), suite, backend)
        else:
            todo = doing.planned(of, suites, backends, trials=trials, tag=tag, meta=kept)
        for line in (*policy.complaints(db, of, suites), *note_planned(db, (one.plan for one in todo))):
            say(line)
        if mark:
            writes.add_mark(db, mark, meta=kept)
        outcomes = doing.run_all(db, todo, stop)
        rows = queries.runs(db, ids=[outcome.run_id for outcome in outcomes], limit=None)
    if json:
        print_json(shapes.run_list(rows))
    raise typer.Exit(doing.exit_code(outcomes, stop.asked))


@app.command()
def collect() -> None:
    """Run the schedules, and what dashboard and API ask for, until TERM or ^C."""
    from collectors.collector import main as collector

    raise typer.Exit(collector(given().config))


@app.command()
def dashboard(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
) -> None:
    """Serve the dashboard alone."""
    from dashboard.server import main as serve

    shown = settings().dashboard
    serve(host or shown.host, port or shown.port)


@app.command()
def rescore(
    run_ids: Annotated[
        list[int] | None, typer.Argument(help="Runs; all that an older scorer scored by default.")
    ] = None,
) -> None:
    """Derive the scores of stored answers again, without asking a backend."""
    from collectors.rescoring import rescore as again
    from collectors.rescoring import runs_of_older_scorers

    with database() as db:
        for run_id in existing(db, run_ids or []) or runs_of_older_scorers(db):
            typer.echo(again(db, run_id))


@app.command()
def mark(
    text: Annotated[str, typer.Argument(help="What happened: 'deploy agent 4.12'.")],
    at: Annotated[str | None, typer.Option(help="When, in ISO 8601; now by default.")] = None,
    meta: Meta = None,
) -> None:
    """Draw a dated line on every chart."""
    from store import writes

    with database() as db:
        typer.echo(f"mark {writes.add_mark(db, text, moment(at), meta=pairs(meta))}: {text}")


# Reading


@runs_app.callback()
def list_runs(
    context: typer.Context,
    suite: Suites = None,
    backend: Backends = None,
    status: Annotated[
        list[str] | None, typer.Option(help="running, whole, invalid, void or interrupted.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 20,
    json: Json = False,
) -> None:
    """List runs, newest first."""
    if context.invoked_subcommand:
        return
    from collectors import tables
    from store import queries, shapes

    of = settings()
    statuses = chosen(status, STATUSES, "status")
    with database(of) as db:
        refuse_unknown(db, of, suite, backend)
        rows = queries.runs(db, suites=suite, backends=backend, statuses=statuses, limit=limit)
    print_json(shapes.run_list(rows)) if json else tables.print_runs(rows)


@runs_app.command()
def cancel(run_id: Annotated[int, typer.Argument(help="The run, as `memtrend runs` lists it.")]) -> None:
    """Stop a running run after its scenario in flight; `run --resume` can finish it later."""
    from store import writes

    with database() as db:
        existing(db, [run_id])
        writes.cancel_run(db, run_id, "cli")
    typer.echo(f"run {run_id} stops at its next step")


@app.command()
def show(
    run_id: Annotated[int, typer.Argument(help="The run, as `memtrend runs` lists it.")], json: Json = False
) -> None:
    """One run with its metrics and cases."""
    from collectors import tables
    from store import queries, shapes

    with database() as db:
        (row,) = queries.runs(db, ids=existing(db, [run_id]))
        cases = queries.run_cases(db, run_id)
    print_json(shapes.run_with_cases(row, cases)) if json else tables.print_run(row, cases)


@app.command()
def export(
    run_id: Annotated[list[int] | None, typer.Option("--run", help="Run by id; may be given again.")] = None,
    suite: Suites = None,
    backend: Backends = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; stdout by default.")] = None,
) -> None:
    """Case results as CSV: a row for each case and trial, no texts."""
    from collectors.export import write_csv

    of = settings()
    with database(of) as db:
        existing(db, run_id or [])
        refuse_unknown(db, of, suite, backend)
        if output is None:
            write_csv(db, sys.stdout, run_id, suite, backend)
            return
        with output.open("w", newline="", encoding="utf-8") as file:
            say(f"{write_csv(db, file, run_id, suite, backend)} rows in {output}")


@app.command()
def doctor(
    backend: Annotated[
        str | None, typer.Argument(help="Check this backend's adapter, and explain what fails.")
    ] = None,
    json: Json = False,
) -> None:
    """Check database, configuration, backends, clock, collector, disk. Exit 1 when something is wrong."""
    from collectors import doctor as checks
    from collectors import tables

    with redirect_stdout(sys.stderr):
        if backend:
            of = settings()
            chosen([backend], list(of.backends), "backend")
            found = checks.check_backend(of, backend)
        else:
            found = checks.check_all(given().config)
    if json:
        print_json({"checks": [check._asdict() for check in found]})
    else:
        tables.print_checks(found)
    raise typer.Exit(0 if all(check.ok for check in found) else BAD)


@backend_app.command("list")
def list_backends(json: Json = False) -> None:
    """The backends configured."""
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


if __name__ == "__main__":
    main()
