"""How a case fared over several trials, in words. Pure."""

from __future__ import annotations

from store.words import count


def trials(passes: int, n: int) -> str:
    """ "failed 7 of 7 trials", "passed 2 of 3 trials"; "" of a single one."""
    if n < 2:
        return ""
    return f"passed {passes} of {n} trials" if 2 * passes > n else f"failed {n - passes} of {n} trials"


def asked_again(passes: int, n: int) -> str:
    """ "asked again: passed 1 of 6 times"."""
    return f"asked again: passed {passes} of {count(n, 'time')}"
