"""What changed between two runs, by kind, and which of it to suspect first. Pure.

A side is what a run ran on: its environment as the record keeps it (`packages`, `backend`, `config`, `git`
and the rest), and beside that its own `suite`, `scorer` and `meta`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from store.queries import MarkRow

_SUSPECTED = (
    *("own package", "backend", "server", "container", "dependency"),
    *("models", "embedder", "prompts", "judge"),
    *("suite", "scorer", "configuration", "git", "packages", "system", "meta"),
)
"""First to last: the backend's software, what it thinks with, the rest."""

_SECTIONS = {
    **{name: name for name in ("packages", "backend", "suite", "scorer", "git", "meta")},
    "config": "configuration",
}
_TELLING = {
    "embedder": {"embedder", "embedding", "embeddings"},
    "judge": {"judge"},
    "prompts": {"prompt", "prompts", "instruction", "instructions"},
    "container": {"container", "image", "digest"},
    "server": {"server"},
    "models": {"model", "models", "llm"},
}
"""Words of a name that say what it is about, wherever it stands: in what a backend tells of itself, in its
configuration, or in what a person keeps with a run."""

PINS = ("config.package", "config.with")
"""Paths of what names the packages of a release."""

SCHEDULED_FOR = "scheduled_for"
"""In the meta of a scheduled run: of which fire it is, another one each night, so the cause of nothing."""

LONGEST = 48
"""Characters of a value in a sentence."""


class Change(NamedTuple):
    """`name` is short ("mem0ai"), `path` tells where it stands ("packages.mem0ai"); a value is None where
    there was or is nothing. `moved_before`: it had changed among good runs already, without effect."""

    name: str
    kind: str
    old: Any
    new: Any
    path: str
    moved_before: bool = False


class Packages(NamedTuple):
    added: tuple[Change, ...]
    removed: tuple[Change, ...]
    moved: tuple[Change, ...]


class Changes(NamedTuple):
    """By kind. `backend` is what it tells of itself and nothing else says, `system` Python and the machine.
    `git` has revisions as values, `REVISION+DIGEST` with changes that are not committed. `suspects` are all
    of them but the marks, the likeliest first."""

    packages: Packages
    backend: tuple[Change, ...]
    server: tuple[Change, ...]
    container: tuple[Change, ...]
    models: tuple[Change, ...]
    embedder: tuple[Change, ...]
    prompts: tuple[Change, ...]
    judge: tuple[Change, ...]
    suite: tuple[Change, ...]
    scorer: tuple[Change, ...]
    configuration: tuple[Change, ...]
    system: tuple[Change, ...]
    meta: tuple[Change, ...]
    git: Change | None
    marks: tuple[MarkRow, ...]
    suspects: tuple[Change, ...]


PLAIN_KINDS = tuple(kind for kind in Changes._fields if kind not in ("packages", "git", "marks", "suspects"))


def changes(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    marks: Iterable[MarkRow] = (),
    harmless: Collection[str] = (),
) -> Changes:
    """What differs between two sides. `marks` are those between; `harmless` holds the paths that changed
    among good runs: what changed without effect before is suspected last."""
    by_kind: dict[str, list[Change]] = defaultdict(list)
    for change in _found(before, after):
        by_kind[change.kind].append(change._replace(moved_before=change.path in harmless))
    found = [change for kind in by_kind.values() for change in kind]
    places = _places(before, after)
    return Changes(
        packages=_sorted_out(by_kind["packages"]),
        **{kind: tuple(by_kind[kind]) for kind in PLAIN_KINDS},
        git=next(iter(by_kind["git"]), None),
        marks=tuple(marks),
        suspects=tuple(sorted(found, key=lambda change: _suspicion(change, places))),
    )


