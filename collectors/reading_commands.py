"""What is in the record: `memtrend runs`, `show` and `export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from collectors.arguments import Refused, chosen, existing, refuse_unknown, writable
from collectors.commands import Backends, Json, Suites, database, print_json, say, settings

STATUSES = ["running", "whole", "invalid", "void", "interrupted"]

runs_app = typer.Typer(help="List runs; cancel one.", invoke_without_command=True)


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
    from collectors.lease import release_those_of_the_dead
    from store import queries, shapes

    of = settings()
    statuses = chosen(status, STATUSES, "status")
    with database(of) as db:
        refuse_unknown(db, of, suite, backend)
        release_those_of_the_dead(db)
        asked: queries.RunFilter = {"suites": suite, "backends": backend, "statuses": statuses}
        rows, fitting = queries.runs(db, **asked, limit=limit), queries.count_runs(db, **asked)
        waiting = tables.waiting(queries.waiting_fires(db), queries.waiting_requests(db))
    narrowed = bool(suite or backend or status)
    print_json(shapes.run_list(rows)) if json else tables.print_runs(rows, fitting, narrowed=narrowed)
    for line in waiting:
        say(line)


@runs_app.command()
def cancel(run_id: Annotated[int, typer.Argument(help="The run, as `memtrend runs` lists it.")]) -> None:
    """Stop a running run after its scenario in flight; `run --resume` can finish it later."""
    from store import writes

    with database() as db:
        existing(db, [run_id])
        writes.cancel_run(db, run_id, "cli")
    typer.echo(f"run {run_id} stops at its next step")


def show(
    run_id: Annotated[int, typer.Argument(help="The run, as `memtrend runs` lists it.")], json: Json = False
) -> None:
    """One run with its metrics and cases."""
    from collectors import tables
    from store import queries, shapes, words

    with database() as db:
        (row,) = queries.runs(db, ids=existing(db, [run_id]))
        cases, told = queries.run_cases(db, run_id), queries.journal(db, run_id)
        taken = queries.removals(db, run_id)
        errors = [
            one.detail["error"] for one in queries.stored_answers(db, run_id) if one.detail.get("error")
        ]
    document = {**shapes.run_with_cases(row, cases), "journal": told, "removed": taken}
    print_json(document) if json else tables.print_run(row, cases, errors, told, words.removed(taken))


def export(
    run_id: Annotated[list[int] | None, typer.Option("--run", help="Run by id; may be given again.")] = None,
    suite: Suites = None,
    backend: Backends = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; stdout by default.")] = None,
    format: Annotated[str, typer.Option(help="csv or parquet; the latter needs --output.")] = "csv",
) -> None:
    """Case results as CSV or Parquet: a row for each case and trial, no texts."""
    from collectors.export import write_csv, write_parquet

    of = settings()
    chosen([format], ["csv", "parquet"], "format")
    if format == "parquet" and output is None:
        raise Refused("--format parquet writes a file: name it with --output")
    with database(of) as db:
        existing(db, run_id or [])
        refuse_unknown(db, of, suite, backend)
        if format == "parquet":
            say(f"{write_parquet(db, output or Path(), run_id, suite, backend)} rows in {output}")
            return
        if output is None:
            write_csv(db, sys.stdout, run_id, suite, backend)
            return
        with writable(output) as file:
            say(f"{write_csv(db, file, run_id, suite, backend)} rows in {output}")
