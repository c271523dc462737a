"""`memtrend baseline`: what runs are held against, and what people decide about that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collectors.arguments import NO_ANSWER, Refused, existing, only_one
from collectors.commands import Json, author, database, print_json, say, settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collectors.plans import RunPlan
    from store.baselines import Action, Baseline, Decision
    from store.database import Database
    from store.settings import Settings

ONCE_MORE = "stopping after the step in flight; once more to stop at once"

baseline_app = typer.Typer(
    help="What runs are held against, and what people decide about that.", no_args_is_help=True
)

Suite = Annotated[str | None, typer.Option("--suite", "-s", help="The suite.")]
Backend = Annotated[str | None, typer.Option("--backend", "-b", help="The backend.")]
Runs = Annotated[list[int], typer.Argument(help="Whole runs of one suite on one backend, by id.")]
Reason = Annotated[str, typer.Option(help="Why: kept with your name and the date.")]


@baseline_app.command()
def show(suite: Suite = None, backend: Backend = None, json: Json = False) -> None:
    """What a run would be held against if it began now, which runs are left out and why, and what was
    decided. Exit 3 when there is nothing yet."""
    names = _any_series(settings(), suite, backend)
    with database() as db:
        found = _told(db, *names, json)
    raise typer.Exit(0 if found else NO_ANSWER)


@baseline_app.command()
def prime(
    suite: Suite = None,
    backend: Backend = None,
    trials: Annotated[int, typer.Option(min=2, help="Trials, all of which count.")] = 5,
    json: Json = False,
) -> None:
    """Make a first baseline now, of several trials in a row; what that costs is said first. Its verdicts stay
    provisional: trials of one night share its mood."""
    import sys
    from contextlib import redirect_stdout

    from collectors import runs as doing
    from collectors.process import quiet_libraries, stop_on_signals
    from store import queries

    quiet_libraries()
    of = settings()
    names = _series(of, suite, backend)
    with database(of) as db, stop_on_signals(ONCE_MORE) as stop, redirect_stdout(sys.stderr):
        todo = doing.planned(of, [names[0]], [names[1]], trials=trials, trigger=queries.PRIME)
        say(_cost(db, todo[0].plan))
        code = doing.exit_code(doing.run_all(db, todo, stop), stop)
    if code == 0:
        with database(of) as db:
            _told(db, *names, json)
    raise typer.Exit(code)


@baseline_app.command()
def pin(
    runs: Runs,
    reason: Reason,
    hold: Annotated[
        bool, typer.Option("--hold", help="Compare with these runs alone, so that nothing rolls.")
    ] = False,
    json: Json = False,
) -> None:
    """Make these runs the anchor, which a run must not fall behind, until the next pin or reset."""
    _decide("hold" if hold else "pin", runs, reason, json)


@baseline_app.command()
def exclude(runs: Runs, reason: Reason, json: Json = False) -> None:
    """Let these runs stand in no baseline."""
    _decide("exclude", runs, reason, json)


@baseline_app.command()
def include(runs: Runs, reason: Reason, json: Json = False) -> None:
    """Let runs that were excluded stand in baselines again."""
    _decide("include", runs, reason, json)


@baseline_app.command()
def intended(runs: Runs, reason: Reason, json: Json = False) -> None:
    """Say that the change which came with this run was meant: the baseline begins with it."""
    _decide("intended", runs, reason, json)


@baseline_app.command()
def reset(reason: Reason, suite: Suite = None, backend: Backend = None, json: Json = False) -> None:
    """Begin the baseline anew with the next run."""
    from store import writes

    names = _any_series(settings(), suite, backend)
    with database() as db:
        writes.decide_baseline(db, *names, "reset", (), reason, author())
        _told(db, *names, json)


@baseline_app.command("export")
def export_file(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    suite: Suite = None,
    backend: Backend = None,
    json: Json = False,
) -> None:
    """Write the baseline to a file that may travel: case ids, hashes, passes and environment, no text."""
    from collectors.gate import write_file
    from store import queries

    names = _any_series(settings(), suite, backend)
    with database() as db:
        carried = queries.carried_baseline(db, *names)
    if carried is None:
        raise Refused(f"{names[0]} on {names[1]} has no baseline yet: memtrend baseline prime", NO_ANSWER)
    write_file(file, carried)
    nights, cases = len(carried.nights), len(carried.cases)
    say(f"{nights} nights of {cases} cases of {names[0]} on {names[1]} in {file}")
    if json:
        print_json({"file": str(file), "nights": nights, "cases": cases})


@baseline_app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="What baseline export wrote.")], json: Json = False
) -> None:
    """Take the nights of a file into the record, as runs of its suite on its backend. A file whose hash is
    not right is refused."""
    from collectors.configured import backend_public, load_suite, suite_owner
    from collectors.gate import read_file
    from collectors.record import suite_record
    from store import writes

    of, carried = settings(), read_file(file)
    suite, backend = _series(of, carried.suite, carried.backend)
    environment = {
        name: told for name, told in carried.environment.items() if name not in ("suite", "scorer")
    }
    with database(of) as db:
        record = suite_record(load_suite(of, suite), suite_owner(of, suite))
        section = of.backends[backend]
        shown = backend_public(of, backend)
        found = writes.import_baseline(
            db,
            carried,
            writes.register_suite(db, record),
            writes.register_backend(db, backend, section.type, shown, section.owner),
            writes.register_environment(db, environment),
            author(),
        )
    say(f"{suite} on {backend}: {found.nights} nights are new, {found.known} were in the record")
    if found.unknown:
        say(f"{found.unknown} of {found.cases} cases are asked otherwise now, or no more: left out")
    if found.nights and found.decisions < len(carried.decisions):
        say("what the file decided is left out: the series has decisions of its own")
    if json:
        print_json(found._asdict())


# What they share


def _series(of: Settings, suite: str | None, backend: str | None) -> tuple[str, str]:
    from collectors.configured import backend_names, suite_names

    return only_one(suite, suite_names(of), "suite"), only_one(backend, backend_names(of), "backend")


def _any_series(of: Settings, suite: str | None, backend: str | None) -> tuple[str, str]:
    """A control has a series of its own, which is to be asked for by name."""
    from collectors.configured import control_names, suite_names

    if backend is not None and backend in control_names(of).values():
        return only_one(suite, suite_names(of), "suite"), backend
    return _series(of, suite, backend)


def _decide(action: Action, runs: list[int], reason: str, json: bool) -> None:
    """About runs, which say themselves of which suite and backend they are."""
    from store import queries, writes

    with database() as db:
        first = queries.run(db, existing(db, runs)[0])
        assert first is not None, "it exists"
        writes.decide_baseline(db, first.suite, first.backend, action, runs, reason, author())
        _told(db, first.suite, first.backend, json)


def _cost(db: Database, plan: RunPlan) -> str:
    from collectors.lint.cost import cost, estimate
    from collectors.plans import beside
    from store import queries

    suite, backend, of_one = plan.suite, plan.backend.name, cost(plan.suite)
    control = [one.backend.name for one in beside(plan)]
    trials, on = plan.trials * (1 + len(control)), " and ".join([backend, *control])
    said = f"{plan.trials} trials of {suite.name} on {on}: {trials * of_one.calls} calls"
    measured = next((row for row in queries.last_costs(db) if row.backend == backend), None)
    if measured is None:
        return f"{said}; what a call costs was not measured yet"
    found = estimate(of_one, measured)
    minutes = "" if found.minutes is None else f", about {trials * found.minutes:.1f} minutes"
    return f"{said}{minutes}, about ${trials * (found.money or 0):.2f}"


def _told(db: Database, suite: str, backend: str, json: bool) -> bool:
    """Print what a run would be held against now, and say whether there is anything."""
    from store import queries

    found = queries.baseline_now(db, suite, backend)
    decisions = queries.baseline_decisions(db, suite, backend)
    if json:
        print_json(_document(suite, backend, found, decisions))
    else:
        typer.echo("\n".join(_lines(suite, backend, found, decisions)))
    return bool(found.recent)


def _document(suite: str, backend: str, found: Baseline, decisions: Sequence[Decision]) -> dict[str, Any]:
    from store.shapes import moment

    return {
        "suite": suite,
        "backend": backend,
        "recent": list(found.recent),
        "history": list(found.history),
        "anchor": list(found.anchor),
        "primed": list(found.primed),
        "held": found.held,
        "days": found.days,
        "provisional": found.provisional,
        "left_out": [{"run": one.run_id, "why": one.why} for one in found.left_out],
        "decisions": [
            {**one._asdict(), "run_ids": list(one.run_ids), "at": moment(one.at)} for one in decisions
        ],
    }


def _lines(suite: str, backend: str, found: Baseline, decisions: Sequence[Decision]) -> Iterator[str]:
    from store import words

    if found.held and not found.recent:
        yield f"{suite} on {backend}: held to runs of which none can be compared with; pin others, or reset"
    elif not found.recent:
        yield f"{suite} on {backend}: no baseline yet; memtrend baseline prime makes one"
    else:
        provisional = ", provisional" if found.provisional else ""
        held = ", which do not roll" if found.held else ""
        yield f"{suite} on {backend}: a run now is held against {_runs(found.recent)}{held}"
        yield f"  on {words.count(found.days, 'day')}{provisional}; anchor: {_runs(found.anchor)}"
    for one in found.left_out:
        yield f"  left out: run {one.run_id}, {one.why}"
    for decision in decisions:
        which = f" {_runs(decision.run_ids)}" if decision.run_ids else ""
        yield f"  {decision.at:%Y-%m-%d %H:%M} {decision.author}: {decision.action}{which}: {decision.reason}"


def _runs(ids: Sequence[int]) -> str:
    return f"run {ids[0]}" if len(ids) == 1 else f"runs {', '.join(map(str, ids))}"
