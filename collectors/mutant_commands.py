"""`memtrend mutants`: do the suites notice a broken memory?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collectors.arguments import BAD, NO_ANSWER, Refused, chosen
from collectors.commands import Json, Suites, database, print_json, say, settings

if TYPE_CHECKING:
    from collectors.backend import BackendConfig
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
    """Put every known fault into a backend, and say which of them the suites notice. Exit 1 when the
    backend's answers differ from one time to the next, which proves nothing; 3 when it is broken itself."""
    from collectors import tables
    from collectors.configured import backend_config, backend_names, load_suite, suite_names

    of = settings()
    names = chosen(suite or DEFAULT, suite_names(of), "suite")
    config = backend_config(of, chosen([backend], backend_names(of), "backend")[0])
    suites = [load_suite(of, name) for name in names]
    if standing := [suite.name for suite in suites if suite.standing]:
        raise Refused(f"suite {standing[0]} reads a standing index, into which no fault is put")
    played = _played(of, suites, config)
    _keep(of, backend, suites, played)
    proof = played.proof(names)
    print_json(_document(proof)) if json else tables.print_mutants(proof)
    raise typer.Exit(BAD if proof.healthy.detected else 0)


def _played(of: Settings, suites: list[Suite], backend: BackendConfig) -> Played:
    """Nobody else has the backend meanwhile: another run would be a fault that nobody put in."""
    from collectors.backends.faulty import FAULTS
    from collectors.lease import BackendLease, InstanceBusy
    from collectors.mutants import Unfit, play_mutants

    times, plants = len(FAULTS) + 2, sum(suite.plants for suite in suites)
    say(f"{times} times {plants} memories and {_questions(suites)} questions, on {backend.name}")
    try:
        with database(of) as db, BackendLease(db, backend.name, threading.Event()):
            return play_mutants(suites, backend, on_progress=_tell)
    except (Unfit, InstanceBusy) as error:
        raise Refused(str(error), NO_ANSWER) from error


def _questions(suites: list[Suite]) -> int:
    return sum(1 for suite in suites for _ in suite.probes)


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
