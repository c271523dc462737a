"""What is said over the pipe arrives as it was said."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import wire
from collectors.backend import BackendError, Hit, Recall, Usage
from collectors.suite import Memory, Scope

texts = st.text(st.characters(exclude_categories=()))  # surrogates too
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
json_like = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=5)
metadata = st.dictionaries(texts, json_like, max_size=3)
times = st.none() | st.datetimes(timezones=st.just(UTC))
memories = st.builds(
    Memory, texts, texts, texts, times, texts, st.none() | texts, st.none() | texts, metadata
)
scopes = st.builds(Scope, texts, texts, st.lists(texts, max_size=3).map(tuple), st.none() | texts)
hits = st.builds(Hit, texts, texts, st.none() | st.floats(allow_nan=False), metadata)
usages = st.builds(Usage, st.integers(0), st.integers(0), st.floats(0, 1e9))
recalls = st.builds(Recall, st.lists(hits, max_size=3).map(tuple), usages, st.none() | texts)


def over_the_pipe(message: dict[str, object]) -> dict[str, object]:
    pipe = io.BytesIO()
    wire.send(pipe, wire.encoded(message))
    assert pipe.getvalue().count(b"\n") == 1
    pipe.seek(0)
    received = wire.receive(pipe)
    assert received is not None
    return received


@given(memories, scopes, recalls)
def test_words_survive(memory: Memory, scope: Scope, recall: Recall) -> None:
    """Memories, scopes and answers come out equal to what went in, in one line of ASCII."""
    said = {
        "memory": wire.from_memory(memory),
        "scope": wire.from_scope(scope),
        "recall": wire.from_recall(recall),
    }
    heard = over_the_pipe(said)
    assert wire.to_memory(heard["memory"]) == memory  # type: ignore[arg-type]
    assert wire.to_scope(heard["scope"]) == scope  # type: ignore[arg-type]
    assert wire.to_recall(heard["recall"]) == recall  # type: ignore[arg-type]


@pytest.mark.parametrize("left", [b"", b'{"id": 1, "val', b'{"id": 1}'])
def test_the_end_of_a_pipe(left: bytes) -> None:
    """No message, be it in the middle of one."""
    assert wire.receive(io.BytesIO(left)) is None


def test_what_json_cannot_tell() -> None:
    """Keys that are no words and a list that holds itself are the adapter's fault; all else becomes text."""

    class Broken:
        def item(self) -> None:
            raise ValueError("can only convert an array of size 1")

    endless: list[object] = []
    endless.append(endless)
    for told in ({(1, 2): 3}, endless):
        with pytest.raises(BackendError, match="what JSON cannot tell") as raised:
            wire.encoded({"value": told})
        assert raised.value.permanent
    assert b"Broken" in wire.encoded({"value": Broken()})


@pytest.mark.parametrize("line", [b'"1"\n', b"[1]\n", b"{oops}\n"])
def test_what_is_no_message(line: bytes) -> None:
    """A line that is not an object is told as such."""
    with pytest.raises(wire.WireError, match="a line that is"):
        wire.receive(io.BytesIO(line))


def test_a_message_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer fills the memory of whoever reads it."""
    monkeypatch.setattr(wire, "LARGEST", 1 << 20)
    with pytest.raises(wire.WireError, match="more than 1 MiB"):
        wire.receive(io.BytesIO(b"x" * (2 << 20)))


def test_a_time_without_json() -> None:
    """Times travel in ISO 8601."""
    at = datetime(2026, 2, 3, tzinfo=UTC)
    assert over_the_pipe({"at": at}) == {"at": "2026-02-03T00:00:00+00:00"}


@pytest.mark.parametrize("given", [None, {"calls": 1}, "text"])
def test_wrong_types_are_the_adapter_s_fault(given: object) -> None:
    """Told by their name, for good."""
    with pytest.raises(BackendError, match=f"returned {type(given).__name__}, not Usage") as raised:
        wire.from_usage(given)
    assert raised.value.permanent
    with pytest.raises(BackendError, match="not Recall of Hits"):
        wire.from_recall(Recall((given,)))  # type: ignore[arg-type]
