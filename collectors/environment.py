"""The fingerprint of a run: everything whose change could explain another result. Never a secret."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import platform
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

GIT_TIMEOUT_S = 5


def fingerprint(
    versions: Mapping[str, str], config: Mapping[str, Any], directory: Path | None = None
) -> dict[str, Any]:
    """Of the environment that a backend runs in. `versions` is what only the backend knows, its embedder
    among it; `config` has its secrets hidden already; `directory` (default: the working one) is where git
    is asked."""
    return {
        "packages": dict(packages()),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu(),
        "backend": dict(versions),
        "config": dict(config),
        "git": git_revision(directory or Path.cwd()),
    }


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What makes another system of the second environment, as `packages.numpy: 2.1 -> 2.2`. Git is left out:
    work on the code around a run is no other backend."""
    then, now = _flat(before), _flat(after)
    return [
        f"{name}: {then.get(name, 'none')} -> {now.get(name, 'none')}"
        for name in sorted(then.keys() | now.keys())
        if then.get(name) != now.get(name)
    ]


def _flat(told: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted name, two levels deep, but those of git."""
    flat: dict[str, Any] = {}
    for name, value in told.items():
        if name == "git":
            continue
        parts = {f"{name}.{part}": held for part, held in value.items()} if isinstance(value, dict) else {}
        flat |= parts or {name: value}
    return flat


@lru_cache(maxsize=1)
def packages() -> tuple[tuple[str, str], ...]:
    """(name, version) of every package of this environment, by name."""
    found = {
        distribution.metadata["Name"].lower().replace("_", "-"): distribution.version
        for distribution in metadata.distributions()
        if distribution.metadata["Name"]
    }
    return tuple(sorted(found.items()))


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
    """{"revision", "branch", "changed"} of the checkout that holds the directory; {} outside of one."""
    try:
        said = subprocess.run(
            ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no"],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=GIT_TIMEOUT_S,
            check=True,
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return {}
    header = dict(line[2:].split(" ", 1) for line in said if line.startswith("# branch."))
    return {
        "revision": header.get("branch.oid", ""),
        "branch": header.get("branch.head", ""),
        "changed": any(not line.startswith("#") for line in said),
    }
