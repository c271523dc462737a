"""Is everything in order? Each check says what it saw and, when it is bad, what to do."""

from __future__ import annotations

import importlib.util
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from sqlalchemy.engine import make_url

from collectors import policy
from collectors.backend import NAMESPACE_PREFIX, Backend, BackendConfig
from collectors.calls import Instance, Line, describe, on_line
from collectors.configured import backend_config, configured, control_config, load_suite, suite_names
from collectors.contract import CheckResult, adapter_checks, contract_report
from collectors.lease import BackendLease, InstanceBusy, whoami
from collectors.suite import SuiteError
from store import health_words, queries, retention
from store.database import Database, open_database
from store.dialects.place import network_file_system
from store.errors import StoreError
from store.hiding import redacted
from store.settings import Settings, SettingsError

LOW_DISK_GB = 1.0
CLOSING = "close() must give back what was opened, and not raise."
REMEDIES = ("make install EXTRAS=", "package = ")
"""What an error holds that says itself what to do about it."""
UNMADE = "cannot make an environment"
OURS = ("store", "collectors", "dashboard")


def check_all() -> list[CheckResult]:
    """Everything, cheapest first; a broken configuration ends the list."""
    try:
        settings = configured()
    except SettingsError as error:
        return [CheckResult("configuration", False, redacted(str(error)), "mend the keys named above")]
    source = str(settings.source) if settings.source else "defaults, no memtrend.toml here"
    return [
        CheckResult("configuration", True, source),
        *_guarded("shadowed names", _shadowed),
        *_guarded("disk", lambda: _disk(settings)),
        *_guarded("suites", lambda: _suites(settings)),
        *_guarded("database", lambda: _record(settings)),
        *(check for name in settings.backends for check in _backend(settings, name)),
    ]


def check_backend(settings: Settings, name: str) -> list[CheckResult]:
    """The adapter's own checks, and the contract every backend ought to keep, explained. Raises KeyError for
    an unknown name."""
    config = backend_config(settings, name)
    found = _guarded(name, lambda: _undisturbed(settings, config, deep=True), _advice(name))
    return [*found, *_control(settings, name)]


Advice = Callable[[Exception], str]
Checking = Callable[[], Iterable[CheckResult]]


def _guarded(name: str, check: Checking, advice: Advice = lambda error: "") -> list[CheckResult]:
    try:
        return list(check())
    except Exception as error:  # noqa: BLE001  a doctor reports what it meets, whatever it is
        return [CheckResult(name, False, describe(error), advice(error))]


def _advice(section: str) -> Advice:
    """What to do where the backend cannot be opened; "" where the error says that itself."""

    def advice(error: Exception) -> str:
        said = str(error)
        if any(remedy in said for remedy in REMEDIES):
            return ""
        if said.startswith(UNMADE):
            return f"mend package, with or python of the release in [backends.{section}]"
        return f"mend [backends.{section}] in memtrend.toml, or what it names"

    return advice


def _shadowed() -> Iterator[CheckResult]:
    """Our top-level names must be ours: a user's `store/` in the working directory would win."""
    home = Path(__file__).resolve().parents[1]
    for name in OURS:
        found = importlib.util.find_spec(name)
        where = Path(found.origin).resolve().parents[1] if found and found.origin else None
        if where != home:
            yield CheckResult(
                "shadowed names", False, f"{name} is imported from {where}", "start memtrend elsewhere"
            )
        elif Path.cwd().resolve() != home and (Path.cwd() / name).is_dir():
            advice = "rename the folder, or start memtrend from another one"
            yield CheckResult(
                "shadowed names", False, f"./{name} has the name of a package of memtrend", advice
            )


def _disk(settings: Settings) -> Iterator[CheckResult]:
    url = make_url(settings.database.url.get_secret_value())
    beside = url.get_backend_name() == "sqlite"
    path = Path(url.database or ".").resolve().parent if beside else Path.cwd()
    free = shutil.disk_usage(path).free / 1e9
    where = "beside the database" if beside else "here, where backends keep theirs"
    yield CheckResult(
        "disk", free > LOW_DISK_GB, f"{free:.1f} GB free {where}", "make room, or move database.url"
    )
    if beside:
        yield from _network(path)


def _network(folder: Path) -> Iterator[CheckResult]:
    """SQLite keeps its log in memory that processes of one machine share, and locks what lies on a network in
    ways that not every server honours: a record there is torn sooner or later."""
    if kind := network_file_system(folder):
        told = f"the record lies on a network file system ({kind}), where SQLite's log (WAL) does not work"
        advice = "name a file on a disk of this machine in database.url, or keep the record in PostgreSQL"
        yield CheckResult("file system", False, told, advice)


def _suites(settings: Settings) -> Iterator[CheckResult]:
    for name in suite_names(settings):
        suite = load_suite(settings, name)
        cases = sum(1 for _ in suite.probes)
        yield CheckResult(
            f"suite {name}", True, f"{cases} cases, {suite.plants} plants, version {suite.version}"
        )


