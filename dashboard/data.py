"""What the pages read: every question goes through here, cached until the record changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import streamlit as st

from dashboard import addresses, configuration
from store import queries
from store.database import Database, open_database
from store.errors import RecordGone, RecordReplaced

Args = ParamSpec("Args")
Answer = TypeVar("Answer")

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@st.cache_resource(show_spinner=False, on_release=Database.close)
def database() -> Database:
    """The record, made or upgraded where needed. Raises `DatabaseError`, and `SettingsError` where no
    configuration could be read yet; the next page view tries again."""
    return open_database(configuration.settings().database.url.get_secret_value())


def forget() -> None:
    """Read configuration and record anew with the next page view."""
    configuration.refresh()
    database.clear()
    _version.clear()  # what is kept of one record is no answer about another
    _cached.clear()


def let_go(error: Exception) -> None:
    """Read all of it anew after an error. A record that is gone is held on to, or an empty one would be made
    in its place."""
    if not isinstance(error, RecordGone):
        forget()


def ask(
    question: Callable[Concatenate[Database, Args], Answer], *args: Args.args, **kwargs: Args.kwargs
) -> Answer:
    """A question of `store.queries`, asked once for each state of the record: `data.ask(queries.suites)`.
    Every page and viewer gets the one answer, which nobody may change."""
    return _or_frame(lambda: _cached(_version(), question.__name__, args, kwargs))


def now(
    question: Callable[Concatenate[Database, Args], Answer], *args: Args.args, **kwargs: Args.kwargs
) -> Answer:
    """The same without a cache, for what changes by the second: progress, requests, heartbeats."""
    return _or_frame(lambda: question(database(), *args, **kwargs))


def _or_frame(answer: Callable[[], Answer]) -> Answer:
    """A record that is not there any more is told by the frame of the page, also where a part of the page
    draws itself again."""
    try:
        return answer()
    except (RecordGone, RecordReplaced):
        st.rerun()


@st.cache_data(ttl=2, max_entries=1, show_spinner=False)
def _version() -> str:
    return queries.data_version(database())


@st.cache_resource(ttl="5m", max_entries=300, show_spinner=False)
def _cached(version: str, question: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return getattr(queries, question)(database(), *args, **kwargs)


def asked_run() -> queries.RunRow | None:
    """The run that the page's address names, if there is such a run."""
    run_id = addresses.number(st.query_params.get("run", ""))
    return None if run_id is None else now(queries.run, run_id)


def may_write() -> bool:
    """Whether this page may ask for runs. Anyone who reaches it can press its buttons, so only while nobody
    but this machine reaches it, unless the configuration says otherwise."""
    allowed = configuration.settings().dashboard.writes
    return st.get_option("server.address") in LOOPBACK if allowed is None else allowed
