"""What starting costs: the words of a suite, which a worker imports, and the command line.

Each bar is of the median over fresh processes, by the wall's clock, nothing subtracted: a user waits for it.
Seconds of CPU beside it tell a busy machine from a slow start. An empty Python and another program's help in
the same environment are what both are compared with.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import resource
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.measure import ROOT, Bar, fresh, parser, tell

WORDS = "import collectors.suite, collectors.backend"
LOADED = f"import json, sys; old = {{*sys.modules}}; {WORDS}; print(json.dumps([*{{*sys.modules}} - old]))"
IMPORT_S = 0.3
HELP_S = 0.6

PYTHON = sys.executable
SCRIPTS = Path(sys.executable).parent

COMMANDS = {
    "python -c pass": [PYTHON, "-c", "pass"],
    f"python -c '{WORDS}'": [PYTHON, "-c", WORDS],
    "memtrend --help": [str(SCRIPTS / "memtrend"), "--help"],
    "streamlit --help": [str(SCRIPTS / "streamlit"), "--help"],
}
EMPTY, IMPORT, HELP, OTHER = COMMANDS


class Seconds(NamedTuple):
    wall: float
    cpu: float


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--times", type=int, default=7, help="processes a command")
    arguments = options.parse_args()
    seconds = _medians(arguments.times)
    foreign = foreign_modules()
    bars = [
        Bar("import_seconds", round(seconds[IMPORT].wall, 3), IMPORT_S),
        Bar("import_loads_packages", len(foreign), 0),
        Bar("help_seconds", round(seconds[HELP].wall, 3), HELP_S),
    ]
    return tell(arguments.json, _lines(seconds, foreign), bars)


def _medians(times: int) -> dict[str, Seconds]:
    """Each command in turn, so that what else the machine does weighs on all of them."""
    rounds = [{name: _seconds(command) for name, command in COMMANDS.items()} for _ in range(times)]
    return {
        name: Seconds(*map(statistics.median, zip(*(found[name] for found in rounds), strict=True)))
        for name in COMMANDS
    }


def _seconds(command: Sequence[str]) -> Seconds:
    wall, cpu = time.perf_counter(), _cpu_of_children()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return Seconds(time.perf_counter() - wall, _cpu_of_children() - cpu)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def foreign_modules() -> list[str]:
    """Top names that the import loads, and that are neither Python's nor ours: no SDK may be among them."""
    tops = {name.partition(".")[0] for name in fresh("-c", LOADED)}
    return sorted(tops - sys.stdlib_module_names - {"collectors"})


def _lines(seconds: dict[str, Seconds], foreign: list[str]) -> Iterator[str]:
    for name, (wall, cpu) in seconds.items():
        yield f"{name}: {wall:.3f} s, {cpu:.3f} s of CPU, {cpu / seconds[EMPTY].cpu:.1f} x an empty Python's"
    yield f"memtrend's help beside streamlit's: {seconds[HELP].cpu / seconds[OTHER].cpu:.2f} of its CPU"
    yield f"packages that the import loads: {', '.join(foreign) or 'none'}"


if __name__ == "__main__":
    sys.exit(main())
