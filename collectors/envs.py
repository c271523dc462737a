"""Environments of releases: one for each, made by uv, kept for the next run, cleaned by age.

A folder holds them all. In it NAME/ is one environment: `venv/`, `lock.txt` (what was installed, with hashes)
and `made.json`, which is written last, so that an environment without it was never finished. NAME.lock is
locked by whoever makes the environment, and shared by whoever uses it.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from string import ascii_letters, digits
from typing import IO, NamedTuple

from collectors.backend import BackendError, Isolation

LOCKS = Path(__file__).parent / "locks"
"""A tested release of each adapter's SDK, with all that it takes, by version and hash."""
NAMED = f"{ascii_letters}{digits}-_"
"""What names of environments are made of."""
MAKING_S = 900.0
"""How long one command of uv may take: a cold cache may have gigabytes to fetch."""
POLL_S = 0.2


class Env(NamedTuple):
    """An environment that is there. `used` is when a backend was last opened in it; `bytes` what it takes on
    disk, where that was asked for."""

    name: str
    path: Path
    package: str
    extra: tuple[str, ...]
    python: str
    made: datetime
    seconds: float
    locked: bool
    used: datetime
    in_use: bool
    bytes: int = 0

    @property
    def executable(self) -> Path:
        return self.path / "venv" / "bin" / "python"


