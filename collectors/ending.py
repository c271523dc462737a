"""How a process ends that could not do what was asked: in words, with an exit code, without a traceback.

Exit codes: 1 the thing asked about is bad, 2 usage or configuration; others where an error says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from collectors.arguments import BAD, USAGE, Refused
from collectors.commands import say


def explained(error: Exception, *, debug: bool) -> int:
    """Say on stderr what happened, and with `debug` where. Returns the exit code."""
    from traceback import format_exception

    from store.hiding import redacted

    if debug:
        say(redacted("".join(format_exception(error))))
    say(f"memtrend: {redacted(str(error)) or type(error).__name__}")
    if not _is_expected(error) and not debug:
        say(f"({type(error).__name__}; memtrend --debug shows where)")
    return _exit_code(error)


@contextmanager
def running_long(*, debug: bool = False) -> Iterator[None]:
    """For a process that runs for long: it says nothing but the entries of its log, its last words too."""
    from store import logs

    logs.begin()
    with logs.alone():
        try:
            yield
        except Exception as error:  # noqa: BLE001  the last resort: say what happened, plainly
            shown = error if debug or not _is_expected(error) else None
            logs.get("end").critical(**for_log(error), exc_info=shown)
            code = _exit_code(error)
        else:
            return
    raise SystemExit(code)


def for_log(error: Exception) -> dict[str, Any]:
    """What a log may be told of an error: no words that may quote a suite or a backend."""
    from collectors.backend import BackendError
    from collectors.suite import SuiteError

    if isinstance(error, SuiteError):
        places = [f"{problem.where}: {problem.rule}" for problem in error.problems]
        return {"event": "a suite cannot be loaded; memtrend lint says why", "places": places}
    if isinstance(error, BackendError):
        return {"event": f"ended by {type(error).__name__}; memtrend doctor says which backend and why"}
    if _is_expected(error):
        return {"event": str(error)}
    return {"event": f"ended by {type(error).__name__}"}


def _exit_code(error: Exception) -> int:
    if not _is_expected(error):
        return BAD
    code: int = getattr(error, "code", USAGE if _is_configuration(error) else BAD)
    return code


def _is_expected(error: Exception) -> bool:
    from collectors.backend import BackendError
    from collectors.lease import InstanceBusy
    from collectors.pulse import CollectorBusy
    from collectors.supervise import PortError
    from store.errors import StoreError

    ours = Refused | BackendError | InstanceBusy | CollectorBusy | PortError | StoreError
    return _is_configuration(error) or isinstance(error, ours)


def _is_configuration(error: Exception) -> bool:
    from collectors.suite import SuiteError
    from store.settings import SettingsError

    return isinstance(error, SettingsError | SuiteError)