def _record(settings: Settings) -> Iterator[CheckResult]:
    try:
        db = open_database(settings.database.url.get_secret_value())
    except StoreError as error:
        yield CheckResult(
            "database", False, redacted(str(error)), "name another file in database.url, or mend this one"
        )
        return
    try:
        told = [f"{db.url_public}, {db.server()}, {queries.count_runs(db)} runs"]
        told += filter(None, [retention.advice(db, settings.retention)])
        yield CheckResult("database", True, "; ".join(told))
        yield _clock(db)
        yield _collector(db)
        yield from _schedules(db)
        yield from _policy(db, settings)
    finally:
        db.close()


def _policy(db: Database, settings: Settings) -> Iterator[CheckResult]:
    try:
        found = policy.complaints(db, settings)
    except SuiteError:  # told already, of the suites
        return
    advice = "docs/suites.md says why: Changing a suite"
    for line in found:
        yield CheckResult("policy of the suites", False, line, advice)
    if not found:
        yield CheckResult("policy of the suites", True, "every change is accounted for")


def _clock(db: Database) -> CheckResult:
    apart = abs((queries.clock(db) - datetime.now(UTC)).total_seconds())
    advice = "set the clock: leases and schedules go by the database's"
    return CheckResult("clock", apart < 5, f"{apart:.1f} s from the database's", advice)


def _collector(db: Database) -> CheckResult:
    beats = [beat for beat in queries.heartbeats(db) if beat.name == health_words.COLLECTOR]
    silent = health_words.silence(beats, datetime.now(UTC))
    if silent is None:
        return CheckResult("collector", True, "none has run yet: memtrend up, or memtrend collect")
    seen = f"last heard of {silent:.0f} s ago (pid {beats[0].pid} on {beats[0].host})"
    advice = "schedules do not run: memtrend up, or memtrend collect"
    return CheckResult("collector", health_words.is_alive(silent), seen, advice)


def _schedules(db: Database) -> Iterator[CheckResult]:
    """From what should have run, so that a dead collector is seen without a living one."""
    now = datetime.now(UTC)
    missed = sorted(queries.missed(db, now), key=lambda fire: fire.schedule)
    makes_up = 'catch_up = "once" makes up for one'
    lives = health_words.is_alive(health_words.silence(queries.heartbeats(db), now))
    advice = (
        f"this is told until the schedule has run again; {makes_up}"
        if lives
        else f"start memtrend collect, or a second one with --stand-by; {makes_up}"
    )
    for name, fires in groupby(missed, key=lambda fire: fire.schedule):
        *_, last = found = list(fires)
        count = f"{len(found)} fires, the last of" if len(found) > 1 else "the fire of"
        told = f"missed {count} {last.scheduled_for:%Y-%m-%d %H:%M} UTC: {last.reason}"
        yield CheckResult(f"schedule {name}", False, told, advice)
    if not missed and queries.schedules(db):
        yield CheckResult("schedules", True, "none has been missed")


def _backend(settings: Settings, name: str) -> list[CheckResult]:
    more = f"; memtrend doctor {name} checks what it ought to do"
    return [*_broken_or_not(settings, backend_config(settings, name), name, more), *_control(settings, name)]


def _control(settings: Settings, name: str) -> list[CheckResult]:
    """Whether the environment of the backend's control can be made, and its adapter works there."""
    control = control_config(settings, name)
    return _broken_or_not(settings, control, name, f", the control of {name}") if control else []


def _broken_or_not(settings: Settings, config: BackendConfig, section: str, more: str) -> list[CheckResult]:
    """Adapter checks as one line. `section`: where the backend is configured."""
    advice = _advice(section)
    found = _guarded(config.name, lambda: _undisturbed(settings, config, deep=False), advice)
    if found == [_in_use(config.name)]:
        return found
    bad = next((check for check in found if not check.ok), None)
    if bad is None:
        return [CheckResult(f"backend {config.name}", True, f"{len(found)} adapter checks{more}")]
    return [CheckResult(f"backend {config.name}", False, f"{bad.name}: {bad.detail}", bad.advice)]


def _undisturbed(settings: Settings, config: BackendConfig, *, deep: bool) -> list[CheckResult]:
    """Under the lease of a run, since what is planted and deleted here would spoil one."""
    try:
        db = open_database(settings.database.url.get_secret_value())
    except StoreError:  # told by a check of its own, and no run can be under way there
        return _examined(settings, config, deep=deep)
    try:
        with closing(db), BackendLease(db, config.name, threading.Event()):
            return _examined(settings, config, deep=deep)
    except InstanceBusy:
        return [_in_use(config.name)]


def _in_use(name: str) -> CheckResult:
    return CheckResult(f"backend {name}", True, "in use by a run: not checked")


def _examined(settings: Settings, config: BackendConfig, *, deep: bool) -> list[CheckResult]:
    """On a thread that can be left behind, should a call hang."""
    line = Line(settings.limits.timeout, threading.Event())
    try:
        instance = Instance(config)
        instance.prepare(threading.Event())  # no call, and may take its time
        backend = on_line(line(instance.handle).value, line)
        box = f"{NAMESPACE_PREFIX}doctor-{whoami().replace(':', '-')}"
        checks = adapter_checks(backend, box)
        whole = all(check.ok for check in checks)
        report = contract_report(backend, box) if deep and whole else []
        return [*checks, *report, *_guarded("close", lambda: _closed(backend), lambda error: CLOSING)]
    finally:
        line.close()


def _closed(backend: Backend) -> Iterator[CheckResult]:
    backend.close()
    yield CheckResult("close", True, "closed")
