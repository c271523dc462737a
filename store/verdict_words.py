"""Verdicts as sentences, so that pages, messages, gate and reports say the same. Pure.

What comes in is the evidence as the record keeps it: `store/evidence.py` as JSON values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from textwrap import shorten
from typing import Any, Literal, NamedTuple

from store import words
from store.metrics import METRICS

Content = Mapping[str, Any]
Kind = Literal["worse", "suspected", "leak", "better", "unchanged", "unknown", "provisional"]

UNCHANGED = "No change seen"
_BADGES: dict[tuple[str, str], tuple[Kind, str]] = {
    ("worse", "suspected"): ("suspected", "Suspected"),
    ("worse", "confirmed"): ("worse", "Worse"),
    ("worse", "leak"): ("leak", "Slow leak"),
    ("better", "suspected"): ("better", "Better"),
    ("better", "confirmed"): ("better", "Better"),
    ("cannot_tell", "suspicion"): ("unknown", "Suspicion"),
}


class Badge(NamedTuple):
    """A verdict in a word or two. `kind` decides icon and colour; "unchanged" is the good state, in grey."""

    kind: Kind
    text: str


def badge(content: Content) -> Badge:
    found = _BADGES.get((content["verdict"], content["stage"]))
    if found:
        return Badge(*found)
    if content["verdict"] == "cannot_tell":
        return Badge("unknown", "Cannot tell")
    if content["leak"]:
        return Badge("leak", "Slow leak")
    return Badge("provisional", "Provisional") if content["provisional"] else Badge("unchanged", UNCHANGED)


def evidence(content: Content) -> str:
    """Why the verdict is what it is, in a sentence."""
    said = _said(content)
    untaken = content.get("untaken")
    return f"{said} {_capital(untaken)}." if untaken else said


def _said(content: Content) -> str:
    if content["reason"]:
        return f"{_capital(content['reason'])}."
    if content["stage"] == "leak":
        return _leaked(content["leak"])
    if content["verdict"] in ("worse", "better") or content["stage"] == "suspicion":
        return _turned(content)
    return _unchanged(content)


def _turned(content: Content) -> str:
    worse = content["verdict"] == "worse" or len(content["lost"]) >= len(content["gained"])
    names, before, now = ("lost", "passed", "failed") if worse else ("gained", "failed", "passed")
    n = len(content[names])
    if not n:
        way = "down" if worse else "up"
        odds = f" ({found})" if (found := _odds(content, worse)) else ""
        return f"No case turned for sure, but many went {way} a little{odds}."
    nights, cases = words.count(content["nights"], "night"), words.count(content["cases"], "case")
    tried = _tried(sum(look["trials"] for look in content["looks"]))
    said = f"{n} of {cases} that had {before} in {nights} {now} {tried}"
    critical = len(content["critical"]) if worse else 0
    return f"{said}; {words.spelled(critical)} of them critical." if critical else f"{said}."


def _tried(trials: int) -> str:
    """Of so many trials, how many count as all of them."""
    return "once" if trials == 1 else f"in at least {math.ceil(0.75 * trials)} of {trials} trials"


def _odds(content: Content, worse: bool) -> str:
    """What chance says of the last look; "" where it was not asked."""
    side = "p_worse" if worse else "p_better"
    found = [look[side] for look in content["looks"] if look[side] is not None]
    return chance(found[-1]) if found else ""


def chance(p: float) -> str:
    """A p-value as who knows no statistics reads it: "by chance alone at most once in 2,000 times"."""
    if p >= 0.01:
        return f"by chance alone {words.count(round(p * 100), 'time')} in 100"
    times = 1 / max(p, 1e-6)
    step: int = 10 ** math.floor(math.log10(times))
    return f"by chance alone at most once in {math.floor(times / step) * step:,} times"


def how_sure(content: Content) -> str:
    """ "Asked three times, 7 trials in all; what the last one found comes by chance alone ...": how sure a
    change is; "" where none is told, and of a slow leak, which no look is asked about."""
    turned = content["verdict"] in ("worse", "better") or content["stage"] == "suspicion"
    if not turned or content["stage"] == "leak" or not content["looks"]:
        return ""
    worse = content["verdict"] == "worse" or len(content["lost"]) >= len(content["gained"])
    looks, trials = len(content["looks"]), sum(look["trials"] for look in content["looks"])
    asked = "Asked once" if looks == 1 else f"Asked {words.spelled(looks)} times"
    odds = _odds(content, worse)
    told = f"; what the last one found comes {odds}" if odds else ""
    return f"{asked}, {words.count(trials, 'trial')} in all{told}."


def _leaked(leak: Content) -> str:
    before, after = (words.amount("pass", leak[name]) for name in ("before", "after"))
    return (
        f"The pass rate sank slowly from {before} to {after}, from run {leak['first_bad']} on: "
        "no single night showed it."
    )


def _unchanged(content: Content) -> str:
    nights = words.count(content["nights"], "night")
    return f"Nothing beyond the noise of the last {nights}."


def how_much(content: Content) -> str:
    """ "−2.1 points (−4.0 to −0.3), n 89": the answer to the other question. "" where there is none."""
    found = content["difference"]
    if not found:
        return ""
    apart = words.difference("pass", found["old"], found["new"])
    if found["low"] is None or found["high"] is None:
        return f"{apart}, n {found['n']}"
    return f"{apart} ({words.interval('pass', found['low'], found['high'])}), n {found['n']}"


def blind_spot(content: Content) -> str:
    """What the suite could not have seen; "" where that was not asked."""
    if content["blind_spot"] is None:
        return ""
    cases = max(round(content["blind_spot"] * content["cases"]), 1)
    return f"A loss of fewer than {words.count(cases, 'case')} of {content['cases']} could have gone unseen."


def moved(content: Content) -> list[str]:
    """The other metrics that changed, a phrase each: "recall time +38 % (suspected)"."""
    alike = (content.get("control") or {}).get("alike", ())
    beside = "; the control moved alike"
    return [f"{_moved(one)}{beside if one['metric'] in alike else ''}" for one in content["moved"]]


def _moved(one: Content) -> str:
    metric, sign = METRICS[one["metric"]], "+" if one["change"] > 0 else "−"
    size = f"{abs(one['change']):.0%}".replace("%", " %") if metric.relative else _plain(one)
    return f"{words.label(one['metric'])} {sign}{size} ({one['stage']})"


def _plain(one: Content) -> str:
    if METRICS[one["metric"]].unit == "share":
        return f"{abs(one['change']) * 100:.1f} points"
    return f"{abs(one['change']):.3g}"


def beats_dense(content: Content, tag: str = "") -> str:
    """yes, no, cannot tell; "" where no plain vector store was run."""
    return str(content["beats_dense"].get(tag, ""))


class Figure(NamedTuple):
    """One of the numbers behind a verdict."""

    what: str
    value: str


def numbers(content: Content) -> list[Figure]:
    """All that a verdict rests on, in the order in which one asks for it."""
    found = content["difference"]
    method = f"{found['method']}, 95 %" if found and found["low"] is not None else ""
    lost = words.listed(content["lost"]), words.listed(content["gained"])
    told = [
        Figure("difference", how_much(content)),
        Figure("interval by", method),
        *(Figure(f"look {one['number']}, run {one['run_id']}", _look(one)) for one in content["looks"]),
        *(Figure(name, cases) for name, cases in zip(("lost", "gained"), lost, strict=True)),
        Figure("blind spot", blind_spot(content)),
        Figure("held against", held_against(content)),
    ]
    return [one for one in told if one.value]


def _look(one: Content) -> str:
    """ "3 trials, p = 0.0005 of worse, 0.9995 of better", by the change test."""
    odds = [f"{one[side]:.4g} of {side[2:]}" for side in ("p_worse", "p_better") if one[side] is not None]
    return f"{words.count(one['trials'], 'trial')}{', p = ' if odds else ''}{', '.join(odds)}"


def short(content: Content) -> str:
    """ "Worse, −10.5 points": a verdict as it stands beside a line."""
    found = content["difference"]
    quiet = badge(content).kind in ("unchanged", "provisional", "unknown") or not found
    apart = "" if quiet else words.difference("pass", found["old"], found["new"])
    return ", ".join(filter(None, [badge(content).text, apart]))


def release(name: str) -> str:
    """ "mem0ai 2.0.0", of `mem0ai==2.0.0`."""
    return name.replace("==", " ")


def control(content: Content) -> str:
    """What the frozen release that ran beside it says of the cause; "" where none ran."""
    found = content.get("control")
    if not found:
        return ""
    said = _unread(found) if found["unread"] else _CAUSES[found["cause"]](found)
    dropped = words.count(found["dropped"], "pair")
    return f"{said} {_capital(dropped)} with an error left out." if found["dropped"] else said


def is_shared(content: Content) -> bool:
    """Whether what fell, fell on the control as well."""
    return (content.get("control") or {}).get("cause") == "shared"


def _unread(found: Content) -> str:
    so = ", so whether the cause is shared cannot be told" if found["cause"] == "cannot tell" else ""
    why = shorten(found["unread"].rstrip(". \n"), 200, placeholder=" ...")
    return f"The control {release(found['release'])} could not be read ({why}){so}."


def _shared(found: Content) -> str:
    fell = f"the control {release(found['release'])} fell in the same hours"
    return f"Shared cause (provider, judge, machine): {fell}. {_capital(_tally(found))} against it."


def _backend(found: Content) -> str:
    fell = " The control fell too, by less." if found["fell"] else ""
    beside = f"against its control {release(found['release'])}, a frozen release asked in the same hours"
    return f"The backend itself: {_tally(found)} {beside}.{fell}"


def _open(found: Content) -> str:
    name, why = release(found["release"]), found["untold"]
    said = f"of the control {name} nothing can be told: {why}" if why else f"the control {name} did not fall"
    return f"Cause not known yet: {said}; {_tally(found)} against it."


def _as_good(found: Content) -> str:
    fell = " The control alone fell." if found["fell"] else ""
    name = release(found["release"])
    return f"In passes no worse than its control {name}: {_tally(found)} against it.{fell}"


def _tally(found: Content) -> str:
    """ "24 cases lost and 3 gained in 6 nights (by chance alone at most once in 10,000 times)"."""
    lost, nights = words.count(found["lost"], "case"), words.count(found["nights"], "night")
    odds = f" ({chance(found['p'])})" if found["lost"] + found["gained"] else ""
    return f"{lost} lost and {found['gained']} gained in {nights}{odds}"


_CAUSES = {"backend": _backend, "shared": _shared, "cannot tell": _open, "none": _as_good}


def held_against(content: Content) -> str:
    """What the run was compared with, for the run's page."""
    if not content["baseline"]:
        return "nothing yet"
    ids, nights = content["baseline"], words.count(content["nights"], "night")
    which = f"runs {ids[0]} to {ids[-1]}" if ids[0] > 0 else "of a baseline file"
    return f"{nights} on {words.count(content['days'], 'day')} ({which})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
