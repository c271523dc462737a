"""`memtrend collect` for who moves its clock on: it looks more often for what is due."""

from __future__ import annotations

import sys

from collectors import collector
from collectors.ending import running_long

if __name__ == "__main__":
    collector.POLL_S = 0.05
    with running_long():
        code = collector.main()
    sys.exit(code)
