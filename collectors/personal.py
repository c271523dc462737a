"""Personal details in a text, and stable placeholders in their place. Pure.

What a pattern can find is found: addresses, numbers, and names that a greeting, a title or a signature gives
away. A person reads the draft all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import regex

_PARTICLES = r"(?:(?:de|da|di|del|la|le|van|von|der|den|ten|bin|al|el)[ \t]){0,2}"
NAME = rf"\p{{Lu}}[\p{{L}}'’-]+(?:[ \t]{_PARTICLES}\p{{Lu}}[\p{{L}}'’-]+){{0,2}}"
_TITLE = r"(?:Mr|Mrs|Ms|Miss|Dr|Prof|Herr|Frau)\.?"
_KIN = (
    "wife|husband|partner|son|daughter|brother|sister|mother|father|mum|mom|dad|aunt|uncle|boss|manager|"
    "colleague|friend|neighbour|neighbor|doctor|dentist|teacher|landlord|landlady"
)
_GREETING = r"(?i:\b(?:hi|hello|hey|dear|hallo|thanks|thank you|cheers|good (?:morning|afternoon|evening)))"
_INTRODUCTION = r"(?i:\b(?:my name is|my name['’]s|i['’]m|i am|this is|call me|name:|ich bin|mein name ist))"
_FAREWELL = r"(?i:(?:regards|wishes|sincerely|cheers|thanks|grüße|best)[,.!]?)"
_GIVEAWAYS = (
    regex.compile(rf"{_GREETING},?[ \t]+(?:{_TITLE}[ \t]+)?({NAME})"),
    regex.compile(rf"\b{_TITLE}[ \t]+({NAME})"),
    regex.compile(rf"{_INTRODUCTION}[ \t]+({NAME})"),
    regex.compile(rf"(?i:\bmy (?:{_KIN}))(?:,| is| is called)?[ \t]+({NAME})"),
    regex.compile(rf"{_FAREWELL}[ \t]*\n\s*({NAME})[ \t]*(?:\n|$)"),
)
_OTHER_WORDS = """
All Again Also And Another Any Anyone As At Because But Can Could Do Does Everyone Folks For From
Glad Good Have Here How However I If In Is It Just Let Like Madam Maybe My No Not Of On One Or Our
Please Really So Sir Sorry Still Support Sure Team That The Then There They This To Today Trying
Very We What When Where Which Who Why Will With Would Yes You Your
"""
_NO_NAMES = frozenset(_OTHER_WORDS.split())

_NUMBERED = (
    r"(?:order|ticket|invoice|account|customer|member|case|booking|reservation|reference|ref|policy|contract|"
    r"tracking|passport|serial|licence|license)"
)
_STREET = r"(?:Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Way|Court|Ct|Square|Place|Boulevard|Blvd)\b"
_PATTERNS = (
    ("LINK", regex.compile(r"\bhttps?://[^\s<>\"')]+")),
    ("EMAIL", regex.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    ("NUMBER", regex.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b")),
    (
        "NUMBER",
        regex.compile(
            rf"(?i:\b{_NUMBERED}(?:[ \t]+(?:number|no\.?|nr\.?|id|code))?[ \t]*(?:is|:)?[ \t]*)\#?"
            r"(?P<it>(?=[\w-]*\d)[\p{L}\d][\w-]{2,})"
        ),
    ),
    ("NUMBER", regex.compile(r"(?<![\w+])(?:\d{4}[ -]){3}\d{1,7}(?!\w)")),
    ("NUMBER", regex.compile(r"(?<=#)\d{3,}\b")),
    ("ADDRESS", regex.compile(rf"\b\d{{1,5}}[a-z]?,?[ \t]+(?:\p{{Lu}}[\p{{L}}'’-]+[ \t]+){{1,3}}{_STREET}")),
    (
        "ADDRESS",
        regex.compile(
            r"\b\p{Lu}[\p{L}-]*(?:straße|strasse|str\.|weg|platz|allee|gasse)[ \t]+\d{1,4}[a-z]?\b"
        ),
    ),
    ("ADDRESS", regex.compile(r"\b[A-Z]{1,2}\d[A-Z\d]?[ \t]\d[A-Z]{2}\b|\b[A-Z]{2}[ \t]\d{5}(?:-\d{4})?\b")),
    ("PHONE", regex.compile(r"(?<![\w.])\+?\(?\d[\d \t()./-]{5,}\d(?!\w)")),
    ("NUMBER", regex.compile(r"(?<![\w.,])\d{6,}(?![\w])")),
)
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?:[ T]\d{1,2})?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}(?:[ \t]\d{1,2})?")
_PHONE_DIGITS = 7


class Placeholders:
    """The same detail has the same placeholder wherever it stands; numbers count from 1 in order of
    appearance."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._next: dict[str, int] = {}

    def __call__(self, kind: str, detail: str) -> str:
        key = (kind, re.sub(r"[\s()./-]+", "", detail).casefold())
        if key not in self._known:
            self._next[kind] = self._next.get(kind, 0) + 1
            self._known[key] = f"{kind}_{self._next[kind]}"
        return self._known[key]


def without_personal_details(texts: Sequence[str], names: Sequence[str] = ()) -> list[str]:
    """The texts with placeholders such as PERSON_1, EMAIL_1, NUMBER_2. `names` are known from elsewhere: the
    speakers of a transcript."""
    placeholders = Placeholders()
    persons = _persons([*names, *(name for text in texts for name in _names(text))])
    return [_without_names(_without_details(text, placeholders), persons) for text in texts]


def _without_details(text: str, placeholders: Placeholders) -> str:
    for kind, pattern in _PATTERNS:
        text = pattern.sub(_replacing(kind, placeholders), text)
    return text


def _replacing(kind: str, placeholders: Placeholders) -> Callable[[regex.Match[str]], str]:
    def replaced(match: regex.Match[str]) -> str:
        whole, detail = match.group(0), match.groupdict().get("it") or match.group(0)
        if kind == "PHONE" and (_DATE.fullmatch(whole) or sum(map(str.isdigit, whole)) < _PHONE_DIGITS):
            return whole
        return whole[: len(whole) - len(detail)] + placeholders(kind, detail)

    return replaced


def _names(text: str) -> Iterator[str]:
    found = sorted(
        ((match.start(1), match.group(1)) for pattern in _GIVEAWAYS for match in pattern.finditer(text)),
        key=lambda pair: pair[0],
    )
    for _, name in found:
        words = name.split()
        kept = words[: next((n for n, word in enumerate(words) if word in _NO_NAMES), len(words))]
        if kept:
            yield " ".join(kept)


def _persons(names: Sequence[str]) -> dict[str, str]:
    """Every name, and every part of one, with its person: "Ada Byron" and a later "Ada" are one."""
    persons: dict[str, str] = {}
    count = 0
    for name in names:
        words = [word for word in name.split() if word[0].isupper()]
        known = persons.get(name) or next((persons[word] for word in words if word in persons), None)
        if known is None:
            count += 1
            known = f"PERSON_{count}"
        for part in (name, *words):
            persons.setdefault(part, known)
    return persons


def _without_names(text: str, persons: dict[str, str]) -> str:
    for name in sorted(persons, key=len, reverse=True):
        text = regex.sub(rf"(?<![\w]){regex.escape(name)}(?![\w])", persons[name], text)
    return text
