"""The fingerprint of a run: everything whose change could explain another result. Never a secret."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from store.changes import differences
from store.hiding import hidden, redacted

GIT_TIMEOUT_S = 5
OF_EXTRA = re.compile(r";.*\bextra\b")


def fingerprint(
    versions: Mapping[str, str], config: Mapping[str, Any], directory: Path | None = None
) -> dict[str, Any]:
    """Of the environment that a backend runs in. `versions` is what only the backend knows: its embedder,
    models, prompts and judge, the version of its server, the digest of its container. `config` has its
    secrets hidden already; `directory` (default: the working one) is where git is asked."""
    return {
        "packages": dict(packages()),
        "of_backend": of_backend(versions, config),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
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
def packages() -> tuple[tuple[str, str], ...]:
    """(name, version) of every package of this environment, by name. Of two of one name, that which an
    import finds."""
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        if distribution.metadata["Name"]:
            found.setdefault(_normal(distribution.metadata["Name"]), distribution.version)
    return tuple(sorted(found.items()))


def of_backend(versions: Mapping[str, str], config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The packages that are the backend (those whose version it tells, and that of its class), each with all
    that it requires. Names alone, without a value that could differ: no list of changes repeats them."""
    named = {_normal(name) for name in versions} | _packages_of_class(str(config.get("type", "")))
    roots = sorted(named & dict(packages()).keys())
    return {root: {required: {} for required in sorted(_required(root))} for root in roots}


def _packages_of_class(type: str) -> set[str]:
    """Of "package.module:Class"; none for a type of ours, or a file that belongs to no package."""
    module, colon, _ = type.partition(":")
    return {_normal(name) for name in _distributions().get(module.split(".")[0], ())} if colon else set()


@lru_cache(maxsize=1)
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


@lru_cache
def _required(root: str) -> frozenset[str]:
    """What is installed of all that a package requires, directly or not, extras left out."""
    installed, found, waiting = dict(packages()), {root}, [root]
    while waiting:
        fresh = (_requirements(waiting.pop()) & installed.keys()) - found
        found |= fresh
        waiting += fresh
    return frozenset(found - {root})


def _requirements(package: str) -> set[str]:
    wanted = [line for line in metadata.requires(package) or () if not OF_EXTRA.search(line)]
    return {_normal(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in wanted}


def _normal(name: str) -> str:
    """As https://packaging.python.org/en/latest/specifications/name-normalization/ has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


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
