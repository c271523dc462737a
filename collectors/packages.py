"""What is installed in the environment of this process. Stdlib only: a worker tells it of its own."""

from __future__ import annotations

import importlib.metadata as metadata
import platform
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

OF_EXTRA = re.compile(r";.*\bextra\b")


def environment(names: Iterable[str], type: str) -> dict[str, Any]:
    """The part of a fingerprint that is of one process: its packages, those of the backend, its Python.
    `names` may be packages that the backend is made of; `type` is the backend's."""
    return {
        "packages": dict(packages()),
        "of_backend": of_backend(names, type),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
    }


@lru_cache(maxsize=1)
def packages() -> tuple[tuple[str, str], ...]:
    """(name, version) of every package of this environment, by name. Of two of one name, that which an
    import finds."""
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        if distribution.metadata["Name"]:
            found.setdefault(normal(distribution.metadata["Name"]), distribution.version)
    return tuple(sorted(found.items()))


def of_backend(names: Iterable[str], type: str) -> dict[str, dict[str, Any]]:
    """The packages that are the backend (those of these names, and that of its class), each with all that it
    requires. Names alone, without a value that could differ: no list of changes repeats them."""
    named = {normal(name) for name in names} | _packages_of_class(type)
    roots = sorted(named & dict(packages()).keys())
    return {root: {required: {} for required in sorted(_required(root))} for root in roots}


def _packages_of_class(type: str) -> set[str]:
    """Of "package.module:Class"; none for a type of ours, or a file that belongs to no package."""
    module, colon, _ = type.partition(":")
    return {normal(name) for name in _distributions().get(module.split(".")[0], ())} if colon else set()


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
    return {project(line) for line in wanted}


def project(requirement: str) -> str:
    """The package that a requirement such as `mem0ai[nlp]==2.0.20` is of."""
    return normal(re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0])


def normal(name: str) -> str:
    """As https://packaging.python.org/en/latest/specifications/name-normalization/ has it."""
    return re.sub(r"[-_.]+", "-", name).lower()
