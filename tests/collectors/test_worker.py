"""The thread that runs everything, one thing after the other."""

import threading
from queue import SimpleQueue

from collectors.worker import Worker

WAIT_S = 20.0


class Told:
    """What was told, in order; waits for it."""

    def __init__(self):
        self.queue = SimpleQueue()

    def __call__(self, thing):
        self.queue.put(thing)

    def next(self):
        return self.queue.get(timeout=WAIT_S)


def test_tasks_run_one_after_the_other_in_their_order():
    """A task begins when the one before it has ended, and one that raises takes no other along."""
    errors, order = Told(), []
    worker = Worker(errors)

    def fail():
        order.append("fails")
        raise OSError("no space")

    worker.put(lambda: order.append("first"))
    worker.put(fail)
    worker.put(lambda: order.append("last"))
    assert worker.finish(WAIT_S)
    assert order == ["first", "fails", "last"]
    assert str(errors.next()) == "no space"


def test_a_task_that_hangs_is_left_behind():
    """Finishing has an end even when a task has none."""
    worker, never = Worker(Told()), threading.Event()
    worker.put(never.wait)
    assert not worker.finish(0.05)
    never.set()
