"""Processes that begin at once: what they need is imported by the server that they are forked from, once."""

from __future__ import annotations

import multiprocessing

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pytest", "alembic.command", "tests.store.seeding"])
