"""How far the statistics can be trusted: alarms, coverage, change points and speed, each beside its peers.

Each part is a module of benchmarks/figures. All of them, in full, take most of an hour on two cores; --quick
takes a tenth of the draws, whose figures are too coarse for their bars.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import argparse
import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from benchmarks.measure import parser, tell

FIGURES = ("alarms", "coverage", "points", "speed")


def main() -> int:
    arguments = _arguments()
    names = [arguments.only] if arguments.only else FIGURES
    figures = {name: import_module(f"benchmarks.figures.{name}") for name in names}
    found = {name: figure.measure(arguments.quick) for name, figure in figures.items()}
    if arguments.raw:
        arguments.raw.write_text(json.dumps(found), encoding="utf-8")
    bars = [bar for name, figure in figures.items() for bar in figure.bars(found[name])]
    return tell(arguments.json, _lines(figures, found), bars)


def _arguments() -> argparse.Namespace:
    found = parser(__doc__)
    found.add_argument("--quick", action="store_true", help="a tenth of the draws")
    found.add_argument("--only", choices=FIGURES, help="one part alone")
    found.add_argument("--raw", type=Path, metavar="FILE", help="write every figure to FILE, as JSON")
    return found.parse_args()


def _lines(figures: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    for name, figure in figures.items():
        yield f"{name}\n{figure.__doc__}"
        yield from figure.lines(found[name])
        yield ""


if __name__ == "__main__":
    sys.exit(main())
