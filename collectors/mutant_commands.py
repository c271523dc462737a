"""`memtrend mutants`: do the suites notice a broken memory?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from collectors.arguments import BAD, chosen
from collectors.commands import Json, Suites, database, print_json, say, settings

if TYPE_CHECKING:
    from collectors.mutants import Mutant, Played, Proof
    from collectors.suite import Suite
    from store.settings import Settings

DEFAULT = ["golden", "contract"]


def mutants(
    suite: Suites = None,
    backend: Annotated[
        str, typer.Option("--backend", "-b", help="The backend that faults are put into.")
    ] = "hybrid",
    json: Json = False,
) -> None:
    """Put every known fault into a backend, and say which of them the suites notice. Exit 1 when the backend
    fails without a fault: its answers differ from one time to the next, and prove nothing."""
    from collectors import mutants as proving
    from collectors import tables
    from collectors.configured import backend_config, backend_names, load_suite, suite_names

    of = settings()
    names = chosen(suite or DEFAULT, suite_names(of), "suite")
    config = backend_config(of, chosen([backend], backend_names(of), "backend")[0])
    suites = [load_suite(of, name) for name in names]
    played = proving.play_mutants(suites, config, on_progress=_tell)
    _keep(of, backend, suites, played)
    proof = played.proof(names)
    print_json(_document(proof)) if json else tables.print_mutants(proof)
    raise typer.Exit(BAD if proof.healthy.detected else 0)


def _tell(done: int, total: int) -> None:
    if done % 10 == 0 or done == total:
        say(f"{done} of {total} played")


def _keep(of: Settings, backend: str, suites: list[Suite], played: Played) -> None:
    """Of each suite what it notices alone: the Suites page shows one at a time."""
    from collectors.configured import suite_owner
    from collectors.record import suite_record
    from store import writes

    with database(of) as db:
        for suite in suites:
            version = writes.register_suite(db, suite_record(suite, suite_owner(of, suite.name)))
            found = played.proof([suite.name]).mutants
            writes.record_mutants(db, version, backend, [mutant.record for mutant in found])


def _document(proof: Proof) -> dict[str, Any]:
    healthy = {"detected": proof.healthy.detected, "lost": len(proof.healthy.lost)}
    rows = [_row(mutant) for mutant in proof.mutants]
    return {"cases": proof.cases, "healthy": healthy, "mutants": rows}


def _row(mutant: Mutant) -> dict[str, Any]:
    found = mutant.found
    return {
        "fault": mutant.fault,
        "detected": found.detected,
        "lost": len(found.lost),
        "critical_lost": found.critical,
        "kind": found.kind,
        "kind_right": mutant.named_right,
        "kind_expected": mutant.expected,
        "tags": found.tags,
        "beyond": {name: {"healthy": old, "mutant": new} for name, (old, new) in found.beyond.items()},
        "cases": [one.case for one in found.lost],
    }
