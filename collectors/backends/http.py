"""A memory behind a URL: requests are templates, answers are read by paths, both from the configuration.

Where the section is silent it is the common contract: `/add`, `/search`, `/reset`. A user there is called
`{namespace}/{user}`, so that nobody else's memories are asked for, and none but memtrend's are dropped.

Nothing is asked twice in here: the runner asks again what may be asked again.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from collectors.backend import Backend, BackendConfig, BackendError, Hit, Recall, Usage, undeclared
from collectors.backends.base import (
    ID_KEY,
    NotInTime,
    described,
    refuse_foreign,
    refuse_strangers,
    require_leg,
    unknown_memory,
    wait_until,
)
from collectors.backends.http_config import JOINED, Config, Request, parse
from collectors.backends.http_manners import SHOWN, Answer, Caller, Refused
from collectors.backends.http_words import filled, first, found
from collectors.suite import Memory, Scope, digest

OPTIONAL = ("amend", "forget", "forget_user", "count")
"""Declared where their request is configured."""
SENTINEL_K = 10
MAX_PAGES = 1000
BYSTANDER = Memory("memtrend-bystander", "The bystander keeps a lantern in the belfry of the old mill.")
BYSTANDER_TIMEOUT_S = 5.0


class _Known:
    """What was planted and not dropped since, by namespace. Of the process and not of a handle: another one
    on the same server goes on where this one stopped."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users: dict[str, set[str]] = defaultdict(set)
        self.last: dict[str, tuple[str, Memory]] = {}
        """The user and the memory that a search must find before all is settled."""
        self.stored: dict[tuple[str, str, str], list[str]] = {}
        """(namespace, user, planted id) -> the server's own ids."""
        self.looked: set[tuple[str, str]] = set()
        """(namespace, user): those that were seen to hold nothing of others, or that were planted here."""

    def drop(self, namespace: str, user: str | None = None) -> None:
        """All that is known of a namespace, or of one user in it."""
        with self.lock:
            if user is None:
                self.users.pop(namespace, None)
            if self.last.get(namespace, ("",))[0] == user or user is None:
                self.last.pop(namespace, None)
            gone = [key for key in self.stored if key[0] == namespace and user in (None, key[1])]
            for key in gone:
                del self.stored[key]


_known: dict[str, _Known] = defaultdict(_Known)


