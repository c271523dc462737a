"""The policy of a suite, where its file and the record meet: what changed, and what nobody accounted for.

A changed case is a new question; a case is retired, never just deleted; every version has a reason; a
quarantine has an owner and an end. What the shipped suites change is ours to account for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from collectors.configured import load_suite, suite_config, suite_names, suite_owner
from collectors.record import suite_record
from collectors.suite import Suite
from store import queries, writes
from store.database import Database
from store.errors import StoreError
from store.settings import Settings


class Difference(NamedTuple):
    """What two versions of a suite do not share. `deleted` are the cases of `removed` that nobody retired;
    `paired` counts the questions that both ask, and that a comparison over the change can use."""

    suite: str
    old: str
    new: str
    added: list[str]
    removed: list[str]
    changed: list[str]
    deleted: list[str]
    paired: int

    @property
    def dropped(self) -> int:
        return len(self.added) + len(self.removed) + 2 * len(self.changed)


def difference(db: Database, suite: Suite, since: str = "") -> Difference:
    """To the suite's file as it stands, from a version in the record (`since`, its first digits): by default
    the newest other one. Raises `StoreError` for one that is not there."""
    known = [row.version for row in queries.suite_versions(db, suite.name) if row.version != suite.version]
    old = next((version for version in known if version.startswith(since)), None if since else "")
    if old is None:
        raise StoreError(f"suite {suite.name} has no other version {since}; memtrend suite log lists them")
    before = queries.case_hashes(db, suite.name, old)
    now = _hashes(suite)
    removed = sorted(before.keys() - now.keys())
    deleted = set(queries.deleted_cases(db, suite.name, now))
    common = before.keys() & now.keys()
    changed = sorted(name for name in common if before[name] != now[name])
    return Difference(
        suite.name,
        old,
        suite.version,
        sorted(now.keys() - before.keys()),
        removed,
        changed,
        [name for name in removed if name in deleted],
        len(common) - len(changed),
    )


def _hashes(suite: Suite) -> Mapping[str, str]:
    return {probe.case: probe.hash for probe in suite.probes}


def explain(db: Database, settings: Settings, name: str, reason: str, author: str) -> str:
    """Give the file's version its reason, making the version known first. Returns the version."""
    suite = register(db, settings, name)
    writes.explain_version(db, name, suite.version, reason, author)
    return suite.version


def register(db: Database, settings: Settings, name: str) -> Suite:
    suite = load_suite(settings, name)
    writes.register_suite(db, suite_record(suite, suite_owner(settings, name)))
    return suite


def complaints(db: Database, settings: Settings, suites: Sequence[str] | None = None) -> list[str]:
    """What nobody accounted for in the team's own suites, a line each. Raises `SuiteError`."""
    own = [name for name in suites or suite_names(settings) if suite_config(settings, name).origin == "own"]
    return [line for name in own for line in _complaints(db, load_suite(settings, name))]


def _complaints(db: Database, suite: Suite) -> Iterator[str]:
    asked = _hashes(suite)
    gone = queries.deleted_cases(db, suite.name, asked)
    if gone:
        yield (
            f"suite {suite.name}: {_listed(gone)} {_are(gone)} gone without a word: put the lines back, or "
            f"memtrend suite retire {gone[0]} --suite {suite.name} --reason '...'"
        )
    for row in queries.case_standings(db, suite.name):
        if row.standing == "expired" and row.case in asked:
            yield (
                f"suite {suite.name}: the quarantine of {row.case} has ended, so it gates again: {row.owner} "
                "mends it, renews the quarantine, or releases it"
            )
    yield from _unasked(db, suite, asked)
    yield from _unexplained(db, suite)


def _unasked(db: Database, suite: Suite, asked: Mapping[str, str]) -> Iterator[str]:
    back = [name for name in queries.retired_cases(db, suite.name) if name in asked]
    if back:
        yield (
            f"suite {suite.name}: {_listed(back)} {_are(back)} retired and still asked: take the lines out, "
            f"or memtrend suite release {back[0]} --suite {suite.name} --reason '...'"
        )


def _unexplained(db: Database, suite: Suite) -> Iterator[str]:
    """The first version needs no reason: before it there was nothing."""
    versions = queries.suite_versions(db, suite.name)
    told = any(row.reason for row in versions if row.version == suite.version)
    if versions and versions[-1].version != suite.version and not told:
        yield (
            f"suite {suite.name}: nobody said why version {suite.version[:8]} came to be: "
            f"memtrend suite log {suite.name} --reason '...'"
        )


def _listed(names: Sequence[str], shown: int = 5) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