def usual_home() -> Path:
    """Where environments are kept unless configured: the cache folder of this user."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "memtrend" / "envs"


@contextmanager
def using(isolation: Isolation, stop: threading.Event | None = None) -> Iterator[tuple[Env, IO[str]]]:
    """The environment, made if it is not there, and the open lock that keeps it from being removed: whoever
    inherits the file keeps it too. Raises `BackendError` when it cannot be made, or `stop` is set first."""
    home = isolation.home or usual_home()
    home.mkdir(parents=True, exist_ok=True)
    path = home / name_of(isolation)
    with path.with_suffix(".lock").open("a") as lock:
        env = _ready(path, isolation, lock, stop or threading.Event())
        os.utime(path / "made.json")
        yield env, lock


def name_of(isolation: Isolation) -> str:
    """`mem0ai-2.0.20-3f2a...`: the release in words, and all that decides the content as a hash."""
    lock = shipped_lock(isolation)
    decides = [
        *(isolation.package, sorted(isolation.extra), isolation.python or _base_python()),
        *(platform.python_version() if not isolation.python else "", platform.machine()),
        lock.read_text(encoding="utf-8") if lock else "",
    ]
    words = "".join(sign if sign in NAMED else "_" for sign in isolation.package.replace("==", "-"))
    return f"{words[:60]}-{sha256(json.dumps(decides).encode()).hexdigest()[:12]}"


def shipped_lock(isolation: Isolation) -> Path | None:
    """The lock of a tested release, where all that is asked for is in it."""
    wanted = {isolation.package, *isolation.extra}
    for path in sorted(LOCKS.glob("*.txt")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        if wanted <= {name.strip() for name in first.removeprefix("# requirements:").split(",")}:
            return path
    return None


def listed(home: Path | None = None, *, sizes: bool = False) -> list[Env]:
    """The environments that are there, the one used last first."""
    home = home or usual_home()
    found = [_read(made.parent) for made in home.glob("*/made.json")]
    measured = [env._replace(bytes=_bytes(env.path)) for env in found] if sizes else found
    return sorted(measured, key=lambda env: env.used, reverse=True)


def clean(older_than: timedelta, home: Path | None = None) -> list[Env]:
    """Remove those that nobody used for so long, and what was never finished; what is in use stays."""
    home, removed = home or usual_home(), []
    before = datetime.now(UTC) - older_than
    for env in listed(home):
        if env.used < before and _removed(env.path):
            removed.append(env)
    for path in home.glob("*/"):
        if not (path / "made.json").exists():
            _removed(path)
    return removed


def _removed(path: Path) -> bool:
    with path.with_suffix(".lock").open("a") as lock:
        if not _locked(lock, fcntl.LOCK_EX):
            return False
        shutil.rmtree(path)  # the lock stays: somebody may be waiting for it
    return True


# Making


def _ready(path: Path, isolation: Isolation, lock: IO[str], stop: threading.Event) -> Env:
    """Under a shared lock either way. Two that want the same environment make it once."""
    _wait_for(lock, fcntl.LOCK_SH, path, stop)
    if not _works(path):
        fcntl.flock(lock, fcntl.LOCK_UN)  # or two would wait for each other
        _wait_for(lock, fcntl.LOCK_EX, path, stop)
        if not _works(path):
            _make(path, isolation, stop)
        fcntl.flock(lock, fcntl.LOCK_SH)
    return _read(path)


def _works(path: Path) -> bool:
    """Made to the end, and its Python still there: an upgrade of the system may have taken it away."""
    return (path / "made.json").exists() and (path / "venv" / "bin" / "python").exists()


def _wait_for(lock: IO[str], how: int, path: Path, stop: threading.Event) -> None:
    while not _locked(lock, how):
        if stop.wait(POLL_S):
            raise BackendError(f"stopped while the environment {path.name} was being made")


def _locked(lock: IO[str], how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make(path: Path, isolation: Isolation, stop: threading.Event) -> None:
    started = time.monotonic()
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    try:
        shipped = _install(path, isolation, stop)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    told = {
        "package": isolation.package,
        "extra": list(isolation.extra),
        "python": isolation.python or platform.python_version(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - started, 2),
        "locked": shipped,
    }
    (path / "made.json").write_text(json.dumps(told), encoding="utf-8")


def _install(path: Path, isolation: Isolation, stop: threading.Event) -> bool:
    """Whether a lock of ours said what to install; without one uv resolves, and what it found is the lock."""
    uv, venv, lock = _uv(), path / "venv", path / "lock.txt"
    python = venv / "bin" / "python"
    run = _Uv(path, isolation.package, stop)
    run([uv, "venv", "--quiet", "--python", isolation.python or _base_python(), str(venv)])
    shipped = shipped_lock(isolation)
    if shipped:
        shutil.copyfile(shipped, lock)
    else:
        wanted = "\n".join([isolation.package, *isolation.extra])
        compile = [uv, "pip", "compile", "-", "--quiet", "--python", str(python), "--generate-hashes"]
        tidy = ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
        run([*compile, *tidy, "--output-file", str(lock)], wanted)
    run([uv, "pip", "install", "--quiet", "--python", str(python), "--require-hashes", "-r", str(lock)])
    return shipped is not None


class _Uv:
    """Runs uv, which is stopped when asked to, or when it takes too long."""

    def __init__(self, path: Path, package: str, stop: threading.Event) -> None:
        self._path, self._package, self._stop = path, package, stop

    def __call__(self, command: Sequence[str], given: str = "") -> None:
        """Raises `BackendError` with what uv said, if it failed."""
        told = self._path / "uv.log"
        with told.open("w+") as log:
            running = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, start_new_session=True
            )
            assert running.stdin
            with suppress(BrokenPipeError), running.stdin as pipe:
                pipe.write(given)
            self._wait(running)
        if running.returncode:
            said = told.read_text(errors="replace").strip()[-1500:]
            raise BackendError(f"cannot make an environment for {self._package}: {said}", permanent=True)

    def _wait(self, running: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + MAKING_S
        while running.poll() is None:
            if self._stop.wait(POLL_S / 4) or time.monotonic() > deadline:
                running.kill()
                running.wait()
                raise BackendError(f"stopped while an environment for {self._package} was being made")


def _uv() -> str:
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.exists() else shutil.which("uv")
    if not found:
        raise BackendError(
            "uv is not installed, which makes the environments of releases: make install EXTRAS=isolated",
            permanent=True,
        )
    return found


def _base_python() -> str:
    """Not that of memtrend's own environment, which may be removed and made anew."""
    return str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())


def _read(path: Path) -> Env:
    told = json.loads((path / "made.json").read_text(encoding="utf-8"))
    used = datetime.fromtimestamp((path / "made.json").stat().st_mtime, UTC)
    with path.with_suffix(".lock").open("a") as lock:
        in_use = not _locked(lock, fcntl.LOCK_EX)
    made = datetime.fromisoformat(told["made"])
    extra, python = tuple(told["extra"]), told["python"]
    return Env(
        path.name, path, told["package"], extra, python, made, told["seconds"], told["locked"], used, in_use
    )


def _bytes(path: Path) -> int:
    return sum(file.lstat().st_blocks * 512 for file in path.rglob("*"))
