"""The fingerprint of a run: everything whose change could explain another result. Never a secret."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from collectors import packages
from store.changes import differences
from store.hiding import hidden, redacted

GIT_TIMEOUT_S = 5


def fingerprint(
    versions: Mapping[str, str],
    config: Mapping[str, Any],
    directory: Path | None = None,
    process: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Of the environment that a backend runs in. `versions` is what only the backend knows: its embedder,
    models, prompts and judge, the version of its server, the digest of its container. `config` has its
    secrets hidden already; `directory` (default: the working one) is where git is asked; `process` is what
    `packages.environment` says of the process that the backend runs in, where that is not this one."""
    return {
        **(process or packages.environment(versions, str(config.get("type", "")))),
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu(),
        "backend": {name: _without_secrets(value) for name, value in hidden(dict(versions)).items()},
        "config": dict(config),
        "git": git_revision(directory or Path.cwd()),
    }


def _without_secrets(told: Any) -> Any:
    """A server may repeat the key it was given, in what it says of itself too."""
    return redacted(told) if isinstance(told, str) else told


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What makes another system of the second environment, as `packages.numpy: 2.1 -> 2.2`. Git is left out:
    work on the code around a run is no other backend."""
    then, now = ({**told, "git": None} for told in (before, after))
    return [
        f"{path}: {'none' if old is None else old} -> {'none' if new is None else new}"
        for path, old, new in differences(then, now)
    ]


@lru_cache(maxsize=1)
def _cpu() -> str:
    return f"{_cpu_model()}, {os.cpu_count()} cores"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def git_revision(directory: Path) -> dict[str, Any]:
    """{"revision", "branch", "changed"} of the checkout that holds the directory; {} outside of one. With
    changes that are not committed, "diff" is their hash: it tells two states of one revision apart."""
    said = _git(directory, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    if said is None:
        return {}
    lines = said.decode(errors="replace").splitlines()
    header = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch."))
    told = {"revision": header.get("branch.oid", ""), "branch": header.get("branch.head", "")}
    if all(line.startswith("#") for line in lines):
        return {**told, "changed": False}
    return {**told, "changed": True, "diff": _hash(_git(directory, "diff", "HEAD") or said)}


def _hash(text: bytes) -> str:
    return sha256(text).hexdigest()[:12]


def _git(directory: Path, *arguments: str) -> bytes | None:
    """What git says, None where it fails."""
    command = ["git", *arguments]
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, timeout=GIT_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
