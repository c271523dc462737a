"""`memtrend gate`: may this be shipped?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collectors.arguments import BAD, NO_ANSWER, Refused, only_one, pairs, write_to
from collectors.commands import Json, Meta, database, print_json, say, settings

if TYPE_CHECKING:
    from collectors.gate import Asked, Ended
    from store.database import Database
    from store.settings import Settings

ONCE_MORE = "stopping after the step in flight; once more to stop at once"
SUMMARY = "GITHUB_STEP_SUMMARY"


def gate(
    suite: Annotated[str | None, typer.Option("--suite", "-s", help="The suite.")] = None,
    backend: Annotated[str | None, typer.Option("--backend", "-b", help="The backend.")] = None,
    against: Annotated[
        str, typer.Option(help="baseline, green:BRANCH, or a run by its ID: what it is held against.")
    ] = "baseline",
    baseline: Annotated[
        Path | None,
        typer.Option(help="A file instead, as baseline export writes it; made when not there."),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(min=0.001, max=0.999, help="Ask for non-inferiority too: 0.03 is 3 points."),
    ] = None,
    renew: Annotated[
        bool,
        typer.Option("--renew", help="Replace a file of another scorer or embedder by a new baseline."),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="No answer fails: exit 1 in place of 3.")] = False,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
    md: Annotated[Path | None, typer.Option(help="Write a summary in Markdown here.")] = None,
    meta: Meta = None,
    json: Json = False,
) -> None:
    """Run a suite once, look again where that is suspicious, and exit 0 to ship, 1 not to, 3 without an
    answer."""
    from collectors.alerting import after_runs
    from collectors.configured import backend_names, suite_names
    from collectors.gate import Asked

    of = settings()
    names = (only_one(suite, suite_names(of), "suite"), only_one(backend, backend_names(of), "backend"))
    _refuse_mixed(against, baseline, renew)
    asked = Asked(*names, against, baseline, margin, pairs(meta), renew)
    with database(of) as db:
        ended = _held(db, of, asked)
        after_runs(db, of, say)
        if isinstance(ended, str):
            _tell_no_answer(asked, ended, junit, md, json)
            raise Refused(ended, BAD if strict else NO_ANSWER)
        suspects = _suspects(db, ended)
    _write(ended, suspects, junit, md)
    print_json(_document(ended, suspects)) if json else typer.echo("\n".join(_lines(ended)))
    say(f"memtrend show {ended.run_id} tells the cases, memtrend verdict {ended.run_id} the evidence")
    raise typer.Exit(_code(ended, strict))


def _refuse_mixed(against: str, baseline: Path | None, renew: bool) -> None:
    if baseline and against != "baseline":
        raise Refused("--against and --baseline say the same: give one of them")
    if renew and not baseline:
        raise Refused("--renew is for a file: say which by --baseline")


def _held(db: Database, of: Settings, asked: Asked) -> Ended | str:
    """What the gate found, or why there is no answer."""
    import sys
    from contextlib import redirect_stdout

    from collectors.gate import NoAnswer, held
    from collectors.process import quiet_libraries, stop_on_signals

    quiet_libraries()
    with stop_on_signals(ONCE_MORE) as stop, redirect_stdout(sys.stderr):
        try:
            return held(db, of, asked, stop)
        except NoAnswer as error:
            if stop.asked.is_set():
                raise typer.Exit(stop.exit_code) from None
            return str(error)


def _tell_no_answer(asked: Asked, why: str, junit: Path | None, md: Path | None, json: bool) -> None:
    """Where there is no answer, whoever reads files or JSON hears so too."""
    from collectors import gate_files

    _write_all(gate_files.unanswered_junit(asked, why), gate_files.unanswered_markdown(asked, why), junit, md)
    if json:
        nothing = dict.fromkeys(("run", "interval", "blind_spot"))
        empty: dict[str, list[str]] = {name: [] for name in ("lost", "gained", "suspects", "failed")}
        told = {"suite": asked.suite, "backend": asked.backend, "verdict": "cannot_tell", "evidence": why}
        print_json({**nothing, **told, **empty, "provisional": True, "reason": why, "passed": False})


def _code(ended: Ended, strict: bool) -> int:
    if ended.gate.failed:
        return BAD
    return 0 if ended.gate.passed else BAD if strict else NO_ANSWER


def _suspects(db: Database, ended: Ended) -> list[Mapping[str, Any]]:
    """What changed since the baseline, the likeliest cause first; nothing where nothing is wrong."""
    from collectors.verdict_commands import suspects_of
    from store import queries
    from store.evidence import plain

    carried = ended.against.carried if ended.against else None
    if carried is None or ended.verdict.verdict == "unchanged":
        return suspects_of(db, ended.run_id, plain(ended.verdict))
    found = queries.changes_since(db, carried.environment, ended.run_id).suspects
    return [{"name": one.name, "old": one.old, "new": one.new} for one in found]


def _write(ended: Ended, suspects: Iterable[Mapping[str, Any]], junit: Path | None, md: Path | None) -> None:
    from collectors import gate_files

    _write_all(gate_files.junit(ended), gate_files.markdown(ended, suspects), junit, md)


def _write_all(results: str, summary: str, junit: Path | None, md: Path | None) -> None:
    on_github = os.environ.get(SUMMARY)
    for path, text, mode in (
        (junit, results, "w"),
        (md, summary, "w"),
        (Path(on_github) if on_github else None, summary, "a"),
    ):
        if path:
            write_to(path, text, mode)


def _document(ended: Ended, suspects: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    from store import shapes
    from store.evidence import plain

    told = ended.gate
    return {
        "run": ended.run_id,
        "suite": ended.asked.suite,
        "backend": ended.asked.backend,
        "against": str(ended.asked.file or ended.asked.against),
        **shapes.verdict(plain(ended.verdict), suspects),
        "passed": told.passed,
        "failed": list(told.failed),
        "missing": list(ended.verdict.missing),
        "quarantined": list(told.quarantined),
        "on_trial": list(told.on_trial),
        "bars": [bar._asdict() for bar in told.bars],
        "margin": told.margin and told.margin._asdict(),
        "written": ended.written,
    }


def _lines(ended: Ended) -> Iterable[str]:
    from collectors.gate_files import checks, title

    yield title(ended)
    for one in checks(ended):
        yield f"  {one.name.replace('_', ' ')}: {one.state}: {one.text}"
    if ended.verdict.lost:
        yield f"  lost: {', '.join(ended.verdict.lost)}"
    for names, what in ((ended.gate.quarantined, "in quarantine"), (ended.gate.on_trial, "on trial")):
        if names:
            yield f"  {what}, fails nothing: {', '.join(names)}"
