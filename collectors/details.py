"""What gives a secret or a person away, as far as a pattern can tell. Pure; lint and drafts share it.

Lint must not cry wolf: a number is a phone's only where the text says so. A draft replaces more than this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Secret(NamedTuple):
    """A place in a text, and what it looks like."""

    what: str
    start: int
    end: int


# Secrets

_KEY = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"
    r"|-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----|\bglpat-[\w-]{16,}|\bhf_[A-Za-z0-9]{20,}"
)
SHORTEST = 15
"""Characters of the shortest key: shorter words are not searched, which is slow."""
_KEY_OF_40 = re.compile(r"(?<![\w/+=.-])[A-Za-z0-9/+]{40}(?![\w/+=.-])")
"""Of a cloud; a hash in hexadecimal has letters of one case only."""
_LOGIN = re.compile(r"(?i)\b[a-z][a-z0-9+.-]*://[^\s/:@]*:(?P<it>[^\s/@]+)@")
_PASSWORD = re.compile(
    r"(?i)(?:\b|_)(?:pass(?:word|wd|phrase|code)|passwort|pwd|secret|token|(?:api|access)[-_ ]?key)\b"
    r"[\"']?(?:\s*=\s*[\"']?(?P<set>[^\s<>{}$*,;&\"'`]{4,}(?<![.!?)]))"
    r"|\s*(?::|\bis\b|\bist\b)\s*[\"'`]?(?P<it>(?=[^\s]*\d)(?=[^\s]*[a-z])[^\s<>{}$*,;&\"'`]{5,}(?<![.!?)])))"
)
"""Whatever is set with =; in a sentence only what is no plain word and no plain number."""
_PASSWORD_SIGNS = ("pass", "pwd", "secret", "token", "key")


def secrets(text: str) -> Iterator[Secret]:
    """Keys and passwords, each place once for every way it is found."""
    if "-----BEGIN" in text or _hold_key([word for word in text.split() if len(word) >= SHORTEST]):
        yield from (Secret("a key", *found.span()) for found in _KEY.finditer(text))
        yield from (Secret("a key", *found.span()) for found in _KEY_OF_40.finditer(text) if _mixed(found[0]))
    if "://" in text:
        yield from (Secret("a password", *found.span("it")) for found in _LOGIN.finditer(text))
    lower = text.lower()
    if any(sign in lower for sign in _PASSWORD_SIGNS):
        for found in _PASSWORD.finditer(text):
            yield Secret("a password", *found.span("set" if found["set"] else "it"))


def _hold_key(words: list[str]) -> bool:
    return any(_KEY.search(word) or _KEY_OF_40.search(word) for word in words)


def _mixed(key: str) -> bool:
    return all(any(map(has, key)) for has in (str.islower, str.isupper, str.isdigit))


# Persons

_E_MAIL = re.compile(
    r"(?<![\w.+/:@-])(?!git@)[\w.+-]+@(?P<host>(?:[\w-]+\.)+[a-z]{2,})\b(?!\.\w|:[\w~/])", re.IGNORECASE
)
"""No address of a repository, and no password in the address of a server."""
_E_MAIL_NAMED = re.compile(r"(?i)(?:mailto|e-?mail|from|to|cc):(?=\S+@)")
_MADE_UP_HOST = re.compile(r"(^|\.)(example(\.\w+)?|test|invalid|localhost)$", re.IGNORECASE)
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b")
_PHONE = re.compile(
    r"(?<![\w.-])(?:\+\d{1,3}[ ./-]?(?:\(\d{1,4}\)|\d)(?:[ ./-]?\d){6,12}"
    r"|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}|0\d{2,4}[ /-]\d{3,4}(?:[ -]?\d{2,5}){1,2})(?![\w-])"
)
_DIGITS = re.compile(r"\d(?:[ ./()-]{0,2}\d){6}")
"""In every phone number and in every IBAN: looked for first, since it is quick."""
_MADE_UP_PHONE = re.compile(r"555\D?01\d\d|7700\D?900|1632\D?960|20\D?7946\D?0")
"""Numbers that are kept free for stories."""
_SERVICE = re.compile(r"(?:\+\d{1,3}[ ./-]?|1[ -])?\(?0?(?:80[08]|8[2-8]{2}|18\d\d?|700|90[01])\)?(?!\d)")
"""Numbers of no one: free of charge, or paid by the minute."""
_PHONE_WORD = (
    r"(?:tele)?phone\w*|tel|cell(?:phone)?|mobile|mobil\w*|handy\w*|fax|telefon\w*|call(?:s|ed|ing)?|dial|ring|rings"
    r"|text(?:ed)?|sms|whatsapp|signal|reach(?:ed|able)?|extension|voicemail|anruf\w*|ruf\w*|erreich\w*"
)
NUMBERED = (
    r"order|ticket|invoice|account|customer|member|case|booking|reservation|reference|ref|policy|contract|"
    r"tracking|passport|serial|licence|license"
)
"""What has a number that is no phone's."""
_KIND_OF_NUMBER = re.compile(
    rf"(?i)\b(?:(?P<phone>{_PHONE_WORD}|(?:['’]s|my|his|her|their) number)"
    rf"|{NUMBERED}|part|parcel|isbn|sku|version|ratio|rechnung|auftrag)\b"
)
NEAR = 40
"""How far before a number the word may stand that tells what it is of."""


def persons(text: str) -> Iterator[tuple[str, str]]:
    """What it looks like, and the detail itself. What is made up plainly is left out."""
    if "@" in text:
        yield from (("an e-mail address", mail) for mail in _e_mails(_E_MAIL_NAMED.sub(" ", text)))
    if _DIGITS.search(text):
        yield from _numbers(text)


def _numbers(text: str) -> Iterator[tuple[str, str]]:
    ibans = list(IBAN.finditer(text))
    yield from (("an IBAN", found[0]) for found in ibans)
    for phone in _PHONE.finditer(text):
        inside = any(iban.start() <= phone.start() < iban.end() for iban in ibans)
        if not inside and is_phone(text, *phone.span()) and not _MADE_UP_PHONE.search(phone[0]):
            yield "a phone number", phone[0]


def _e_mails(text: str) -> Iterator[str]:
    return (found[0] for found in _E_MAIL.finditer(text) if not _MADE_UP_HOST.search(found["host"]))


def is_phone(text: str, start: int, end: int) -> bool:
    """Whether a number is said to be a phone's, by an international prefix or by the last word before it
    that tells what it is of; but for service numbers, which are nobody's."""
    if _SERVICE.match(text, start):
        return False
    if text[start] == "+":
        return True
    told = list(_KIND_OF_NUMBER.finditer(text, max(0, start - NEAR), start))
    if told:
        return told[-1]["phone"] is not None
    return re.match(rf"(?i)[^\w]{{0,3}}(?:{_PHONE_WORD})\b", text[end : end + NEAR]) is not None