class Http(Backend):
    legs = ()

    def __init__(self, config: BackendConfig) -> None:
        self._config: Config = parse(config)
        self._requests, self._answers = self._config.requests, self._config.answers
        self._caller = Caller(self._config, config.name)
        self._known = _known[digest([str(self._config.url), self._contract()])]
        self._bystander_at = Scope(f"memtrend-bystander-{uuid4().hex}")
        self._spares_others = False
        asked = {verb for verb in OPTIONAL if getattr(self._requests, verb)}
        self.capabilities = frozenset(asked | self._config.capabilities)

    def reset(self, scope: Scope) -> None:
        """Where the server drops user by user, those that were planted; `remember` sees to the others."""
        refuse_foreign(scope.namespace)
        for user in self._users(scope, self._requests.reset):
            self._look(Scope(scope.namespace, user))
        with self._bystander():
            self._emptied(scope)

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        refuse_foreign(scope.namespace)
        self._first_of(scope)
        together = self._requests.remember.each is not None
        used = Usage()
        for batch in [memories] if together and memories else [[memory] for memory in memories]:
            used += self._planted(scope, batch)
        return used

    def settle(self, scope: Scope) -> None:
        """Wait for the server's word where it gives one, else until a search finds what was planted last."""
        if self._requests.settle:
            wait_until(lambda: self._says_settled(scope), "word of the server that all is settled")
        elif last := self._known.last.get(scope.namespace):
            user, memory = last
            box = Scope(scope.namespace, user)
            wait_until(lambda: self._finds(box, memory), f"{memory.id!r}, planted last,")

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        hits, used, reply = list[Hit](), Usage(), None
        for answer in self._pages("recall", self._requests.recall, _question(scope, query, k)):
            said = answer.value
            hits += [self._hit(scope, entry, answer) for entry in self._listed(said, answer)]
            used += self._usage(answer)
            reply = reply or self._reply(said)
            if len(hits) >= k:
                break
        return Recall(tuple(hits), used, reply)

    def amend(self, scope: Scope, id: str, text: str) -> None:
        request = self._request("amend")
        refuse_foreign(scope.namespace)
        place = {**_place(scope), "id": id, "text": text}
        asked = [{**place, "stored": stored} for stored in self._stored(scope, id, request)]
        if not asked or not all(self._there("amend", request, values) for values in asked):
            raise unknown_memory(scope, id)
        self._no_longer_last(scope, [id])

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        request = self._request("forget")
        refuse_foreign(scope.namespace)
        self._no_longer_last(scope, ids)
        if "ids" in request.named:
            self._there("forget", request, {**_place(scope), "ids": list(ids)})
            return
        for id in ids:
            for stored in self._stored(scope, id, request):
                self._there("forget", request, {**_place(scope), "id": id, "stored": stored})

    def forget_user(self, scope: Scope) -> None:
        request = self._request("forget_user")
        refuse_foreign(scope.namespace)
        self._there("forget_user", request, _place(scope))
        self._known.drop(scope.namespace, scope.user)

    def count(self, scope: Scope) -> Mapping[str, int]:
        request, number = self._request("count"), 0
        for user in self._users(scope, request):
            for answer in self._pages("count", request, _place(Scope(scope.namespace, user))):
                number += _number(self._answers.count, answer)
        return {"memories": number}

    def versions(self) -> Mapping[str, str]:
        told = {"url": str(self._config.url), "contract": digest(self._contract())}
        if not self._requests.version:
            return told
        answer = self._caller.ask("version", self._requests.version, {})
        header = self._answers.version_header
        said = answer.headers.get(header) if header else first(self._answers.version, answer.value)
        return {**told, "server": self._caller.without_secrets(str(said))[:SHOWN]} if said else told

    def close(self) -> None:
        self._caller.close()

    # What is asked

    def _request(self, verb: str) -> Request:
        request: Request | None = getattr(self._requests, verb)
        if request is None:
            raise undeclared(self, verb)
        return request

    def _contract(self) -> dict[str, Any]:
        """What decides the answers beside the server, without secrets."""
        shown = {"requests": self._requests, "answers": self._answers}
        dumped = {name: section.model_dump(mode="json") for name, section in shown.items()}
        return {**dumped, "higher_is_better": self._config.higher_is_better}

    def _users(self, scope: Scope, request: Request) -> list[str]:
        """Whom to ask for, where the request is of one user, so that all of the namespace are reached."""
        if "user" not in request.named:
            return [scope.user]
        with self._known.lock:
            return sorted(self._known.users.get(scope.namespace, set()) | {scope.user})

    def _emptied(self, scope: Scope) -> None:
        for user in self._users(scope, self._requests.reset):
            self._reset(Scope(scope.namespace, user))
        self._known.drop(scope.namespace)

    def _reset(self, scope: Scope) -> None:
        """Where a DELETE finds nothing all is well; any other request that is not known there has failed."""
        request = self._requests.reset
        if not self._there("reset", request, _place(scope)) and request.method != "DELETE":
            raise BackendError(f"reset by {request.method} {request.path}: HTTP 404", permanent=True)

    def _first_of(self, scope: Scope) -> None:
        """Of a user who was not planted yet, something may be left from a process that was killed."""
        with self._known.lock:
            new = scope.user not in self._known.users[scope.namespace]
            self._known.users[scope.namespace].add(scope.user)
        if new and "user" in self._requests.reset.named:
            self._look(scope)
            self._reset(scope)

    def _look(self, scope: Scope) -> None:
        """Before the first reset of a user of a namespace, where rows of ours can be told from others: what
        a question finds there and memtrend did not plant is not to be dropped."""
        if not self._config.bears_marks or (key := _key(scope)) in self._known.looked:
            return
        asked = _question(Scope(*key), BYSTANDER.text, SENTINEL_K)
        try:
            answer = next(self._pages("recall", self._requests.recall, asked))
        except Refused as error:
            if error.status != 404:  # which is an empty one, to some
                raise
        else:
            entries = self._listed(answer.value, answer)
            refuse_strangers(scope.namespace, sum(not self._is_marked(scope, entry) for entry in entries))
        self._known.looked.add(key)

    def _is_marked(self, scope: Scope, entry: Any) -> bool:
        metadata, id = first(self._answers.metadata, entry), str(first(self._answers.id, entry) or "")
        return (isinstance(metadata, Mapping) and ID_KEY in metadata) or id.startswith(_joined(scope))

    def _planted(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        request, each = self._requests.remember, self._requests.remember.each
        values = [_of(scope, memory) for memory in memories]
        listed = {"memories": [filled(each, one) for one in values]} if each is not None else {}
        answer = self._caller.ask("remember", request, {**values[0], **listed})
        stored = [str(id) for id in self._read(self._answers.stored, answer)]
        self._note(scope, memories, stored)
        return self._usage(answer)

    def _note(self, scope: Scope, memories: Sequence[Memory], stored: Sequence[str]) -> None:
        """One memory may have become several of the server's; of many together, each must be one."""
        with self._known.lock:
            if len(memories) == 1 and stored:
                self._known.stored[*_key(scope), memories[0].id] = list(stored)
            elif len(memories) == len(stored):
                for memory, id in zip(memories, stored, strict=True):
                    self._known.stored[*_key(scope), memory.id] = [id]
            for memory in memories:
                if memory.text.strip():
                    self._known.last[scope.namespace] = (scope.user, memory)

    def _stored(self, scope: Scope, id: str, request: Request) -> Sequence[str | None]:
        """The server's ids of a memory, where the request needs them; one of None where it does not."""
        if "stored" not in request.named:
            return [None]
        return self._known.stored.get((*_key(scope), id), [])

    def _there(self, verb: str, request: Request, values: Mapping[str, Any]) -> bool:
        """Whether the server has what it was asked to change."""
        try:
            self._caller.ask(verb, request, values)
        except Refused as error:
            if error.status == 404:
                return False
            raise
        return True

    def _no_longer_last(self, scope: Scope, ids: Sequence[str]) -> None:
        with self._known.lock:
            user, memory = self._known.last.get(scope.namespace, ("", None))
            if memory and user == scope.user and memory.id in ids:
                del self._known.last[scope.namespace]

    def _pages(self, verb: str, request: Request, values: Mapping[str, Any]) -> Iterator[Answer]:
        cursor = None
        for _ in range(MAX_PAGES):
            answer = self._caller.ask(verb, request, {**values, "cursor": cursor})
            yield answer
            cursor = next(iter(self._read(self._answers.next, answer)), None)
            if "cursor" not in request.named or cursor in (None, "", False):
                return
        raise BackendError(f"{verb}: {MAX_PAGES} pages and no end", permanent=True)

    def _says_settled(self, scope: Scope) -> bool:
        assert self._requests.settle
        answer = self._caller.ask("settle", self._requests.settle, _place(scope))
        said = self._read(self._answers.settled, answer)
        return self._answers.settled is None or said[:1] == [self._answers.settled_is]

    def _finds(self, scope: Scope, memory: Memory) -> bool:
        hits = self.recall(scope, memory.text, SENTINEL_K).hits
        return any(hit.id == memory.id or hit.text == memory.text for hit in hits)

    @contextmanager
    def _bystander(self) -> Iterator[None]:
        """At the first reset of a handle a memory stands in another namespace, and must be there afterwards:
        some servers take no notice of whom a reset is for. One that cannot even be told what to remember
        speaks another contract, and is not asked to reset anything."""
        if self._spares_others:
            yield
            return
        # In the same place whenever this handle tries again, so that the last try leaves nothing of any.
        box = self._bystander_at
        self._planted(box, [BYSTANDER])
        try:
            there = self._found_in_time(box)
            yield
            spared = not there or bool(self.recall(box, BYSTANDER.text, SENTINEL_K).hits)
        except BaseException:
            with suppress(BackendError):  # the first error says more
                self._emptied(box)
            raise
        if not spared:
            raise BackendError(
                "the server's reset takes no notice of whose memories it is for: a bystander's are gone too. "
                "Configure requests.reset so that it drops a user's, or a namespace's",
                permanent=True,
            )
        self._emptied(box)
        self._spares_others = True

    def _found_in_time(self, box: Scope) -> bool:
        try:
            wait_until(
                lambda: bool(self.recall(box, BYSTANDER.text, SENTINEL_K).hits),
                "a bystander",
                BYSTANDER_TIMEOUT_S,
            )
        except NotInTime:
            return False
        return True

    # What is answered

    def _read(self, path: str | None, answer: Answer) -> list[Any]:
        return found(path, answer.value) if path else []

    def _listed(self, said: Any, answer: Answer) -> list[Any]:
        path = self._answers.hits
        there = found(path, said)
        if "[*]" in path:
            return there
        if len(there) == 1 and isinstance(there[0], list):
            return there[0]
        raise answer.fault(f"no list of hits at {path}")

    def _hit(self, scope: Scope, entry: Any, answer: Answer) -> Hit:
        text, metadata = first(self._answers.text, entry), first(self._answers.metadata, entry) or {}
        if not isinstance(text, str) or not isinstance(metadata, Mapping):
            raise answer.fault(
                f"a hit without a text at {self._answers.text}, or with metadata that are none"
            )
        kept = {name: value for name, value in metadata.items() if name != ID_KEY}
        own = str(first(self._answers.id, entry) or "").removeprefix(_joined(scope))
        return Hit(str(metadata.get(ID_KEY) or own), text, self._score(entry, answer), kept)

    def _score(self, entry: Any, answer: Answer) -> float | None:
        score = first(self._answers.score, entry)
        if score is None:
            return None
        try:
            return float(score) if self._config.higher_is_better else 0.0 - float(score)
        except (TypeError, ValueError):
            raise answer.fault(f"a score that is no number at {self._answers.score}") from None

    def _reply(self, said: Any) -> str | None:
        reply = first(self._answers.reply, said) if self._answers.reply else None
        return None if reply is None else str(reply)

    def _usage(self, answer: Answer) -> Usage:
        calls, tokens, money = (
            sum(number for number in self._read(path, answer) if isinstance(number, int | float))
            for path in (self._answers.calls, self._answers.tokens, self._answers.money)
        )
        return Usage(int(calls), int(tokens), float(money))


def _key(scope: Scope) -> tuple[str, str]:
    return scope.namespace, scope.user


def _joined(scope: Scope) -> str:
    """How the id of a memory begins on a server that was told whose it is in its id."""
    return JOINED.format(**_place(scope)) + "/"


def _place(scope: Scope) -> dict[str, Any]:
    return {"namespace": scope.namespace, "user": scope.user}


def _question(scope: Scope, query: str, k: int) -> dict[str, Any]:
    """The values of a question's placeholders."""
    return {
        **_place(scope),
        "query": query,
        "k": k,
        "session": scope.session,
        "domains": list(scope.domains) or None,
    }


def _of(scope: Scope, memory: Memory) -> dict[str, Any]:
    """The values of a memory's placeholders."""
    return {
        **_place(scope),
        "id": memory.id,
        "text": memory.text,
        "role": memory.role,
        "at": memory.at and memory.at.isoformat(),
        "domain": memory.domain,
        "session": memory.session or scope.session,
        "metadata": {**described(scope, memory), ID_KEY: memory.id},
    }


def _number(path: str, answer: Answer) -> int:
    """A number, or as many as there are in a list."""
    counted = first(path, answer.value)
    if isinstance(counted, list):
        return len(counted)
    if isinstance(counted, bool) or not isinstance(counted, int):
        raise answer.fault(f"no number and no list at {path}")
    return counted
