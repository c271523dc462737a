"""What several pages show alike: titles, names, states, times. Text from outside becomes plain text here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import data, palette
from dashboard.palette import Style, Theme
from store import health_words, queries, words, writes
from store.errors import StoreError
from store.settings import SettingsError

_ICONS = {
    "invalid": ":material/sensors_off:",
    "void": ":material/power_off:",
    "interrupted": ":material/pause_circle:",
    "running": ":material/play_arrow:",
}
_JOINER = "\u2060"

Colour = Literal["red", "orange", "green", "blue", "violet", "gray"]
"""Those of the theme, each with its meaning."""

FIRST_RUN = ("Run the shipped starter suites against the built-in backends", "memtrend run")
PROBLEM_ICONS = {"error": ":material/error:", "warning": ":material/warning:"}
ALL_BACKENDS = "all backends"
SIGNED = "Kept with the date, signed `local`: these pages ask nobody for a name, so say yours in the reason."
RECENT = timedelta(days=1)
SHOWN_PROBLEMS = 5


# Text -----------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Any text as markdown that shows just this text on one line: no markup, no link, no icon, no formula.

    Backslashes take the meaning from punctuation. Bare addresses and `:names:` are found after those are
    gone: an invisible word joiner breaks them up.
    """
    line = re.sub(r"\s+", " ", text).strip()
    broken = re.sub(r"(?i)(www(?=\.)|[:@](?=\S))", rf"\1{_JOINER}", line)
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", broken)


def code(text: str) -> str:
    """Any text as a piece of code within markdown, which shows it as it is."""
    line = re.sub(r"\s+", " ", text)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    return f"{fence} {line} {fence}"


# The viewer -----------------------------------------------------------------------------------------------


def zone() -> ZoneInfo:
    """The viewer's time zone; UTC where the browser names none that we know."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def theme() -> Theme:
    return palette.THEMES["dark" if st.context.theme.type == "dark" else "light"]


def styles() -> dict[str, Style]:
    """How each backend is drawn, floors and controls among them."""
    return palette.styles(data.ask(queries.backends), theme())


def contenders() -> list[str]:
    """Backends that are no floors and no controls, in the order of their colours."""
    return palette.contenders(data.ask(queries.backends))


def now() -> datetime:
    return datetime.now(UTC).astimezone(zone())


def moment(at: datetime) -> str:
    """ "30 Nov, 03:47" where the viewer is."""
    return words.moment(at.astimezone(zone()), now())


def day(at: datetime) -> str:
    return words.day(at.astimezone(zone()), now())


# Pieces ---------------------------------------------------------------------------------------------------


def title(finding: str, until: datetime | None) -> None:
    """The page's finding, and how fresh it is."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.title(plain(finding), anchor=False, width="stretch")
        st.caption(f"data until {moment(until)}" if until else "no data", width="content")


def heading(text: str, meaning: str | None = None) -> DeltaGenerator:
    """A table's heading; what is drawn within stands beside it: its tools. `meaning`: for who asks what it
    is."""
    row = st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", gap="small"
    )
    row.subheader(text, anchor=False, width="content", help=meaning)
    return row


def onward(page: str, label: str, **parameters: str) -> None:
    """A way to another page. `label` is markdown."""
    st.page_link(
        f"views/{page}.py", label=label, icon=":material/chevron_right:", icon_position="right",
        query_params=parameters,
    )  # fmt: skip


def failed(run_id: int, label: str) -> None:
    """The way to the cases that failed in a run. `label` is markdown."""
    onward("run", label, run=str(run_id), cases="failed")


def newest(rows: Iterable[queries.RunRow | None]) -> datetime | None:
    """When the newest of these runs ended."""
    return max((row.finished_at for row in rows if row and row.finished_at), default=None)


def name(style: Style, backend: str) -> str:
    """A backend's marker, in its colour, and its name, as markdown."""
    return f"{glyph(style)} **{plain(backend)}**"


def key(styles_: Mapping[str, Style]) -> None:
    """Which marker is whose, above a chart on a narrow screen."""
    st.markdown("   ".join(name(style, backend) for backend, style in styles_.items()))


def glyph(style: Style) -> str:
    return f':color[{style.glyph}]{{foreground="{style.colour}"}}'


def state(status: str) -> None:
    """A run's state: grey words where nothing is known to be wrong, a badge where the instrument is
    broken."""
    if status in words.PROBLEMS:
        st.badge(words.status(status), icon=_ICONS[status], color="violet", width="content")
    elif status == "running":
        st.badge(words.status(status), icon=_ICONS[status], color="blue", width="content")
    else:
        st.caption(words.status(status), width="content")


def nothing_yet(title_: str, text: str, commands: Sequence[tuple[str, str]]) -> None:
    """An empty page says what to type."""
    title(title_, None)
    st.markdown(text)
    steps(commands)


def steps(commands: Sequence[tuple[str, str]]) -> None:
    """What to type, one box each."""
    for number, (what, command) in enumerate(commands, start=1):
        with st.container(border=True, width=720):
            st.markdown(f"**{number}** · {what}")
            st.code(command, language="bash")


