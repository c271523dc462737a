"""Text from outside as plain text, and times where the viewer is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dashboard import navigation, parts
from tests.dashboard.facts import HOSTILE


def read(markdown: str) -> str:
    """What a reader of markdown makes of escapes alone."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown).replace("\u2060", "")


@given(some.text(max_size=80))
def test_plain_text_is_kept(text: str) -> None:
    """Nothing but white space changes on the way through markdown."""
    assert read(parts.plain(text)) == re.sub(r"\s+", " ", text.replace("\u2060", "")).strip()


@given(some.text(alphabet="*_`$[]()<>!#:~|\\-+.&{}=ab \n", max_size=60))
def test_no_punctuation_keeps_its_meaning(text: str) -> None:
    """Every character that markdown could read is escaped, on one line."""
    escaped = parts.plain(text)
    assert "\n" not in escaped
    assert not re.search(r"[!-/:-@\[-`{-~]", re.sub(r"\\[!-/:-@\[-`{-~]", "", escaped))


@pytest.mark.parametrize(
    "text", ["http://evil.example", "www.evil.example", "a@evil.example", ":smile:", HOSTILE]
)
def test_addresses_do_not_become_links(text: str) -> None:
    """What markdown would find as a link or an icon in bare text is broken up."""
    unescaped = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", parts.plain(text))
    assert not re.search(r"(?i)https?://|www\.|\w@\w|:[a-z]+:", unescaped)


@pytest.mark.parametrize(
    ("text", "expected"), [("a", "` a `"), ("a`b``c", "``` a`b``c ```"), ("a\nb", "` a b `")]
)
def test_code_holds_any_text(text: str, expected: str) -> None:
    """A piece of code ends where it should, whatever stands in it."""
    assert parts.code(text) == expected


def test_an_address_holds_any_name() -> None:
    """Names of cases are quoted in addresses."""
    assert navigation.address("case", case="a&b=<c>", run=7) == "case?case=a%26b%3D%3Cc%3E&run=7"
    assert navigation.address("runs") == "runs"
