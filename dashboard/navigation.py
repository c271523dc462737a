"""Links between pages, each one entry in the browser's history, so that Back restores page and filters.

Streamlit's own way from a page with filters in its URL leaves two: first it writes the new query to the old
page, then it changes the page. Here the browser gets the whole address at once, and Streamlit follows it as
it follows Back and Forward. A link that does not get caught still works, with two entries.
"""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

_TARGET = "_go_to"

_SCRIPT = """
const go = (address) => {
  window.history.pushState({}, "", new URL(address, window.location.href));
  window.dispatchEvent(new PopStateEvent("popstate"));
};

const follow = (event) => {
  const link = event.target.closest?.('[data-testid="stPageLink-NavLink"], [data-testid="stTopNavLink"]');
  const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !plain || new URL(link.href).origin !== window.location.origin) return;
  event.preventDefault();
  event.stopPropagation();
  go(link.href);
};

// A link with the focus has a shade of grey that few can see.
const focused = "a:focus-visible { outline: 2px solid currentColor !important; outline-offset: 1px }";

export default function ({ data, setStateValue }) {
  const room = {narrow: window.innerWidth < 640, tight: window.innerWidth < 1000};
  for (const [name, is] of Object.entries(room)) if (is !== data?.[name]) setStateValue(name, is);
  if (!window.memtrendLinks) {
    window.memtrendLinks = true;
    document.head.append(Object.assign(document.createElement("style"), { textContent: focused }));
    document.addEventListener("click", follow, true);
  }
  if (data?.address) go(data.address);
}
"""

_browser = st.components.v2.component("memtrend.navigation", js=_SCRIPT)


def go(page: str, **parameters: str | int) -> None:
    """Open a page when this run of the script ends, from a callback or from the page itself."""
    st.session_state[_TARGET] = address(page, **parameters)


def address(page: str, **parameters: str | int) -> str:
    """A page's address, relative to any other page's: "run?run=165"."""
    return f"{page}?{urlencode(parameters)}" if parameters else page


def follow() -> None:
    """Does what `go` asked for. Called once, at the end of every run of the script."""
    asked = {"address": st.session_state.pop(_TARGET, ""), "narrow": is_narrow(), "tight": is_tight()}
    quietly = {f"on_{name}_change": lambda: None for name in ("narrow", "tight")}
    _browser(data=asked, key="navigation", **quietly)


def room() -> tuple[bool, bool]:
    """Narrow, and tight: see below."""
    return is_narrow(), is_tight()


def is_narrow() -> bool:
    """Whether the viewer's screen leaves a chart no room for names beside it."""
    return _is("narrow")


def is_tight() -> bool:
    """Whether it leaves a chart no room for a table beside it."""
    return _is("tight")


def _is(room: str) -> bool:
    return bool(st.session_state.get("navigation", {}).get(room, False))
