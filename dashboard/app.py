"""The page frame: navigation on top, a page below, and one answer for whatever keeps the record from
opening."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard import data, navigation, parts
from store import queries
from store.errors import StoreError
from store.settings import SettingsError

PAGES = (
    ("overview", "Overview", "dashboard", "Is everything all right now?"),
    ("trends", "Trends", "show_chart", "How did it go?"),
    ("compare", "Compare", "compare_arrows", "A or B? Before or after?"),
    ("runs", "Runs", "play_circle", "What happened?"),
    ("alerts", "Alerts", "notifications", "What must I do?"),
    ("suites", "Suites", "fact_check", "Can the questions be trusted?"),
    ("health", "Health", "monitor_heart", "Is the monitor alive?"),
    ("settings", "Settings", "settings", "What is in force?"),
)
ICON = Path(__file__).parent / "icon.svg"
"""A file of ours: the icons that Streamlit knows by name are fetched from afar when they stand in a tab."""

HIDDEN = (
    ("run", "Run", "list_alt"),
    ("case", "Case", "article"),
    ("alert", "Alert", "notification_important"),
)


def main() -> None:
    st.set_page_config(page_title="memtrend", page_icon=ICON, layout="wide")
    st.logo(":material/monitoring:")
    waiting, trouble = _waiting()
    page = st.navigation(_pages(waiting), position="top")
    content, tail = st.container(), st.container()
    with tail:  # before the page: a click that leads elsewhere need not wait for this one to be drawn again
        navigation.follow()
    with content:
        try:
            if trouble:
                raise trouble
            page.run()
        except (StoreError, SettingsError) as error:
            parts.broken(error)


def _waiting() -> tuple[int, Exception | None]:
    """How many alerts nobody has, for the tab; or what keeps the record from opening."""
    try:
        data.database().check()
        return data.ask(queries.count_alerts).get("open", 0), None
    except (StoreError, SettingsError) as error:
        return 0, error


def _pages(waiting: int) -> list[st.Page]:
    titles = {"alerts": f"Alerts ({waiting})"} if waiting else {}
    shown = [
        st.Page(
            f"views/{name}.py", title=titles.get(name, title), icon=f":material/{icon}:", help=help_,
            default=name == "overview",
        )
        for name, title, icon, help_ in PAGES
    ]  # fmt: skip
    hidden = [
        st.Page(f"views/{name}.py", title=title, icon=f":material/{icon}:", visibility="hidden")
        for name, title, icon in HIDDEN
    ]
    return shown + hidden


main()
