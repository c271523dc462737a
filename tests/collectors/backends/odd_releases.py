"""Backends for workers, each with one habit: type = "tests.collectors.backends.odd_releases:Crashes".

They need nothing but the standard library, so that any small package makes their environment. The question
picks what goes wrong.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time

from collectors.backend import BackendError, Hit, Recall
from tests.collectors.odd_backends import Shelf

ODD = "tests.collectors.backends.odd_releases:"


class Crashes(Shelf):
    """Dies of a signal, as a library in C may."""

    def recall(self, scope, query, k):
        if "crash" in query:
            sys.stderr.write("about to read a null pointer\n")
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().recall(scope, query, k)


class Hangs(Shelf):
    """Answers some questions in ten minutes, in a child of its own."""

    def recall(self, scope, query, k):
        if "hang" in query:
            subprocess.run(["/bin/sleep", "600"], check=True)
        return super().recall(scope, query, k)


class HoldsTheInterpreter(Shelf):
    """Sleeps in C with the interpreter held, so that no thread of its process can act."""

    def recall(self, scope, query, k):
        if "hang" in query:
            ctypes.PyDLL(None).sleep(600)
        return super().recall(scope, query, k)


class Daemonizes(Shelf):
    """Starts something in a session of its own, as a server is started."""

    def recall(self, scope, query, k):
        subprocess.Popen(["/bin/sleep", "601"], start_new_session=True)
        return super().recall(scope, query, k)


class SlowToOpen(Shelf):
    """Takes ten minutes to open."""

    def __init__(self):
        time.sleep(600)


class SlowToClose(Shelf):
    """Takes ten minutes to close."""

    def close(self):
        time.sleep(600)


class Tells(Shelf):
    """Prints a word that begins where the first part of what is kept ends, and much after it."""

    def recall(self, scope, query, k):
        sys.stderr.write("x" * 90 + "\n" + "y " * 8140 + "supersecretkey-123456" + " z" * 40_000)
        return super().recall(scope, query, k)


class Odd(Shelf):
    """Answers with metadata that has no words for keys."""

    def recall(self, scope, query, k):
        return Recall((Hit("m-1", "text", 1.0, {"inner": {(1, 2): "x"}}),))


class Surroundings(Shelf):
    """Answers with the names of what it is told of its environment."""

    def recall(self, scope, query, k):
        return Recall((Hit("m-1", " ".join(sorted(os.environ))),))


class Chats(Shelf):
    """Prints, from Python and from C, and reads stdin."""

    def recall(self, scope, query, k):
        sys.stdout.write("print() was here\n")
        os.write(1, b"so was C\n")
        os.system("echo and a child")
        assert sys.stdin.read() == ""
        sys.stderr.write("x" * 100_000 + "\nthe end of it\n")
        return super().recall(scope, query, k)


class Raises(Shelf):
    """Fails as its question says."""

    def recall(self, scope, query, k):
        raise {
            "bug": TypeError("recall() got an unexpected keyword"),
            "network": ConnectionError("reset by peer"),
            "permanent": BackendError("the key was refused", permanent=True),
            "passing": BackendError("try again later"),
            "exit": SystemExit(3),
        }[query]


class Strange(Shelf):
    """Returns what no adapter may."""

    def remember(self, scope, memories):
        super().remember(scope, memories)
        return {"calls": 1}

    def recall(self, scope, query, k):
        return 7


class Exotic(Shelf):
    """Returns what JSON has no word for, and what no other encoding has one for."""

    def recall(self, scope, query, k):
        hits = [Hit("m-1", "caf\xe9 \ud800 \0 \u2028", float("inf"), {"at": {1, 2}, "raw": b"\xff"})]
        return type(super().recall(scope, query, k))(tuple(hits))


class Slow(Shelf):
    """Takes 300 ms for a question."""

    def recall(self, scope, query, k):
        time.sleep(0.3)
        return super().recall(scope, query, k)


class Calls(Shelf):
    """Looks up a name, and connects to an address, of elsewhere and of here."""

    def recall(self, scope, query, k):
        host, _, port = query.partition(":")
        with socket.create_connection((host, int(port)), timeout=5):
            return super().recall(scope, "", k)
