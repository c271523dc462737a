"""`memtrend verdict`: is a run worse than what it is held against, and how sure is that?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collectors.arguments import BAD, NO_ANSWER, Refused, existing
from collectors.commands import Json, database, print_json, say, settings

if TYPE_CHECKING:
    from store.database import Database
    from store.evidence import Verdict
    from store.queries import VerdictRow


def verdict(
    run: Annotated[int, typer.Argument(help="A whole run, as `memtrend runs` lists it.")],
    look: Annotated[
        bool, typer.Option("--look", help="Ask its questions once more now, and judge again.")
    ] = False,
    json: Json = False,
) -> None:
    """Judge a run anew from the record. Exit 1 when it is worse, 3 when that cannot be told."""
    from store import queries, shapes
    from store.evidence import plain

    with database() as db, redirect_stdout(sys.stderr):
        said = queries.verdict(db, run)
        _refuse_a_look(db, run)
        if said and said.content.get("borrowed"):
            content = _borrowed(said, look)
        else:
            content = plain(_looked_again(db, run) if look else _judged(db, run, said))
        suspects = suspects_of(db, run, content)
    _tell_change(said, content)
    if json:
        print_json({"run": run, **shapes.verdict(content, suspects)})
    else:
        typer.echo("\n".join(_lines(content, suspects)))
    raise typer.Exit({"worse": BAD, "cannot_tell": NO_ANSWER}.get(content["verdict"], 0))


def _refuse_a_look(db: Database, run: int) -> None:
    from store import queries

    existing(db, [run])
    row = queries.run(db, run)
    if row and row.subset == queries.CONFIRM:
        about = row.trigger.rpartition(":")[2]
        raise Refused(f"run {run} is a look at run {about}: memtrend verdict {about}", NO_ANSWER)


def _borrowed(said: VerdictRow, look: bool) -> dict[str, Any]:
    """What a gate said, which held the run against a baseline that it was given: held against its own
    series, the run would get another verdict."""
    if look:
        raise Refused("a gate held this run against a baseline that it was given: run the gate again")
    return said.content


def _judged(db: Database, run: int, said: VerdictRow | None) -> Verdict:
    """What was said once is not overwritten; a run of which nothing was said yet gets its verdict."""
    from store import queries, writes
    from store.evidence import entry
    from store.stats.change import LEVELS
    from store.verdicts import judge

    record = queries.verdict_record(db, run)
    status = queries.run(db, run)
    if record is None or status is None or status.status != "whole":
        raise Refused(f"run {run} is no whole run of a whole suite: nothing to judge", NO_ANSWER)
    told = said.content if said else {}
    found = judge(record, deterministic=told.get("deterministic", False), level=told.get("level", LEVELS[0]))
    if said is None:
        writes.record_verdict(db, entry(run, found))
    return found


def _looked_again(db: Database, run: int) -> Verdict:
    """One look more, as the runner takes it by itself after a suspicion, and what it means for alerts."""
    from collectors.alerting import after_runs
    from collectors.looks import take_look

    of = settings()
    found = take_look(db, of, run)
    after_runs(db, of, say)
    return found


def suspects_of(db: Database, run: int, content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What changed since the last good run, the likeliest cause first; nothing where nothing is wrong."""
    from store import queries

    if content["verdict"] == "unchanged":
        return []
    try:
        changed = queries.changes_to(db, run).changes
    except queries.NothingToCompare:
        return []
    return [{"name": one.name, "old": one.old, "new": one.new} for one in changed.suspects]


def _tell_change(said: VerdictRow | None, content: Mapping[str, Any]) -> None:
    if said and (said.verdict, said.stage) != (content["verdict"], content["stage"]):
        before = f"{said.verdict} {said.stage}".strip()
        say(f"when the run was judged on {said.at:%Y-%m-%d %H:%M} UTC, the verdict was: {before}")


def _lines(content: Mapping[str, Any], suspects: list[Mapping[str, Any]]) -> Iterator[str]:
    from store import verdict_words as told

    yield f"{told.badge(content).text}: {told.evidence(content)}"
    if how_much := told.how_much(content):
        yield f"  for questions like these: {how_much}"
    facts = (told.control(content), told.blind_spot(content), *told.moved(content))
    yield from (f"  {fact}" for fact in facts if fact)
    for names in ("lost", "gained"):
        if content[names]:
            yield f"  {names}: {', '.join(content[names])}"
    yield f"  held against {told.held_against(content)}"
    for number, one in enumerate(suspects[:5], 1):
        yield f"  suspect {number}: {one['name']} {one['old'] or 'none'} → {one['new'] or 'none'}"
