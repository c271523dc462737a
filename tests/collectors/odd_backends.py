"""Memories that misbehave in one way each, and work otherwise: type = "tests.collectors.odd_backends:Slow".

Their methods are those that a user's own class would have. `word` picks the calls that go wrong: those whose
question, or one of whose texts, holds it.
"""

import os
import sys
import threading
import time
from pathlib import Path

from collectors.backend import BackendError, BackendGone, Hit, Recall, Usage

ODD = "tests.collectors.odd_backends:"
DEEP = 100


class Shelf:
    """A small memory that works: it ranks by words in common, ties by id.

    `journal` is a file that gets a line for each call, `pid verb namespace what`, so that processes and
    instances can be compared. Texts that hold a word of `lost` are never kept, those with one of `hidden`
    come back only when asked for by their own text, those with one of `sunk` come last."""

    capabilities = frozenset({"ids", "count", "forget"})

    def __init__(self, journal="", lost="\0", hidden="\0", sunk="\0"):
        self.journal, self.boxes = journal, {}
        self.lost, self.hidden, self.sunk = lost, hidden, sunk

    def did(self, verb, scope=None, what=""):
        if self.journal:
            line = f"{os.getpid()} {verb} {scope.namespace if scope else '-'} {what}\n"
            with Path(self.journal).open("a", encoding="utf-8") as file:
                file.write(line)

    def reset(self, scope):
        self.did("reset", scope)
        self.boxes[scope.namespace] = {}

    def remember(self, scope, memories):
        for memory in memories:
            self.did("remember", scope, memory.id)
            if self.lost not in memory.text:
                self.boxes[scope.namespace][memory.id] = (scope.user, memory.text)
        return Usage(calls=1, tokens=10 * len(memories), money=0.001)

    def settle(self, scope):
        self.did("settle", scope)

    def recall(self, scope, query, k):
        self.did("recall", scope, query)
        words = set(query.lower().split())
        found = [
            Hit(id, text, float(self.rank(query, words, text)))
            for id, (user, text) in self.boxes[scope.namespace].items()
            if user == scope.user and (self.hidden not in text or text == query)
        ]
        return Recall(tuple(sorted(found, key=lambda hit: (-hit.score, hit.id))[:k]))

    def rank(self, query, words, text):
        sinks = self.sunk in text and text != query
        return -1 if sinks else len(words & set(text.lower().split()))

    def count(self, scope):
        self.did("count", scope)
        return {"memories": len(self.boxes[scope.namespace])}

    def forget(self, scope, ids):
        self.did("forget", scope, ",".join(ids))
        for id in ids:
            self.boxes[scope.namespace].pop(id, None)

    def close(self):
        self.did("close")


class Bare(Shelf):
    """Declares nothing, so cases that need something do not apply."""

    capabilities = frozenset()


class Keyed(Shelf):
    """Wants a key, as vendors do."""

    def __init__(self, api_key, **options):
        super().__init__(**options)
        self.api_key = api_key


class Durable(Shelf):
    """Survives its closing, within a process."""

    capabilities = Shelf.capabilities | {"durable"}
    kept: dict = {}  # noqa: RUF012  what all instances share is the point

    def __init__(self, **options):
        super().__init__(**options)
        self.boxes = self.kept
        self.did("open")


class Counted(Durable):
    """Concurrent, and durable: notes how many scenarios it serves at once in the journal."""

    capabilities = Durable.capabilities | {"concurrent"}
    lock = threading.Lock()
    busy = 0

    def recall(self, scope, query, k):
        with self.lock:
            type(self).busy += 1
            self.did("busy", scope, str(self.busy))
        time.sleep(0.02)
        try:
            return super().recall(scope, query, k)
        finally:
            with self.lock:
                type(self).busy -= 1


class Together(Shelf):
    """Concurrent: answers only once as many scenarios ask at the same time as it has `parties`."""

    capabilities = Shelf.capabilities | {"concurrent"}

    def __init__(self, parties=2, word="together", **options):
        super().__init__(**options)
        self.word, self.barrier = word, threading.Barrier(parties)

    def recall(self, scope, query, k):
        if self.word in query:
            self.barrier.wait(timeout=10)
        return super().recall(scope, query, k)


