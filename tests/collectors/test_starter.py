"""What `memtrend init` writes works as it is, and never in place of something else."""

import importlib
import re

import pytest

from collectors.backend import BACKENDS
from collectors.configured import configured, plan, suite_names
from collectors.contract import ADAPTER_CHECKS, CONTRACT
from collectors.doctor import check_backend
from collectors.runner import run
from collectors.starter import AlreadyThere, BadName, write_adapter, write_project
from store import queries


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path)
    return tmp_path


def test_told(tmp_path):
    """The user reads what was written, and which three commands come next."""
    lines = write_project(tmp_path / "new")
    assert lines[:2] == [
        f"wrote {tmp_path / 'new' / 'memtrend.toml'}",
        f"wrote {tmp_path / 'new' / 'suites' / 'mine.jsonl'}",
    ]
    commands = [line.split("#")[0].strip() for line in lines[-3:]]
    assert commands == ["memtrend doctor", "memtrend run --suite mine", "memtrend up"]


def test_configuration(project):
    """The configuration is valid, names what exists, and has a schedule for each suite there is."""
    settings = configured(project / "memtrend.toml")
    assert set(settings.backends) == {"keyword", "dense", "hybrid", "nothing", "everything"}
    scheduled = {suite for section in settings.schedules.values() for suite in section.suites}
    assert scheduled == set(suite_names(settings)) == {"mine", "golden", "smoke", "holdout", "contract"}


def test_commented_out(project):
    """What is commented out is valid, too, once its # is taken away."""
    text = (project / "memtrend.toml").read_text()
    tried = re.sub(r"(?m)^# (?=(\[backends|type|infer|config|package|embedder) ?[.=])", "", text)
    tried = tried.replace('embedder = "wordllama"', "", 1)
    assert tried.count("\n[backends.") == 8
    (project / "memtrend.toml").write_text(tried)
    settings = configured()
    assert settings.backends["ours"].type == "ours:Ours"
    assert settings.backends["mem0"].type in BACKENDS
    assert settings.backends["mem0-next"].package == "mem0ai==2.2.1"
    assert settings.embedder == {"url": "http://127.0.0.1:11434/v1", "model": "nomic-embed-text"}


def test_cases(project, db):
    """The three worked cases load, a good memory passes them, and the floors do not."""
    settings = configured()
    assert len((project / "suites" / "mine.jsonl").read_text().splitlines()) == 3
    passed = {}
    for backend in ("hybrid", "nothing", "everything"):
        outcome = run(plan(settings, "mine", backend), db)
        passed[backend] = queries.run(db, outcome.run_id).metrics["pass"].mean
    assert passed["hybrid"] == 1.0
    assert passed["nothing"] < 1.0
    assert passed["everything"] < 1.0


@pytest.mark.parametrize("there", ["memtrend.toml", "suites/mine.jsonl"])
def test_never_over_something(tmp_path, there):
    """When one of the files exists none is written."""
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / there).write_text("mine")
    with pytest.raises(AlreadyThere, match=r"is there already; move it away first, nothing was written"):
        write_project(tmp_path)
    assert [path.read_text() for path in tmp_path.rglob("*.*")] == ["mine"]


# An adapter


def test_adapter(tmp_path, monkeypatch):
    """The adapter that is written is short, and passes every check before anything is filled in."""
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    lines = write_adapter(tmp_path, "team-notes")
    assert len((tmp_path / "team_notes.py").read_text().splitlines()) <= 24
    section = "\n".join(line.strip() for line in lines[2:4])
    assert section == '[backends.team-notes]\ntype = "team_notes:TeamNotes"'
    (tmp_path / "memtrend.toml").write_text(section)
    found = {check.name: check for check in check_backend(configured(), "team-notes")}
    assert [check for check in found.values() if not check.ok] == []
    assert found.keys() >= {check.name for check in (*ADAPTER_CHECKS, *CONTRACT)}


def test_adapter_configured(project):
    """An adapter becomes a backend of the memtrend.toml that is there, in which all else is kept."""
    before = (project / "memtrend.toml").read_text()
    assert write_adapter(project, "shed-notes") == [
        f"wrote {project / 'shed_notes.py'}",
        f"added [backends.shed-notes] to {project / 'memtrend.toml'}",
        "then: memtrend doctor shed-notes",
    ]
    assert (project / "memtrend.toml").read_text().startswith(before)
    assert configured().backends["shed-notes"].type == "shed_notes:ShedNotes"


@pytest.mark.parametrize(
    "there", ['[backends.notes]\ntype = "dense" # mine\n', "[backends", "backends = {}\n"]
)
def test_configuration_that_cannot_be_added_to(tmp_path, there):
    """A section that is there is the user's, and what is not TOML, or would not be, is left alone."""
    (tmp_path / "memtrend.toml").write_text(there)
    told = write_adapter(tmp_path, "notes")
    assert told[1:4] == [
        f"{tmp_path / 'memtrend.toml'} stays as it is; it needs:",
        "  [backends.notes]",
        '  type = "notes:Notes"',
    ]
    assert (tmp_path / "memtrend.toml").read_text() == there


@pytest.mark.parametrize(
    ("name", "module", "cls"),
    [("Notes", "notes", "Notes"), ("store", "our_store", "OurStore"), ("json", "our_json", "OurJson")],
)
def test_adapter_name(tmp_path, name, module, cls):
    """The module is named after the backend, but never like one that would be imported in its place."""
    assert f'type = "{module}:{cls}"' in write_adapter(tmp_path, name)[3]
    assert (tmp_path / f"{module}.py").is_file()


@pytest.mark.parametrize("name", ["", "9lives", "a b", "a.b", "../notes", 'a"""'])
def test_bad_name(tmp_path, name):
    """A name that is no module's is refused, and nothing is written."""
    with pytest.raises(BadName, match="should be a letter, then letters, digits"):
        write_adapter(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_adapter_never_over_something(tmp_path):
    """An adapter that exists is kept."""
    (tmp_path / "notes.py").write_text("mine")
    with pytest.raises(AlreadyThere):
        write_adapter(tmp_path, "notes")
    assert (tmp_path / "notes.py").read_text() == "mine"
