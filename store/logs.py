"""Logs of the processes that run for long: JSON, an entry a line, or readable lines on a terminal.

An entry holds ids, and words of our own. What a library logs, prints or raises may quote a memory: it is told
which one spoke, and where in the code, without its words. Secrets are hidden as everywhere.
"""

from __future__ import annotations

import io
import logging
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TextIO

import structlog
from structlog.stdlib import BoundLogger, ProcessorFormatter

from store.errors import StoreError
from store.hiding import redacted
from store.sections import LogSection
from store.settings import SettingsError

Entry = MutableMapping[str, Any]

OURS = "memtrend"
OF_SERVERS = ("uvicorn", "alembic", "apscheduler")
"""Libraries that never hold a memory: they are quoted."""
WITHHELD = "a library has something to say"
PRINTED = "a line was printed"
_QUERY = re.compile(r"\?[^\s\"']*")


def get(name: str) -> BoundLogger:
    """The logger `memtrend.NAME`. The event of an entry is a constant, or words made for the user; what it is
    about stands in fields. No field may hold a text of a memory, a question or an answer."""
    logger: BoundLogger = structlog.get_logger(f"{OURS}.{name}")
    return logger


def bound(**ids: object) -> AbstractContextManager[None]:
    """Every entry of the block, and of what runs in a copy of its context, bears these: `run`, `suite`,
    `backend`, `case`, `schedule`, `request`. None is left out."""
    return structlog.contextvars.bound_contextvars(
        **{name: value for name, value in ids.items() if value is not None}
    )


def begin(section: LogSection | None = None) -> None:
    """Log on stderr from now on, as the section says (default: its defaults); again after a change."""
    section = section or LogSection()
    stream = _real(sys.stderr)
    as_json = section.format == "json" or (section.format == "auto" and not stream.isatty())
    handler = _Handler(stream)
    handler.setFormatter(_formatter(as_json, colours=stream.isatty()))
    handler.setLevel(section.level.upper())
    others = [
        other for other in logging.root.handlers if type(other) not in (_Handler, logging.StreamHandler)
    ]
    logging.root.handlers[:] = [*others, handler]
    logging.root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(section.level.upper())
    warnings.showwarning = _warned


def say(text: str) -> None:
    """To a person on stderr, as an entry where nothing else is said. No text of a memory."""
    if isinstance(sys.stderr, _Printed):
        get("record").info(text)
    else:
        sys.stderr.write(f"{text}\n")


@contextmanager
def alone() -> Iterator[None]:
    """While it lasts the process says nothing but entries: what is printed becomes one of level debug,
    without its words, and an error that nobody caught one of level critical, with exit code 1."""
    former = sys.stdout, sys.stderr, sys.excepthook, threading.excepthook, sys.unraisablehook
    sys.stdout, sys.stderr = _Printed(sys.stdout, "stdout"), _Printed(sys.stderr, "stderr")
    sys.excepthook = lambda kind, error, trace: _uncaught(error)
    threading.excepthook = lambda of: _uncaught(of.exc_value)
    sys.unraisablehook = lambda of: _uncaught(of.exc_value)
    try:
        yield
    except Exception as error:  # noqa: BLE001  the last resort: the interpreter would print what it quotes
        _uncaught(error)
        sys.exit(1)
    finally:
        sys.stdout, sys.stderr, sys.excepthook, threading.excepthook, sys.unraisablehook = former


# The way of an entry ---------------------------------------------------------------------------------------


def _told_error(logger: Any, method: str, entry: Entry) -> Entry:
    """An error of the entry and its causes, the last one first, without locals and mostly without words."""
    if error := _error_of(entry):
        entry["exception"] = [_told(one) for one in _with_causes(error)]
    return entry


def _without_secrets(logger: Any, method: str, entry: Entry) -> Entry:
    return {name: _hidden(value) for name, value in entry.items() if value is not None}


_BEFORE: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(["at"]),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    _told_error,
    _without_secrets,
]

structlog.configure(
    processors=[structlog.stdlib.filter_by_level, *_BEFORE, ProcessorFormatter.wrap_for_formatter],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=BoundLogger,
)


def _formatter(as_json: bool, *, colours: bool) -> ProcessorFormatter:
    last: list[Any] = [_in_order, structlog.processors.JSONRenderer(default=_plain)]
    if not as_json:
        last = [_in_lines, structlog.dev.ConsoleRenderer(colors=colours, sort_keys=False)]
    first = ProcessorFormatter.remove_processors_meta
    return ProcessorFormatter(foreign_pre_chain=_BEFORE, processors=[first, *last])


