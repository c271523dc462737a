"""From the settings to what collectors work with: suites, backends, limits, plans."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from collectors.backend import BACKENDS, OPTIONS, BackendConfig, Isolation
from collectors.embedding import LOCAL
from collectors.plans import Confirm, RunLimits, RunPlan
from collectors.record import suite_record
from collectors.suite import SHIPPED, Suite, SuiteConfig, SuiteError, load
from store import writes
from store.database import Database
from store.sections import BackendSection
from store.settings import Settings, check_names, load_settings, public


def configured(path: Path | None = None) -> Settings:
    """The settings in force, every name in them known; adapters are found beside their file from now on.
    Raises `SettingsError`."""
    settings = load_settings(path)
    check_names(settings, known_types=OPTIONS, known_suites=SHIPPED, known_embedders=LOCAL)
    _find_adapters_beside(settings.source)
    return settings


def _find_adapters_beside(source: Path | None) -> None:
    """Last of the path, as the working directory is: a user's own `store` must not take the place of ours."""
    if source and str(source.parent) not in sys.path:
        sys.path.append(str(source.parent))


def suite_names(settings: Settings) -> list[str]:
    """The team's own first, then those we ship; a suite of the team's may take a shipped one's name."""
    return list(dict.fromkeys([*settings.suites, *SHIPPED]))


def backend_names(settings: Settings) -> list[str]:
    return list(settings.backends)


def suite_config(settings: Settings, name: str) -> SuiteConfig:
    """Raises KeyError for an unknown name."""
    if name not in settings.suites:
        return SHIPPED[name]
    section = settings.suites[name]
    return SuiteConfig(name, section.path, section.kind, tuple(section.only), tuple(section.without))


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
    return Confirm(section.trials, section.max_cost)


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


def backend_public(settings: Settings, name: str) -> Mapping[str, object]:
    """The backend's configuration with secrets hidden: what is stored and shown."""
    shown: Mapping[str, object] = public(settings)["backends"][name]
    return shown


def run_limits(settings: Settings) -> RunLimits:
    limits = settings.limits
    return RunLimits(
        limits.timeout, limits.attempts, limits.max_error_rate, limits.concurrency, limits.diagnose.max_cases
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
    )


def register_all(db: Database, settings: Settings) -> None:
    """Write the suites and backends known as rows, so that dashboard and API can name and check them.
    Raises `SuiteError` for the first suite that cannot be loaded."""
    for name in suite_names(settings):
        record = suite_record(load_suite(settings, name), suite_owner(settings, name))
        writes.register_suite(db, record)
    for name, section in settings.backends.items():
        writes.register_backend(db, name, section.type, backend_public(settings, name), section.owner)
