"""From a conversation to a draft case: everything but what a person alone can say, the expectation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from collectors.personal import without_personal_details
from collectors.suite import SuiteError, digest
from collectors.suites.golden_format import FILL_IN

_ROLES = {
    **dict.fromkeys(("user", "customer", "client", "me", "caller", "human", "guest"), "user"),
    **dict.fromkeys(("assistant", "agent", "support", "bot", "ai", "operator", "memtrend"), "assistant"),
}
_LABEL = re.compile(r"^(?P<label>\w[\w .'’-]{0,40}?)[ \t]*:[ \t]+(?P<text>.*)$")
_HEADERS = frozenset(
    (
        "subject",
        "date",
        "from",
        "to",
        "cc",
        "re",
        "order",
        "note",
        "phone",
        "email",
        "address",
        "name",
        "time",
    )
)
_QUESTION = re.compile(r"[^.!?\n]*\?")


class Turn(NamedTuple):
    """What one side said. `speaker` is a name where the transcript gives one."""

    role: str
    text: str
    speaker: str = ""


class _Asked(NamedTuple):
    """The question, what was said before it and what after."""

    before: list[Turn]
    query: str
    after: list[Turn]


def append(line: str, path: Path) -> None:
    """Add a line to a file, whose last one may lack its line break. Raises `SuiteError`."""
    try:
        with path.open("a+b") as suite:
            if suite.tell():
                suite.seek(-1, 2)
                line = line if suite.read(1) == b"\n" else f"\n{line}"
            suite.write(line.encode())
    except OSError as error:
        raise SuiteError(f"{path}: cannot be written: {error.strerror or error}") from error


def draft(path: Path, id: str | None = None) -> str:
    """A line of a golden suite, ending in a line break. It does not load until a person has filled in what
    should come back. Raises `SuiteError` for a file that holds no conversation."""
    turns = _anonymous(_read(path))
    asked = _asked(turns)
    answered = f"; the answer then was: {asked.after[0].text[:200]}" if asked.after else ""
    case = {
        "id": id or f"draft-{digest([turn.text for turn in turns])[:8]}",
        "writes": [_write(turn) for turn in asked.before],
        "query": asked.query,
        "expect_any": [f"{FILL_IN}: a pattern that the right memory matches{answered}>"],
        "tags": [f"{FILL_IN}: the reason this case exists>"],
        "source": "a conversation of our own; patterns replaced what they found of persons: read it",
    }
    return json.dumps(case, ensure_ascii=False) + "\n"


def _write(turn: Turn) -> str | dict[str, Any]:
    return turn.text if turn.role == "user" else {"text": turn.text, "role": turn.role}


def _anonymous(turns: Sequence[Turn]) -> list[Turn]:
    names = [turn.speaker for turn in turns if turn.speaker]
    texts = without_personal_details([turn.text for turn in turns], names)
    return [Turn(turn.role, text) for turn, text in zip(turns, texts, strict=True)]


def _asked(turns: Sequence[Turn]) -> _Asked:
    """The last question that the user's side asked; what stands around it in its turn was said before."""
    for place in reversed(range(len(turns))):
        questions = _QUESTION.findall(turns[place].text) if turns[place].role == "user" else []
        if questions:
            query = questions[-1].strip()
            rest = " ".join(turns[place].text.replace(questions[-1], " ").split())
            before = [*turns[:place], *([Turn("user", rest)] if rest else [])]
            return _Asked(before, query, list(turns[place + 1 :]))
    return _Asked(list(turns), f"{FILL_IN}: the question that these memories answer>", [])


# Reading


def _read(path: Path) -> list[Turn]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError(f"{path}: cannot be read as UTF-8 text: {error}") from error
    if not text.lstrip().startswith("{") and _is_json(text):
        raise SuiteError(
            f'{path}: is JSON, but no JSONL of turns: one {{"role": "user", "content": "..."}} a line'
        )
    turns = list(_from_jsonl(path, text) if text.lstrip().startswith("{") else _from_text(text))
    if not turns:
        raise SuiteError(f"{path}: holds no conversation: plain text, or a line of {{role, content}} a turn")
    return turns


_ARRAY = re.compile(r'\s*\[\s*[\[{"]')
"""The beginning of an array of anything but numbers: the time of a chat, [10:32], is none."""


def _is_json(text: str) -> bool:
    """Whether it is one JSON document, or one a line, or the beginning of an array."""
    lines = [line for line in text.split("\n") if line.strip()]
    return bool(_ARRAY.match(text)) or _parses(text) or (bool(lines) and all(map(_parses, lines)))


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _from_jsonl(path: Path, text: str) -> Iterator[Turn]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            turn = json.loads(line)
            role, content = turn["role"], turn["content"]
        except (ValueError, KeyError, TypeError):
            role = content = None
        if not isinstance(role, str) or not isinstance(content, str):
            raise SuiteError(f'{path}:{number}: should be {{"role": "user", "content": "..."}}')
        if content.strip():
            yield _turn(role, content.strip()) if role[:1].isupper() else _of_role(role, content.strip())


def _from_text(text: str) -> Iterator[Turn]:
    """Turns begin with `Speaker: `; without any, a paragraph is a turn of the user's."""
    lines = text.split("\n")
    labels = [found["label"] for line in lines if (found := _LABEL.match(line)) and _speaks(found["label"])]
    if not labels:
        yield from (Turn("user", part.strip()) for part in re.split(r"\n\s*\n", text) if part.strip())
        return
    speaker, said = "", list[str]()
    for line in [*lines, None]:
        found = _LABEL.match(line) if line is not None else None
        if line is not None and not (found and found["label"] in labels):
            said.append(line)
            continue
        if "\n".join(said).strip():
            yield _turn(speaker, "\n".join(said).strip())
        speaker, said = (found["label"], [found["text"]]) if found else ("", [])


def _speaks(label: str) -> bool:
    """A role, or a name: every word begins with a capital, and it is no header of a letter."""
    known = label.casefold()
    return known in _ROLES or (known not in _HEADERS and all(word[0].isupper() for word in label.split()))


def _of_role(role: str, text: str) -> Turn:
    return Turn(_ROLES.get(role.casefold(), role), text)


def _turn(label: str, text: str) -> Turn:
    """Who is no role is a person on the user's side."""
    role = _ROLES.get(label.casefold())
    return Turn(role or "user", text, "" if role else label)
