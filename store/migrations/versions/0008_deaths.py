"""How many collectors died over a fire, so that one which kills them is not gone on with for ever."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("fire", sa.Column("deaths", sa.Integer(), nullable=False, server_default="0"))
