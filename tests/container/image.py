"""The Dockerfile, followed where no Docker is: what it copies, each of its steps, and what it starts.

A folder stands for the root of the image, for both stages alike: absolute paths lie in it. A step runs as an
unprivileged user, with nothing of this environment but where packages come from. Then all but the volume is
taken from that user, as it is in an image.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from ctypes import CDLL
from pathlib import Path
from typing import Any

import psutil
from docker.utils.build import exclude_paths
from dockerfile_parse import DockerfileParser

ROOT = Path(__file__).parents[2]
CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): orphans below become its children, as those of a container become
children of its first process."""


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile: name and value of each instruction."""
    parsed = DockerfileParser(fileobj=io.BytesIO((ROOT / "Dockerfile").read_bytes())).structure
    return [(one["instruction"], one["value"]) for one in parsed if one["instruction"] != "COMMENT"]


def values(name: str) -> list[str]:
    return [value for instruction, value in instructions() if instruction == name]


def context() -> set[str]:
    """What of the checkout an image is built from: files, as Docker reads .dockerignore."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = exclude_paths(str(ROOT), [line for line in lines if line and not line.startswith("#")])
    return {path for path in kept if (ROOT / path).is_file()}


def copied(value: str) -> tuple[dict[str, str], list[str], str]:
    """Of a COPY: its options, its sources, and where to."""
    words = shlex.split(value)
    options = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
    *sources, target = [word for word in words if not word.startswith("--")]
    return options, sources, target


def health_check() -> list[str]:
    (value,) = values("HEALTHCHECK")
    return list(json.loads(value.partition("CMD ")[2]))


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for value in values("ENV") for pair in shlex.split(value))


class Image:
    """What following the Dockerfile made below `root`."""

    def __init__(self, root: Path) -> None:
        self.root, self.workdir = root, "/"
        (user,) = values("USER")
        self.uid = int(user.partition(":")[0]) if os.geteuid() == 0 else os.geteuid()
        self.python = self._usable_python()

    def build(self) -> None:
        for name, value in instructions():
            if name == "WORKDIR":
                self.workdir = value
                self.inside(value).mkdir(parents=True, exist_ok=True)
            elif name == "COPY":
                self._copy(value)
            elif name == "RUN":
                self.own(self.root, self.uid)
                self.step(json.loads(value))
        self.own(self.root, os.geteuid())
        self.new_volume()

    def new_volume(self) -> Path:
        """/data as it is when a container is started with a volume that is new."""
        data = self.inside("/data")
        shutil.rmtree(data)
        shutil.copytree(self.inside("/image/data"), data)
        self.own(data, self.uid)
        return data

    def inside(self, path: str, below: str = "") -> Path:
        """Where a path of the image is on this machine."""
        return self.root / str(Path("/", below, path)).lstrip("/")

    def _copy(self, value: str) -> None:
        options, sources, target = copied(value)
        place = self.inside(target, self.workdir)
        for source in sources:
            origin = self.inside(source) if "from" in options else ROOT / source
            if origin == place:  # from one stage to the same place in the next
                continue
            for file in [origin] if origin.is_file() else sorted(origin.rglob("*")):
                name = file.relative_to(origin) if origin.is_dir() else Path(file.name)
                self._put(file, place / name if origin.is_dir() or target.endswith("/") else place)

    def _put(self, file: Path, place: Path) -> None:
        if file.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        elif not file.is_relative_to(ROOT) or str(file.relative_to(ROOT)) in context():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)

    def own(self, path: Path, uid: int) -> None:
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", f"{uid}:{uid}", str(path)], check=True)

    # What runs in it

    def words(self, command: list[str]) -> list[str]:
        return [str(self.inside(word)) if word.startswith("/") else word for word in command]

    def step(self, command: list[str]) -> None:
        """Runs a step to its end, which has to be a good one."""
        own = {"PATH": f"{self._only_python()}:{os.defpath}", "HOME": str(self.inside("/home"))}
        done = subprocess.run(
            self.words(command),
            cwd=self.inside(self.workdir),
            env={**_package_settings(), **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self.as_user(),
        )
        assert done.returncode == 0, done.stdout

    def environment(self, **more: str) -> dict[str, str]:
        """What a container is started with: what the image says, and `docker run --env`."""
        said = {name: self._mapped(value) for name, value in environment().items()}
        return {**said, **more}

    def _mapped(self, value: str) -> str:
        return ":".join(self.words(value.split(":"))).replace("$PATH", os.defpath)

    def run(self, command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        """Within the image, to its end, as `docker exec` would."""
        how: dict[str, Any] = {"cwd": self.inside("/data"), "env": self.environment(**more)}
        return subprocess.run(self.words(command), capture_output=True, text=True, **how, **self.as_user())

    def start(self, command: list[str], log: Path, **more: str) -> psutil.Popen:
        """As `docker run IMAGE COMMAND`: by the entry point, which gets the orphans below it."""
        (entry,) = map(json.loads, values("ENTRYPOINT"))
        (usual,) = map(json.loads, values("CMD"))
        with log.open("w") as said:
            return psutil.Popen(
                self.words(entry) + (command or usual),
                cwd=self.inside("/data"),
                env=self.environment(**more),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: CDLL(None).prctl(CHILD_SUBREAPER, 1, 0, 0, 0),
                **self.as_user(),
            )

    def processes(self) -> list[psutil.Process]:
        """All that run something of the image."""
        return [one for one in psutil.process_iter() if str(self.root) in " ".join(_command(one))]

    def as_user(self) -> dict[str, Any]:
        mine = os.geteuid() == self.uid
        return {} if mine else {"user": self.uid, "group": self.uid, "extra_groups": []}

    def _usable_python(self) -> str:
        """One that the user may run, too: that of the tests may lie in the home of root."""
        try_it = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"
        for python in (os.path.realpath(sys.executable), "/usr/local/bin/python3", "/usr/bin/python3"):
            try:
                if subprocess.run([python, "-c", try_it], cwd="/", **self.as_user()).returncode == 0:
                    return python
            except OSError:
                continue
        raise AssertionError("no Python from 3.11 on that every user may run: apt install python3-venv")

    def _only_python(self) -> Path:
        link = self.inside("/usr/bin/python3")
        if not link.exists():
            link.parent.mkdir(parents=True)
            link.symlink_to(self.python)
        return link.parent


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _package_settings() -> dict[str, str]:
    """Where packages come from on this machine, in the variables that pip knows."""
    return {
        f"PIP_{name.upper().replace('-', '_')}": value for name, value in _install().pip_settings().items()
    }


def _install() -> Any:
    spec = importlib.util.spec_from_file_location("install", ROOT / "scripts" / "install.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of(path: Path) -> Iterator[str]:
    yield from path.read_text(encoding="utf-8").splitlines() if path.exists() else ()
