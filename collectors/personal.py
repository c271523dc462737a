"""Personal details in a text, and stable placeholders in their place. Pure.

What a pattern can find is found: secrets, addresses, numbers, and names that a greeting, a title, a signature
or two capitals in a row give away. It replaces too much rather than too little, and misses things all the
same: a person reads the draft.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import regex

from collectors.details import IBAN, NUMBERED, is_phone, secrets

_PARTICLES = r"(?:(?:de|da|di|del|la|le|van|von|der|den|ten|bin|al|el)[ \t]){0,2}"
NAME = rf"\p{{Lu}}[\p{{L}}'’-]+(?:[ \t]{_PARTICLES}\p{{Lu}}[\p{{L}}'’-]+){{0,2}}(?!\w)"
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
After Are Before Both Did Does Each Every First Had Has He Her His Is It's It’s Its Last Many May Me
Next Now Once Only Or Our Second See She Should Since So Some Their Until Us Was Were Whose
"""
_NO_NAMES = frozenset(_OTHER_WORDS.split())
_NOT_IN_PAIRS = _NO_NAMES | frozenset(
    """
Account Address Airport Ask Bank Best Call Called Cheers Contact Customer Date Day Dear Dr East Email
Frau Give Good Hello Herr Hey Hi Hospital Hotel Invoice Kind Mail Meet Miss Model Mr Mrs Ms New North
Number Old Phone Prof Regards Reply Send Service South Tell Thank Thanks Ticket University Visit West
Write
January February March April June July August September October November December
Monday Tuesday Wednesday Thursday Friday Saturday Sunday
Ich Wir Sie Er Es Der Die Das Den Dem Ein Eine Mein Meine Ihr Ihre Und Aber Mit Von Wann Wo Was Wie Warum
""".split()  # noqa: SIM905
)
"""Words that begin a sentence or a thing, and are no part of a pair of names."""
_CAPITAL = r"(?!I['’])\p{Lu}[’']?\p{L}*\p{Ll}[\p{L}'’-]*"
_CAPITALISED = regex.compile(rf"(?<![\w@.]){_CAPITAL}(?:[ \t]{_PARTICLES}{_CAPITAL})+(?!\w)")


_STREET = r"(?:Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Way|Court|Ct|Square|Place|Boulevard|Blvd)\b"
_NO_WORD = (
    r"(?!(?:not|no|in|on|at|to|the|a|an|wrong|invalid|correct|incorrect|expired|refused|rejected|being|still|too"
    r"|now|never|always|kept|stored|reset|changed|lost|gone|taken|unknown|locked|my|what|which|already)\b)"
)
"""What is said of a password or of a user name, and is none."""
_ACCOUNT = "account|login|handle|user|skype|telegram|instagram|twitter"
_USER = r"\p{L}[\w-]*(?:[\d_]|\.\w)[\w.-]*(?<=\w)"
"""A name of an account, and no word: there is a mark or a digit in it."""
_BIRTH = "born|birth ?da(?:y|te)|date of birth|d\\.?o\\.?b|geboren|geburts(?:tag|datum)"
_MONTH = r"(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)\p{L}*\.?"
_DAY = (
    rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}[./-]\d{{1,2}}[./-]\d{{2,4}}"
    rf"|(?i:\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?{_MONTH},? \d{{4}})"
    rf"|(?i:{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}})"
)
_PATTERNS = (
    ("LINK", regex.compile(r"\bhttps?://[^\s<>\"')]+")),
    ("EMAIL", regex.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    ("NUMBER", regex.compile(IBAN.pattern)),
    (
        "USER",
        regex.compile(rf"(?i:\b(?:{_ACCOUNT})(?:[ \t]+(?:name|id))?[ \t]*(?:is|:|=)?[ \t]*)(?P<it>{_USER})"),
    ),
    (
        "USER",
        regex.compile(
            r"(?i:\b(?:user[ -]?(?:name|id)|screen name|nickname)[ \t]*(?:is|:|=)[ \t]*)"
            rf"{_NO_WORD}(?P<it>[\w.-]*\w)"
        ),
    ),
    ("USER", regex.compile(r"(?<![\w@./])@[\p{L}_][\w.]*\w(?![\w/(])")),
    (
        "IP",
        regex.compile(
            r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\w)|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}\b"
        ),
    ),
    ("NUMBER", regex.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])")),
    ("DATE", regex.compile(rf"(?i:\b(?:{_BIRTH})\b[^.\n\d]{{0,20}}?)(?P<it>{_DAY})")),
    (
        "NUMBER",
        regex.compile(
            rf"(?i:\b(?:{NUMBERED})(?:[ \t]+(?:number|no\.?|nr\.?|id|code))?[ \t]*(?:is|:)?[ \t]*)\#?"
            r"(?P<it>(?![A-Z]+_\d)(?=[\w-]*\d)[\p{L}\d][\w-]{2,})"
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
    ("ADDRESS", regex.compile(r"(?<![\w,.-])\d{5}[ \t]+\p{Lu}\p{Ll}+(?:[- ]\p{Lu}\p{Ll}+)?\b")),
    ("ADDRESS", regex.compile(r"\b[A-Z]{1,2}\d[A-Z\d]?[ \t]\d[A-Z]{2}\b|\b[A-Z]{2}[ \t]\d{5}(?:-\d{4})?\b")),
    ("PHONE", regex.compile(r"(?<![\w.])\+?\(?\d[\d \t()./-]{5,}\d(?!\w)")),
    ("NUMBER", regex.compile(r"(?<![\w.,])\d{6,}(?![\w])")),
)
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?:[ T]\d{1,2})?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}(?:[ \t]\d{1,2})?")
_PHONE_DIGITS = 7


