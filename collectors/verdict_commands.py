"""`memtrend verdict`: is a run worse than what it is held against, and how sure is that?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collectors.arguments import BAD, NO_ANSWER, Refused
from collectors.commands import Json, database, print_json, say, settings

if TYPE_CHECKING:
    from store.database import Database
    from store.queries import VerdictRow
    from store.verdicts import Verdict


def verdict(
    run: Annotated[int, typer.Argument(help="A whole run, as `memtrend runs` lists it.")],
    look: Annotated[
        bool, typer.Option("--look", help="Ask its questions once more now, and judge again.")
    ] = False,
    json: Json = False,
) -> None:
    """Judge a run anew from the record. Exit 1 when it is worse, 3 when that cannot be told."""
    from store import shapes
    from store.verdicts import plain

    with database() as db:
        said = _said(db, run)
        found = _looked_again(db, run) if look else _judged(db, run, said)
        content: dict[str, Any] = plain(found)
        suspects = suspects_of(db, run, found)
    _tell_change(said, content)
    if json:
        print_json({"run": run, **shapes.verdict(content, suspects)})
    else:
        typer.echo("\n".join(_lines(content, suspects)))
    raise typer.Exit({"worse": BAD, "cannot_tell": NO_ANSWER}.get(found.verdict, 0))


def _said(db: Database, run: int) -> VerdictRow | None:
    from store import queries

    return queries.verdict(db, run)


def _judged(db: Database, run: int, said: VerdictRow | None) -> Verdict:
    """What was said once is not overwritten; a run of which nothing was said yet gets its verdict."""
    from store import queries, writes
    from store.verdicts import entry, judge

    record = queries.verdict_record(db, run)
    status = queries.run(db, run)
    if record is None or status is None or status.status != "whole":
        raise Refused(f"run {run} is no whole run of a whole suite: nothing to judge", NO_ANSWER)
    found = judge(record, deterministic=bool(said and said.content["deterministic"]))
    if said is None:
        writes.record_verdict(db, entry(run, found))
    return found


def _looked_again(db: Database, run: int) -> Verdict:
    """One look more, as the runner takes it by itself after a suspicion."""
    from collectors.looks import take_look

    return take_look(db, settings(), run)


def suspects_of(db: Database, run: int, found: Verdict) -> list[Mapping[str, Any]]:
    """What changed since the last good run, the likeliest cause first; nothing where nothing is wrong."""
    from store import queries

    if found.verdict == "unchanged" or not found.baseline:
        return []
    good = found.baseline
    first_bad = found.leak.first_bad if found.stage == "leak" and found.leak else run
    last_good = max((id for id in good if id < first_bad), default=good[-1])
    try:
        changed = queries.changes_between(db, last_good, first_bad, good).changes
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
    facts = (told.how_much(content), told.blind_spot(content), *told.moved(content))
    yield from (f"  {fact}" for fact in facts if fact)
    for names in ("lost", "gained"):
        if content[names]:
            yield f"  {names}: {', '.join(content[names])}"
    yield f"  held against {told.held_against(content)}"
    for number, one in enumerate(suspects[:5], 1):
        yield f"  suspect {number}: {one['name']} {one['old'] or 'none'} → {one['new'] or 'none'}"
