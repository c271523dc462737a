"""A stored case as lines to read: what was planted, asked, wanted; what came back; what the diagnosis found.
Pure. All text in it comes from outside and is shown as text alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

KINDS = {
    "any": "one of these in the first {k}",
    "all": "all of these in the first {k}",
    "unwanted": "none of these in the first {k}",
    "unwanted_first": "none of these first",
    "only": "exactly these, of all that came back",
    "at_most": "at most {n} hits",
    "exactly": "exactly {n} hits",
    "metadata": "in the first {k}, and beside its text",
    "stable": "asked again, the same hits in the same order",
    "count": "as many memories as there should be",
}
WANTED, UNWANTED = frozenset({"any", "all", "only", "metadata"}), frozenset({"unwanted", "unwanted_first"})


class Told(NamedTuple):
    """A step of the story: when or what, the text, and who said it where."""

    when: str
    text: str
    where: str = ""


class Expected(NamedTuple):
    """What must, or must not, come back. `tone`: wanted, unwanted or a limit."""

    tone: str
    rule: str
    items: tuple[str, ...]


class Returned(NamedTuple):
    """A hit. `tone`: wanted, unwanted or neither; `within` the first k that count."""

    rank: int
    text: str
    id: str
    score: float | None
    tone: str
    within: bool


class Finding(NamedTuple):
    """A line of the diagnosis. `good` None is neither."""

    what: str
    found: str
    good: bool | None = None


def told(story: Mapping[str, Any]) -> list[Told]:
    """The steps in order, as far as the stored story has them."""
    background = (
        [Told("before", f"{story['background']}, among which all this stands")]
        if story.get("background")
        else []
    )
    return background + [line for step in story.get("steps", ()) for line in _step(step)]


def _step(step: Mapping[str, Any]) -> Iterator[Told]:
    for memory in step.get("plant", ()):
        yield Told(_date(memory.get("at")) or "planted", str(memory.get("text", "")), _where(memory))
    if "amend" in step:
        yield Told("amended", str(step.get("text", "")), f"replaces {step['amend']}")
    if "forget" in step:
        yield Told("forgotten", ", ".join(map(str, step["forget"])))
    if "forget_user" in step:
        yield Told("forgotten", f"everything of {step['forget_user']}")
    if "session" in step:
        yield Told("session", str(step["session"]))
    if step.get("reopen"):
        yield Told("reopened", "the backend is closed and opened again")


def _date(at: object) -> str:
    try:
        parsed = datetime.fromisoformat(str(at))
    except ValueError:
        return ""
    return f"{parsed.day} {parsed:%b %Y}"


def _where(memory: Mapping[str, Any]) -> str:
    facts = [str(memory.get("id", "")), _of(memory, "user"), _of(memory, "domain"), _of(memory, "session")]
    role = memory.get("role", "user")
    return " · ".join(filter(None, [*facts, f"said by {role}" if role != "user" else ""]))


def _of(memory: Mapping[str, Any], key: str) -> str:
    return f"{key} {memory[key]}" if memory.get(key) else ""


def question(story: Mapping[str, Any]) -> str:
    """In whose name and where it is asked: "asked, k 5 · user noor · leg keyword"."""
    facts = [
        f"k {story['k']}" if story.get("k") else "",
        _of(story, "user"),
        f"domains {', '.join(story['domains'])}" if story.get("domains") else "",
        _of(story, "session"),
        f"{story['leg']} leg alone" if story.get("leg") else "",
        "nothing planted answers it" if story.get("abstain") else "",
    ]
    return " · ".join(filter(None, facts))


def expected(story: Mapping[str, Any]) -> list[Expected]:
    """Every expectation in words."""
    return [_expected(one, story.get("k", 5)) for one in story.get("expectations", ())]


def _expected(one: Mapping[str, Any], k: int) -> Expected:
    kind = str(one.get("kind", ""))
    tone = "wanted" if kind in WANTED else "unwanted" if kind in UNWANTED else "limit"
    rule = KINDS.get(kind, kind).format(k=k, n=one.get("n"))
    section = f", in section {one['section']}" if one.get("section") else ""
    beside = [f"{name}: {value}" for name, value in one.get("values", ())]
    return Expected(
        tone, rule + section, tuple(map(str, (*one.get("patterns", ()), *one.get("ids", ()), *beside)))
    )


def returned(detail: Mapping[str, Any], k: int) -> list[Returned]:
    """The hits in order, as the backend returned them."""
    return [_returned(rank, hit, k) for rank, hit in enumerate(detail.get("hits", ()), start=1)]


def _returned(rank: int, hit: Mapping[str, Any], k: int) -> Returned:
    tone = "unwanted" if hit.get("unwanted") else "wanted" if hit.get("wanted") else ""
    return Returned(rank, str(hit.get("text", "")), str(hit.get("id", "")), hit.get("score"), tone, rank <= k)


def summary(found: Mapping[str, Any] | None, k: int) -> str:
    """Where the answer was lost, in a sentence; "" where nothing was asked again."""
    if not found or ("deep_rank" not in found and not found.get("stored")):
        return ""
    stored = found.get("stored") or {}
    if stored and not any(stored.values()):
        return "Not found by its own text either: it was not stored as it was planted."
    deep = found.get("deep_rank")
    if not deep:
        return "Stored, but no recall brings it back, however deep."
    told = f"Stored, but at rank {deep}" if deep > k else f"Stored; asked again it came at rank {deep}"
    good = [leg for leg, rank in (found.get("legs") or {}).items() if rank is not None and rank <= k]
    return f"{told}{f', while the {good[0]} leg alone has it within {k}' if good and deep > k else ''}."


def diagnosis(found: Mapping[str, Any] | None) -> list[Finding]:
    """What asking again, untimed, brought out."""
    if not found:
        return []
    lines = [*_stored(found), *_damage(found), *_legs(found), *_deep(found)]
    if found.get("error"):
        lines.append(Finding("stopped", str(found["error"])))
    return lines


def _stored(found: Mapping[str, Any]) -> Iterator[Finding]:
    planted, stored = found.get("planted"), found.get("stored") or {}
    for leg, n in (found.get("counts") or {}).items():
        yield Finding(
            f"{leg} index", f"holds {n} of {planted} memories", None if planted is None else n >= planted
        )
    if stored:
        kept = [name for name, is_stored in stored.items() if is_stored]
        text = (
            "found by its own text"
            if len(stored) == 1
            else f"{len(kept)} of {len(stored)} found by their own texts"
        )
        yield Finding(
            "answer stored", text if kept else "not found by its own text", len(kept) == len(stored)
        )


def _damage(found: Mapping[str, Any]) -> Iterator[Finding]:
    for id, changes in (found.get("changed") or {}).items():
        told = ", ".join(
            f"{name} {'gone' if how == 'missing' else 'changed'}" for name, how in changes.items()
        )
        yield Finding(f"{id} as planted", told, False)
    for id, fate in (found.get("alone") or {}).items():
        yield Finding(f"{id} planted alone", FATES.get(fate, fate), fate == "kept")


FATES = {
    "kept": "kept: something took it away",
    "lost": "not kept either",
    "reopened": "kept, until the backend is closed and opened again",
}
OWN = {
    "found": "finds it by its own text",
    "missed": "finds other things by its own text",
    "empty": "finds nothing by its own text",
}


def _legs(found: Mapping[str, Any]) -> Iterator[Finding]:
    for leg, fate in (found.get("own") or {}).items():
        yield Finding(f"{leg} index", OWN.get(fate, fate), fate == "found")
    for leg, rank in (found.get("legs") or {}).items():
        yield Finding(f"{leg} leg alone", _rank(rank), rank is not None and rank <= 5)


def _deep(found: Mapping[str, Any]) -> Iterator[Finding]:
    if "deep_rank" in found:
        yield Finding("deep recall, k 100", _rank(found["deep_rank"]), None if found["deep_rank"] else False)


def _rank(rank: int | None) -> str:
    return "answer not found" if rank is None else f"answer at rank {rank}"


def newest_first(details: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The diagnosis of the first trial that has one."""
    return next((detail["diagnosis"] for detail in details if detail.get("diagnosis")), None)
