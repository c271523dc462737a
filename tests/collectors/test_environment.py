"""The fingerprint of a run holds all that may explain another result, and no secret."""

import importlib.metadata
import json
import os
import platform
import subprocess

import pytest

from collectors.backend import BackendConfig, open_backend
from collectors.environment import changes, fingerprint, git_revision
from collectors.packages import packages
from store import writes


@pytest.fixture
def backend():
    backend = open_backend(BackendConfig("words", "keyword"))
    yield backend
    backend.close()


@pytest.fixture
def checkout(tmp_path):
    """A git checkout with one commit, and its `git`."""

    def git(*arguments):
        identity = ("-c", "user.name=Noor", "-c", "user.email=noor@example.org")
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "--initial-branch", "trunk")
    (tmp_path / "prompt.txt").write_text("Be kind.")
    git("add", ".")
    git("commit", "--message", "first")
    return git


def test_what_it_holds(backend, tmp_path):
    """Packages, Python, system, processor, the backend's own versions, configuration and git."""
    told = fingerprint(backend.versions(), {"type": "keyword"}, tmp_path)
    assert told.keys() == {
        *("packages", "of_backend", "python", "implementation", "system", "cpu", "backend", "config", "git")
    }
    assert told["python"] == platform.python_version()
    assert told["packages"]["sqlalchemy"] == importlib.metadata.version("sqlalchemy")
    assert told["backend"] == dict(backend.versions())
    assert told["config"] == {"type": "keyword"}
    assert told["cpu"].endswith(f"{os.cpu_count()} cores")


def test_packages():
    """Every package installed is there once, under its normal name, in order."""
    names = [name for name, _ in packages()]
    assert {"memtrend", "pydantic-settings", "wordllama"} <= set(names)
    assert names == sorted(set(names))
    assert not [name for name in names if "_" in name or name != name.lower()]


def test_packages_of_the_backend(backend, tmp_path):
    """The package of the backend's class and those whose version it tells are named with all that they
    require, extras left out; a type of ours has none."""
    told = fingerprint({"SQLModel": "1"}, {"type": "hypothesis:given"}, tmp_path)["of_backend"]
    assert told.keys() == {"hypothesis", "sqlmodel"}
    assert {"pydantic", "pydantic-core", "sqlalchemy"} <= told["sqlmodel"].keys()
    assert told["hypothesis"].keys() <= {"sortedcontainers", "attrs"}
    assert fingerprint(backend.versions(), {"type": "keyword"}, tmp_path)["of_backend"] == {}


def test_the_package_that_an_import_finds(tmp_path, monkeypatch):
    """Of two packages of one name that which comes first on the path is told."""
    for folder, number in (("first", "1.0"), ("second", "2.0")):
        about = tmp_path / folder / f"pocket_mem-{number}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: Pocket.Mem\nVersion: {number}\n")
    monkeypatch.setattr("sys.path", [str(tmp_path / "first"), str(tmp_path / "second")])
    assert packages.__wrapped__() == (("pocket-mem", "1.0"),)


def test_revision(checkout, tmp_path):
    """The git revision and branch of the folder, and whether files of it were changed since, and how."""
    assert git_revision(tmp_path) == {
        "revision": checkout("rev-parse", "HEAD"),
        "branch": "trunk",
        "changed": False,
    }
    (tmp_path / "new.txt").write_text("not yet known to git")
    assert git_revision(tmp_path)["changed"] is False
    (tmp_path / "prompt.txt").write_text("Be brief.")
    brief = git_revision(tmp_path)
    assert brief["changed"] is True
    (tmp_path / "prompt.txt").write_text("Be brave.")
    assert git_revision(tmp_path)["diff"] != brief["diff"]


def test_revision_below(checkout, tmp_path):
    """A folder inside of a checkout is of its revision."""
    (tmp_path / "suites").mkdir()
    assert git_revision(tmp_path / "suites")["revision"] == checkout("rev-parse", "HEAD")


def test_no_revision(tmp_path, monkeypatch):
    """Outside of a checkout, and without git, there is none."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_revision(tmp_path) == {}
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_revision(tmp_path) == {}


def test_working_directory(backend, checkout, tmp_path, monkeypatch):
    """Git is asked about the directory that memtrend was started in."""
    monkeypatch.chdir(tmp_path)
    assert fingerprint(backend.versions(), {})["git"]["revision"] == checkout("rev-parse", "HEAD")


def test_equal_environments(db, backend, tmp_path):
    """Equal environments are one row, whatever the order of their keys; any change is another."""
    told = fingerprint(backend.versions(), {"type": "keyword", "k": 5}, tmp_path)
    backwards = json.loads(json.dumps(dict(reversed(told.items()))))
    first = writes.register_environment(db, told)
    assert writes.register_environment(db, backwards) == first
    assert (
        writes.register_environment(
            db, fingerprint(backend.versions(), {"k": 5, "type": "keyword"}, tmp_path)
        )
        == first
    )
    assert writes.register_environment(db, {**told, "python": "3.99.0"}) != first


def test_no_environment_variables(backend, tmp_path, monkeypatch):
    """What stands in environment variables, secrets among it, is not part of it."""
    monkeypatch.setenv("VENDOR_API_KEY", "sk-7f3a-very-secret")
    assert "7f3a" not in json.dumps(fingerprint(backend.versions(), {}, tmp_path))


def test_no_secrets_of_the_backend(tmp_path):
    """What a backend tells of itself is kept without the secrets in it."""
    told = {
        "server": "https://me:hunter22@memory.example/v1",
        "api_key": "sk-7f3a-very-secret",
        "llm": "gpt-5",
    }
    kept = fingerprint(told, {}, tmp_path)["backend"]
    assert kept["llm"] == "gpt-5"
    assert "hunter22" not in json.dumps(kept)
    assert "7f3a" not in json.dumps(kept)


def test_changes():
    """What was added, removed or replaced is told by name; a commit since then is no other system."""
    before = {"python": "3.11.2", "packages": {"numpy": "2.1", "torch": "2.5"}, "git": {"revision": "a1"}}
    after = {"python": "3.11.2", "packages": {"numpy": "2.2", "stamina": "25"}, "git": {"revision": "b2"}}
    assert changes(before, {**before, "git": {}}) == []
    assert changes(before, after) == [
        "packages.numpy: 2.1 -> 2.2",
        "packages.stamina: none -> 25",
        "packages.torch: 2.5 -> none",
    ]
