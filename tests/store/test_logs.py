"""How an entry looks, what becomes of the words of others, and that nothing else is said."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextvars import copy_context

import pytest
import typer

from store import hiding, logs
from store.errors import StoreError
from store.sections import LogSection

SECRET = "qu4rtz-secret"
MEMORY = "the amber key opens door 5"
LOG = logs.get("test")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test lets this process do is no other's."""
    root, ours = logging.root, logging.getLogger("memtrend")
    former = list(root.handlers), root.level, ours.level, warnings.showwarning
    monkeypatch.setattr(hiding, "_remembered", {SECRET})
    yield
    root.handlers[:], warnings.showwarning = former[0], former[3]
    root.setLevel(former[1])
    ours.setLevel(former[2])


class Said(io.StringIO):
    """What is logged from `begin` on."""

    def begin(self, section: LogSection | None = None) -> None:
        sys.stderr = self
        logs.begin(section or LogSection(level="debug"))
        logging.root.handlers[:] = logging.root.handlers[-1:]  # ours, without pytest's

    def entries(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Said:
    monkeypatch.setattr(sys, "stderr", sys.stderr)  # put back at the end
    return Said()


def test_an_entry_bears_what_is_bound(said: Said) -> None:
    """Ids that are bound stand in every entry of the block, on another thread too that runs in its context,
    and in none after it; None binds nothing."""
    said.begin()
    with logs.bound(run=3, case="door-1", schedule=None):
        thread = threading.Thread(target=copy_context().run, args=(LOG.info, "inside"))
        thread.start()
        thread.join()
    LOG.info("outside", left_out=None)
    inside, outside = said.entries()
    assert {name: inside[name] for name in ("level", "logger", "event", "run", "case")} == {
        "level": "info",
        "logger": "memtrend.test",
        "event": "inside",
        "run": 3,
        "case": "door-1",
    }
    assert inside.keys() - outside.keys() == {"run", "case"}
    assert "schedule" not in inside
    assert "left_out" not in outside


def test_a_secret_is_hidden_wherever_it_stands(said: Said) -> None:
    """In the event, in fields, in lists and tables, and in what is no text."""
    said.begin()
    LOG.info(f"see {SECRET}", plain=SECRET, inner={"a": [SECRET, (SECRET,)]}, odd=ValueError(SECRET))
    (entry,) = said.entries()
    assert SECRET not in json.dumps(entry)
    assert entry["event"] == "see ***"


def test_an_error_is_told_by_its_kind_and_place(said: Said) -> None:
    """An error has its causes, each with frames and without locals; the words are told of our own errors and
    of the system's alone."""
    said.begin()
    local = MEMORY
    try:
        try:
            raise FileNotFoundError(2, "No such file or directory", local)
        except OSError as error:
            raise StoreError("the record is gone") from error
    except StoreError:
        LOG.exception("refused")
    try:
        raise ValueError(local)
    except ValueError as error:
        LOG.error("failed", exc_info=error)
    refused, failed = (entry["exception"] for entry in said.entries())
    assert isinstance(refused, list)
    assert [(one["type"], one["message"]) for one in refused] == [
        ("store.errors.StoreError", "the record is gone"),
        ("FileNotFoundError", "No such file or directory"),
    ]
    assert isinstance(failed, list)
    assert failed[0]["message"] is None
    assert "test_logs.py" in failed[0]["frames"][0]
    assert MEMORY not in json.dumps(said.entries())


def test_the_words_of_libraries_are_withheld(said: Said) -> None:
    """Of a library's warning or error it is told who spoke, and where; its words, its `extra` and what it
    says below a warning are not, and a message that cannot be formatted breaks nothing."""
    said.begin()
    vendor = logging.getLogger("vendor.client")
    vendor.setLevel(logging.DEBUG)
    vendor.info(MEMORY)
    vendor.warning("%s", MEMORY, extra={"text": MEMORY, "run": MEMORY})
    vendor.error("%s %s", MEMORY)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(MEMORY, stacklevel=1)
    assert [(entry["level"], entry["event"]) for entry in said.entries()] == [
        ("warning", logs.WITHHELD),
        ("error", logs.WITHHELD),
        ("warning", logs.WITHHELD),
    ]
    assert all("test_logs.py:" in str(entry["at"]) for entry in said.entries())
    assert MEMORY not in json.dumps(said.entries())


def test_servers_are_quoted_without_what_was_asked(said: Said) -> None:
    """uvicorn and alembic are quoted, but for the query of an address: somebody may search for a memory."""
    said.begin()
    logging.getLogger("uvicorn.error").warning('"WebSocket %s" [accepted]', f"/stream?q={MEMORY.split()[1]}")
    (entry,) = said.entries()
    assert entry["event"] == '"WebSocket /stream" [accepted]'


def test_a_process_alone_says_nothing_else(said: Said) -> None:
    """What is printed, and what nobody caught on any thread, becomes an entry without its words; the process
    then ends with exit code 1."""
    said.begin()

    @logs.alone()
    def fail() -> None:
        print(MEMORY)  # noqa: T201
        sys.stderr.write(f"{MEMORY}\n")
        thread = threading.Thread(target=lambda: [][0])
        thread.start()
        thread.join()
        raise ValueError(MEMORY)

    with pytest.raises(SystemExit) as ended:
        fail()
    assert ended.value.code == 1
    assert [(entry["level"], entry["event"]) for entry in said.entries()] == [
        ("debug", logs.PRINTED),
        ("debug", logs.PRINTED),
        ("critical", "an error that nobody caught"),
        ("critical", "an error that nobody caught"),
    ]
    assert MEMORY not in json.dumps(said.entries())


@pytest.mark.parametrize(
    ("stream", "format", "as_json"),
    [
        (Terminal, "auto", False),
        (io.StringIO, "auto", True),
        (Terminal, "json", True),
        (io.StringIO, "console", False),
    ],
)
def test_a_terminal_gets_lines_to_read(
    stream: type[io.StringIO], format: str, as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal entries are lines to read, else JSON, unless the configuration says otherwise; what is
    withheld and hidden is so in both."""
    said = stream()
    monkeypatch.setattr(sys, "stderr", said)
    logs.begin(LogSection.model_validate({"format": format}))
    try:
        raise ValueError(MEMORY)
    except ValueError:
        LOG.exception("failed", run=7, key=SECRET)
    assert said.getvalue().startswith("{") is as_json
    for piece in ("failed", "7", "ValueError", "test_logs.py"):
        assert piece in said.getvalue()
    assert MEMORY not in said.getvalue()
    assert SECRET not in said.getvalue()


def test_a_level_holds_for_ours_and_for_others(said: Said) -> None:
    """Below the level nothing is said; beginning again follows a changed one."""
    said.begin()
    said.begin(LogSection(level="error"))
    LOG.warning("ours")
    logging.getLogger("vendor").warning("theirs")
    LOG.error("bad")
    assert [entry["event"] for entry in said.entries()] == ["bad"]


def test_a_stream_that_refuses_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log on a full disk, or to a reader that is gone, is lost, and who logs goes on."""
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    logs.begin()
    said.close()
    LOG.error("lost")


def test_a_person_is_told_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a command a library may print what it likes: on stderr it stands without secrets, also when
    click writes it there."""
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    logs.hide_on_stderr()
    logs.hide_on_stderr()
    print(f"sent {SECRET}", file=sys.stderr)  # noqa: T201
    typer.echo(f"and {SECRET}", err=True)
    assert said.getvalue() == "sent ***\nand ***\n"