class Slow(Shelf):
    """Each call takes `seconds`."""

    def __init__(self, seconds=0.05, **options):
        super().__init__(**options)
        self.seconds = seconds

    def did(self, verb, scope=None, what=""):
        super().did(verb, scope, what)
        time.sleep(self.seconds)


class Hanging(Shelf):
    """The `verb` never comes back for what holds the word; `stuck`: then its closing does not, either."""

    def __init__(self, verb="recall", word="hang", stuck=False, **options):
        super().__init__(**options)
        self.verb, self.word, self.stuck, self.hangs = verb, word, stuck, False
        super().did("open")

    def did(self, verb, scope=None, what=""):
        super().did(verb, scope, what)
        if (verb == self.verb and self.word in what) or (verb == "close" and self.stuck and self.hangs):
            self.hangs = True
            threading.Event().wait()


class HangingBeside(Hanging):
    """The same, and concurrent."""

    capabilities = Hanging.capabilities | {"concurrent"}


class Unclosable(Shelf):
    """Raises when it is closed."""

    def close(self):
        raise OSError("the socket is gone")


class Clinging(Shelf):
    """Hangs when it is to drop what it holds."""

    def reset(self, scope):
        if self.boxes.get(scope.namespace):
            threading.Event().wait()
        super().reset(scope)


class HangingDoor(Hanging):
    """Hangs in a call, and from then on whenever it is opened."""

    shut = False

    def __init__(self, **options):
        if self.shut:
            threading.Event().wait()
        super().__init__(**options)

    def recall(self, scope, query, k):
        type(self).shut = self.shut or self.word in query
        return super().recall(scope, query, k)


class Twolegged(Shelf):
    """Two indexes: one of them ranks the needle last, the other one has lost it."""

    capabilities = Shelf.capabilities | {"legs"}
    legs = ("words", "vectors")

    def recall(self, scope, query, k, leg=None):
        self.lost = "needle" if leg == "vectors" else "\0"
        hits = [hit for hit in super().recall(scope, query, DEEP).hits if self.lost not in hit.text]
        return Recall(tuple(hits[:k]))

    def count(self, scope):
        held = len(self.boxes[scope.namespace])
        return {"words": held, "vectors": held - 1}


class Foggy(Shelf):
    """Keeps the needle in other words, as an extractor does, and returns it to its own question alone."""

    def recall(self, scope, query, k):
        hits = [hit for hit in super().recall(scope, query, DEEP).hits if "needle" not in hit.text]
        rewritten = [Hit("x9", "Door: the needle opens it.", 9.0)] if "needle" in query else []
        return Recall(tuple([*rewritten, *hits][:k]))


class HangsWhenDeep(Hanging):
    """Hangs at questions for more hits than anyone needs."""

    def recall(self, scope, query, k):
        return super().recall(scope, f"hang {query}" if k == DEEP else query, k)


class SlowWhenDeep(Shelf):
    """Takes its time over questions for more hits than anyone needs."""

    def recall(self, scope, query, k):
        time.sleep(0.25 if k == DEEP else 0)
        return super().recall(scope, query, k)


class FailsWhenDeep(Shelf):
    """Fails at questions for more hits than anyone needs."""

    def recall(self, scope, query, k):
        if k == DEEP:
            raise ConnectionError("too much")
        return super().recall(scope, query, k)


class Paid(Shelf):
    """Takes a model call for each question."""

    def recall(self, scope, query, k):
        return Recall(super().recall(scope, query, k).hits, Usage(calls=1, money=0.01))


class EveryThird(Shelf):
    """Every third question fails, as on a bad line."""

    asked = 0

    def recall(self, scope, query, k):
        self.asked += 1
        if self.asked % 3 == 0:
            self.did("failed", scope, query)
            raise ConnectionError("the line went dead")
        return super().recall(scope, query, k)


