"""Do the shipped suites notice a broken memory, and what does it take to find out?

`golden` and `smoke` are played on `hybrid` in memory, judged and not stored, each in a fresh process whose
clock starts when suites are read and modules loaded. Then every mutant is played on `golden` and `contract`,
in parallel processes, from the loading of the suites to the verdicts; and again on `smoke` alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import Bar, fresh, parser, tell

SUITES = ("golden", "contract")
SECONDS = {"golden": 6.0, "smoke": 1.0}
MUTANTS_S = 300.0


def main() -> int:
    arguments = _arguments()
    if arguments.play:
        print(json.dumps(_play(arguments.play)))
        return 0
    if arguments.prove:
        print(json.dumps(_prove(arguments.prove.split(","))))
        return 0
    plays = {name: fresh(__file__, "--play", name) for name in SECONDS}
    proofs = {name: fresh(__file__, "--prove", name) for name in (",".join(SUITES), "smoke")}
    return tell(arguments.json, _lines(plays, proofs), _bars(plays, proofs))


def _arguments() -> argparse.Namespace:
    found = parser(__doc__)
    found.add_argument("--play", metavar="SUITE", help="play one suite once, in this process")
    found.add_argument("--prove", metavar="SUITE,...", help="play all mutants on these suites")
    return found.parse_args()


def _bars(plays: dict[str, Any], proofs: dict[str, Any]) -> list[Bar]:
    """A bar is a figure that may be at most its target, so faults are counted that were missed."""
    (whole, smoke) = proofs.values()
    faults = whole["faults"]
    return [
        *(Bar(f"{name}_s", plays[name]["seconds"], target) for name, target in SECONDS.items()),
        Bar("mutants_s", whole["seconds"], MUTANTS_S),
        Bar("missed", faults - whole["detected"], 0),
        Bar("misnamed", faults - whole["named_right"], faults // 10),
        Bar("smoke_missed", faults - smoke["detected"], faults // 3),
        Bar("healthy_found_broken", whole["healthy"] + smoke["healthy"], 0),
    ]


def _lines(plays: dict[str, Any], proofs: dict[str, Any]) -> Iterator[str]:
    for name, play in plays.items():
        yield f"{name} on hybrid: {play['seconds']:.2f} s, {play['plants']} plants, {play['cases']} cases"
    for names, proof in proofs.items():
        missed = ", ".join(proof["missed"]) or "none"
        yield f"{names}: {proof['cases']} cases, {proof['seconds']:.0f} s; missed: {missed}"
        yield f"  {proof['detected']} of {proof['faults']} detected, {proof['named_right']} named rightly"


# In a process of its own


def _play(name: str) -> dict[str, Any]:
    from collectors.backend import BackendConfig
    from collectors.mutants import Part, play_all
    from collectors.suite import SHIPPED, load

    suite = load(SHIPPED[name])
    parts = [Part(suite.name, scenario) for scenario in suite.scenarios]
    play_all(parts[:1], BackendConfig("hybrid", "hybrid"))
    started = time.perf_counter()
    answers = play_all(parts, BackendConfig("hybrid", "hybrid"))
    return {"seconds": time.perf_counter() - started, "plants": suite.plants, "cases": len(answers)}


def _prove(names: list[str]) -> dict[str, Any]:
    from collectors.backend import BackendConfig
    from collectors.mutants import play_mutants
    from collectors.suite import SHIPPED, load

    started = time.perf_counter()
    suites = [load(SHIPPED[name]) for name in names]
    proof = play_mutants(suites, BackendConfig("hybrid", "hybrid")).proof(names)
    return {
        "seconds": time.perf_counter() - started,
        "cases": proof.cases,
        "faults": len(proof.mutants),
        "detected": proof.detected,
        "named_right": proof.named_right,
        "healthy": int(proof.healthy.detected),
        "missed": [mutant.fault for mutant in proof.mutants if not mutant.found.detected],
    }


if __name__ == "__main__":
    sys.exit(main())
