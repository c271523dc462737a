"""The command line: the composition root, the one file that may import all three packages.

A command reads its arguments, calls what does the work, prints, and turns the outcome into an exit code:
0 fine, 1 the thing asked about is bad, 2 usage or configuration, 3 no answer possible, 130 interrupted.
Heavy imports stand inside the commands, so that `--help` stays quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from collectors.alerts_commands import alerts_app
from collectors.alive_commands import alive
from collectors.arguments import (
    BAD,
    USAGE,
    Refused,
    chosen,
    existing,
    moment,
    pairs,
    said,
    to_resume,
)
from collectors.backend_commands import backend_app
from collectors.baseline_commands import baseline_app
from collectors.canary_commands import canary_app
from collectors.commands import Backends, Json, Meta, Suites, Tag, database, print_json, say, settings
from collectors.compare_commands import compare_command
from collectors.demo_commands import demo
from collectors.diff_commands import diff
from collectors.ending import explained, running_long
from collectors.gate_commands import gate
from collectors.lint_commands import lint
from collectors.maintenance_commands import backup, prune, restore
from collectors.mutant_commands import mutants
from collectors.reading_commands import export, runs_app, show
from collectors.report_commands import report_command
from collectors.suite_commands import suite_app
from collectors.verdict_commands import verdict

if TYPE_CHECKING:
    from store.database import Database

ONCE_MORE = "stopping after the step in flight; once more to stop at once"

ORDER = (
    *(
        "init",
        "doctor",
        "alive",
        "run",
        "up",
        "collect",
        "dashboard",
        "demo",
        "runs",
        "show",
        "verdict",
        "alerts",
        "gate",
        "compare",
        "report",
        "baseline",
        "diff",
        "mark",
        "rescore",
    ),
    *("export", "backup", "restore", "prune", "backend", "lint", "suite", "mutants", "canary"),
)


class InOrder(TyperGroup):
    """Commands in the order in which one comes to need them."""

    def list_commands(self, context: Any) -> list[str]:
        return sorted(super().list_commands(context), key=ORDER.index)


def _report(name: str) -> Callable[..., str]:
    """A report as the dashboard draws it, loaded when it is asked for."""

    def drawn(*told: Any, **how: Any) -> str:
        from dashboard import report

        text: str = getattr(report, name)(*told, **how)
        return text

    return drawn


app = typer.Typer(
    name="memtrend",
    cls=InOrder,
    help="Watch an agent's memory: run suites against memory backends, keep every answer, show the trend.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(runs_app, name="runs")
app.add_typer(backend_app, name="backend")
app.add_typer(canary_app, name="canary")
app.add_typer(alerts_app, name="alerts")
app.add_typer(suite_app, name="suite")
app.add_typer(baseline_app, name="baseline")
app.command()(alive)
app.command()(demo)
app.command()(diff)
app.command()(show)
app.command()(export)
app.command()(verdict)
app.command()(gate)
app.command("compare")(compare_command(_report("html"), _report("markdown")))
app.command("report")(report_command(_report("html"), _report("markdown"), _report("text")))
app.command()(lint)
app.command()(mutants)
for maintenance in (backup, restore, prune):
    app.command()(maintenance)

Port = Annotated[int | None, typer.Option(min=1, max=65535, help="Port of the dashboard.")]
Host = Annotated[str | None, typer.Option(help="Address that the dashboard listens on.")]


class State(NamedTuple):
    """The options that stand before every command, but for the configuration, which is in the environment."""

    debug: bool = False


_given = State()


def print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"memtrend {version('memtrend')}")
        raise typer.Exit


@app.callback()
def options(
    config: Annotated[
        Path | None, typer.Option(help="The configuration; ./memtrend.toml by default.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    global _given
    _given = State(debug)
    if config is not None:
        from store.settings import CONFIG_VARIABLE

        # So that pages and processes that read the settings by themselves read the same.
        os.environ[CONFIG_VARIABLE] = str(config.expanduser().absolute())


def main() -> None:
    """Entry of the `memtrend` script: no traceback without --debug."""
    try:
        app()
    except Exception as error:  # noqa: BLE001  the last resort: say what happened, plainly
        sys.exit(explained(error, debug=_given.debug))


# Running


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to write.")] = Path(),
    backend: Annotated[str | None, typer.Option(help="Write NAME.py, an adapter to fill in.")] = None,
) -> None:
    """Write a commented memtrend.toml and a first suite, or an adapter for a memory of your own."""
    from collectors import starter

    try:
        told = starter.write_adapter(folder, backend) if backend else starter.write_project(folder)
    except (starter.AlreadyThere, starter.BadName) as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"cannot write {error.filename or folder}: {error.strerror}") from None
    typer.echo("\n".join(told))


@app.command()
def up(
    host: Host = None,
    port: Port = None,
    once: Annotated[bool, typer.Option("--once", help="Run every suite on every backend, and exit.")] = False,
) -> None:
    """Dashboard, collector and a first run of everything, until ^C."""
    if once:
        run()
    from collectors.supervise import up as supervise

    with running_long(debug=_given.debug):
        code = supervise(settings(), host=host, port=port)
    raise typer.Exit(code)


@app.command()
def run(
    suite: Suites = None,
    backend: Backends = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish interrupted runs instead: RUN_ID, or the newest of each.")
    ] = False,
    run_id: Annotated[int | None, typer.Argument(help="With --resume: the run to finish.")] = None,
    trials: Annotated[int, typer.Option(min=1, help="Times each scenario is played.")] = 1,
    tag: Tag = "",
    mark: Annotated[
        str | None, typer.Option(help="Draw a line with this text on every chart, dated now.")
    ] = None,
    meta: Meta = None,
    json: Json = False,
) -> None:
    """Run suites against backends: all of them, or those named. Exit 1 unless every run is whole."""
    from collectors import alerting, policy
    from collectors import runs as doing
    from collectors.configured import backend_names, suite_names
    from collectors.lint.noting import note_planned
    from collectors.process import quiet_libraries, stop_on_signals
    from store import queries, shapes

    quiet_libraries()
    _refuse_mixed(resume, run_id, anew=trials > 1 or bool(tag or meta))
    of, kept, drawn = settings(), pairs(meta), None if mark is None else said(mark)
    suites = chosen(suite, suite_names(of), "suite")
    backends = chosen(backend, backend_names(of), "backend")
    with database(of) as db, stop_on_signals(ONCE_MORE) as stop, redirect_stdout(sys.stderr):
        if resume:
            todo = to_resume(db, of, run_id, suite, backend)
        else:
            todo = doing.planned(of, suites, backends, trials=trials, tag=tag, meta=kept)
        for line in (*policy.complaints(db, of, suites), *note_planned(db, (one.plan for one in todo))):
            say(line)
        if drawn:
            say(_drawn(db, drawn, kept))
        ended = doing.run_all(db, todo, stop)
        alerting.after_runs(db, of, say)
        rows = queries.runs(db, ids=[done.outcome.run_id for done in ended if done.outcome], limit=None)
    if json:
        print_json(shapes.run_list(rows))
    raise typer.Exit(doing.exit_code(ended, stop))


def _refuse_mixed(resume: bool, run_id: int | None, *, anew: bool) -> None:
    if resume and anew:
        raise Refused("--resume finishes a run as it was begun: without --trials, --tag and --meta")
    if run_id is not None and not resume:
        raise Refused("RUN_ID goes with --resume; suites are named by --suite, backends by --backend")


@app.command()
def collect(
    stand_by: Annotated[
        bool, typer.Option("--stand-by", help="While another collector leads, wait, and take over.")
    ] = False,
) -> None:
    """Run the schedules, and what dashboard and API ask for, until TERM or ^C."""
    from collectors.collector import main as collector

    with running_long(debug=_given.debug):
        code = collector(stand_by=stand_by)
    raise typer.Exit(code)


@app.command()
def dashboard(
    host: Host = None,
    port: Port = None,
) -> None:
    """Serve the dashboard alone."""
    from collectors.supervise import Address, check_port
    from dashboard.server import main as serve

    with running_long(debug=_given.debug):
        shown = settings().dashboard
        address = Address(host or shown.host, port or shown.port)
        check_port(address)
        serve(*address)


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
        todo = existing(db, run_ids or []) or runs_of_older_scorers(db)
        for run_id in todo:
            typer.echo(again(db, run_id))
    if not todo:
        say("nothing to rescore: every run has the scores of today's scorers; memtrend rescore ID insists")


@app.command()
def mark(
    text: Annotated[str, typer.Argument(help="What happened: 'deploy agent 4.12'.")],
    at: Annotated[str | None, typer.Option(help="When, in ISO 8601; now by default.")] = None,
    meta: Meta = None,
) -> None:
    """Draw a dated line on every chart."""
    line = said(text)
    with database() as db:
        typer.echo(_drawn(db, line, pairs(meta), moment(at)))


def _drawn(db: Database, text: str, meta: Mapping[str, str], at: datetime | None = None) -> str:
    from store import writes

    return f"mark {writes.add_mark(db, text, at, meta=meta)}: {text}"


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
    from collectors.process import quiet_libraries

    quiet_libraries()
    with redirect_stdout(sys.stderr):
        if backend:
            of = settings()
            chosen([backend], list(of.backends), "backend")
            found = checks.check_backend(of, backend)
        else:
            found = checks.check_all()
    if json:
        print_json({"checks": [check._asdict() for check in found]})
    else:
        tables.print_checks(found)
    if any(check.name == "configuration" and not check.ok for check in found):
        raise typer.Exit(USAGE)
    raise typer.Exit(0 if all(check.ok for check in found) else BAD)


if __name__ == "__main__":
    main()