def moved_among(good: Iterable[Mapping[str, Any]]) -> set[str]:
    """Paths of all that changed from one good side to the next."""
    return {
        path for before, after in pairwise(map(_plain, good)) for path, _, _ in differences(before, after)
    }


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """(dotted path, old, new) of every value that differs, by path. An empty mapping is no value."""
    old, new = dict(_flat(before)), dict(_flat(after))
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) != new.get(path):
            yield path, old.get(path), new.get(path)


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _found(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Each thing once: a package whose version its backend tells as well is told as a package."""
    differing = [_change(*told) for told in differences(_plain(before), _plain(after))]
    once: dict[tuple[str, str, str], Change] = {}
    for change in sorted(differing, key=lambda change: change.kind != "packages"):
        once.setdefault((change.name, repr(change.old), repr(change.new)), change)
    moved = {side: _versions(once.values(), side) for side in ("old", "new")}
    return [change for change in once.values() if not _is_pinned(change, moved)]


def _versions(changes: Iterable[Change], side: str) -> set[str]:
    """The packages that differ, as a configuration pins them: "mem0ai==2.2.1"."""
    return {f"{one.name}=={getattr(one, side)}" for one in changes if one.kind == "packages"}


def _is_pinned(change: Change, moved: Mapping[str, set[str]]) -> bool:
    """Whether a release was configured and nothing but its packages, which are told themselves, changed."""
    if change.path not in PINS or None in (change.old, change.new):
        return False
    old, new = ({value} if isinstance(value, str) else set(value) for value in (change.old, change.new))
    return old - new <= moved["old"] and new - old <= moved["new"]


def _plain(side: Mapping[str, Any]) -> dict[str, Any]:
    """The side with its git as one value: a branch that moved without its commit is no change."""
    meta = {name: value for name, value in (side.get("meta") or {}).items() if name != SCHEDULED_FOR}
    return {**side, "meta": meta, "git": _revision(side.get("git") or {})}


def _revision(git: Mapping[str, Any]) -> str | None:
    if not git.get("changed"):
        return git.get("revision") or None
    return f"{git['revision']}+{git.get('diff', 'changes')}"


def _change(path: str, old: Any, new: Any) -> Change:
    section, _, rest = path.partition(".")
    return Change(rest or section, _kind(section, rest), old, new, path)


def _kind(section: str, name: str) -> str:
    own = _SECTIONS.get(section, "system")
    if own not in ("backend", "configuration", "meta"):
        return own
    words = set(re.split(r"[._-]", name.lower()))
    return next((kind for kind, telling in _TELLING.items() if words & telling), own)


def _sorted_out(packages: Iterable[Change]) -> Packages:
    every = tuple(packages)
    return Packages(
        tuple(change for change in every if change.old is None),
        tuple(change for change in every if change.new is None),
        tuple(change for change in every if None not in (change.old, change.new)),
    )


def _places(*sides: Mapping[str, Any]) -> dict[str, str]:
    """Package -> how near to the backend it stands, for those that are of it on either side."""
    trees = [side.get("of_backend", {}) for side in sides]
    required = {name: "dependency" for tree in trees for names in tree.values() for name in names}
    return required | {name: "own package" for tree in trees for name in tree}


def _suspicion(change: Change, places: Mapping[str, str]) -> tuple[bool, int, str, str]:
    place = places.get(change.name, change.kind) if change.kind == "packages" else change.kind
    return change.moved_before, _SUSPECTED.index(place), change.name, change.path


# As sentences --------------------------------------------------------------------


def title(found: Changes, most: int = 3) -> str:
    """ "mem0ai 1.0.5 → 1.0.6, torch 2.5.0 removed, and 4 more": what to suspect first."""
    if not found.suspects:
        return "Nothing that is recorded changed"
    told = [sentence(change) for change in found.suspects[:most]]
    left = len(found.suspects) - len(told)
    return ", ".join([*told, *([f"and {left} more"] if left else [])])


def sentence(change: Change) -> str:
    """ "mem0ai 1.0.5 → 1.0.6", "torch 2.5.0 removed". Hashes are cut to 8 digits, long texts to their
    beginning."""
    old, new = shown(change.old), shown(change.new)
    if change.old is None:
        return f"{change.name} {new} added"
    if change.new is None:
        return f"{change.name} {old} removed"
    return f"{change.name} {old} → {new}" if old != new else f"{change.name} changed: {new}"


def git_range(git: Change | None) -> str | None:
    """ "a1b2c3d4..e5f6a7b8", as `git log` takes it; None where no commit lies between."""
    if git is None or None in (git.old, git.new):
        return None
    old, new = (value.partition("+")[0][:8] for value in (git.old, git.new))
    return f"{old}..{new}" if old != new else None


def shown(value: Any) -> str:
    """A value in a sentence: hashes cut to 8 digits, long texts to their beginning."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = re.sub(r"\b[0-9a-f]{12,}\b", lambda found: found[0][:8], " ".join(text.split()))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
