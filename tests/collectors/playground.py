"""Small suites and plans, for tests of what runs them."""

import json
from collections import Counter
from pathlib import Path

from collectors.backend import BackendConfig
from collectors.runner import RunLimits, RunPlan
from collectors.suite import Suite, SuiteConfig, load
from store import queries
from tests.collectors.odd_backends import ODD

KEYS = (
    *("amber", "basil", "cedar", "daisy", "ember", "fjord", "gorse", "hazel"),
    *("ivory", "jetty", "kelps", "larch", "maple", "nutty", "olive", "pearl"),
)


def case(key, query=None, **fields):
    """A case in a scenario of its own: two memories, a question that the first one answers."""
    writes = [f"the {key} key opens door {len(key)}", f"nobody knows where the {key} box went"]
    asked = {"query": query or f"which door for the {key} key", "expect_any": [f"{key} key opens"], "k": 1}
    return {"id": f"case-{key}", "writes": writes, "tags": ["keys"], **asked, **fields}


def cases(number):
    return [case(f"{KEYS[i % len(KEYS)]}{i // len(KEYS) or ''}") for i in range(number)]


def write_suite(path: Path, lines) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def suite(folder: Path, lines, name="small") -> Suite:
    return load(SuiteConfig(name, write_suite(folder / f"{name}.jsonl", lines)))


def plan(of: Suite, type="Shelf", *, name="mine", limits=None, embedder="wordllama", directory=None, **more):
    """A plan for a class of odd_backends with `options`, or for a type of ours; quick limits."""
    options = more.pop("options", {})
    of_ours = BackendConfig(name, type if type.islower() else ODD + type, options, embedder, directory)
    return RunPlan(of, of_ours, limits=limits or RunLimits(timeout_s=5, max_error_rate=0.5), **more)


def results(db, run_id):
    """(case, trial) -> status, passed, failure, attempts and scores: all of a run but its times."""
    found = {}
    for row in queries.run_cases(db, run_id):
        for one in queries.case_results(db, row.case_id, run_id):
            assert (row.case, one.trial) not in found, "a result is there twice"
            told = (one.status, one.scores.get("pass"), one.failure, one.attempts, one.returned_n)
            found[row.case, one.trial] = (*told, tuple(sorted(one.scores.items())))
    return found


def journal(path: Path) -> Counter:
    """(verb, what) -> number of calls, of the scenarios: adapter checks are left out."""
    lines = [line.split(" ", 3) for line in path.read_text(encoding="utf-8").splitlines()]
    return Counter((verb, what.strip()) for _, verb, box, what in lines if "memtrend-check" not in box)
