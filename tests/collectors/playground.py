"""Small suites, plans and projects, for tests of what runs them."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from collectors.backend import BackendConfig
from collectors.plans import RunLimits, RunPlan
from collectors.runner import run
from collectors.suite import Suite, SuiteConfig, load
from store import queries
from store.database import open_database
from tests.collectors.odd_backends import ODD

SCRIPT = Path(sys.executable).with_name("memtrend")
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


def value(db, outcome, metric):
    return queries.run(db, outcome.run_id).metrics[metric].mean


def events(notes, *verbs):
    """The lines of the journal with these verbs, without those of adapter checks: (verb, namespace, what)."""
    lines = [line.split(" ", 3)[1:] for line in notes.read_text().splitlines()]
    return [(verb, box, what) for verb, box, what in lines if verb in verbs and "check" not in box]


# The command line, in a folder of its own


def project(folder: Path, config: str, lines, name="small") -> Path:
    (folder / "memtrend.toml").write_text(config, encoding="utf-8")
    write_suite(folder / f"{name}.jsonl", lines)
    return folder


def launch(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([SCRIPT, *arguments], cwd=folder, env={**os.environ, **environment}, **pipes)


def memtrend(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    process = launch(folder, *arguments, **environment)
    try:
        out, said = process.communicate(timeout=90)
    finally:
        process.kill()
    return subprocess.CompletedProcess(arguments, process.returncode, out, said)


CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.shelf]
type = "tests.collectors.odd_backends:Shelf"
lost = "basil key"
[backends.bare]
type = "tests.collectors.odd_backends:Bare"
[suites.small]
path = "small.jsonl"
"""
LINES = [*cases(4), case("ivory", expect_any=[], expect_ids=["i"], writes=[{"id": "i", "text": "ivory"}])]


def with_odd(name, type, setting=""):
    """The configuration with one more backend."""
    return f'{CONFIG}[backends.{name}]\ntype = "tests.collectors.odd_backends:{type}"\n{setting}\n'


def opened(folder):
    return open_database(f"sqlite:///{folder / 'record.db'}")


def one_document(ran):
    """The only thing on stdout is one JSON document."""
    return json.loads(ran.stdout)


def opened_when_there(folder, process):
    while not (folder / "record.db").exists():
        assert process.poll() is None
        time.sleep(0.02)
    return opened(folder)


# Nights before a verdict

LOSING = """
[database]
url = "sqlite:///record.db"
[backends.mine]
type = "tests.collectors.odd_backends:{type}"
lost = "r key opens"
[suites.small]
path = "small.jsonl"
"""
"""A backend that loses three of 16 cases: those of amber, cedar and ember."""
LOST = ["case-amber", "case-cedar", "case-ember"]


def soon():
    """A day until which a case may be in quarantine."""
    return f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%d}"


def good_nights(folder, db, number=6):
    """Runs of the same suite on the same backend, before it lost anything. Returns their plan."""
    of = plan(suite(folder, cases(16)))
    for _ in range(number):
        assert run(of, db).status == "whole"
    return of
