"""memtrend.toml: what is configured. Each side validates its own sections further.

Environment variables beat the file: MEMTREND_LIMITS__TIMEOUT is [limits] timeout. A secret may stand in a
file that KEY_file, or MEMTREND_..._FILE, names. No message shows a value: it may be a secret.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, PrivateAttr, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as MalformedVariable

from store.hiding import SecretProblem, filled_in, hidden, read_secret, remember_secret, remember_secrets
from store.sections import (
    AlertsSection,
    ApiSection,
    BackendSection,
    ChannelSection,
    DashboardSection,
    DatabaseSection,
    EnvironmentsSection,
    Limits,
    LogSection,
    RetentionSection,
    ScheduleSection,
    SuiteSection,
)
from store.settings_words import is_secret, keys_of, said_of, section_of, sections_of

PREFIX = "MEMTREND_"
DELIMITER = "__"
CONFIG_VARIABLE = "MEMTREND_CONFIG"
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]

DEFAULTS: dict[str, dict[str, Any]] = {
    "backends": {name: {"type": name} for name in ("keyword", "dense", "hybrid", "nothing", "everything")},
    "schedules": {"nightly": {"cron": "0 3 * * *", "suites": ["golden", "holdout", "contract"]}},
}
"""What a file that lacks the whole section gets."""


class SettingsError(Exception):
    """What is configured cannot be used. Lines of `file: key: what is wrong; known: ...`, without values."""


class Settings(BaseSettings):
    """Everything configured. `source` is the file it came from, None for the defaults."""

    model_config = SettingsConfigDict(
        extra="forbid", hide_input_in_errors=True, env_prefix=PREFIX, env_nested_delimiter=DELIMITER
    )

    embedder: str | dict[str, Any] = Field(default="wordllama", repr=False)
    database: DatabaseSection = Field(default_factory=DatabaseSection)
    backends: dict[Name, BackendSection] = Field(default_factory=dict)
    suites: dict[Name, SuiteSection] = Field(default_factory=dict)
    schedules: dict[Name, ScheduleSection] = Field(default_factory=dict)
    limits: Limits = Field(default_factory=Limits)
    retention: RetentionSection = Field(default_factory=RetentionSection)
    environments: EnvironmentsSection = Field(default_factory=EnvironmentsSection)
    dashboard: DashboardSection = Field(default_factory=DashboardSection)
    api: ApiSection = Field(default_factory=ApiSection)
    channels: dict[Name, ChannelSection] = Field(default_factory=dict)
    alerts: AlertsSection = Field(default_factory=AlertsSection)
    log: LogSection = Field(default_factory=LogSection)
    _source: Path | None = PrivateAttr(default=None)
    _written: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def source(self) -> Path | None:
        return self._source

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment beats the file, which `load_settings` hands in; a section that the file has
        replaces the default one, a variable adds to either."""
        written = {**DEFAULTS, **init_settings()}
        return (_Environment(settings_cls), InitSettingsSource(settings_cls, written))


class _Environment(EnvSettingsSource):
    def __call__(self) -> dict[str, Any]:
        problems = _Problems(None)
        problems.extend(_unknown_variables())
        values = _with_secret_files(super().__call__(), Settings, "", Path.cwd(), problems)
        problems.stop()
        return values


class _Problems:
    """Collects what is wrong, so that one stop tells all of it."""

    def __init__(self, source: Path | None) -> None:
        self._source = source
        self._lines: list[str] = []

    def add(self, key: str, text: str) -> None:
        """`key` is dotted; the line names the variable instead where one sets it."""
        variable = _variable_that_sets(key)
        where = f"environment: {variable}" if variable else f"{self._source or 'the defaults'}: {key}"
        self._lines.append(f"{where}: {text}")

    def extend(self, lines: Iterator[str]) -> None:
        self._lines.extend(lines)

    def error(self) -> SettingsError:
        return SettingsError("\n".join(dict.fromkeys(self._lines)))

    def stop(self) -> None:
        if self._lines:
            raise self.error()


def load_settings(path: Path | None = None) -> Settings:
    """What is configured: environment over file over defaults. Raises `SettingsError`.

    path: default $MEMTREND_CONFIG, else ./memtrend.toml; only the last of them may be missing.
    """
    source = _source(path)
    problems = _Problems(source)
    written = _with_secret_files(_read(source), Settings, "", _folder(source), problems)
    problems.stop()
    try:
        settings = Settings(**written)
    except ValidationError as error:  # its cause would show values, so it goes no further
        raise _told(error, problems) from None
    except MalformedVariable as error:
        where = _section_named_in(error)
        raise SettingsError(f"environment: {where}: not JSON; set its keys one by one") from None
    return _finished(settings, source)


