"""Under which licence a suite is shared, and whom to cite."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    for name in ("licence", "citation"):
        op.add_column("suite", sa.Column(name, sa.String(), nullable=False, server_default=""))
