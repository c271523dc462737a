"""What lint costs: ten thousand cases, and a pattern that never ends.

Half of the cases are asked in a world and half in a namespace of their own; patterns are of the shapes that
the shipped suites have. Each figure is of the median over fresh processes, by the wall's clock. The suite is
loaded before the clock starts: what loading takes is told beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import argparse
import gc
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.measure import Bar, fresh, parser, tell

CASES = 10_000
LINT_S = 2.0
PATTERN_S = 1.0
WORDS = (
    *("harbour", "lamp", "ticket", "parcel", "window", "kettle", "violin", "ladder", "mill", "shed", "rope"),
    *("barrel", "lantern", "chapel", "organ", "tide", "berth", "ferry", "cabin", "deck", "oats", "stable"),
    *("farrier", "orchard", "cellar", "anvil", "bridge", "meadow", "quarry", "sluice", "gable", "hinge"),
)
SHAPES = ("{a} {n}", r"\b{n}\b", "{a}.*{n}|{n}.*{a}", "{a} {n}[:.]45", r"{a}.{{0,20}}\b{n}", "({a}|x) {n}")
ENDLESS = "^(a|b|ab)*[cd]$"
"""Not told by its looks, so that it has to be tried."""
WORLD = 200


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--cases", type=int, default=CASES)
    options.add_argument("--times", type=int, default=5, help="processes a figure")
    options.add_argument("--only", choices=("many", "pattern"), help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.only:
        print(json.dumps(_many(arguments.cases) if arguments.only == "many" else _pattern()))
        return 0
    many = [_in_a_process("many", arguments.cases) for _ in range(arguments.times)]
    pattern = [_in_a_process("pattern", arguments.cases) for _ in range(arguments.times)]
    bars = [
        Bar("lint_seconds", _median(many, "lint"), LINT_S),
        Bar("pattern_seconds", _median(pattern, "lint"), PATTERN_S),
        Bar("pattern_findings", max(one["findings"] for one in pattern), 1),
    ]
    return tell(arguments.json, _lines(arguments.cases, many), bars)


def _in_a_process(only: str, cases: int) -> dict[str, Any]:
    return fresh(__file__, "--only", only, "--cases", str(cases))


def _median(rounds: Sequence[dict[str, Any]], name: str) -> float:
    return round(statistics.median(one[name] for one in rounds), 3)


def _lines(cases: int, many: Sequence[dict[str, Any]]) -> Iterator[str]:
    load, lint, cpu = (_median(many, name) for name in ("load", "lint", "cpu"))
    yield f"{cases} cases: lint {lint} s, {cpu} s of CPU, after loading them in {load} s"
    yield f"findings among them: {max(one['findings'] for one in many)}"


# In a process of its own


def _many(cases: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return _measured(_written(Path(folder), cases))


def _pattern() -> dict[str, Any]:
    """Ten cases whose memories are all nearly what the pattern wants."""
    lines = [
        _case(f"away-{n}", [f"{'ab' * 60}{n}-{i}" for i in range(6)], ENDLESS, "why", n) for n in range(10)
    ]
    with tempfile.TemporaryDirectory() as folder:
        return _measured(_write(Path(folder) / "suite.jsonl", lines))


def _measured(path: Path) -> dict[str, Any]:
    from collectors.lint import lint
    from collectors.suite import SuiteConfig, load

    gc.disable()  # as the command does
    begun = time.perf_counter()
    suite = load(SuiteConfig("made-up", path))
    loaded, cpu = time.perf_counter(), time.process_time()
    findings = lint(suite)
    took = time.perf_counter() - loaded
    return {
        "load": loaded - begun,
        "lint": took,
        "cpu": time.process_time() - cpu,
        "findings": len(findings),
    }


def _written(folder: Path, cases: int) -> Path:
    draw = random.Random(7)
    memories = [{"id": f"m{n}", "text": f"{_talk(draw)} m{n}."} for n in range(WORLD)]
    (folder / "worlds").mkdir()
    _write(folder / "worlds" / "coast.jsonl", memories)
    return _write(folder / "suite.jsonl", [_made_up(draw, n) for n in range(cases)])


def _made_up(draw: random.Random, number: int) -> dict[str, Any]:
    word, n = draw.choice(WORDS), 100_000 + number
    answer = f"The {word} {n}:45 was {word} {n} on the {_talk(draw)}."
    near = [f"{_talk(draw)} {200_000 + 10 * number + i}." for i in range(1 if number % 2 else 5)]
    wanted = draw.choice(SHAPES).format(a=word, n=n)
    forbidden = " ".join(near[0].split()[:3])
    case = _case(f"case-{number}", [answer, *near], wanted, _talk(draw), number)
    return case | {"forbid_top1": [forbidden]} | ({"world": "coast"} if number % 2 else {})


def _case(id: str, writes: list[str], wanted: str, query: str, number: int) -> dict[str, Any]:
    asked = {"query": f"{query} {number}?", "expect_any": [wanted], "k": 2}
    return {"id": id, "tags": ["recall"], "writes": writes, **asked, "source": "made up"}


def _talk(draw: random.Random) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(12))


def _write(path: Path, lines: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
