"""Environments of releases: one for each, made by uv, kept for the next run, cleaned by age.

A folder holds them all. In it NAME/ is one environment: `venv/`, `lock.txt` (what was installed, with hashes)
and `made.json`, which is written last, so that an environment without it was never finished. NAME.lock is
locked by whoever makes the environment, and shared by whoever uses it. What else is there is not ours.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from string import ascii_letters, digits
from typing import IO, NamedTuple

from collectors.backend import BackendError, Isolation
from collectors.leashed import Leashed

LOCKS = Path(__file__).parent / "locks"
"""A tested release of each adapter's SDK, with all that it takes, by version and hash."""
NAMED = f"{ascii_letters}{digits}-_"
"""What names of environments are made of."""
NAME = re.compile(r".+-[0-9a-f]{12}")
BEGUN = "memtrend-environment"
"""A file in each folder that was made here, from its beginning."""
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
    interpreter: str
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
    """Where environments are kept unless configured: the cache folder of this user, as the XDG Base Directory
    Specification has it, which has relative values passed over."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "memtrend" / "envs"


@contextmanager
def using(isolation: Isolation, stop: threading.Event | None = None) -> Iterator[tuple[Env, IO[str]]]:
    """The environment, made if it is not there, and the open lock that keeps it from being removed: whoever
    inherits the file keeps it too. Raises `BackendError` when it cannot be made, or `stop` is set first."""
    path = _home(isolation.home) / name_of(isolation)
    with path.with_suffix(".lock").open("a") as lock:
        env = _ready(path, isolation, lock, stop or threading.Event())
        os.utime(path / "made.json")
        yield env, lock


def _home(home: Path | None) -> Path:
    home = home or usual_home()
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BackendError(
            f"cannot make {home} for environments of releases ({error.strerror}): name another folder, "
            'as directory = "..." under [environments]',
            permanent=True,
        ) from error
    return home


def name_of(isolation: Isolation) -> str:
    """`mem0ai-2_0_20-3f2a...`: the release in words, and all that decides the content as a hash."""
    lock = shipped_lock(isolation)
    decides = [
        *(isolation.package, sorted(isolation.extra), _interpreter(isolation), platform.machine()),
        lock.read_text(encoding="utf-8") if lock else "",
    ]
    words = "".join(sign if sign in NAMED else "_" for sign in isolation.package.replace("==", "-"))
    return f"{words[:60]}-{sha256(json.dumps(decides).encode()).hexdigest()[:12]}"


def _interpreter(isolation: Isolation) -> str:
    """The very one: what a link leads to may be another one tomorrow. A bare version is uv's to find."""
    wanted = isolation.python
    if not wanted:
        return f"{_base_python()} {platform.python_version()}"
    return os.path.realpath(wanted) if "/" in wanted else wanted


