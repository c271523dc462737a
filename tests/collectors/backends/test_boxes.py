"""What vendor stores share: a box for each namespace, waited for where it takes its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from collectors.backend import BackendConfig, BackendError
from collectors.backends import base, boxes
from collectors.backends.boxes import Box, Boxes, Row
from tests.collectors.backends.boxes import BOX, FERRY, VIOLIN, plant


class Slow:
    """A box that lists what it is given at the look of this number, None for never."""

    def __init__(self, mark: str, seen_at: int | None) -> None:
        self.mark, self.seen_at = mark, seen_at
        self.given: list[str] = []
        self.looks: list[str] = []

    def put(self, rows: Sequence[Row]) -> None:
        self.given += [row.key for row in rows]

    def holds(self, key: str) -> bool:
        self.looks.append(key)
        return len(self.looks) == self.seen_at

    def delete(self, keys: Sequence[str]) -> None:
        self.given = [key for key in self.given if key not in keys]

    def count(self) -> Mapping[str, int]:
        return {"memories": len(self.given)}


class SlowBoxes(Boxes):
    vendor, legs = "slow", ()

    def __init__(self, seen_at: int | None) -> None:
        super().__init__(BackendConfig("ours", "slow"), own=False, exact=False)
        self.box = Slow(self._mark, seen_at)

    def _box(self, namespace: str) -> Box | None:
        return cast(Box, self.box) if self.box.given else None

    def _make(self, namespace: str) -> Box:
        return cast(Box, self.box)

    def _drop(self, namespace: str) -> None:
        self.box.given.clear()

    def _is_permanent(self, error: Exception) -> bool:
        return False

    def close(self) -> None:
        """Holds nothing."""


class TestSettling:
    def test_waits_for_what_was_written_last(self) -> None:
        """The vendor is asked for the last row until it lists it, and then no more."""
        backend = SlowBoxes(seen_at=3)
        plant(backend, BOX, FERRY, VIOLIN)
        assert backend.box.looks == [backend.box.given[-1]] * 3

    def test_what_is_never_listed_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A row that does not come is an error that may pass, each time."""
        monkeypatch.setattr(
            boxes, "wait_until", lambda found, what: base.wait_until(found, what, timeout_s=0.1)
        )
        backend = SlowBoxes(seen_at=None)
        for settle in (lambda: plant(backend, BOX, FERRY), lambda: backend.settle(BOX)):
            with pytest.raises(BackendError, match="written last is not to be found") as raised:
                settle()
            assert not raised.value.permanent

    def test_nothing_is_nothing_to_wait_for(self) -> None:
        """Before the first row, and once the last one is forgotten, nothing is looked for."""
        backend = SlowBoxes(seen_at=1)
        backend.settle(BOX)
        plant(backend, BOX, FERRY)
        backend.box.looks.clear()
        backend.forget(BOX, ["m-0"])
        backend.settle(BOX)
        assert backend.box.looks == []
