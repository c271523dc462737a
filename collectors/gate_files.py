"""What a gate came to, as JUnit XML and as Markdown. Pure; names and figures, no memory, no answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from xml.etree import ElementTree

from collectors.gate import Asked, Ended
from store import verdict_words, words
from store.evidence import plain
from store.gates import Bar, leaks
from store.queries import CaseRow
from store.stats.margins import Migration

State = Literal["ok", "failed", "no answer"]
NO_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


class Check(NamedTuple):
    """One thing that a gate looks at. `name`: change, ship_bar, critical, margin or missing."""

    name: str
    state: State
    text: str


def checks(ended: Ended) -> list[Check]:
    """In the order of what matters; a margin only where it was asked for."""
    gate, content = ended.gate, plain(ended.verdict)
    lost = ", ".join(ended.verdict.critical) if "critical" in gate.failed else "none is lost"
    gone = ", ".join(ended.verdict.missing) or "every case of the baseline was asked"
    return [
        Check(
            "change", _state(ended, "change", ended.verdict.verdict == "cannot_tell"), _change(ended, content)
        ),
        *(Check("ship_bar", "ok" if bar.met else "failed", _bar(bar)) for bar in gate.bars),
        Check("critical", _state(ended, "critical"), lost),
        *([_margin(ended, gate.margin)] if ended.asked.margin is not None else []),
        Check("missing", _state(ended, "missing"), gone),
    ]


def _state(ended: Ended, name: str, untold: bool = False) -> State:
    if name in ended.gate.failed:
        return "failed"
    return "no answer" if untold or ended.against is None else "ok"


def _change(ended: Ended, content: Mapping[str, Any]) -> str:
    if ended.against is not None:
        told = f"{verdict_words.badge(content).text}: {verdict_words.evidence(content)}"
        leak = "A slow leak is for its nights to settle, and fails no gate." if leaks(ended.verdict) else ""
        return " ".join(filter(None, [told, leak, verdict_words.control(content)]))
    why = ended.outdated or "no baseline yet"
    why = why[0].upper() + why[1:]
    if ended.written is None:
        return f"{why}, and none was written of a run that is below its bar."
    return f"{why}: one was written to {ended.written}, which the next gate is held against."


def _bar(bar: Bar) -> str:
    """ "pass rate 93 %, bar 90 %"."""
    value = "not measured" if bar.value is None else words.amount(bar.metric, bar.value)
    return f"{words.label(bar.metric)} {value}, bar {words.amount(bar.metric, bar.bar)}"


def _margin(ended: Ended, found: Migration | None) -> Check:
    if found is None:
        return Check("margin", "no answer", "nothing to compare with")
    state: State = "no answer" if found.verdict == "inconclusive" else _state(ended, "margin")
    span = ""
    if found.low is not None and found.high is not None:
        span = f" ({100 * found.low:+.1f} to {100 * found.high:+.1f} points)"
    needed = f"; {found.needed} cases would settle it" if found.needed else ""
    said = found.verdict.replace("_", "-")
    return Check("margin", state, f"{said}{span}, margin {100 * found.margin:g} points, n {found.n}{needed}")


# JUnit


def junit(ended: Ended) -> str:
    """A test case for each case, and for each thing that the gate looked at."""
    root = ElementTree.Element("testsuites", name="memtrend")
    name = f"{ended.asked.suite} on {ended.asked.backend}"
    _suite(root, f"gate: {name}", [_checked(one) for one in checks(ended)])
    _suite(root, name, [*map(_case_of(ended), ended.cases), *map(_gone, ended.verdict.missing)])
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def unanswered_junit(asked: Asked, why: str) -> str:
    """The same of a gate that has no answer: one test case, in error."""
    root = ElementTree.Element("testsuites", name="memtrend")
    case = _element("gate", "no answer")
    ElementTree.SubElement(case, "error", message=_clean(why))
    _suite(root, f"gate: {asked.suite} on {asked.backend}", [case])
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def unanswered_markdown(asked: Asked, why: str) -> str:
    return f"## {_shown(f'{asked.suite} on {asked.backend}')}: no answer\n\n{_shown(why)}\n"


def _suite(root: ElementTree.Element, name: str, cases: Sequence[ElementTree.Element]) -> None:
    counted = {"tests": len(cases)} | {
        total: sum(case.find(child) is not None for case in cases)
        for total, child in (("errors", "error"), ("failures", "failure"), ("skipped", "skipped"))
    }
    told = {"name": _clean(name)} | {what: str(number) for what, number in counted.items()}
    ElementTree.SubElement(root, "testsuite", told).extend(cases)


def _checked(check: Check) -> ElementTree.Element:
    case = _element(
        "memtrend.gate", f"{check.name}: {check.text}" if check.name == "ship_bar" else check.name
    )
    if check.state != "ok":
        child = "failure" if check.state == "failed" else "skipped"
        ElementTree.SubElement(case, child, message=_clean(check.text))
    return case


def _case_of(ended: Ended) -> Any:
    apart = {
        **dict.fromkeys(ended.gate.quarantined, "in quarantine"),
        **dict.fromkeys(ended.gate.on_trial, "on trial"),
    }
    fails = {"change", "critical"} & set(ended.gate.failed)
    lost = {name for name in ended.verdict.lost if fails}

    def case(row: CaseRow) -> ElementTree.Element:
        found = _element(f"memtrend.{ended.asked.suite}", row.case, (row.latency_ms or 0) / 1000)
        kind = row.failure or "lost"
        if row.case in apart:
            ElementTree.SubElement(found, "skipped", message=apart[row.case])
        elif row.case in lost:
            ElementTree.SubElement(
                found, "failure", type=_clean(kind), message=_clean(_lost(ended, row, kind))
            )
        elif row.passed is None:
            ElementTree.SubElement(found, "skipped", message="no answer" if row.status == "error" else "n/a")
        elif not row.passed:
            ElementTree.SubElement(found, "system-out").text = _clean(f"lost, which is no news: {kind}")
        return found

    return case


def _lost(ended: Ended, row: CaseRow, kind: str) -> str:
    critical = "critical, " if row.critical else ""
    nights = words.count(ended.verdict.nights, "night")
    return f"{critical}passed in {nights} of the baseline, fails now: {kind}"


def _gone(name: str) -> ElementTree.Element:
    case = _element("memtrend.missing", name)
    ElementTree.SubElement(case, "failure", type="missing", message="in the baseline, and asked no more")
    return case


def _element(group: str, name: str, seconds: float = 0.0) -> ElementTree.Element:
    return ElementTree.Element("testcase", classname=_clean(group), name=_clean(name), time=f"{seconds:.3f}")


def _clean(text: str) -> str:
    """Without what XML cannot hold."""
    return NO_XML.sub("�", text)


# Markdown


def title(ended: Ended) -> str:
    """ "golden on hybrid: failed (change, missing)"."""
    name = f"{ended.asked.suite} on {ended.asked.backend}"
    if ended.gate.failed:
        return f"{name}: failed ({', '.join(ended.gate.failed)})"
    return f"{name}: passed" if ended.gate.passed else f"{name}: no answer"


def markdown(ended: Ended, suspects: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(_markdown(ended, list(suspects))) + "\n"


def _markdown(ended: Ended, suspects: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    content = plain(ended.verdict)
    yield f"## memtrend gate: {_shown(title(ended))}\n"
    yield "| check | | |\n|---|---|---|"
    for one in checks(ended):
        yield f"| {one.name.replace('_', ' ')} | {one.state} | {_shown(one.text)} |"
    told = [verdict_words.how_much(content), verdict_words.blind_spot(content), *verdict_words.moved(content)]
    yield "".join(f"\n- {_shown(fact)}" for fact in told if fact)
    kinds = {row.case: row.failure or "lost" for row in ended.cases}
    yield from _listed("Lost", [f"{_code(name)} {_shown(kinds.get(name, ''))}" for name in content["lost"]])
    yield from _listed("In quarantine, fails nothing", [_code(name) for name in ended.gate.quarantined])
    yield from _listed("On trial, fails nothing", [_code(name) for name in ended.gate.on_trial])
    yield from _listed(
        "Suspects",
        [f"{_code(str(one['name']))} {_value(one['old'])} → {_value(one['new'])}" for one in suspects[:5]],
    )
    yield f"\nRun {ended.run_id}, held against {_shown(verdict_words.held_against(content))}."


LISTED = 20


def _listed(heading: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        more = f"\n- and {len(items) - LISTED} more" if len(items) > LISTED else ""
        yield f"\n**{heading}**\n\n" + "\n".join(f"- {item}" for item in items[:LISTED]) + more


def _value(value: Any) -> str:
    return "none" if value is None else _code(str(value)[:48])


def _code(text: str) -> str:
    shown = text.replace("`", "'").replace("|", "/")
    return f"`{' '.join(shown.split())}`"


def _shown(text: str) -> str:
    """As text, whatever is in it."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(text.split()))