def shipped_lock(isolation: Isolation) -> Path | None:
    """The lock of a tested release, where all that is asked for is in it."""
    wanted = {isolation.package, *isolation.extra}
    for path in sorted(LOCKS.glob("*.txt")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        if wanted <= {name.strip() for name in first.removeprefix("# requirements:").split(",")}:
            return path
    return None


def listed(home: Path | None = None, *, sizes: bool = False) -> list[Env]:
    """The environments that are there and whole, the one used last first."""
    found = [env for path in _ours(home) if (env := _read(path))]
    measured = [env._replace(bytes=_bytes(env.path)) for env in found] if sizes else found
    return sorted(measured, key=lambda env: env.used, reverse=True)


def clean(older_than: timedelta, home: Path | None = None) -> list[str]:
    """Remove those that nobody used for so long, and what was never finished; what is in use stays, and so
    does whatever was not made here. Returns their names."""
    before = datetime.now(UTC) - older_than
    old = [path for path in _ours(home) if (env := _read(path)) is None or env.used < before]
    return [path.name for path in old if _removed(path)]


def _ours(home: Path | None) -> Iterator[Path]:
    for path in sorted((home or usual_home()).glob("*/")):
        if NAME.fullmatch(path.name) and (path / BEGUN).is_file():
            yield path


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
    if (env := _working(path)) is None:
        fcntl.flock(lock, fcntl.LOCK_UN)  # or two would wait for each other
        _wait_for(lock, fcntl.LOCK_EX, path, stop)
        if (env := _working(path)) is None:
            env = _make(path, isolation, lock, stop)
        fcntl.flock(lock, fcntl.LOCK_SH)
    return env


def _working(path: Path) -> Env | None:
    """Made to the end, and its Python still the one that it was made with: an upgrade of the system may have
    put another in its place."""
    env = _read(path)
    if env is None or not env.executable.exists():
        return None
    return env if os.path.realpath(env.executable) == env.interpreter else None


def _wait_for(lock: IO[str], how: int, path: Path, stop: threading.Event) -> None:
    deadline = time.monotonic() + MAKING_S
    while not _locked(lock, how):
        if stop.wait(POLL_S):
            raise BackendError(f"stopped while waiting for the environment {path.name}")
        if time.monotonic() > deadline:
            raise BackendError(
                f"the environment {path.name} was held by another process for more than {MAKING_S:.0f} s: "
                "end that process, or remove the folder"
            )


def _locked(lock: IO[str], how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make(path: Path, isolation: Isolation, lock: IO[str], stop: threading.Event) -> Env:
    started = time.monotonic()
    shutil.rmtree(path, ignore_errors=True)
    try:
        path.mkdir()
        (path / BEGUN).touch()
        shipped = _install(path, isolation, lock, stop)
        return _finished(path, isolation, time.monotonic() - started, locked=shipped)
    except OSError as error:
        shutil.rmtree(path, ignore_errors=True)
        raise BackendError(f"cannot make an environment in {path}: {error.strerror}") from error
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def _finished(path: Path, isolation: Isolation, seconds: float, *, locked: bool) -> Env:
    """Say so in one step: half a file would be worse than none."""
    told = {
        "package": isolation.package,
        "extra": list(isolation.extra),
        "python": isolation.python or platform.python_version(),
        "interpreter": os.path.realpath(path / "venv" / "bin" / "python"),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 2),
        "locked": locked,
    }
    draft = path / "made.draft"
    draft.write_text(json.dumps(told), encoding="utf-8")
    draft.replace(path / "made.json")
    env = _read(path)
    assert env is not None
    return env


def _install(path: Path, isolation: Isolation, lock: IO[str], stop: threading.Event) -> bool:
    """Whether a lock of ours said what to install; without one uv resolves, and what it found is the lock."""
    uv, venv, locked = _uv(), path / "venv", path / "lock.txt"
    python = venv / "bin" / "python"
    run = _Uv(path, isolation.package, lock, stop)
    run([uv, "venv", "--quiet", "--python", isolation.python or _base_python(), str(venv)])
    shipped = shipped_lock(isolation)
    if shipped:
        shutil.copyfile(shipped, locked)
    else:
        wanted = "\n".join([isolation.package, *isolation.extra])
        compile = [uv, "pip", "compile", "-", "--quiet", "--python", str(python), "--generate-hashes"]
        tidy = ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
        run([*compile, *tidy, "--output-file", str(locked)], wanted)
    run([uv, "pip", "install", "--quiet", "--python", str(python), "--require-hashes", "-r", str(locked)])
    return shipped is not None


class _Uv:
    """Runs uv on a leash: it ends when asked to, when it takes too long, or with this process, and what it
    builds ends with it. It holds the lock as long as any of it lives."""

    def __init__(self, path: Path, package: str, lock: IO[str], stop: threading.Event) -> None:
        self._path, self._package, self._lock, self._stop = path, package, lock, stop

    def __call__(self, command: Sequence[str], given: str = "") -> None:
        """Raises `BackendError` with what uv said, if it failed."""
        told = self._path / "uv.log"
        settings = {"UV_PYTHON_DOWNLOADS": "never", **os.environ}
        with told.open("w+") as log, tempfile.TemporaryFile("w+") as asked:
            asked.write(given)
            asked.seek(0)
            running = Leashed(command, held=[self._lock], env=settings, stdin=asked, stdout=log, stderr=log)
            try:
                self._wait(running.process)
            finally:
                running.end()
        if running.process.returncode:
            said = told.read_text(errors="replace").strip()[-1500:] or "uv said nothing; is the disk full?"
            raise BackendError(f"cannot make an environment for {self._package}: {said}", permanent=True)

    def _wait(self, running: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + MAKING_S
        while running.poll() is None:
            if self._stop.wait(POLL_S / 4):
                raise BackendError(f"stopped while an environment for {self._package} was being made")
            if time.monotonic() > deadline:
                raise BackendError(f"an environment for {self._package} was not made in {MAKING_S:.0f} s")


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


def _read(path: Path) -> Env | None:
    """None where it was never finished, or what says so cannot be read."""
    try:
        told = json.loads((path / "made.json").read_text(encoding="utf-8"))
        used = datetime.fromtimestamp((path / "made.json").stat().st_mtime, UTC)
        return Env(
            name=path.name,
            path=path,
            package=told["package"],
            extra=tuple(told["extra"]),
            python=told["python"],
            interpreter=told["interpreter"],
            made=datetime.fromisoformat(told["made"]),
            seconds=told["seconds"],
            locked=told["locked"],
            used=used,
            in_use=_in_use(path),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _in_use(path: Path) -> bool:
    with path.with_suffix(".lock").open("a") as lock:
        return not _locked(lock, fcntl.LOCK_EX)


def _bytes(path: Path) -> int:
    return sum(file.lstat().st_blocks * 512 for file in path.rglob("*"))
