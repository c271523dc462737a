"""Runs migrations on the connection, and so in the transaction, that `store/database.py` hands in."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