class StoresThenRaises(Shelf):
    """Keeps what holds the word, and then raises: once, or always."""

    def __init__(self, word="stumble", once=True, **options):
        super().__init__(**options)
        self.word, self.once, self.raised = word, once, 0

    def remember(self, scope, memories):
        usage = super().remember(scope, memories)
        if any(self.word in memory.text for memory in memories) and not (self.once and self.raised):
            self.raised += 1
            raise ConnectionResetError("reset by peer after the write")
        return usage


class Refusing(Shelf):
    """Questions that hold the word fail as `kind` says: permanent, transient, bug, exit."""

    def __init__(self, kind="permanent", word="refuse", **options):
        super().__init__(**options)
        self.kind, self.word = kind, word

    def recall(self, scope, query, k):
        if self.word in query:
            self.did("refused", scope, query)
            self.fail()
        return super().recall(scope, query, k)

    def fail(self):
        if self.kind == "exit":
            sys.exit("no licence")
        if self.kind == "bug":
            raise TypeError("unsupported operand")
        raise BackendError(f"{self.kind} trouble", permanent=self.kind == "permanent")


class Broken(Shelf):
    """Cannot even be opened."""

    def __init__(self, **options):
        raise BackendError("the server says: unknown key", permanent=True)


GARBAGE = {
    "none": lambda: None,
    "text": lambda: "Lisbon",
    "numbers": lambda: [1, 2, 3],
    "id": lambda: Recall((Hit(7, "a number as id"),)),
    "hits": lambda: Recall(None),
    "generator": lambda: Recall(Hit(str(i), "late") for i in range(3)),
    "score": lambda: Recall((Hit("a", "unranked", float("nan")),)),
    "score text": lambda: Recall((Hit("a", "unranked", "high"),)),
    "metadata": lambda: Recall((Hit("a", "plain", 1.0, None),)),
    "usage": lambda: Recall((), usage=None),
    "reply": lambda: Recall((), reply=12),
    "surrogate": lambda: Recall((Hit("a", "half a pair \ud83d"),)),
}


class Dying(Shelf):
    """The process behind it is killed at the first question of each of its first `lives`, which are counted
    in the file `graves`."""

    def __init__(self, lives, graves, **options):
        super().__init__(**options)
        self.lives, self.graves = lives, Path(graves)

    def recall(self, scope, query, k):
        died = len(self.graves.read_text()) if self.graves.exists() else 0
        if died < self.lives:
            self.graves.write_text("x" * (died + 1))
            raise BackendGone("the worker was ended by SIGKILL")
        return super().recall(scope, query, k)


class Garbage(Shelf):
    """Answers the questions that hold the word with what no answer should be: a row of `GARBAGE`."""

    def __init__(self, kind="none", word="garbage", **options):
        super().__init__(**options)
        self.kind, self.word = kind, word

    def recall(self, scope, query, k):
        return GARBAGE[self.kind]() if self.word in query else super().recall(scope, query, k)


class Rich(Shelf):
    """Right answers in the types that vendors use: numpy's numbers, dates and odd values as metadata."""

    def recall(self, scope, query, k):
        from datetime import UTC, datetime

        import numpy as np

        odd = {"when": datetime(2026, 3, 4, tzinfo=UTC), "none": None, "nan": float("nan"), 5: {"deep": (1,)}}
        answer = super().recall(scope, query, k)
        return Recall(tuple(Hit(hit.id, hit.text, np.float32(hit.score), odd) for hit in answer.hits))


class Unsettled(Shelf):
    """Never says that it is ready, and answers all the same."""

    def settle(self, scope):
        super().settle(scope)
        raise BackendError("not indexed after 2 s")


class Chatty(Shelf):
    """Prints whatever it does, as some SDKs do."""

    def did(self, verb, scope=None, what=""):
        print(f"{verb} {what}")  # noqa: T201


class Restless(Shelf):
    """Turns the order round with every other call."""

    turned = False

    def recall(self, scope, query, k):
        self.turned = not self.turned
        hits = super().recall(scope, query, k).hits
        return Recall(hits[::-1] if self.turned else hits)
