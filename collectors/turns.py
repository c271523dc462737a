"""In which order scenarios are played, and how many of them side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from itertools import islice, product
from typing import TypeVar

Arm = TypeVar("Arm")
Job = TypeVar("Job")
Result = TypeVar("Result")

AHEAD = 2
"""Scenarios given out for each worker: one to play and one to go on with, so that few answers are held."""


def turns(arms: Sequence[Arm], trials: int, scenarios: int) -> Iterator[tuple[Arm, int, int]]:
    """(arm, trial from 1, place of the scenario from 0). Two arms play each scenario one after the other, and
    take turns in who begins (A B, B A, ...): what drifts in the meantime is the same for both."""
    for number, (trial, place) in enumerate(product(range(1, trials + 1), range(scenarios))):
        yield from ((arm, trial, place) for arm in (arms if number % 2 == 0 else arms[::-1]))


def played(jobs: Sequence[Job], play: Callable[[Job], Result], workers: int) -> Iterator[tuple[Job, Result]]:
    """Each job with what came of it, as they end; with one worker nothing else runs while a probe is
    timed."""
    if workers == 1:
        yield from ((job, play(job)) for job in jobs)
        return
    waiting, playing = iter(jobs), dict[Future[Result], Job]()
    with ThreadPoolExecutor(workers, "memtrend-scenario") as pool:
        try:
            while True:
                room = islice(waiting, AHEAD * workers - len(playing))
                playing |= {pool.submit(copy_context().run, play, job): job for job in room}
                if not playing:
                    return
                done = wait(playing, return_when=FIRST_COMPLETED).done
                while done:
                    yield playing.pop(future := done.pop()), future.result()
        finally:
            pool.shutdown(cancel_futures=True)