_NAMED = frozenset(("SECRET", "USER"))
_TOLD_PASSWORD = regex.compile(
    r"(?i)\b(?:my|the|his|her|our|your) (?:[\p{L}-]+ )?(?:pass(?:word|phrase|code)|passwort|pin)"
    rf"[ \t]*(?:is|:|=)[ \t]*(?!SECRET_){_NO_WORD}(?P<it>[^\s.,;]+)"
)
"""Here a plain word may be one, too."""


class Placeholders:
    """The same detail has the same placeholder wherever it stands; numbers count from 1 in order of
    appearance."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._next: dict[str, int] = {}
        self._exact: dict[str, str] = {}

    def __call__(self, kind: str, detail: str) -> str:
        key = re.sub(r"[\s()./-]+", "", detail).casefold()
        if key not in self._known:
            self._next[kind] = self._next.get(kind, 0) + 1
            self._known[key] = f"{kind}_{self._next[kind]}"
        if kind in _NAMED:
            self._exact[detail] = self._known[key]
        return self._known[key]

    def everywhere(self, text: str) -> str:
        """The text without those details that are found by a word before them once, and stand alone later."""
        for detail, placeholder in self._exact.items():
            text = regex.sub(
                rf"(?<!\w){regex.escape(detail)}(?!\w)", placeholder, text, flags=regex.IGNORECASE
            )
        return text


def without_personal_details(texts: Sequence[str], names: Sequence[str] = ()) -> list[str]:
    """The texts with placeholders such as PERSON_1, EMAIL_1, NUMBER_2. `names` are known from elsewhere: the
    speakers of a transcript."""
    placeholders = Placeholders()
    texts = [_without_details(_without_secrets(text, placeholders), placeholders) for text in texts]
    texts = [placeholders.everywhere(text) for text in texts]
    given = [*names, *(name for text in texts for name in _names(text))]
    persons = _persons([*given, *(name for text in texts for name in _pairs(text))])
    return [_without_names(text, persons) for text in texts]


def _without_secrets(text: str, placeholders: Placeholders) -> str:
    end, kept = 0, ""
    for one in sorted(secrets(text), key=lambda secret: secret.start):
        if one.start >= end:
            kept += text[end : one.start] + placeholders("SECRET", text[one.start : one.end])
            end = one.end
    return _TOLD_PASSWORD.sub(_replacing("SECRET", placeholders), kept + text[end:])


def _without_details(text: str, placeholders: Placeholders) -> str:
    for kind, pattern in _PATTERNS:
        text = pattern.sub(_replacing(kind, placeholders), text)
    return text


def _replacing(kind: str, placeholders: Placeholders) -> Callable[[regex.Match[str]], str]:
    def replaced(match: regex.Match[str]) -> str:
        whole, detail = match.group(0), match.groupdict().get("it") or match.group(0)
        if kind == "PHONE" and (_DATE.fullmatch(whole) or sum(map(str.isdigit, whole)) < _PHONE_DIGITS):
            return whole
        phone = kind == "PHONE" and is_phone(match.string, *match.span())
        of = "NUMBER" if kind == "PHONE" and not phone else kind
        return whole[: len(whole) - len(detail)] + placeholders(of, detail)

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


def _pairs(text: str) -> Iterator[str]:
    """Two words or more with capitals, as first and last names have them."""
    for found in _CAPITALISED.finditer(text):
        words = found[0].removesuffix("'s").removesuffix("’s").split()
        while words and words[0] in _NOT_IN_PAIRS:
            words.pop(0)
        kept = words[: next((n for n, word in enumerate(words) if word in _NOT_IN_PAIRS), len(words))]
        if sum(word[0].isupper() for word in kept) > 1:
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
