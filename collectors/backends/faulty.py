"""Any backend with one named fault: to prove that a suite notices, and for drills.

A fault works through the verbs of the backend that it stands around, and so works around any. `kind` is what
`failures.py` should call it from what it observes; it was written down before that file could name it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from collectors.backend import Backend, BackendConfig, BackendError, open_backend
from collectors.backends.faults import answers, forgetting, legs, scopes, stored
from collectors.backends.faults.wrapper import Wrapper


class Fault(NamedTuple):
    """`wrap` makes a backend out of a backend; `meaning` is what it does wrong, in a few words."""

    wrap: Callable[..., Backend]
    kind: str
    meaning: str


LEAKED = "leaked from another scope or user"
TOO_MUCH = "too much forgotten"
LOST_BESIDE = "metadata or ids lost"
UNRETURNED = "stored but not returned"
LIMIT = "limit not honoured"

FAULTS = {
    "keyword-leg-dead": Fault(legs.KeywordLegDead, "leg dead", "the keyword index finds nothing"),
    "vector-leg-dead": Fault(legs.VectorLegDead, "leg dead", "the vector index finds nothing"),
    "vector-leg-dead-long": Fault(
        legs.VectorLegDeadForLongQueries, "leg dead", "the vector index finds nothing for over 8 words"
    ),
    "leg-half-missing": Fault(
        legs.HalfMissingFromLeg, "leg incomplete", "half of the documents are missing from one index"
    ),
    "returns-everything": Fault(answers.ReturnsEverything, LIMIT, "returns everything"),
    "returns-nothing": Fault(answers.ReturnsNothing, UNRETURNED, "returns nothing"),
    "ignores-query": Fault(answers.IgnoresQuery, "query ignored", "answers every question alike"),
    "ignores-user": Fault(scopes.IgnoresUser, LEAKED, "mixes users"),
    "ignores-domain": Fault(scopes.IgnoresDomain, LEAKED, "mixes domains"),
    "user-filter-one-path": Fault(scopes.FilterOnOnePath, LEAKED, "filters by user on one of two read paths"),
    "prefix-scope": Fault(scopes.PrefixMatch, LEAKED, "matches scopes by how their names begin"),
    "narrow-search-empty": Fault(
        scopes.NarrowSearchFindsNothing, UNRETURNED, "a search within a domain or session finds nothing"
    ),
    "stale-first": Fault(answers.StaleFirst, "stale fact first", "ranks an older fact first"),
    "superseded-beside": Fault(
        forgetting.SupersededBeside, "superseded returned", "returns the superseded beside the current"
    ),
    "contradiction-deletes-both": Fault(
        forgetting.ContradictionDeletesBoth, TOO_MUCH, "a contradiction deletes both facts"
    ),
    "forget-no-op": Fault(forgetting.ForgetIsNoOp, "forgotten yet returned", "ignores forget"),
    "forget-wipes-users": Fault(
        forgetting.ForgetWipesOthers, TOO_MUCH, "forgetting one user wipes the others"
    ),
    "forget-related": Fault(forgetting.ForgetTakesRelated, TOO_MUCH, "forgetting takes related facts along"),
    "amend-drops-metadata": Fault(
        forgetting.AmendDropsMetadata, LOST_BESIDE, "amending drops all but the text"
    ),
    "new-fact-retires": Fault(forgetting.NewFactRetiresOthers, TOO_MUCH, "a new fact retires unrelated ones"),
    "event-time-now": Fault(stored.EventTimeIsNow, "wrong time", "event time becomes the time of storing"),
    "speaker-swapped": Fault(stored.SpeakerSwapped, "wrong speaker", "swaps speakers"),
    "text-cut": Fault(stored.TextCut, "text altered", "keeps 64 characters of a text"),
    "limit-ignored": Fault(answers.LimitIgnored, LIMIT, "ignores the limit"),
    "limit-three": Fault(answers.LimitAlwaysThree, LIMIT, "always returns three"),
    "threshold-half": Fault(answers.ThresholdCutsHalf, UNRETURNED, "a threshold cuts half of the hits"),
    "question-mark": Fault(answers.QuestionMarkFindsNothing, UNRETURNED, "a question mark finds nothing"),
    "unstable-ties": Fault(answers.UnstableTies, "order unstable", "shuffles hits that are equally good"),
    "stored-twice": Fault(stored.StoredTwice, "duplicates", "stores everything twice"),
    "ids-lost": Fault(stored.IdsLost, LOST_BESIDE, "loses the ids"),
    "last-write-lost": Fault(stored.LastWriteLost, "not stored", "loses the last memory of each call"),
    "lost-on-reopen": Fault(stored.LostOnReopen, "lost on reopen", "loses everything when closed"),
    "session-bleeds": Fault(
        scopes.SessionBleeds, "bled into a new session", "an old session answers in the new one"
    ),
    "slow": Fault(answers.Slow, "too slow", "takes 20 ms more a call"),
    "some-calls-fail": Fault(answers.SomeCallsFail, "backend error", "fails on one call in twenty"),
    "other-namespace": Fault(scopes.OtherNamespace, LEAKED, "returns memories of another namespace"),
}

NOISE = {"flaky": answers.Flaky}
"""Not a fault but noise, with options of its own; see `Flaky`."""


def open_faulty(config: BackendConfig) -> Backend:
    """A backend of the options `of = {type = ..., ...}` and `fault`; noise takes its own options too. With
    `requires`, a package that is installed, the fault is there in those of its `releases` alone, and the
    backend tells the package as its own. Raises `BackendError(permanent=True)` for an unknown fault or a
    missing option."""
    options = {name: value for name, value in config.options.items() if name != "config" or value}
    package, releases = options.pop("requires", None), options.pop("releases", ())
    if package is None:
        return _with_fault(config, options)
    release = _installed(config, package)
    broken = release in releases
    inner = _with_fault(config, options) if broken else open_backend(_wrapped(config, options))
    return Requiring(inner, package, release)


class Requiring(Wrapper):
    """A backend that is made of a package, and tells which release of it is installed."""

    def __init__(self, inner: Backend, package: str, release: str) -> None:
        super().__init__(inner)
        self.package, self.release = package, release

    def versions(self) -> Mapping[str, str]:
        return {**self.inner.versions(), self.package: self.release}


def _installed(config: BackendConfig, package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise _refused(config, f"requires: {package} is not installed; install it, or leave it out") from None


def _with_fault(config: BackendConfig, options: dict[str, Any]) -> Backend:
    options = dict(options)
    name = options.pop("fault", None)
    known = {**{fault: row.wrap for fault, row in FAULTS.items()}, **NOISE}
    if name not in known:
        raise _refused(config, f"unknown fault {name!r}; known: {', '.join(known)}")
    inner = open_backend(_wrapped(config, options))
    options.pop("of")
    try:
        return known[name](inner, **options)
    except TypeError as error:
        raise _refused(config, f"{name}: {error}") from error


def _wrapped(config: BackendConfig, given: Mapping[str, Any]) -> BackendConfig:
    """What is wrapped, under the same name and in the same directory; its options stand in `of`."""
    wrapped = given.get("of")
    if not isinstance(wrapped, dict) or "type" not in wrapped:
        raise _refused(config, 'of: name the backend to wrap, such as of = { type = "hybrid" }')
    options = dict(wrapped)
    type, embedder = options.pop("type"), options.pop("embedder", config.embedder)
    return BackendConfig(config.name, type, options, embedder, config.directory, config.isolation)


def _refused(config: BackendConfig, fault: str) -> BackendError:
    return BackendError(f"backend {config.name}: {fault}", permanent=True)
