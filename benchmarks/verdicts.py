"""Does the verdict say so when a memory breaks, and nothing when it only wavers?

`golden` and `contract` are played on `hybrid` with noise: 15 % of all questions are unsure, and fail three
times in ten. The verdict is reached as in production, from a rolling baseline: tonight's first trial, three
at once where that is a suspicion, three more where it holds. First on nights of the noisy backend alone; then
with each fault put into it on the night after the first ten. Nothing is stored, and each backend is played
twice: without noise, and with every answer flipped. The noise says which of the two each trial of a case is.
Latency is left out, since that is not of one night then.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from benchmarks.figures.nights import SUITES, Series, Tape, judged, load_parts, lost, tape
from benchmarks.measure import Bar, parser, tell
from collectors.backends.faulty import FAULTS
from store.evidence import Verdict

GOOD = 10
"""Nights before the fault."""
NIGHTS, QUICK_NIGHTS = 60, 11
QUICK = ("stale-first", "forget-no-op", "question-mark", "slow")
LOST = 3
"""A fault that loses so many cases must be noticed."""
WORKERS = 2


def main() -> int:
    arguments = _arguments()
    found = _measured(arguments.quick, arguments.faults or (QUICK if arguments.quick else tuple(FAULTS)))
    if arguments.raw:
        arguments.raw.write_text(json.dumps(found), encoding="utf-8")
    return tell(arguments.json, _lines(found), _bars(found))


def _arguments() -> argparse.Namespace:
    found = parser(__doc__)
    found.add_argument("--quick", action="store_true", help=f"{len(QUICK)} faults, {QUICK_NIGHTS} nights")
    found.add_argument("--faults", nargs="+", choices=FAULTS, metavar="FAULT", help="these faults alone")
    found.add_argument("--raw", type=Path, metavar="FILE", help="write every figure to FILE, as JSON")
    return found.parse_args()


def _measured(quick: bool, faults: Sequence[str]) -> dict[str, Any]:
    started = time.monotonic()
    load_parts()
    with ProcessPoolExecutor(WORKERS, get_context("spawn"), load_parts) as pool:
        playing = [pool.submit(tape, fault) for fault in ("", *faults)]
        sound = playing[0].result()
        good = pool.submit(_alone, sound, QUICK_NIGHTS if quick else NIGHTS)
        broken = [
            pool.submit(_broken, fault, number, sound, played.result())
            for number, (fault, played) in enumerate(zip(faults, playing[1:], strict=True), 1)
        ]
        found = [one.result() for one in broken]
    return {"alone": good.result(), "faults": found, "seconds": time.monotonic() - started}


def _alone(sound: Tape, nights: int) -> list[dict[str, Any]]:
    """Night after night, as it would have gone."""
    series = {suite: Series(suite) for suite in SUITES}
    return [
        _said(suite, judged(one, number, sound))
        for number in range(1, nights + 1)
        for suite, one in series.items()
    ]


def _broken(fault: str, number: int, sound: Tape, broken: Tape) -> dict[str, Any]:
    """The night on which a fault comes in: of the two suites the one that says more."""
    found = []
    for suite in SUITES:
        series = Series(suite)
        for good in range(1, GOOD + 1):
            series.begin(good, sound)
            series.end(accepted=True)
        found.append(_said(suite, judged(series, GOOD + number, broken)))
    most = max(found, key=lambda said: (said["verdict"] == "worse", said["looks"]))
    moved = sorted({metric for said in found for metric in said["moved"]})
    return {**most, "fault": fault, "lost": lost(sound, broken), "moved": moved}


def _said(suite: str, said: Sequence[Verdict]) -> dict[str, Any]:
    """`reached`: how far the looks came before one of them disagreed."""
    last = said[-1]
    stages = [one.stage for one in said if one.stage]
    moved = [f"{one.metric} {one.change:+.2g}" for one in last.moved if one.stage == "confirmed"]
    return {
        "suite": suite,
        "verdict": last.verdict,
        "stage": last.stage,
        "reached": stages[-1] if stages else "",
        "p": [look.p_worse for look in last.looks],
        "looks": len(last.looks),
        "lost_for_sure": len(last.lost),
        "moved": moved,
    }


# Told


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{'fault':<26}{'lost':>5}  {'verdict':<12}{'stage':<11}{'suite':<10}looks, p of worse"
    for one in found["faults"]:
        looks = "; ".join("none" if p is None else f"{p:.3g}" for p in one["p"])
        moved = f"  moved: {', '.join(one['moved'])}" if one["moved"] else ""
        head = f"{one['fault']:<26}{one['lost']:>5}  {one['verdict']:<12}{one['stage']:<11}{one['suite']:<10}"
        yield f"{head}{len(one['p'])}: {looks}{moved}"
    alone = found["alone"]
    yield f"{len(alone) // len(SUITES)} nights of the noisy backend alone, {len(SUITES)} suites each:"
    for what in ("suspicion", "suspected", "confirmed", "leak"):
        yield f"  came as far as {what}: {sum(night['reached'] == what for night in alone)}"
    yield f"  metrics beside the pass rate, confirmed: {sum(bool(night['moved']) for night in alone)}"
    yield f"{found['seconds']:.0f} s"


def _bars(found: Mapping[str, Any]) -> list[Bar]:
    """A bar is a figure that may be at most its target, so what was missed and what was false are counted."""
    bad = [one for one in found["faults"] if one["lost"] >= LOST]
    missed = [one for one in bad if (one["verdict"], one["stage"]) != ("worse", "confirmed")]
    false = [night for night in found["alone"] if night["verdict"] == "worse"]
    return [Bar("faults_missed", len(missed), 0), Bar("false_verdicts", len(false), 0)]


if __name__ == "__main__":
    sys.exit(main())
