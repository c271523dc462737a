"""From the settings to what collectors work with: suites, backends, limits, plans."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from collectors.backend import BACKENDS, IN_PROCESS, OPTIONS, OUTER_STORES, BackendConfig, Isolation
from collectors.embedding import LOCAL
from collectors.packages import project
from collectors.plans import Confirm, RunLimits, RunPlan
from collectors.record import suite_record
from collectors.suite import SHIPPED, Suite, SuiteConfig, SuiteError, load
from store import writes
from store.database import Database
from store.sections import BackendSection, ConfirmSection, is_pinned, time_of
from store.settings import Settings, SettingsError, check_names, load_settings, public

DRILLED = frozenset({"keyword", "dense", "hybrid"})
"""Types that a drill may be held on."""


def configured(path: Path | None = None) -> Settings:
    """The settings in force, every name in them known; adapters are found beside their file from now on.
    Raises `SettingsError`."""
    settings = load_settings(path)
    check_names(
        settings,
        known_types=OPTIONS,
        known_suites=SHIPPED,
        known_embedders=LOCAL,
        in_process=IN_PROCESS,
    )
    _refuse_shared_controls(settings)
    _refuse_drills_elsewhere(settings)
    _find_adapters_beside(settings.source)
    return settings


def _find_adapters_beside(source: Path | None) -> None:
    """Last of the path, as the working directory is: a user's own `store` must not take the place of ours."""
    if source and str(source.parent) not in sys.path:
        sys.path.append(str(source.parent))


def _refuse_shared_controls(settings: Settings) -> None:
    """A control has a name and a store of its own, or it would be compared with what another one did."""
    shared = [
        f"{settings.source}: backends.{name}.control: {problem}"
        for name in control_names(settings)
        for problem in _shared_by_control(settings, name)
    ]
    if shared:
        raise SettingsError("\n".join(shared))


def _refuse_drills_elsewhere(settings: Settings) -> None:
    wrong = [
        f"{settings.source}: schedules.{name}.backends: {problem}"
        for name, section in settings.schedules.items()
        if section.kind == "proof"
        for problem in (undrillable(settings, backend) for backend in section.backends)
        if problem
    ]
    if wrong:
        raise SettingsError("\n".join(wrong))


def undrillable(settings: Settings, backend: str) -> str | None:
    """Why no drill is held on a backend, None where one may be: a fault is put into nothing but what lives
    in our own process, so that no drill comes near a store of the team's. Raises KeyError for an unknown
    one."""
    if settings.backends[backend].type in DRILLED:
        return None
    known = [name for name, section in settings.backends.items() if section.type in DRILLED]
    of_these = f"name {' or '.join(known)}, not {backend}" if known else f"{backend} is none"
    types = ", ".join(sorted(DRILLED))
    return f"a drill is held on backends of these types alone: {types}; {of_these}"


def _shared_by_control(settings: Settings, name: str) -> Iterator[str]:
    control, section = control_names(settings)[name], settings.backends[name]
    if control in settings.backends:
        told = f"the control is called {control}, and so is another backend"
        yield f"{told}; give one of the two another name"
    if beside := _beside(section.directory):
        for other in (one for one, of in settings.backends.items() if _is_in(of.directory, beside)):
            yield f"the control keeps its store in {beside}, and so does backend {other}; move one of the two"
    for key in sorted(OUTER_STORES.get(section.type, ())):
        if _value_at(key, section):
            told = f"both releases would share the store that {key} names"
            yield f"{told}; leave it to memtrend, or run without control"


def _is_in(directory: Path | None, other: Path) -> bool:
    return directory is not None and directory.resolve() == other.resolve()


def _value_at(key: str, section: BackendSection) -> object:
    found: object = {**section.options, "config": section.config}
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def suite_names(settings: Settings) -> list[str]:
    """The team's own first, then those we ship; a suite of the team's may take a shipped one's name."""
    return list(dict.fromkeys([*settings.suites, *SHIPPED]))


def backend_names(settings: Settings) -> list[str]:
    return list(settings.backends)


def control_names(settings: Settings) -> Mapping[str, str]:
    """Backend -> the name of its control, where it has one."""
    return {name: f"{name}-control" for name, section in settings.backends.items() if section.control}


def suite_config(settings: Settings, name: str) -> SuiteConfig:
    """Raises KeyError for an unknown name."""
    if name not in settings.suites:
        return SHIPPED[name]
    section = settings.suites[name]
    return SuiteConfig(
        name, section.path, section.kind, tuple(section.only), tuple(section.without),
        licence=section.licence, citation=section.citation,
    )  # fmt: skip


def suite_owner(settings: Settings, name: str) -> str:
    """Those we ship belong to nobody in particular."""
    return settings.suites[name].owner if name in settings.suites else "default"


def suite_bars(settings: Settings, name: str) -> Mapping[str, float]:
    """What a gate asks of the suite, by metric; nothing of those we ship."""
    return settings.suites[name].bars if name in settings.suites else {}


def suite_confirm(settings: Settings, name: str) -> Confirm:
    """How a suspicion about the suite is looked at again."""
    if name not in settings.suites:
        return Confirm()
    section = settings.suites[name].confirm
    return Confirm(section.trials, section.max_cost, section.level)


