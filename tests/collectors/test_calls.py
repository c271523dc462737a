"""A call that hangs, fails or is told to stop costs its own scenario, and no more."""

import threading
import time

import pytest
import stamina

from collectors import calls
from collectors.backend import BackendConfig, BackendError
from collectors.calls import CallTimeout, Instance, Line, Stopped, attempt, describe, is_transient, on_line
from tests.collectors.odd_backends import ODD, Hanging, Shelf


@pytest.fixture
def stop():
    return threading.Event()


@pytest.fixture
def line(stop):
    line = Line(5.0, stop)
    yield line
    line.close()


@pytest.fixture
def impatient(stop):
    line = Line(0.05, stop)
    yield line
    line.close()


@pytest.fixture(autouse=True)
def _no_pauses():
    stamina.set_testing(True, attempts=10, cap=True)
    yield
    stamina.set_testing(False)


def forever():
    threading.Event().wait()


def failing(*errors):
    """A call that raises one error after the other, and then answers; it counts itself."""
    left = list(errors)

    def call():
        call.made += 1
        if left:
            raise left.pop(0)
        return "answer"

    call.made = 0
    return call


# A line


def test_answer_and_time(line):
    """What a call returns comes back with the time that it took, taken where it was made."""
    answer = line(lambda: time.sleep(0.02) or threading.current_thread().name)
    assert answer.value == "memtrend-calls"
    assert answer.ms >= 20


def test_calls_take_turns(line):
    """All calls of a line are made on one thread, so that they never overlap."""
    assert len({line(threading.get_ident).value for _ in range(20)}) == 1


def test_errors_pass_through(line):
    """A call raises what the backend raised, a TimeoutError of its own included."""
    for error in (ValueError("odd"), TimeoutError("theirs")):
        with pytest.raises(type(error), match=str(error)) as raised:
            line(failing(error))
        assert raised.value is error


def test_exit_of_an_sdk(line):
    """sys.exit() in a backend is an error that asking again does not mend, and no end of the run."""
    with pytest.raises(BackendError, match="SystemExit: no licence") as raised:
        line(failing(SystemExit("no licence")))
    assert raised.value.permanent


def test_timeout(impatient):
    """A call that hangs is given up after its time, and no later call waits in line behind it."""
    with pytest.raises(CallTimeout, match=r"no answer within 0\.05 s"):
        impatient(forever)
    with pytest.raises(CallTimeout, match="earlier call still hangs"):
        impatient(lambda: "never made")


def test_stop_before(line, stop):
    """Once a stop was asked for no call is begun: a scenario of a thousand quick ones ends at once."""
    stop.set()
    call = failing()
    with pytest.raises(Stopped):
        line(call)
    assert call.made == 0


def test_stop_in_flight(line, stop):
    """A call in flight may finish when a stop is asked for, and then the scenario ends."""
    finished = threading.Event()

    def call():
        stop.set()
        time.sleep(2 * calls.POLL_S)
        finished.set()

    with pytest.raises(Stopped):
        line(call)
    assert finished.is_set()


def test_stop_while_it_hangs(line, stop, monkeypatch):
    """A stop waits for a call that hangs no longer than its grace."""
    monkeypatch.setattr(calls, "GRACE_S", 0.05)
    with pytest.raises(Stopped):
        line(lambda: stop.set() or forever())


# Asking again


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (BackendError("429"), True),
        (ConnectionError(), True),
        (TimeoutError(), True),
        (BackendError("bad key", permanent=True), False),
        (TypeError(), False),
        (NotImplementedError(), False),
        (ModuleNotFoundError(), False),
        (CallTimeout(), False),
        (Stopped(), False),
    ],
)
def test_transient(error, transient):
    """Bad lines may mend; bad keys, bugs, hanging calls and stops do not."""
    assert is_transient(error) is transient


def test_retried(line):
    """Transient errors are asked again, and every call counts as an attempt."""
    answer = attempt(line, failing(ConnectionError(), BackendError("429")), 3)
    assert (answer.value, answer.attempts, answer.error) == ("answer", 3, None)
    assert answer.ms is not None


def test_retried_in_vain(line):
    """After the last attempt the error is what came of it, and there is no value and no time."""
    answer = attempt(line, failing(*(ConnectionError(str(n)) for n in range(9))), 3)
    assert (answer.value, answer.ms, answer.attempts, str(answer.error)) == (None, None, 3, "2")


@pytest.mark.parametrize("error", [BackendError("bad key", permanent=True), AttributeError("bug")])
def test_not_retried(line, error):
    """What asking again does not mend is asked once."""
    call = failing(error)
    answer = attempt(line, call, 3)
    assert (answer.attempts, answer.error, call.made) == (1, error, 1)


def test_hanging_is_not_retried(impatient):
    """A call that hung is not made again."""
    call = failing()
    with pytest.raises(CallTimeout):
        attempt(impatient, lambda: call() and forever(), 3)
    assert call.made == 1


# An instance


def config(type="Shelf", **options):
    return BackendConfig("mine", ODD + type, options)


def test_one_handle():
    """However many scenarios ask at once, a backend is opened once and all get the same handle."""
    opened, together = [], threading.Barrier(8)

    def slowly(config):
        time.sleep(0.02)
        opened.append(config)
        return Shelf()

    instance = Instance(config(), slowly)
    handles = []

    def ask():
        together.wait()
        handles.append(instance.handle())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 1
    assert len(handles) == 8
    assert len(set(map(id, handles))) == 1


def test_abandoned():
    """After a hang the next one who asks gets a new handle, once; close closes that one."""
    instance = Instance(config())
    first = instance.handle()
    instance.abandon(first)
    second = instance.handle()
    assert second is not first
    instance.abandon(first)
    assert instance.handle() is second, "one that was opened since is no other scenario's to drop"
    instance.close()
    assert instance.handle() is not second


def test_opening_that_hangs(impatient):
    """An opening that never ends can be given up, and the next one is free to succeed."""
    doors = iter([forever, Shelf])
    instance = Instance(config(), lambda _config: next(doors)())
    with pytest.raises(CallTimeout):
        impatient(instance.handle)
    instance.abandon(None)
    assert isinstance(instance.handle(), Shelf)


def test_close_without_a_handle():
    """Closing what was never opened opens nothing."""
    Instance(config("Broken")).close()


def test_a_backend_on_a_line(line):
    """Verbs of a backend on a line are called there; what it declares is read as it is."""
    odd = on_line(Hanging(verb="count"), Line(0.05, threading.Event()))
    assert odd.capabilities == Shelf.capabilities
    with pytest.raises(CallTimeout):
        odd.did("count", what="hang")
    assert on_line(threading, line).get_ident() == line(threading.get_ident).value


# Words


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BackendError("no key"), "no key"),
        (ValueError("odd"), "ValueError: odd"),
        (KeyError(), "KeyError: no message"),
        (ValueError("half \ud83d"), "ValueError: half ?"),
        (ValueError("x" * 900), "ValueError: " + "x" * 488),
    ],
)
def test_described(error, said):
    """Errors are told with their kind, ours without; short enough and whole enough for any record."""
    assert describe(error) == said
