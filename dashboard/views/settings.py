"""What is in force? Configuration, schedules, backends, versions, the record. Nothing is changed here."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from dashboard import configuration, data, health_tables, parts, tables
from store import health_words, queries, words
from store.columns import to_json
from store.origins import DEFAULT, Key, keys_in_force
from store.sections import BackendSection, ScheduleSection
from store.settings import Settings, public

EVERY, WRITTEN = "every key", "set by you"
SHOWN_PACKAGES = ("streamlit", "plotly", "sqlalchemy", "pydantic")


class Shown(NamedTuple):
    """What is configured, key by key; `problem` says why the file cannot be followed as it is now."""

    settings: Settings
    keys: Sequence[Key]
    problem: str


def page() -> None:
    shown = _shown()
    _title(shown)
    _cards(shown)
    _schedules(shown.settings)
    _backends(shown.settings)
    left, right = st.columns(2, gap="medium")
    with left:
        _retention(shown.keys)
        _exports(shown)
    with right:
        _versions()
    _configuration(shown)


def _shown() -> Shown:
    """What the file says now; while it is broken, what it said before."""
    problem = configuration.problem()
    settings = configuration.settings()
    keys = keys_in_force(settings, readable=not problem)
    return Shown(settings, keys if problem else [_decided(key) for key in keys], problem)


def _decided(key: Key) -> Key:
    """Where nothing is written, the host decides whether pages may write: told is what came of it."""
    open_choice = key.name == "dashboard.writes" and key.value is None
    return key._replace(value=to_json(data.may_write())) if open_choice else key


def _title(shown: Shown) -> None:
    file = _file(shown.settings)
    if not shown.problem:
        origins = [key.origin for key in shown.keys]
        finding = health_words.settings_title(file, origins, DEFAULT, data.may_write())
        st.title(parts.plain(finding), anchor=False)
        return
    st.title(health_words.FORMER, anchor=False)
    with st.container(border=True, gap="xsmall"):
        st.badge("Not taken over", icon=":material/error:", color="violet")
        st.text(shown.problem)
        st.code("memtrend doctor", language="bash", width=480)


def _file(settings: Settings) -> str:
    return settings.source.name if settings.source else ""


# Cards ----------------------------------------------------------------------------------------------------


def _cards(shown: Shown) -> None:
    settings, facts = shown.settings, data.now(queries.record_facts)
    place = data.database().url_public
    with st.grid(5, min_column_width=190, gap="small"):
        parts.card("Configuration", *_source(settings))
        parts.card("Record", health_words.size(facts.size), place, _whole_runs())
        signed = "signed local: nobody is asked for a name" if data.may_write() else ""
        parts.card("Writing from these pages", "allowed" if data.may_write() else "off", _why(), signed)
        parts.card("API", "open to a token" if settings.api.token else "reads only", _api(settings))
        parts.card("Embedder", *_embedder(settings))


def _source(settings: Settings) -> tuple[str, ...]:
    if settings.source is None:
        return "defaults", "no memtrend.toml here: memtrend init writes one"
    return settings.source.name, str(settings.source.parent)


def _whole_runs() -> str:
    return words.count(data.ask(queries.count_runs), "run")


def _why() -> str:
    host = st.get_option("server.address") or ""
    return health_words.may_write(configuration.settings().dashboard.writes, host, host in data.LOOPBACK)


def _api(settings: Settings) -> str:
    return "[api] token is set" if settings.api.token else "[api] token = ... lets machines ask for runs"


def _embedder(settings: Settings) -> tuple[str, ...]:
    """Without its options: those stand below, secrets hidden."""
    chosen = public(settings)["embedder"]
    own = sum(one.embedder is not None for one in settings.backends.values())
    name = chosen if isinstance(chosen, str) else str(chosen.get("type", "as configured"))
    others = f"{words.count(own, 'backend')} with another" if own else "for every backend that takes one"
    return name, others


# Tables ---------------------------------------------------------------------------------------------------


def _table(title: str, name: str, rows: Sequence[Mapping[str, Any]], empty: str, **columns: Any) -> None:
    """With its download, or with words on how to fill it."""
    frame = pd.DataFrame(rows)
    with parts.heading(title):
        if rows:
            tables.download("CSV", f"{name}.csv", lambda: frame.drop(columns="mark", errors="ignore"))
    if rows:
        health_tables.table(frame, name, columns)
    else:
        st.markdown(empty)


def _schedules(settings: Settings) -> None:
    known = {row.name: row for row in data.now(queries.schedules)}
    waits = {fire.schedule: fire.reason for fire in data.now(queries.waiting_fires)}
    rows = [
        _schedule(name, section, known.get(name)) | {"waits": waits.get(name)}
        for name, section in settings.schedules.items()
    ]
    column = st.column_config
    _table(
        "Schedules", "schedules", rows,
        "Nothing is scheduled: `[schedules.NAME]` in memtrend.toml makes one.",
        schedule=column.TextColumn("Schedule", width=90), when=column.TextColumn("When", width=175),
        next=health_tables.moment_column("Next"), last=health_tables.moment_column("Last"),
        suites=column.TextColumn("Suites", width=130), backends=column.TextColumn("Backends", width=100),
        kind=column.TextColumn("Kind", width=85), trials=column.NumberColumn("Trials", width=55),
        rules=column.TextColumn("Rules", width=180), waits=column.TextColumn("Waits", width=110),
    )  # fmt: skip


def _schedule(name: str, section: ScheduleSection, known: queries.ScheduleRow | None) -> dict[str, Any]:
    times = {
        label: at.astimezone(parts.zone()) if at else None
        for label, at in (("next", known and known.next_fire), ("last", known and known.last_fire))
    }
    return {
        "schedule": name,
        "when": f"{section.cron} ({section.timezone})" if section.cron else f"every {section.every}",
        **times,
        "suites": ", ".join(section.suites),
        "backends": "all" if section.backends == ["*"] else ", ".join(section.backends),
        "kind": section.kind if section.enabled else f"{section.kind}, off",
        "trials": section.trials,
        "rules": _rules(section),
    }


def _rules(section: ScheduleSection) -> str:
    """What a fire goes by beside its time, where that is not the default."""
    subset = section.subset and (section.subset.cases or f"{section.subset.share:.0%}")
    told = {
        "subset": subset,
        "jitter": section.jitter if section.jitter != "0s" else None,
        "window": section.window,
        "catch-up": "none" if section.catch_up == "none" else None,
    }
    return ", ".join(f"{name} {value}" for name, value in told.items() if value)


def _backends(settings: Settings) -> None:
    styles, told = parts.styles(), public(settings)["backends"]
    rows = [
        {"mark": tables.marker(styles[name]) if name in styles else None}
        | _backend(name, section, told[name])
        for name, section in settings.backends.items()
    ]
    column = st.column_config
    _table(
        "Backends", "backends", rows,
        "No backend is configured: `[backends.NAME]` in memtrend.toml adds one.",
        mark=column.ImageColumn("", width=34) if styles else None,
        backend=column.TextColumn("Backend", width=100), type=column.TextColumn("Type", width=100),
        package=column.TextColumn("Release", width=130),
        control=column.TextColumn("Control", width=120), python=column.TextColumn("Python", width=65),
        embedder=column.TextColumn("Embedder", width=90), owner=column.TextColumn("Owner", width=80),
    )  # fmt: skip


def _backend(name: str, section: BackendSection, told: Mapping[str, Any]) -> dict[str, Any]:
    """`told`: the section without its secrets."""
    embedder = told.get("embedder")
    return {
        "backend": name,
        "type": section.type,
        "package": section.package,
        "control": section.control,
        "python": section.python,
        "embedder": embedder if embedder is None or isinstance(embedder, str) else str(embedder.get("type")),
        "owner": section.owner,
    }


def _retention(keys: Sequence[Key]) -> None:
    rows = [
        {"what": key.name, "after": (key.value or "never").strip('"'), "from": key.origin}
        for key in keys
        if key.name.startswith("retention.") or key.name == "environments.keep"
    ]
    _table(
        "Retention", "retention", rows, "", what=st.column_config.TextColumn("Key", width=190),
        after=st.column_config.TextColumn("Removed after", width=130), **{"from": "From"},
    )  # fmt: skip
    st.caption("Verdicts, rollups and baselines are kept for ever.")


def _versions() -> None:
    facts = data.now(queries.record_facts)
    engine, _, number = facts.server.partition(" ")
    rows = [
        ("memtrend", version("memtrend")),
        ("schema of the record", f"revision {facts.revision}"),
        (engine, number),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in SHOWN_PACKAGES),
    ]
    column = st.column_config
    _table(
        "Versions", "versions", [{"what": what, "version": number} for what, number in rows], "",
        what=column.TextColumn("What", width=160), version=column.TextColumn("Version", width=200),
    )  # fmt: skip


def _exports(shown: Shown) -> None:
    st.subheader("Take it along", anchor=False)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        tables.download("Runs as CSV", "runs.csv", _runs)
        tables.download("Configuration as CSV", "configuration.csv", lambda: _keys_frame(shown.keys))
        parts.onward("suites", "Cases, suite by suite")
    st.markdown("Every answer, a row a case and trial: `memtrend export`. A copy of the record: "
                "`memtrend backup FILE`. For machines: `/api/runs`, `/healthz`, `/metrics`.")  # fmt: skip


def _runs() -> pd.DataFrame:
    rows = data.now(queries.runs, limit=None)
    return tables.runs_csv(rows, data.now(queries.verdicts, [row.id for row in rows]))


# Configuration --------------------------------------------------------------------------------------------


def _configuration(shown: Shown) -> None:
    with parts.heading("Configuration in force, secrets hidden"):
        chosen = st.segmented_control(
            "Keys", [EVERY, WRITTEN], default=EVERY, key="keys", bind="query-params", required=True,
            label_visibility="collapsed",
        )  # fmt: skip
        tables.download("CSV", "configuration.csv", lambda: _keys_frame(shown.keys))
    keys = [key for key in shown.keys if chosen == EVERY or key.origin != DEFAULT]
    if not keys:
        st.markdown("Every key has its default. `memtrend init` writes a first memtrend.toml.")
        return
    column = st.column_config
    health_tables.table(
        _keys_frame(keys), "configuration",
        {
            "name": column.TextColumn("Key", width=260), "value": column.TextColumn("Value", width=420),
            "origin": column.TextColumn("From", width=260),
        },
        most=20,
    )  # fmt: skip
    st.caption("Times without a unit are seconds; shares are of 1; money is US dollars.")


def _keys_frame(keys: Sequence[Key]) -> pd.DataFrame:
    return pd.DataFrame(keys, columns=list(Key._fields))


page()