def confirm_after(settings: Settings, name: str) -> timedelta:
    """How long after its last look a suspicion about the suite is looked at for the third time."""
    section = settings.suites[name].confirm if name in settings.suites else ConfirmSection()
    return time_of(section.after)


def load_suite(settings: Settings, name: str, tag: str = "") -> Suite:
    """The suite, or those of its cases that bear the tag. Raises `SuiteError`."""
    config = suite_config(settings, name)
    if not tag:
        return load(config)
    known = sorted({found for probe in load(config).probes for found in probe.tags})
    if tag not in known:
        raise SuiteError(f"suite {name}: no case bears the tag {tag!r}; known: {', '.join(known) or 'none'}")
    return load(replace(config, only=(*config.only, tag)))


def backend_config(settings: Settings, name: str) -> BackendConfig:
    """Raises KeyError for an unknown name."""
    section = settings.backends[name]
    custom = section.type not in BACKENDS
    options = (
        {**section.options, **section.config} if custom else {**section.options, "config": section.config}
    )
    embedder = section.embedder or settings.embedder
    isolation = _isolation(settings, section)
    return BackendConfig(name, section.type, options, embedder, section.directory, isolation)


def _isolation(settings: Settings, section: BackendSection) -> Isolation | None:
    if section.package is None:
        return None
    home = settings.environments.directory
    return Isolation(section.package, tuple(section.with_), section.python or "", home)


def control_config(settings: Settings, name: str) -> BackendConfig | None:
    """The frozen release that runs beside the backend: its adapter, options, embedder and Python, and a store
    of its own. Raises KeyError for an unknown name."""
    release, of = settings.backends[name].control, backend_config(settings, name)
    if release is None or of.isolation is None:
        return None
    control = control_names(settings)[name]
    isolation = replace(of.isolation, package=release)
    return replace(of, name=control, directory=_beside(of.directory), isolation=isolation)


def _beside(directory: Path | None, what: str = "-control") -> Path | None:
    """Where the control of a backend, or another release of it, has its store."""
    return directory.with_name(f"{directory.name}{what}") if directory else None


def release_config(settings: Settings, name: str, release: str) -> BackendConfig:
    """Another release of a backend that has a `package`: `2.2.1`, or `mem0ai==2.2.1`. Called `mem0@2.2.1`, it
    has a store of its own. Raises KeyError for an unknown name, `SettingsError` for what cannot be run."""
    section, of = settings.backends[name], backend_config(settings, name)
    if of.isolation is None:
        raise SettingsError(
            f"{name} has no package: only what runs in an environment of its own has releases"
        )
    version = release.rpartition("==")[2]
    package = f"{of.isolation.package.partition('==')[0]}=={version}"
    if not is_pinned(package) or project(release if "==" in release else package) != project(package):
        raise SettingsError(f"{release!r} is no release of {of.isolation.package}: {name}@1.2.3 names one")
    for key in sorted(OUTER_STORES.get(section.type, ())):
        if _value_at(key, section):
            raise SettingsError(
                f"backends.{name}: both releases would share the store that {key} names; leave it to "
                "memtrend, or configure the other release as a backend with a store of its own"
            )
    directory, isolation = _beside(of.directory, f"@{version}"), replace(of.isolation, package=package)
    return replace(of, name=f"{name}@{version}", directory=directory, isolation=isolation)


def backend_public(settings: Settings, name: str) -> Mapping[str, object]:
    """The backend's configuration with secrets hidden: what is stored and shown."""
    shown: Mapping[str, object] = public(settings)["backends"][name]
    return shown


def run_limits(settings: Settings) -> RunLimits:
    limits = settings.limits
    return RunLimits(
        limits.timeout,
        limits.attempts,
        limits.max_error_rate,
        limits.concurrency,
        limits.diagnose.max_cases,
        limits.money_per_day,
    )


def plan(
    settings: Settings,
    suite: str,
    backend: str,
    *,
    trials: int = 1,
    trigger: str = "cli",
    tag: str = "",
    meta: Mapping[str, str] | None = None,
) -> RunPlan:
    """What to run for one (suite, backend). Raises `SuiteError`, and KeyError for unknown names."""
    return RunPlan(
        suite=load_suite(settings, suite, tag),
        backend=backend_config(settings, backend),
        trials=trials,
        trigger=trigger,
        subset=tag,
        meta=meta or {},
        owner=settings.backends[backend].owner,
        suite_owner=suite_owner(settings, suite),
        confirm=suite_confirm(settings, suite),
        limits=run_limits(settings),
        public_config=backend_public(settings, backend),
        control=control_config(settings, backend),
    )


def register_all(db: Database, settings: Settings) -> None:
    """Write the suites and backends known as rows, so that dashboard and API can name and check them.
    Raises `SuiteError` for the first suite that cannot be loaded."""
    for name in suite_names(settings):
        record = suite_record(load_suite(settings, name), suite_owner(settings, name))
        writes.register_suite(db, record)
    for name, section in settings.backends.items():
        writes.register_backend(db, name, section.type, backend_public(settings, name), section.owner)