def _source(path: Path | None) -> Path | None:
    named = path or (Path(os.environ[CONFIG_VARIABLE]) if os.environ.get(CONFIG_VARIABLE) else None)
    source = Path(named or "memtrend.toml").expanduser().absolute()
    if source.is_file():
        return source
    if named is not None:
        raise SettingsError(f"{named}: no such file; memtrend init writes one")
    return None


def _folder(source: Path | None) -> Path:
    return source.parent if source else Path.cwd()


def _read(source: Path | None) -> dict[str, Any]:
    if source is None:
        return {}
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{source}: not TOML: {error}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{source}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise SettingsError(f"{source}: cannot be read ({error.strerror})") from None


# Secrets


def _with_secret_files(
    values: dict[str, Any], section: type[BaseModel], prefix: str, folder: Path, problems: _Problems
) -> dict[str, Any]:
    """The values of one source with `KEY` read from the file that `KEY_file` names, for every secret KEY."""
    kept = dict(values)
    for name, field in section.model_fields.items():
        inner = section_of(field.annotation)
        if inner and isinstance(kept.get(name), dict):
            kept[name] = _with_secret_files(kept[name], inner, f"{prefix}{name}.", folder, problems)
        elif (named := sections_of(field.annotation)) and isinstance(kept.get(name), dict):
            kept[name] = {
                key: _with_secret_files(value, named, f"{prefix}{name}.{key}.", folder, problems)
                if isinstance(value, dict)
                else value
                for key, value in kept[name].items()
            }
        elif is_secret(field.annotation) and f"{name}_file" in kept:
            path = kept.pop(f"{name}_file")
            _take_secret(kept, name, path, prefix, folder, problems)
    return kept


def _take_secret(
    kept: dict[str, Any], name: str, path: Any, prefix: str, folder: Path, problems: _Problems
) -> None:
    key = f"{prefix}{name}_file"
    if name in kept:
        problems.add(key, f"given together with {name}; give one of them")
        return
    try:
        kept[name] = read_secret(folder / Path(str(path)).expanduser())
    except SecretProblem as error:
        problems.add(key, str(error))


def _finished(settings: Settings, source: Path | None) -> Settings:
    """Paths made absolute, placeholders filled in. What was written is kept for showing."""
    folder = _folder(source)
    settings._source = source
    settings.database.url = SecretStr(_absolute(settings.database.url.get_secret_value(), folder))
    for suite in settings.suites.values():
        suite.path = folder / suite.path.expanduser()
    for backend in settings.backends.values():
        backend.directory = folder / backend.directory.expanduser() if backend.directory else None
        if backend.python and "/" in backend.python:
            backend.python = str(folder / Path(backend.python).expanduser())
    if settings.environments.directory:
        settings.environments.directory = folder / settings.environments.directory.expanduser()
    settings._written = settings.model_dump(mode="json", by_alias=True)
    problems = _Problems(source)
    _fill_in(settings, folder, problems)
    problems.stop()
    _remember_secrets(settings)
    return settings


def _absolute(url: str, folder: Path) -> str:
    """A relative SQLite file is meant from the folder of the configuration, not from wherever one stands."""
    name = url.removeprefix("sqlite:///")
    if name == url or name.startswith("/") or name in ("", ":memory:"):
        return url
    return f"sqlite:///{folder / name}"


def _fill_in(settings: Settings, folder: Path, problems: _Problems) -> None:
    settings.embedder = filled_in(settings.embedder, folder, "embedder", problems.add)
    for name, backend in settings.backends.items():
        for field in ("embedder", "config", *backend.options):
            value = filled_in(getattr(backend, field), folder, f"backends.{name}.{field}", problems.add)
            setattr(backend, field, value)


def _remember_secrets(settings: Settings) -> None:
    """An error may repeat what it was given: whoever tells one asks `redacted` first."""
    remember_secrets(settings.embedder)
    for backend in settings.backends.values():
        remember_secrets([backend.embedder, backend.config, backend.options])
    remember_secrets(settings.database.url.get_secret_value())
    if settings.api.token:
        remember_secret(settings.api.token.get_secret_value())
    for channel in settings.channels.values():
        for secret in (channel.url, channel.secret):
            for word in secret.get_secret_value().split() if secret else ():
                remember_secret(word)
    if settings.alerts.dead_man_url:
        remember_secret(settings.alerts.dead_man_url.get_secret_value())


