"""What dashboard, API and command line ask for: taken in the order in which it was asked, and answered.

A request outlives the collector that took it: whoever leads next takes it back, and finds what was begun for
it. One that the day's money is not enough for waits, and holds up no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pydantic import ValidationError

from collectors.alerting import Alerting
from collectors.budget import Allowance, allowance
from collectors.configured import undrillable
from collectors.drill import prove
from collectors.looks import looking_at
from collectors.owed import Owed
from collectors.pairs import Asked, Done, How, Pair, run_pair, unknown_names
from collectors.requested import LookRequest, ProofRequest, RunRequest
from collectors.resume import go_on
from collectors.waiting import Waiting
from collectors.worker import Worker
from store import health_words, logs, queries, writes
from store.database import Database
from store.errors import DatabaseError, StoreError
from store.queries import RunRow
from store.records import RequestRow
from store.settings import Settings

REQUEST = "request"
"""The meta of a run that was asked for: by which request."""


class Answering:
    """What the leader does about requests. `leader` is its fencing token; `settings` gives what is in force,
    `stopping` whether to begin nothing more; `run` runs a pair on the worker."""

    def __init__(
        self,
        db: Database,
        leader: int,
        worker: Worker,
        settings: Callable[[], Settings],
        stopping: Callable[[], bool],
        run: Callable[[Pair, Asked, How], Done],
        alerting: Alerting,
    ) -> None:
        self.db, self.leader, self.worker = db, leader, worker
        self.settings, self.stopping, self.run = settings, stopping, run
        self.alerting = alerting
        self._waiting = Waiting[int](self.allowance)  # ids of requests
        self._owed = Owed(partial(writes.add_event, db, "error", health_words.COLLECTOR))

    def take_back(self, cut_short: Sequence[int]) -> None:
        """What a collector that died had taken waits for its turn again. `cut_short`: the runs that were
        under way."""
        for request in queries.requests(self.db, ["claimed"], limit=None):
            self._take_back(request, cut_short)

    def take(self) -> None:
        """Take what waits, but for what waits for the day's money. Raises `writes.Deposed` once another
        collector leads."""
        self._owed.pay()
        self._waiting.release()
        while not self.stopping() and (request := self._claimed()):
            self._take(request)

    def allowance(self) -> Allowance:
        return allowance(self.settings().limits.money_per_day)

    def _take_back(self, request: RequestRow, cut_short: Sequence[int]) -> None:
        """To be gone on with where it was begun; unless too many have died over it. A drill has failed by
        that."""
        if request.kind == "proof":
            return self._finish(request, [], writes.DIED)
        begun = self._begun(request)
        run_ids = [begun.id] if begun else []
        if begun and begun.id in cut_short:
            died = 1 + len(queries.events(self.db, levels=["warning"], source=_name(request)))
            if died >= writes.MAX_DEATHS:
                told = f"{died} collectors died over it; memtrend run --resume goes on with what was begun"
                return self._finish(request, run_ids, told)
            told = "the collector that ran it died; it is gone on with"
            writes.add_event(self.db, "warning", _name(request), told, begun.id)
        self._put_back(request, run_ids, None)

    def _claimed(self) -> RequestRow | None:
        return writes.claim_request(self.db, self.leader, self._waiting.all())

    def _take(self, request: RequestRow) -> None:
        """Refuse at once; a run waits for its turn."""
        try:
            self.worker.put(partial(self._answer, request, self._asked(request)))
        except (ValidationError, TypeError, StoreError) as error:
            self._finish(request, [], _plain(error))

    def _asked(self, request: RequestRow) -> Callable[[], None]:
        """What is to be done for it."""
        if request.kind == "look":
            return partial(self._look_asked, request, self._run_named(request))
        if request.kind == "proof":
            return partial(self._proof_asked, request, self._drilled(request))
        if request.kind != "run":
            raise StoreError(f"unknown kind of request {request.kind!r}; known: run, look, proof")
        asked = RunRequest(**request.payload)
        self._refuse_unknown(Pair(asked.suite, asked.backend))
        return partial(self._run_asked, request, asked)

    def _run_named(self, request: RequestRow) -> RunRow:
        asked = LookRequest(**request.payload)
        row = queries.run(self.db, asked.run)
        if row is None:
            raise StoreError(f"no run {asked.run} is in the record")
        return row

    def _drilled(self, request: RequestRow) -> Pair:
        pair = Pair(**ProofRequest(**request.payload).model_dump())
        self._refuse_unknown(pair)
        if problem := undrillable(self.settings(), pair.backend):
            raise StoreError(problem)
        return pair

    def _refuse_unknown(self, pair: Pair) -> None:
        if problem := unknown_names(self.settings(), pair):
            raise StoreError(problem)

    # On the worker

    def _answer(self, request: RequestRow, answer: Callable[[], None]) -> None:
        """What it came to and the record refused is found out again, once it does not: a run that was made
        for it is known by it, and not made a second time."""
        try:
            answer()
        except DatabaseError as error:
            self._owed.add(partial(self._put_back, request, request.run_ids, str(error)))
            raise

    def _run_asked(self, request: RequestRow, asked: RunRequest) -> None:
        if self.stopping():
            return self._put_back(request, request.run_ids, None)
        begun, allowed = self._begun(request), self.allowance()
        if begun and begun.is_over:
            return self._finish(request, [begun.id], None)
        done = self._run_for(request, asked, begun)
        run_ids = [run.id] if (run := self._begun(request)) else []
        if done.waits:
            self._waiting.add(request.id, allowed)
            return self._put_back(request, run_ids, str(done.problem))
        problem = _unanswered(done)
        if problem and self.stopping():
            return self._put_back(request, run_ids, None)
        self._finish(request, run_ids, problem)

    def _run_for(self, request: RequestRow, asked: RunRequest, begun: RunRow | None) -> Done:
        meta = {**asked.meta, REQUEST: _name(request)}
        way = Asked(_trigger(request), asked.trials, asked.tag, meta=meta)
        with logs.bound(request=request.id):
            how = partial(go_on, begun) if begun else run_pair
            return self.run(Pair(asked.suite, asked.backend), way, how)

    def _look_asked(self, request: RequestRow, row: RunRow) -> None:
        """Of one that cannot be taken the alert tells, whose words leave the machine."""
        done = self._once(request, Pair(row.suite, row.backend), "look", looking_at(row.id))
        if done and done.problem:
            told = f"the look was not taken, and request {request.id} on the page of runs says why"
            self.alerting.not_looked(row.id, told if done.quotes else done.problem)
        if done:
            self._finish(request, [done.outcome.run_id] if done.outcome else [], done.problem)

    def _proof_asked(self, request: RequestRow, pair: Pair) -> None:
        if done := self._once(request, pair, "drill", prove):
            self._finish(request, [], done.problem)

    def _once(self, request: RequestRow, pair: Pair, trigger: str, how: How) -> Done | None:
        """What it came to. None: it waits for the day's money, or a stop ended it and the next collector does
        it."""
        allowed, way = self.allowance(), Asked(trigger)
        with logs.bound(request=request.id):
            done = self.run(pair, way, how)
        if done.waits:
            self._waiting.add(request.id, allowed)
        if done.waits or self.stopping():
            self._put_back(request, [], str(done.problem))
            return None
        return done

    # On either thread

    def _begun(self, request: RequestRow) -> RunRow | None:
        """The newest run that was made for a request so far: neither a collector that died nor a record that
        refused may have come to noting it."""
        suites, backends = ([str(request.payload.get(key))] for key in ("suite", "backend"))
        asked_by, name = [_trigger(request)], _name(request)
        found = queries.runs(
            self.db, suites=suites, backends=backends, triggers=asked_by, text=name, limit=None
        )
        rows = [row for row in found if row.meta.get(REQUEST) == name]
        rows += queries.runs(self.db, ids=request.run_ids, limit=None)
        return max(rows, key=lambda row: row.id, default=None)

    def _put_back(self, request: RequestRow, run_ids: Sequence[int], reason: str | None) -> None:
        writes.put_back_request(self.db, request.id, run_ids, reason, self.leader)

    def _finish(self, request: RequestRow, run_ids: Sequence[int], error: str | None) -> None:
        writes.finish_request(self.db, request.id, run_ids, error, self.leader)


def _name(request: RequestRow) -> str:
    """As the API calls it."""
    return f"request-{request.id}"


def _trigger(request: RequestRow) -> str:
    return f"request:{request.author}"


def _unanswered(done: Done) -> str | None:
    """Why a request failed. A run that ended, however, speaks for itself, and so does a cancelled one."""
    if done.outcome and (done.outcome.status != "interrupted" or done.outcome.reason == "cancelled"):
        return None
    return done.problem


def _plain(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
    return str(error)
