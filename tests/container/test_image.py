"""What the Dockerfile makes and starts, each step and role run for real, as a user who may do little."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.container.image import ROOT, Image, health_check, lines_of
from tests.waiting import until

WAIT_S = 240.0
pytestmark = pytest.mark.timeout(900)  # packages are fetched, on a machine that may be busy

ORPHANING = """
import subprocess

class Memory:
    def __init__(self):
        subprocess.run(["sh", "-c", "sleep 0.1 & echo $! >>orphans"])
        self.texts = []

    def write(self, text):
        self.texts.append(text)

    def search(self, query, k):
        return self.texts[-k:]
"""
"""A memory whose process leaves one behind that nobody waits for."""


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    """Not in pytest's folder, which is root's alone."""
    root = Path(tempfile.mkdtemp(prefix="memtrend-image-"))
    root.chmod(0o755)
    try:
        made = Image(root)
        made.build()
        yield made
    finally:
        shutil.rmtree(root)


@pytest.fixture
def data(image: Image) -> Path:
    return image.new_volume()


@pytest.fixture
def loopback() -> dict[str, str]:
    """Where the dashboard listens in place of all addresses and the one port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return {"MEMTREND_DASHBOARD__HOST": "127.0.0.1", "MEMTREND_DASHBOARD__PORT": str(port)}


@contextmanager
def container(image: Image, log: Path, *command: str, **more: str) -> Iterator[psutil.Popen]:
    """Runs one; whatever is left of it is killed at the end."""
    process = image.start(list(command), log, **more)
    try:
        yield process
    finally:
        for one in [process, *image.processes()]:
            if one.is_running():
                one.kill()
        process.wait()


def becomes_healthy(image: Image, process: psutil.Popen, log: Path, **more: str) -> None:
    def healthy() -> bool:
        assert process.poll() is None, log.read_text()
        return image.run(health_check(), **more).returncode == 0

    until(healthy, "the health check passes", WAIT_S)


def ends_well(image: Image, process: psutil.Popen, log: Path) -> None:
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_S) == 0, log.read_text()
    assert image.processes() == []


def installed(image: Image) -> dict[str, str]:
    """Name -> version of what is in the environment."""
    told = image.run(["/opt/memtrend/bin/uv", "pip", "list", "--format=json", "--python", "/opt/memtrend"])
    return {package["name"]: package["version"] for package in json.loads(told.stdout)}


def extra(name: str) -> set[str]:
    """The packages that an extra asks for."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][name]
    return {re.split(r"[^\w-]", requirement)[0] for requirement in asked}


def test_what_is_installed_is_what_the_lock_names(image: Image) -> None:
    """Each package of the image has a version of the lock; what tests and development take is not there."""
    found = installed(image)
    locked = re.findall(r"(?m)^([\w.-]+)==([\w.+!]+)", (ROOT / "requirements.lock").read_text())
    of_python = {"memtrend", "pip", "setuptools"}
    assert {item for item in found.items() if item[0] not in of_python} <= set(locked)
    assert found.keys() >= extra("isolated") | extra("postgres") | extra("container")
    assert not found.keys() & ((extra("test") | extra("lint") | extra("mem0")) - extra("isolated"))


def test_the_copy_is_whole_and_on_its_own(image: Image) -> None:
    """memtrend is installed with suites, migrations and look, and nothing of it leads to the sources."""
    (home,) = image.inside("/opt/memtrend").glob("lib/python3*/site-packages")
    for name in ("store", "collectors", "dashboard"):
        wanted = {path.relative_to(ROOT) for path in (ROOT / name).rglob("*") if path.suffix != ".pyc"}
        assert not [path for path in wanted if path.name != "__pycache__" and not (home / path).exists()]
    assert [path for path in home.glob("*.pth") if "src" in path.read_text()] == []


def test_the_settings_of_the_image_are_in_force(image: Image, data: Path) -> None:
    """Inside, the dashboard is reachable and may write; record, caches and environments lie in the volume."""
    program = (
        "from collectors.envs import usual_home; from store.settings import load_settings\n"
        "of = load_settings()\n"
        "print(of.dashboard.host, of.dashboard.writes, of.database.url.get_secret_value(), usual_home())"
    )
    told = image.run(["/opt/memtrend/bin/python", "-P", "-c", program])
    host, writes, url, environments = told.stdout.split()
    assert (host, writes) == ("0.0.0.0", "True"), told.stderr
    assert url == f"sqlite:///{data}/memtrend.db"
    assert Path(environments).is_relative_to(data)
    cache = image.run(["/opt/memtrend/bin/uv", "cache", "dir"]).stdout.strip()
    assert Path(cache).is_relative_to(data)


def test_it_runs_all(image: Image, data: Path, loopback: dict[str, str], tmp_path: Path) -> None:
    """Without a command the entry point starts dashboard and collector; they are found healthy, orphans are
    reaped, TERM ends all with 0, and nothing is written but in the volume."""
    (data / "memtrend.toml").write_text('[backends.mine]\ntype = "orphaning:Memory"\n')
    (data / "orphaning.py").write_text(ORPHANING)
    log = tmp_path / "log"
    with container(image, log, **loopback) as process:
        becomes_healthy(image, process, log, **loopback)
        orphan = int(until(lambda: list(lines_of(data / "orphans")), "a first run begins", WAIT_S)[0])
        until(lambda: not psutil.pid_exists(orphan), "the orphan is reaped", WAIT_S)
        ends_well(image, process, log)
    assert (data / "memtrend.db").exists()


@pytest.mark.parametrize("command", ["collect", "dashboard"])
def test_either_runs_alone(
    image: Image, data: Path, loopback: dict[str, str], tmp_path: Path, command: str
) -> None:
    """The same image collects alone and serves alone: not healthy before, healthy then, and ended by TERM
    with 0."""
    assert image.run(health_check(), **loopback).returncode == 1
    assert [*data.glob("memtrend.db*")] == []
    log = tmp_path / "log"
    with container(image, log, command, **loopback) as process:
        becomes_healthy(image, process, log, **loopback)
        ends_well(image, process, log)
    assert (data / "memtrend.db").exists()


def test_a_package_with_another_hash_is_refused(image: Image, tmp_path: Path) -> None:
    """What the lock does not know by its hash is not installed."""
    sources = image.inside("/src")
    lock = sources / "requirements.lock"
    true = lock.read_text()
    name = "annotated-types"
    entry = re.search(rf"(?s)^{name}==.*?\n(?=\w)", true, re.MULTILINE)
    assert entry
    try:
        lock.write_text(true.replace(entry[0], re.sub(r"sha256:\w{64}", "sha256:" + 64 * "0", entry[0])))
        with pytest.raises(AssertionError, match=f"(?s)[Hh]ash.*{name}|{name}.*[Hh]ash"):
            again(image, sources)
    finally:
        lock.write_text(true)


def again(image: Image, sources: Path) -> None:
    """Install the dependencies into a second environment."""
    image.workdir = "/src"
    image.inside("/image/again").mkdir(exist_ok=True)
    for folder in ("/image", "/home"):
        image.own(image.inside(folder), image.uid)
    image.step(["python3", "scripts/container_install.py", "/image/again", "dependencies"])