def card(label: str, value: str, *notes: str, meaning: str = "") -> None:
    """A figure with what it rests on, a line a note. Long values do not fit: intervals belong into the
    notes. `meaning`: of the label, for who has not met it."""
    with st.container(border=True, gap=None, height="stretch"):
        st.metric(plain(label), value, help=plain(meaning) or None)
        for note in filter(None, notes):
            st.markdown(f":small[:gray[{plain(note)}]]")


def broken(error: Exception) -> None:
    """The record or the configuration cannot be read: what is wrong, and what to do."""
    data.let_go(error)
    what = "configuration" if isinstance(error, SettingsError) else "record"
    title(f"memtrend cannot read its {what}", None)
    with st.container(border=True, width=720):
        st.badge(
            "Nothing is shown rather than something wrong", icon=":material/sensors_off:", color="violet"
        )
        st.text(str(error))
    st.markdown("This checks the configuration, the database and the backends, and says what to do:")
    st.code("memtrend doctor", language="bash", width=720)
    st.caption("Reload this page afterwards; nothing needs to be restarted.")


def live(run: queries.RunRow) -> None:
    """A run that is going on, with its progress and a way to stop it."""
    with st.container(border=True, gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            facts = " · ".join([plain(run.suite), f"run {run.id}", plain(run.trigger)])
            st.markdown(f"{name(styles()[run.backend], run.backend)} :gray[· {facts}]", width="content")
            with st.container(horizontal=True, vertical_alignment="center", width="content"):
                state("running")
                _cancel(run)
        st.progress(_share(run), text=progress_words(run, now()))


def _share(run: queries.RunRow) -> float:
    return min(run.cases_done / run.cases_total, 1.0) if run.cases_total else 0.0


def progress_words(run: queries.RunRow, at: datetime) -> str:
    """ "118 of 180 cases · 6 min gone, about 3 min left · no error"."""
    gone = max((at - run.started_at).total_seconds(), 0.0)
    left = gone / run.cases_done * (run.cases_total - run.cases_done) if run.cases_done else None
    time = f"{words.duration(gone)} gone" + (
        f", about {words.duration(left)} left" if left is not None else ""
    )
    errors = words.count(run.errors, "error") if run.errors else "no error"
    return f"{run.cases_done} of {words.count(run.cases_total, 'case')} · {time} · {errors}"


def _cancel(run: queries.RunRow) -> None:
    if run.cancelled:
        st.caption("stops before its next scenario", width="content")
    elif data.may_write():
        st.button("Cancel", icon=":material/stop_circle:", key=f"cancel-{run.id}", type="tertiary",
                  on_click=cancel, args=(run.id,))  # fmt: skip


def cancel(run_id: int) -> None:
    """Ask the runner to stop; one that has ended meanwhile says so."""
    try:
        writes.cancel_run(data.database(), run_id, author="local")
    except StoreError as error:
        st.toast(plain(str(error)), icon=":material/info:")


def collector() -> None:
    """Whether someone is there to run what is scheduled or asked for."""
    age, clock = heartbeat_age(), now()
    seen = words.ago(clock - timedelta(seconds=age), clock) if age is not None else ""
    if health_words.is_alive(age):
        st.markdown(f":material/favorite: Collector alive, {seen}", width="content")
    else:
        since = f"last seen {seen}" if seen else "never seen"
        st.markdown(
            f":material/heart_broken: :violet[No collector is running] ({since}): `memtrend collect`",
            width="content",
        )


def heartbeat_age() -> float | None:
    """Seconds since the collector last said that it lives."""
    return health_words.silence(data.now(queries.heartbeats), now())


def problems() -> None:
    """What went wrong of late without leaving a run to look at: skipped fires, refused configurations."""
    found = data.now(
        queries.events, words.MANY_PROBLEMS + 1, levels=list(PROBLEM_ICONS), since=now() - RECENT
    )
    if not found:
        return
    with st.expander(f"{PROBLEM_ICONS['warning']} {words.problems_title(len(found))}", key="problems"):
        for event in found[:SHOWN_PROBLEMS]:
            _problem(event)
        if len(found) > SHOWN_PROBLEMS:
            st.caption(f"The newest {SHOWN_PROBLEMS}.")


def _problem(event: queries.EventRow) -> None:
    facts = f":small[:gray[{plain(moment(event.at))} · {plain(event.source)}]]"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":violet[{PROBLEM_ICONS[event.level]}] {facts}", width="content")
        st.markdown(plain(event.message), width="content")
        if event.run_id is not None:
            link = {"run": str(event.run_id)}
            st.page_link("views/run.py", label=f"Run {event.run_id}", query_params=link)


def attempt(write: Callable[[], object], said: str) -> None:
    """A press of a button that writes: what is refused is told in a toast, as is what was done."""
    if not data.may_write():
        return
    try:
        write()
    except StoreError as error:
        st.toast(plain(str(error)), icon=":material/error:")
        return
    st.toast(said, icon=":material/check:")
