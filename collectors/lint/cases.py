"""Rules about how a case is written: its patterns, its source, is it told twice, what does it give away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from collectors.lint.findings import Check, Found, quoted
from collectors.lint.view import Case, View
from collectors.suite import Amend, Plant, Probe, Step


def catastrophic(view: View) -> Iterator[Found]:
    return _broken(view, "catastrophic-regex", "may take longer than a second on one text")


def invalid(view: View) -> Iterator[Found]:
    return _broken(view, "invalid-regex", "is not a regular expression")


def _broken(view: View, rule: str, told: str) -> Iterator[Found]:
    """Each pattern once, however many cases bear it."""
    seen: set[str] = set()
    for case in view.cases if view.broken else ():
        for pattern in case.patterns:
            if view.broken.get(pattern) == rule and pattern not in seen:
                seen.add(pattern)
                yield Found(case, f"{quoted(pattern)} {told}")


def each_line(check: Callable[[Probe], Iterator[str]]) -> Check:
    """A rule about what stands on one line of a file, which the probes of a case share: each thing once."""

    def checked(view: View) -> Iterator[Found]:
        seen: set[tuple[str, str]] = set()
        for case in view.cases:
            for told in check(case.probe):
                if (place := (_line(case.probe), told)) not in seen:
                    seen.add(place)
                    yield Found(case, told)

    return checked


def _line(probe: Probe) -> str:
    return probe.where or probe.case


def without_source(probe: Probe) -> Iterator[str]:
    if not probe.source.strip():
        yield "source is missing"


# Told twice


def told_twice(view: View) -> Iterator[Found]:
    first: dict[object, Case] = {}
    for case in view.cases:
        known = first.setdefault(_story(case.probe), case)
        if known is not case and _line(known.probe) != _line(case.probe):
            yield Found(case, f"tells the story of {known.probe.case} again: {quoted(case.probe.query)}")


def _story(probe: Probe) -> object:
    """What is planted and asked, whatever it is called and whatever is expected."""
    asked = (_plain(probe.query), probe.user, probe.domains, probe.session, probe.all_sessions, probe.leg)
    return (asked, probe.k, probe.background, tuple(_told(step) for step in probe.story))


def _told(step: Step) -> object:
    match step:
        case Plant(memories):
            return tuple((_plain(m.text), m.role, m.at, m.user, m.domain, m.session) for m in memories)
        case Amend(_, text):
            return _plain(text)
        case _:
            return step


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


# What a case gives away

E_MAIL = re.compile(r"[\w.+-]+@(?P<host>(?:[\w-]+\.)+[a-z]{2,})\b", re.IGNORECASE)
MADE_UP_HOST = re.compile(r"(^|\.)(example(\.\w+)?|test|invalid|localhost)$", re.IGNORECASE)
PHONE = re.compile(
    r"(?<![\w.-])(?:\+\d{1,3}[ ./-]?(?:\(\d{1,4}\)|\d)(?:[ ./-]?\d){6,12}"
    r"|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}|0\d{2,4}[ /-]\d{3,4}[ -]?\d{3,5})(?![\w-])"
)
MADE_UP_PHONE = re.compile(r"555\D?01\d\d|7700\D?900|1632\D?960|20\D?7946\D?0")
"""Numbers that are kept free for stories."""
KEY = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\beyJ[\w-]{10,}\.[\w-]{10,}\."
    r"|-----BEGIN [A-Z ]*PRIVATE KEY|\bglpat-[\w-]{16,}|\bhf_[A-Za-z0-9]{20,}"
)

KEY_SIGNS = (
    *("sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "gh", "github_pat_", "xox", "AKIA", "AIza", "eyJ"),
    *("PRIVATE KEY", "glpat-", "hf_"),
)
"""One of them is in every key: looked for first, since a search for all of `KEY` is slow."""


def secrets(probe: Probe) -> Iterator[str]:
    text = _text(probe)
    for found in KEY.finditer(text) if any(sign in text for sign in KEY_SIGNS) else ():
        yield f"looks like a key: {quoted(found[0][:8])}…"


def personal(probe: Probe) -> Iterator[str]:
    text = _text(probe)
    for mail in E_MAIL.finditer(text) if "@" in text else ():
        if not MADE_UP_HOST.search(mail["host"]):
            yield f"looks like an e-mail address: {quoted(mail[0])}"
    for phone in PHONE.finditer(text):
        if not MADE_UP_PHONE.search(phone[0]):
            yield f"looks like a phone number: {quoted(phone[0])}"


def _text(probe: Probe) -> str:
    """All that the case itself says, once."""
    said = [probe.query, probe.source]
    for step in probe.story:
        match step:
            case Plant(memories):
                said += [memory.text for memory in memories]
            case Amend(_, text):
                said.append(text)
            case _:
                pass
    return "\n".join(said)