def _in_order(logger: Any, method: str, entry: Entry) -> Entry:
    first = ("timestamp", "level", "logger", "event")
    return {name: entry.pop(name) for name in first if name in entry} | dict(entry)


def _in_lines(logger: Any, method: str, entry: Entry) -> Entry:
    """An error as a terminal shows it."""
    if told := entry.get("exception"):
        heads = (one["type"] + (f": {one['message']}" if one["message"] else "") for one in told)
        lines = (line for head, one in zip(heads, told, strict=True) for line in (*one["frames"], head))
        entry["exception"] = "\n".join(lines)
    return entry


def _error_of(entry: Entry) -> BaseException | None:
    given = entry.pop("exc_info", None)
    if isinstance(given, BaseException):
        return given
    found = sys.exc_info() if given is True else given
    return found[1] if isinstance(found, tuple) else None


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in seen:
        yield following
        seen.append(following)
        hidden = None if following.__suppress_context__ else following.__context__
        following = following.__cause__ or hidden


def _told(error: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "type": f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins."),
        "message": words_of(error),
        "frames": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }


def words_of(error: BaseException) -> str | None:
    """What an error says, where it cannot be a memory: words of our own, or those of the system."""
    if isinstance(error, StoreError | SettingsError):
        return str(error)
    return error.strerror if isinstance(error, OSError) else None


def _hidden(value: Any) -> Any:
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {name: _hidden(inner) for name, inner in value.items()}
    return [_hidden(inner) for inner in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> str:
    return redacted(str(value))


# What others say -------------------------------------------------------------------------------------------


class _Handler(logging.StreamHandler[TextIO]):
    """The one handler of the process."""

    def emit(self, record: logging.LogRecord) -> None:
        if _is_of(record.name, OURS):
            super().emit(record)
        elif record.levelno >= logging.WARNING:
            super().emit(_quoted(record) if _is_of(record.name, *OF_SERVERS) else _withheld(record))

    def handleError(self, record: logging.LogRecord) -> None:
        """What cannot be written, to a full disk say, is lost: there is nowhere to say so."""


def _is_of(name: str, *libraries: str) -> bool:
    return name.partition(".")[0] in libraries


def _quoted(record: logging.LogRecord) -> logging.LogRecord:
    """Without the queries of addresses: somebody may have searched for a memory."""
    return _instead(record, _QUERY.sub("", record.getMessage()).strip())


def _withheld(record: logging.LogRecord) -> logging.LogRecord:
    return _instead(record, WITHHELD, at=f"{record.pathname}:{record.lineno}")


def _instead(record: logging.LogRecord, message: str, **fields: str) -> logging.LogRecord:
    """A record without whatever else it had: `extra` may hold anything."""
    where = record.levelno, record.pathname, record.lineno
    said = logging.LogRecord(record.name, *where, message, None, record.exc_info)
    said.created = record.created
    vars(said).update(fields)
    return said


def _warned(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    get("python").warning(WITHHELD, at=f"{filename}:{lineno}", kind=category.__name__)


def _uncaught(error: BaseException | None) -> None:
    get("python").critical("an error that nobody caught", exc_info=error)


class _InPlace(io.TextIOBase):
    """Stands in the place of stdout or stderr."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, real: TextIO) -> None:
        self.real = real

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.real.isatty()

    def fileno(self) -> int:
        return self.real.fileno()

    def flush(self) -> None:
        self.real.flush()


class _Printed(_InPlace):
    """What is printed may be a memory, and is told without its words."""

    def __init__(self, real: TextIO, name: str) -> None:
        super().__init__(real)
        self._name = name

    def write(self, text: str) -> int:
        if lines := len(_text(text).strip().splitlines()):
            get("python").debug(PRINTED, stream=self._name, lines=lines)
        return len(text)


class _Redacted(_InPlace):
    def write(self, text: str) -> int:
        self.real.write(redacted(_text(text)))
        return len(text)


def _text(given: object) -> str:
    """Who finds out what a stream takes by writing bytes to it is answered as by a stream of texts."""
    if not isinstance(given, str):
        raise TypeError(f"a text is written here, not {type(given).__name__}")
    return given


def hide_on_stderr() -> None:
    """From now on what an adapter prints there stands there without the secrets of the configuration."""
    if not isinstance(sys.stderr, _InPlace):
        sys.stderr = _Redacted(sys.stderr)


def _real(stream: Any) -> TextIO:
    while isinstance(stream, _InPlace):
        stream = stream.real
    found: TextIO = stream
    return found


def adopt(logger: logging.Logger) -> None:
    """A logger to which a library gave a handler of its own speaks through ours."""
    logger.handlers.clear()
    logger.propagate = True
