"""Environments of releases are made by uv, for real: once, whole, and gone when nobody wants them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collectors import envs
from collectors.backend import BackendError, Isolation
from collectors.packages import normal

LONG_AGO = time.time() - 90 * 86400


@pytest.fixture
def six(tmp_path: Path) -> Isolation:
    """A release that is small, in a home of this test's own."""
    return Isolation("six==1.17.0", home=tmp_path / "envs")


def made(isolation: Isolation) -> envs.Env:
    with envs.using(isolation) as (env, _):
        return env


def installed(env: envs.Env) -> dict[str, str]:
    """What a Python of that environment finds, by name."""
    program = (
        "import importlib.metadata as m, json; "
        "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
    )
    done = subprocess.run([env.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    return {normal(name): version for name, version in json.loads(done.stdout).items()}


def test_holds_the_release_and_nothing_of_ours(six: Isolation) -> None:
    """The pinned package at its version, what was wanted with it, and not one package of memtrend's."""
    env = made(Isolation(six.package, ("toml==0.10.2",), home=six.home))
    assert installed(env) == {"six": "1.17.0", "toml": "0.10.2"}
    assert (env.package, env.extra, env.locked) == ("six==1.17.0", ("toml==0.10.2",), False)


def test_its_resolution_is_kept_with_hashes(six: Isolation) -> None:
    """What was installed can be read, by version and hash, and no address of a registry is in it."""
    lock = (made(six).path / "lock.txt").read_text()
    assert lock.startswith("six==1.17.0 \\\n    --hash=sha256:")
    assert "://" not in lock


def test_is_made_once(six: Isolation) -> None:
    """Two that want it at the same moment get the same one, made by one of them."""
    found: list[envs.Env] = []
    both = [threading.Thread(target=lambda: found.append(made(six))) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    inode = (found[0].path / "made.json").stat().st_ino
    assert found[0].path == found[1].path == made(six).path
    assert (found[0].path / "made.json").stat().st_ino == inode
    assert [env.name for env in envs.listed(six.home)] == [found[0].name]


def test_another_request_is_another_environment(six: Isolation) -> None:
    """Release, extra packages and Python each tell environments apart; the order of the extras does not."""
    asked = [
        six,
        Isolation("six==1.16.0"),
        Isolation(six.package, ("toml", "idna")),
        Isolation(six.package, python="3.12"),
        Isolation("six[x]==1.17.0"),
    ]
    assert len({envs.name_of(isolation) for isolation in asked}) == len(asked)
    assert envs.name_of(asked[2]) == envs.name_of(Isolation(six.package, ("idna", "toml")))
    assert all(set(envs.name_of(isolation)) <= set(envs.NAMED) for isolation in asked)


@pytest.mark.parametrize("left", ["none", "", "{", '{"package": "six"}', "[]"])
def test_half_an_environment_is_made_anew(six: Isolation, left: str) -> None:
    """One whose making was killed, whatever that left, is never used as it is, and no list breaks over it."""
    env = made(six)
    (env.path / "made.json").unlink() if left == "none" else (env.path / "made.json").write_text(left)
    (env.path / "venv" / "bin" / "python").unlink()
    assert envs.listed(six.home) == []
    assert installed(made(six)) == {"six": "1.17.0"}


def test_another_python_in_its_place_is_another_environment(tmp_path: Path, six: Isolation) -> None:
    """A link that leads to another Python than yesterday is not the same Python, nor is one that is gone."""
    link = tmp_path / "python3"
    link.symlink_to(os.path.realpath(sys._base_executable))  # type: ignore[attr-defined]
    ours = Isolation(six.package, python=str(link), home=six.home)
    before = envs.name_of(ours)
    link.unlink()
    link.symlink_to("/usr/bin/env")
    assert envs.name_of(ours) != before
    env = made(six)
    (env.path / "venv" / "bin" / "python").unlink()
    (env.path / "venv" / "bin" / "python").symlink_to("/usr/bin/env")
    assert installed(made(six)) == {"six": "1.17.0"}


@pytest.mark.parametrize(
    ("package", "python", "said"),
    [
        (
            "six==0.0.987",
            "",
            r"cannot make an environment for six==0\.0\.987: .*no version of six==0\.0\.987",
        ),
        ("six==1.17.0", "2.4", r"cannot make an environment for six==1\.17\.0: .*2\.4"),
        ("six==1.17.0", "/nowhere/python", r"/nowhere/python"),
    ],
)
def test_what_cannot_be_made_is_told(six: Isolation, package: str, python: str, said: str) -> None:
    """With the reason uv gives, for good, and nothing half made stays."""
    with pytest.raises(BackendError, match=f"(?s){said}") as raised:
        made(Isolation(package, python=python, home=six.home))
    assert raised.value.permanent
    assert list(six.home.glob("*/")) == []  # type: ignore[union-attr]


@pytest.mark.parametrize("cache", ["", "relative/cache"])
def test_the_usual_place(cache: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The cache folder of the user; a relative one is passed over, as its specification asks."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    assert envs.usual_home() == tmp_path / ".cache" / "memtrend" / "envs"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert envs.usual_home() == tmp_path / "elsewhere" / "memtrend" / "envs"


def test_a_place_that_cannot_be_is_told(tmp_path: Path) -> None:
    """With the key that names another one."""
    (tmp_path / "file").touch()
    with pytest.raises(BackendError, match=r'directory = "\.\.\." under \[environments\]'):
        made(Isolation("six==1.17.0", home=tmp_path / "file" / "envs"))


def test_without_uv_it_says_what_to_do(six: Isolation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that brings uv is named."""
    monkeypatch.setattr(sys, "executable", "/nowhere/bin/python")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BackendError, match="make install EXTRAS=isolated"):
        made(six)


def test_a_stop_ends_the_making(six: Isolation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for a long installation can be stopped, and uv with him, and what that has started."""
    sleeper = tmp_path / "uv"
    sleeper.write_text(f"#!/bin/sh\nsetsid sleep 602 &\necho $! > {tmp_path}/pid\nexec sleep 600\n")
    sleeper.chmod(0o755)
    monkeypatch.setattr(envs, "_uv", lambda: str(sleeper))
    stop = threading.Event()
    told: list[BackendError] = []

    def make() -> None:
        with pytest.raises(BackendError, match="stopped") as raised, envs.using(six, stop):
            pass
        told.append(raised.value)

    thread = threading.Thread(target=make)
    thread.start()
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        time.sleep(0.01)
    stop.set()
    thread.join(30)
    assert told
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


class TestCleaning:
    def test_by_age(self, six: Isolation) -> None:
        """What nobody used for so long goes; what was used since stays."""
        old, new = made(six), made(Isolation("toml==0.10.2", home=six.home))
        os.utime(old.path / "made.json", (LONG_AGO, LONG_AGO))
        assert envs.clean(timedelta(days=60), six.home) == [old.name]
        assert [env.name for env in envs.listed(six.home)] == [new.name]
        assert [path.name for path in six.home.glob("*/")] == [new.name]  # type: ignore[union-attr]

    def test_use_makes_young(self, six: Isolation) -> None:
        """The age of an environment counts from its last use, not from its making."""
        env = made(six)
        os.utime(env.path / "made.json", (LONG_AGO, LONG_AGO))
        made(six)
        assert envs.clean(timedelta(days=60), six.home) == []
        assert envs.listed(six.home)[0].used > datetime.now(UTC) - timedelta(minutes=5)

    def test_what_is_in_use_stays(self, six: Isolation) -> None:
        """However old it is: a worker runs in it, and the list says so."""
        with envs.using(six) as (env, _):
            os.utime(env.path / "made.json", (LONG_AGO, LONG_AGO))
            assert envs.listed(six.home)[0].in_use
            assert envs.clean(timedelta(days=60), six.home) == []
        assert not envs.listed(six.home)[0].in_use
        assert len(envs.clean(timedelta(days=60), six.home)) == 1

    def test_what_was_never_finished_goes(self, six: Isolation) -> None:
        """The remains of a making that was killed are removed whatever their age, and told."""
        half = six.home / "half-made-0123456789ab"  # type: ignore[operator]
        (half / "venv").mkdir(parents=True)
        (half / envs.BEGUN).touch()
        assert envs.clean(timedelta(days=60), six.home) == [half.name]
        assert not half.exists()

    def test_what_was_not_made_here_stays(self, six: Isolation) -> None:
        """In a folder that holds other things nothing of them is touched, whatever its name."""
        env = made(six)
        others = [six.home / name for name in ("precious", ".git", "suites", "data-0123456789ab")]  # type: ignore[operator]
        for folder in others:
            (folder / "inside").mkdir(parents=True)
        assert envs.clean(timedelta(0), six.home) == [env.name]
        assert all((folder / "inside").is_dir() for folder in others)
        assert not list(six.home.glob("precious.lock"))  # type: ignore[union-attr]


class TestShippedLocks:
    def test_each_names_what_it_is_for(self) -> None:
        """The first line of a lock is what was asked for, and all of that is in it, pinned, with hashes."""
        locks = sorted(envs.LOCKS.glob("*.txt"))
        assert locks
        for path in locks:
            text = path.read_text()
            first = text.partition("\n")[0]
            assert first.startswith("# requirements: "), path
            for wanted in first.removeprefix("# requirements: ").split(", "):
                package, _, version = wanted.partition("==")
                assert f"\n{package.partition('[')[0]}=={version}" in text, (path, wanted)
            assert "--hash=sha256:" in text
            assert "://" not in text, path

    def test_a_tested_release_is_installed_from_its_lock(self) -> None:
        """All of what is asked for must be in one lock; anything else is resolved anew."""
        assert envs.shipped_lock(Isolation("mem0ai==2.2.1")) == envs.LOCKS / "mem0.txt"
        assert envs.shipped_lock(Isolation("mem0ai==2.2.1", ("six",))) is None
        assert envs.shipped_lock(Isolation("mem0ai==2.0.20")) is None
