"""The workflows for CI, as they stand in docs/: their own commands, in clean folders."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from collectors.scorers import SCORER_VERSION
from store import portable
from tests.collectors.playground import SCRIPT, project
from tests.collectors.test_gate import LINES, config

DOCS = Path(__file__).parents[2] / "docs" / "ci"


def shell(folder, commands, **variables):
    """One step of CI, as its shell runs it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CI_"))}
    path = f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-c", commands], cwd=folder, env={**kept, "PATH": path, **variables},
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip


@pytest.fixture
def checkout(tmp_path):
    """A fresh checkout, with the baseline file of an earlier one where there is one."""

    def made(name, lost="\0", of=None):
        folder = tmp_path / name
        folder.mkdir()
        project(folder, config(lost), LINES, "mine")
        if of:
            (folder / "memtrend-baseline.json").write_bytes((of / "memtrend-baseline.json").read_bytes())
        return folder

    return made


def outdated(folder):
    """The folder, whose file is now of another scorer."""
    file = folder / "memtrend-baseline.json"
    found = portable.read(file.read_text())
    old = tuple(night._replace(system=(("scorer", "old"),)) for night in found.nights)
    file.write_text(portable.written(found._replace(nights=old)))
    return folder


def scorers(folder):
    found = portable.read((folder / "memtrend-baseline.json").read_text())
    return {dict(night.system)["scorer"] for night in found.nights}


def nights(folder):
    return len(json.loads((folder / "memtrend-baseline.json").read_text())["nights"])


@pytest.mark.timeout(300)
def test_github(checkout):
    """The workflow's own commands, in clean folders with only the cached file between them: main without a
    baseline is neutral and writes one, which rolls when main passes; a healthy branch passes, a bad one
    fails; of a file of another scorer main, and no branch, makes a new one."""
    workflow = yaml.safe_load((DOCS / "github-actions.yml").read_text())
    steps = {step.get("name"): step for step in workflow["jobs"]["gate"]["steps"]}

    def step(name, folder, **more):
        output = folder / "output"
        variables = {
            **workflow["env"],
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(folder / "sum"),
            **more,
        }
        ran = shell(folder, steps[name]["run"], **variables)
        return ran.returncode, output.read_text().splitlines()[-1] if output.exists() else ran.stderr

    first = checkout("first")
    assert step("Gate", first) == (0, "code=3")
    assert "No baseline yet" in (first / "sum").read_text()
    second = checkout("second", of=first)
    assert step("Gate", second) == (0, "code=0")
    assert step("Roll the baseline", second)[0] == 0
    assert (nights(first), nights(second)) == (1, 2)
    assert step("Gate", checkout("branch", of=second)) == (0, "code=0")
    assert step("Gate", checkout("bad", lost="r key", of=second)) == (1, "code=1")
    assert "event_name == 'push' && '--renew'" in steps["Gate"]["env"]["RENEW"]
    for renew, of in (("", {"old"}), ("--renew", {SCORER_VERSION})):
        folder = outdated(checkout(f"old{renew}", of=second))
        assert step("Gate", folder, RENEW=renew) == (0, "code=3")
        assert scorers(folder) == of


@pytest.mark.timeout(300)
def test_gitlab(checkout):
    """The same of the pipeline for GitLab, where 3 is a failure that is allowed."""
    pipeline = yaml.safe_load((DOCS / "gitlab-ci.yml").read_text())
    common = pipeline[".memtrend"]
    assert common["allow_failure"] == {"exit_codes": 3}
    assert pipeline["memtrend-main"]["cache"]["paths"] == ["memtrend-baseline.json"]

    def job(name, folder):
        return shell(folder, "\n".join(pipeline[name]["script"]), **common["variables"]).returncode

    first = checkout("first")
    assert job("memtrend-main", first) == 3
    second = checkout("second", of=first)
    assert job("memtrend-main", second) == 0
    assert nights(second) == 2
    assert job("memtrend-gate", checkout("bad", lost="r key", of=second)) == 1
    for name, of in (("memtrend-gate", {"old"}), ("memtrend-main", {SCORER_VERSION})):
        folder = outdated(checkout(name, of=second))
        assert job(name, folder) == 3
        assert scorers(folder) == of
