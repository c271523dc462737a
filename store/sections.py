"""The sections of memtrend.toml: what each key is, and what it may be."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from store.alert_kinds import KINDS
from store.cron import cron_problem
from store.metrics import METRICS

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?"


def is_pinned(release: str) -> bool:
    """Whether it is a package and its exact version."""
    return re.fullmatch(NAME + r"==[A-Za-z0-9][A-Za-z0-9.+!_-]*", release) is not None


def _pinned(release: str) -> str:
    """What may move is no release, and its environment would not be the same twice."""
    if not is_pinned(release):
        raise ValueError('should be a package and its exact version: "mem0ai==2.2.1"')
    return release


def _requirement(package: str) -> str:
    if not re.fullmatch(NAME + r"([=<>!~ ].*)?", package):
        raise ValueError('should be packages as pip takes them: ["langgraph-checkpoint-sqlite==3.1.2"]')
    if " -" in package or re.search(r"://[^/\s]*@", package):
        raise ValueError("takes no options, and no password in an address: uv has settings for that")
    return package


def _python(python: str) -> str:
    version = re.fullmatch(r"\d+(\.\d+)*", python)
    if not version and ("/" not in python or python.startswith("-")):
        raise ValueError('should be a version that is on the PATH, such as "3.12", or a path with a slash')
    return python


def _duration(text: str) -> str:
    if not re.fullmatch(r"[0-9]+[smhd]", text):
        raise ValueError('should be a number and a unit, s, m, h or d: "2h"')
    return text


def time_of(duration: str) -> timedelta:
    """Of a text such as 90s, 15m, 2h, 60d. Raises ValueError for any other."""
    unit = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}[_duration(duration)[-1]]
    return timedelta(**{unit: int(duration[:-1])})


def _kept(text: str) -> str:
    if text != "never" and time_of(text) < timedelta(days=1):
        raise ValueError('should be a day or more, such as "90d", or "never"')
    return text


def _known_kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"should be one of {', '.join(KINDS)}")
    return kind


Pinned = Annotated[str, AfterValidator(_pinned)]
Requirement = Annotated[str, AfterValidator(_requirement)]
Duration = Annotated[str, AfterValidator(_duration)]
Kept = Annotated[str, AfterValidator(_kept)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class DatabaseSection(Section):
    """`url` names the file of the record, relative to the folder of the configuration."""

    url: SecretStr = Field(default=SecretStr("sqlite:///memtrend.db"), min_length=1)


class BackendSection(Section):
    """A backend instance. `config` is the vendor's, verbatim; keys that are not listed here are the
    adapter's own `options`. `embedder` overrides the one of all; without `directory` it lives in memory.
    With `package`, a pinned release, it runs in an environment of its own, `with` more packages, on this
    `python`; `control` is the frozen release that each run of a whole suite is held beside."""

    model_config = ConfigDict(extra="allow")

    type: str
    owner: str = "default"
    embedder: str | dict[str, Any] | None = None
    directory: Path | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    package: Pinned | None = None
    with_: list[Requirement] = Field(default_factory=list, alias="with")
    python: Annotated[str, AfterValidator(_python)] | None = None
    control: Pinned | None = None

    @field_validator("with_", "python", "control")
    @classmethod
    def _of_an_environment(cls, value: Any, info: ValidationInfo) -> Any:
        if value and "package" in info.data and not info.data["package"]:
            raise ValueError("needs package: the release that runs in an environment of its own")
        return value

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        """Configuration and options hold secrets in the clear, and must not get into a log."""
        return [("type", self.type), ("owner", self.owner)]


class ConfirmSection(Section):
    """How a suspicion comes up, at a `level` of chance by which a first look may be wrong, and is looked at
    again: by so many `trials` at once, and as many `after` some time, unless they would cost more than
    `max_cost` USD."""

    level: float = Field(default=0.05, ge=0.002, le=0.05)
    trials: int = Field(default=3, ge=1)
    after: Duration = "2h"
    max_cost: float | None = Field(default=None, ge=0)


class SuiteSection(Section):
    """A suite of the team's. `only` and `without` select cases by tag; `bars`: metric -> what a gate asks for
    at least, or at most where lower is better. `licence` and `citation` are printed with its results."""

    path: Path
    kind: str = "golden"
    only: list[str] = Field(default_factory=list)
    without: list[str] = Field(default_factory=list)
    owner: str = "default"
    licence: str = ""
    citation: str = ""
    bars: dict[str, float] = Field(default_factory=dict)
    confirm: ConfirmSection = Field(default_factory=ConfirmSection)

    @field_validator("bars")
    @classmethod
    def _known_metrics(cls, bars: dict[str, float]) -> dict[str, float]:
        if not bars.keys() <= METRICS.keys():
            raise ValueError(f"unknown metric; known: {', '.join(METRICS)}")
        return bars


class SubsetSection(Section):
    """How many cases of a suite are drawn: a `share` of them, or so many `cases`."""

    share: float | None = Field(default=None, gt=0, lt=1)
    cases: int | None = Field(default=None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _number_of_cases(cls, value: Any) -> Any:
        return {"cases": value} if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _one_of_both(self) -> SubsetSection:
        if (self.share is None) == (self.cases is None):
            raise ValueError("should be a number of cases, or a share of them: subset = { share = 0.2 }")
        return self

    def __str__(self) -> str:
        return str(self.cases) if self.share is None else f"{100 * self.share:g}%"


class ScheduleSection(Section):
    """When which suites run on which backends; `*` is all of them. Times are `cron`, on the clock of
    `timezone`, or a multiple of `every` since 1970 in UTC. `kind` calibration: each runs twice in a row, and
    is compared with itself; proof: a drill on each proves that somebody would be told. `subset`: cases drawn
    anew for each fire. A fire begins up to `jitter` late, and never later than `window` after its time;
    `catch_up`: whether one that found no collector is made up for."""

    cron: str | None = None
    every: Duration | None = None
    timezone: str = "UTC"
    kind: Literal["run", "calibration", "proof"] = "run"
    suites: list[str] = Field(min_length=1)
    backends: list[str] = Field(default=["*"], min_length=1)
    trials: int = Field(default=1, ge=1)
    subset: SubsetSection | None = None
    catch_up: Literal["none", "once"] = "once"
    window: Duration | None = None
    jitter: Duration = "0s"
    enabled: bool = True

    @field_validator("cron")
    @classmethod
    def _five_fields(cls, cron: str | None) -> str | None:
        if cron is not None and (problem := cron_problem(cron)):
            raise ValueError(problem)
        return cron

    @field_validator("every")
    @classmethod
    def _a_minute_at_least(cls, every: str | None) -> str | None:
        if every is not None and time_of(every) < timedelta(minutes=1):
            raise ValueError("should be 1m at least")
        return every

    @field_validator("timezone")
    @classmethod
    def _known_timezone(cls, timezone: str) -> str:
        if timezone not in available_timezones():
            raise ValueError('should be a name of the tz database, such as "Europe/Berlin"')
        return timezone

    @field_validator("trials")
    @classmethod
    def _once_each(cls, trials: int, info: ValidationInfo) -> int:
        if trials > 1 and (kind := info.data.get("kind")) != "run":
            raise ValueError(f"a {kind} asks each question once in either run; leave trials out")
        return trials

    @model_validator(mode="after")
    def _fit_together(self) -> ScheduleSection:
        if problem := self._problem():
            raise ValueError(problem)
        return self

    def _problem(self) -> str | None:
        if (self.cron is None) == (self.every is None):
            return 'needs either cron = "0 3 * * *" or every = "6h", and not both'
        if self.every and self.timezone != "UTC":
            return "timezone goes with cron; every counts in UTC"
        if self.subset and self.kind != "run":
            return f"a {self.kind} is of a whole suite; leave subset out"
        if self.kind == "proof" and "*" in self.backends:
            return 'a proof names its backends: backends = ["hybrid"]'
        if self.window and time_of(self.window) <= time_of(self.jitter):
            return "window should be longer than jitter"
        if self.every and time_of(self.every) <= time_of(self.jitter):
            return "every should be longer than jitter"
        return None


class Diagnose(Section):
    """`max_cases`: lost cases of a run that are asked again for the diagnosis."""

    max_cases: int = Field(default=50, ge=0)


class Limits(Section):
    """`timeout` in seconds a call; `attempts` counts calls, the first one included; a run with a larger share
    of errors than `max_error_rate` is invalid; `concurrency` counts scenarios at once; `money_per_day` in
    USD holds for all runs of a UTC day together, None for no limit."""

    timeout: float = Field(default=30.0, gt=0)
    attempts: int = Field(default=3, ge=1)
    max_error_rate: float = Field(default=0.1, ge=0, le=1)
    concurrency: int = Field(default=4, ge=1)
    diagnose: Diagnose = Field(default_factory=Diagnose)
    money_per_day: float | None = Field(default=None, ge=0)


class RetentionSection(Section):
    """How long after a run its `details` (texts: answers, journals) and its `results` (of scenarios and
    cases, with their scores) are kept: a duration of a day or more, such as 90d, or never to remove any."""

    details: Kept = "never"
    results: Kept = "never"


class EnvironmentsSection(Section):
    """Where the environments of releases are kept (default: in the user's cache folder), and for how long
    after their last use `memtrend backend envs --clean` leaves them."""

    directory: Path | None = None
    keep: Duration = "60d"


class DashboardSection(Section):
    """`writes` None: only while the host is loopback. `hosts`: names by which browsers may call the server,
    beside its address and localhost; without any, all of them while the host is not loopback."""

    host: str = "127.0.0.1"
    hosts: list[str] = []
    port: int = Field(default=8501, ge=1, le=65535)
    writes: bool | None = None
    title: str = "memtrend"


class ApiSection(Section):
    """Without a token, the API takes no requests that write."""

    token: SecretStr | None = Field(default=None, min_length=1)


class LogSection(Section):
    """What a process that runs for long logs: entries of `level` and above; `format` auto: readable on a
    terminal, else JSON."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "console"] = "auto"


class ChannelSection(Section):
    """Where alerts are told. `url` (of apprise, several with blanks between them); `secret` signs a webhook's
    messages. It hears of alerts of these `owners`, `tags` and `kinds` (none named: of all) from `severity`
    up; of `suspicions` too, of `drills` too, and with memory texts only where it may `include_text`. Beyond
    `rate` messages an hour the rest comes as one digest, critical alerts apart; `budget` is the number of
    false alarms a month that it accepts."""

    type: Literal["slack", "webhook", "apprise"]
    url: SecretStr | None = Field(default=None, min_length=1)
    secret: SecretStr | None = Field(default=None, min_length=1)
    owners: list[str] = Field(default_factory=list)
    tags: list[str] = Field(default_factory=list)
    kinds: list[Annotated[str, AfterValidator(_known_kind)]] = Field(default_factory=list)
    severity: Literal["info", "normal", "high", "critical"] = "normal"
    suspicions: bool = False
    drills: bool = False
    include_text: bool = False
    rate: int = Field(default=20, ge=1)
    budget: float = Field(default=1.0, gt=0)

    @model_validator(mode="after")
    def _complete(self) -> ChannelSection:
        if self.url is None:
            raise ValueError("needs url, or url_file with the path of a file that holds it")
        if self.secret and self.type != "webhook":
            raise ValueError("secret signs the messages of a webhook; leave it out")
        return self


class AlertsSection(Section):
    """`base_url`: of the dashboard, for links in messages; `daily`: whether a channel is reminded once a day
    of what is open. `dead_man_url` is pinged after a tick of the collector, a minute apart, so that its
    silence is noticed elsewhere."""

    base_url: str = ""
    daily: bool = True
    dead_man_url: SecretStr | None = Field(default=None, min_length=1)

    @field_validator("base_url")
    @classmethod
    def _an_address(cls, url: str) -> str:
        if url and not re.fullmatch(r"https?://[^\s/@]+(/[^\s?#]*)?", url):
            raise ValueError('should be the address of the dashboard, such as "https://memtrend.example.org"')
        return url
