"""What the runner costs: a published benchmark through `run`, against a bare loop over the same backend.

Ten long conversations, each turn a memory and each question a probe, asked of `keyword` held in memory. `run`
judges and stores every answer in a new SQLite file, without diagnoses; the bare loop makes the same calls
and keeps nothing. Each measurement is a process of its own; its clock starts when the suite is read, the file
made and all modules are loaded. They take turns; the ratio is the median over the pairs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import argparse
import json
import re
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchmarks.measure import ROOT, Bar, fresh, pairs, parser, tell

if TYPE_CHECKING:
    from collectors.suite import Memory, Probe, Suite

DATA = ROOT.parent / "shared" / "data" / "locomo" / "locomo10.json"
MAX_RATIO = 2.0
MAX_MB = 400
K = 10


def main() -> int:
    arguments = _arguments()
    if not arguments.data.is_file():
        print(f"{arguments.data} is not there: name the LoCoMo file, locomo10.json", file=sys.stderr)
        return 2
    if arguments.side:
        print(json.dumps(_measured(SIDES[arguments.side], _suite(arguments.data, arguments.conversations))))
        return 0
    found = pairs(arguments.pairs, lambda: _side("run", arguments), lambda: _side("bare", arguments))
    bars = [
        Bar("run_cpu_over_bare_loop", _ratio(found, "cpu"), MAX_RATIO),
        Bar("peak_rss_mb", max(ours["rss_mb"] for ours, _ in found), MAX_MB),
    ]
    return tell(arguments.json, _lines(found), bars)


def _arguments() -> argparse.Namespace:
    found = parser(__doc__)
    found.add_argument("data", type=Path, nargs="?", default=DATA, help="locomo10.json")
    found.add_argument("--conversations", type=int, default=10, help="how many of them")
    found.add_argument("--pairs", type=int, default=5)
    found.add_argument("--side", choices=("run", "bare"), help="measure one side, in this process")
    return found.parse_args()


# Measuring


def _side(side: str, arguments: argparse.Namespace) -> dict[str, Any]:
    count = str(arguments.conversations)
    return fresh(__file__, str(arguments.data), "--conversations", count, "--side", side)


def _measured(side: Callable[[Suite, Path], Callable[[], str]], suite: Suite) -> dict[str, Any]:
    """Seconds of CPU and of the wall's clock, and the peak of the whole process."""
    with tempfile.TemporaryDirectory(prefix="memtrend-bench-") as folder:
        work = side(suite, Path(folder))
        wall, cpu = time.perf_counter(), time.process_time()
        did = work()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu": cpu, "wall": wall, "rss_mb": round(peak, 1), "did": did}


def _run(suite: Suite, folder: Path) -> Callable[[], str]:
    from collectors.plans import RunLimits, RunPlan
    from collectors.runner import run
    from store import (
        queries,
        verdicts,  # noqa: F401  which the runner loads when a run ends, and would load within the clock
    )
    from store.database import open_database

    db = open_database(f"sqlite:///{folder / 'memtrend.db'}")
    plan = RunPlan(suite, _keyword(), limits=RunLimits(max_diagnoses=0))

    def work() -> str:
        outcome = run(plan, db)
        stored = queries.run(db, outcome.run_id)
        if outcome.status != "whole" or stored is None or stored.errors:
            raise SystemExit(f"the run is {outcome.status}: {outcome.reason}")
        recall = stored.metrics["recall@k"]
        return f"{suite.plants} plants, {stored.cases_done} probes, recall@{K} {recall.mean:.3f}"

    return work


def _bare(suite: Suite, folder: Path) -> Callable[[], str]:
    """The calls that `run` makes, and nothing else. `folder`: a bare loop needs none."""
    from collectors.backend import open_backend
    from collectors.suite import Plant, Probe, Scope

    def work() -> str:
        backend, plants, probes = open_backend(_keyword()), 0, 0
        for scenario in suite.scenarios:
            namespace = f"memtrend-{scenario.id}"
            backend.reset(Scope(namespace))
            for step in scenario.steps:
                if isinstance(step, Plant):
                    plants += len(step.memories)
                    backend.remember(Scope(namespace, session=step.memories[0].session), step.memories)
                elif isinstance(step, Probe):
                    probes += 1
                    backend.recall(Scope(namespace), step.query, step.k)
            backend.reset(Scope(namespace))
        backend.close()
        return f"{plants} plants, {probes} probes"

    return work


SIDES = {"run": _run, "bare": _bare}


def _keyword() -> Any:
    from collectors.backend import BackendConfig

    return BackendConfig("keyword", "keyword")


def _ratio(found: list[tuple[dict[str, Any], dict[str, Any]]], clock: str) -> float:
    return round(statistics.median(ours[clock] / bare[clock] for ours, bare in found), 2)


def _lines(found: list[tuple[dict[str, Any], dict[str, Any]]]) -> Iterator[str]:
    for ours, bare in found:
        yield (
            f"run {ours['cpu']:.2f} s of CPU, {ours['wall']:.2f} s, {ours['rss_mb']:.0f} MB ({ours['did']}); "
            f"bare loop {bare['cpu']:.2f} s of CPU, {bare['wall']:.2f} s ({bare['did']})"
        )
    yield f"ratio by the wall's clock: {_ratio(found, 'wall')}"


# Reading


def _suite(path: Path, conversations: int) -> Suite:
    from collectors.suite import Plant, Scenario, Suite

    scenarios = []
    for told in json.loads(path.read_text(encoding="utf-8"))[:conversations]:
        memories = list(_memories(told["conversation"]))
        plants = tuple(Plant((memory,)) for memory in memories)
        probes = _probes(told["sample_id"], told["qa"], {memory.id for memory in memories})
        scenarios.append(Scenario(told["sample_id"], (*plants, *probes)))
    return Suite("locomo", "locomo", tuple(scenarios), "published", str(path))


def _memories(conversation: dict[str, Any]) -> Iterator[Memory]:
    """Session by session; there are dates of sessions that never took place."""
    from collectors.suite import Memory

    numbers = sorted(int(name[8:]) for name in conversation if re.fullmatch(r"session_\d+", name))
    for number in numbers:
        date = conversation[f"session_{number}_date_time"]
        at = datetime.strptime(date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in conversation[f"session_{number}"]:
            image = f" [shared image: {turn['blip_caption']}]" if "blip_caption" in turn else ""
            text = f"{date} {turn['speaker']}: {turn['text']}{image}"
            yield Memory(turn["dia_id"], text, at=at, session=str(number))


def _probes(sample: str, questions: list[dict[str, Any]], known: set[str]) -> Iterator[Probe]:
    """Texts occur twice, so a case is named by its place. Where no evidence is left, nothing is expected."""
    from collectors.suite import Expectation, Probe, digest

    for number, told in enumerate(questions):
        ids = tuple(_evidence(told["evidence"], known))
        yield Probe(
            f"{sample}-q{number}",
            told["question"],
            (Expectation("all", ids=ids),) if ids else (),
            k=K,
            tags=(f"category-{told['category']}",),
            hash=digest(told),
        )


def _evidence(cited: list[str], known: set[str]) -> list[str]:
    """Some citations hold several ids, leading zeros, or turns that do not exist."""
    ids = [f"D{a}:{b}" for text in cited for a, b in re.findall(r"D:?(\d+):0*(\d+)", text)]
    return [id for id in dict.fromkeys(ids) if id in known]


if __name__ == "__main__":
    sys.exit(main())
