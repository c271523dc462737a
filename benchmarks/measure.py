"""What the benchmarks share: fresh processes, pairs that take turns, bars, and how they are told.

Standard library only: a process inherits the peak of the one that starts it, so that one stays small.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parent.parent

T = TypeVar("T")


class Bar(NamedTuple):
    """A figure that may be at most `target`, or that must be at least as much."""

    name: str
    value: float
    target: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.target if self.at_least else self.value <= self.target

    @property
    def told(self) -> str:
        side = "at least" if self.at_least else "at most"
        return f"{self.name}: {self.value} ({side} {self.target}): {'met' if self.met else 'MISSED'}"


def parser(about: str | None) -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=about)
    found.add_argument("--json", action="store_true", help="print the bars as one JSON document")
    return found


def fresh(*arguments: str) -> dict[str, Any]:
    """What a Python of its own printed as JSON. Raises `SystemExit` with what it said when it failed."""
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip() or f"python {' '.join(arguments)}: exit code {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def pairs(count: int, ours: Callable[[], T], other: Callable[[], T]) -> list[tuple[T, T]]:
    """Measure both, `count` times. They take turns at going first, so that what else the machine does, and
    what warms up, weighs on both."""
    found = []
    for number in range(count):
        if number % 2:
            second = other()
            found.append((ours(), second))
        else:
            found.append((ours(), other()))
    return found


def tell(as_json: bool, lines: Iterable[str], bars: Sequence[Bar]) -> int:
    """Print what was measured, and return the exit code: 0 when every bar is met."""
    if as_json:
        shown = {bar.name: {"value": bar.value, "target": bar.target, "met": bar.met} for bar in bars}
        print(json.dumps({"bars": shown}))
    else:
        print(*lines, *(bar.told for bar in bars), sep="\n")
    return 0 if all(bar.met for bar in bars) else 1