def public(settings: Settings) -> dict[str, Any]:
    """What is in force as JSON values, secrets hidden and ${env:...} as written: fit to show and store."""
    written = settings._written or settings.model_dump(mode="json", by_alias=True)
    shown: dict[str, Any] = {key: hidden(section) for key, section in written.items()}
    for key in ("backends", "suites", "schedules"):  # whose names are the user's, be one "token"
        shown[key] = {name: hidden(section) for name, section in written[key].items()}
    shown["database"]["url"] = hidden(settings.database.url.get_secret_value())
    return shown


# What is wrong, in words


def check_names(
    settings: Settings,
    known_types: Mapping[str, Collection[str]],
    known_suites: Collection[str],
    known_embedders: Collection[str],
    in_process: Collection[str] = (),
) -> None:
    """Raises `SettingsError` for every name that leads nowhere: a backend's type, an option that its type
    does not take (a dotted path with a colon is any type and takes any), a package for one of `in_process`,
    which have no release to run in, an embedder, a suite or backend of a schedule. `known_types`: type ->
    its options."""
    problems = _Problems(settings.source)
    _check(problems, "embedder", settings.embedder, known_embedders)
    for name, backend in settings.backends.items():
        if ":" not in backend.type:
            _check(problems, f"backends.{name}.type", backend.type, known_types, 'or "package.module:Class"')
            _check_options(problems, name, backend, known_types)
            if backend.package and backend.type in in_process:
                told = f"{backend.type} runs in memtrend's own process: leave package out"
                problems.add(f"backends.{name}.package", told)
        _check(problems, f"backends.{name}.embedder", backend.embedder, known_embedders)
    for name, schedule in settings.schedules.items():
        _check(problems, f"schedules.{name}.suites", schedule.suites, {*known_suites, *settings.suites})
        _check(problems, f"schedules.{name}.backends", schedule.backends, {"*", *settings.backends})
    problems.stop()


def _check_options(
    problems: _Problems, name: str, backend: BackendSection, known_types: Mapping[str, Collection[str]]
) -> None:
    if backend.type in known_types:
        known = ", ".join(sorted({*keys_of(BackendSection), *known_types[backend.type]}))
        for option in sorted(backend.options.keys() - known_types[backend.type]):
            problems.add(f"backends.{name}.{option}", f"unknown key; known: {known}")


def _check(problems: _Problems, key: str, given: Any, known: Collection[str], also: str = "") -> None:
    names = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    if any(name not in known for name in names):
        problems.add(key, f"unknown name; known: {', '.join(sorted(known))} {also}".rstrip())


def _unknown_variables() -> Iterator[str]:
    for name in sorted(os.environ):
        if name.upper().startswith(PREFIX) and name.upper() != CONFIG_VARIABLE:
            parts = name[len(PREFIX) :].lower().split(DELIMITER)
            if parts[0] not in Settings.model_fields:
                known = ", ".join(f"{PREFIX}{field.upper()}" for field in sorted(Settings.model_fields))
                yield f"environment: {name}: unknown; known: {CONFIG_VARIABLE} and what begins with {known}"
            elif parts[0] == "backends" and parts[2:3] == ["config"]:
                yield f"environment: {name}: set a vendor's config in the file; ${{env:NAME}} works there"


def _variable_that_sets(key: str) -> str | None:
    """The variable that sets a dotted key, or the section around it, or something in it."""
    name = PREFIX + key.replace(".", DELIMITER).upper()
    variables = (variable for variable in sorted(os.environ) if variable.upper().startswith(PREFIX))
    around = (
        variable
        for variable in variables
        if f"{name}{DELIMITER}".startswith(f"{variable.upper()}{DELIMITER}")
        or variable.upper().startswith(f"{name}{DELIMITER}")
        or variable.upper() == f"{name}_FILE"
    )
    return next(around, None)


def _section_named_in(error: MalformedVariable) -> str:
    found = re.search(r'field "(\w+)"', str(error))
    return PREFIX + found[1].upper() if found else f"a {PREFIX} variable"


def _told(error: ValidationError, problems: _Problems) -> SettingsError:
    for key, text in said_of(error, Settings):
        problems.add(key, text)
    return problems.error()
