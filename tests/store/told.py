"""Verdicts as the record keeps them, for tests of what alerts make of them."""

from __future__ import annotations

from typing import Any

from store.evidence import Control, Difference, Leak, Look, Moved, Verdict, plain

NOTHING = Verdict(
    verdict="unchanged", stage="", provisional=False, accepted=True, reason=None,
    looks=(Look(1, 7, 1, 0.5, 0.5),), difference=None, lost=(), gained=(), critical=(), blind_spot=0.05,
    drift=None, moved=(), leak=None, beats_dense={}, cases=40, nights=5, days=5, baseline=(1, 2),
    anchor=(1, 2), missing=(), deterministic=False, seed=1, version="1",
)  # fmt: skip
LOOKS = {"suspicion": 1, "suspected": 2, "confirmed": 3}


def verdict(**told: Any) -> dict[str, Any]:
    """One in which nothing changed, but for what is told."""
    return dict(plain(NOTHING._replace(**told)))


def worse(stage: str = "confirmed", depth: float = 0.1, side: str = "worse", **told: Any) -> dict[str, Any]:
    """A change of the pass rate by `depth`, after as many looks as its stage needs."""
    p = {"p_worse": 0.001, "p_better": 0.9} if side == "worse" else {"p_worse": 0.9, "p_better": 0.001}
    looks = tuple(Look(n, 6 + n, 1 if n == 1 else 3, **p) for n in range(1, LOOKS[stage] + 1))
    new = 0.9 - depth if side == "worse" else 0.9 + depth
    word = "cannot_tell" if stage == "suspicion" else side
    lost = {"lost": ("a", "b")} if side == "worse" else {"gained": ("a", "b")}
    apart = Difference(0.9, new, -0.2, -0.01, 40, 0, "newcombe", None)
    given = {"verdict": word, "stage": stage, "accepted": False, "looks": looks, "difference": apart}
    return verdict(**{**given, **lost, **told})


def leaking(before: float = 0.9, after: float = 0.8, *, new: bool = True) -> dict[str, Any]:
    leak = Leak(3, before, after, new)
    return verdict(verdict="worse", stage="leak", accepted=False, leak=leak)


def moved(metric: str, stage: Any, change: float = 0.5, *, is_worse: bool = True) -> tuple[Moved, ...]:
    return (Moved(metric, change, is_worse, stage),)


def control(cause: Any) -> Control:
    return Control(9, "mine==1", cause, 3, 4, 0, 0, 3.0, 0.01, 7, cause == "shared")
