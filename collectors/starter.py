"""What `memtrend init` writes: a commented configuration, three worked cases, or an adapter to fill in."""

from __future__ import annotations

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

from store.errors import StoreError

CONFIG = """\
# memtrend's configuration. Every key can be overridden by an environment variable: [limits] timeout is
# MEMTREND_LIMITS__TIMEOUT. Secrets stand elsewhere: those of a backend or embedder as "${env:NAME}" or
# "${file:/run/secrets/NAME}", that of database.url by url_file = "/run/secrets/...".

embedder = "wordllama"        # or "minilm" (make install EXTRAS=minilm), or an OpenAI-compatible endpoint:
# embedder = { url = "http://127.0.0.1:11434/v1", model = "nomic-embed-text" }

[database]
url = "sqlite:///memtrend.db"

# Backends: the name is what every command and chart shows. `memtrend backend types` lists the types.
[backends.keyword]
type = "keyword"

[backends.dense]              # the plain vector store that every real system should beat
type = "dense"

[backends.hybrid]
type = "hybrid"

[backends.nothing]            # the two floors: nobody should be proud to beat them
type = "nothing"

[backends.everything]
type = "everything"

# [backends.mem0]             # make install EXTRAS=mem0
# type = "mem0"
# infer = false
# config = { }                # the vendor's own configuration, verbatim; secrets as "${env:NAME}"

# [backends.mem0-next]        # a release in an environment of its own: make install EXTRAS=isolated
# type = "mem0"
# package = "mem0ai==2.2.1"

# [backends.ours]             # a memory of your own: memtrend init --backend ours, then fill it in
# type = "ours:Ours"

# Suites of your own; the shipped ones are golden, smoke, holdout and contract.
[suites.mine]
path = "suites/mine.jsonl"

# Small suites every night, the large one once a week. Weekdays by name: 0 means Sunday here, Monday there.
[schedules.nightly]
cron = "0 3 * * *"            # UTC
suites = ["mine", "smoke", "contract"]
backends = ["*"]

[schedules.weekly]
cron = "0 4 * * sun"
suites = ["golden", "holdout"]
backends = ["*"]
"""

CASES = r"""{"id": "standup-moved-to-half-past", "tags": ["supersession"], "writes": [{"text": "Stand-up is at 9:15 in the small room.", "at": "2026-02-02"}, {"text": "Because of the school run we meet half an hour later from now on: 9:45.", "at": "2026-04-13"}, {"text": "The retrospective stays on Friday at 9:15.", "at": "2026-04-13"}, {"text": "Dana books the small room for the interviews at 9:30 on Mondays.", "at": "2026-04-14"}, {"text": "Lunch with the design team is at 12:15.", "at": "2026-04-20"}, {"text": "The alarm of the small room rings at 9:05 when nobody is in.", "at": "2026-04-22"}], "query": "When does the team gather in the morning?", "expect_any": ["\\b9[:.]45\\b"], "forbid_top1": ["Stand-up is at 9[:.]15"], "k": 3, "source": "example: a fact that changed; the old one must not come first"}
{"id": "parcel-of-the-other-customer", "tags": ["user-isolation"], "critical": true, "writes": [{"text": "Parcel 4471 for Mrs Okafor waits at the depot in Leith.", "user": "okafor"}, {"text": "Parcel 4417 for Mr Lindqvist was handed to his neighbour at number 12.", "user": "lindqvist"}, {"text": "Mr Lindqvist wants parcels left in the porch from now on.", "user": "lindqvist"}], "user": "lindqvist", "query": "Where is my parcel now?", "expect_any": ["neighbour at number 12"], "forbid_any": ["depot in Leith"], "source": "example: what one user stored must never come back for another"}
{"id": "drop-the-old-door-code", "tags": ["forgetting"], "critical": true, "steps": [{"plant": [{"id": "code", "text": "The code of the yard gate is 80815."}, {"id": "gate", "text": "The yard gate sticks in wet weather: lift it while pushing."}, {"id": "bins", "text": "Bins go out through the yard on Thursday evening."}]}, {"forget": ["code"]}, {"probe": "What do I type at the yard gate?", "forbid_any": ["80815"], "abstain": true}, {"probe": "How do I get the gate open after rain?", "expect_any": ["lift it while pushing"], "k": 1}], "source": "example: a deleted memory is gone, its neighbour is not"}
"""  # noqa: E501

ADAPTER = '''\
"""{name}, as memtrend sees it. Configure it as: type = "{module}:{cls}"; check it: memtrend doctor {name}"""

import re


class {cls}:
    def __init__(self):
        self.held = []  # connect to your memory here

    def write(self, text, *, user, domain, session):
        self.held.append((user, domain, session, text))

    def search(self, query, k, *, user, domains, session):  # best first: texts, (text, score), dicts
        asked = set(re.findall(r"\\w+", query.lower()))
        found = [
            (text, len(asked.intersection(re.findall(r"\\w+", text.lower()))))
            for owner, domain, said_in, text in self.held
            if owner == user and (not domains or domain in domains) and session in (None, said_in)
        ]
        return sorted(found, key=lambda hit: -hit[1])[:k]

    def count(self):
        return len(self.held)
'''


class AlreadyThere(StoreError):
    """A file that `init` would have to overwrite."""


class BadName(StoreError):
    """A backend's name that cannot name a module, too."""


def write_project(folder: Path) -> list[str]:
    """Write memtrend.toml and suites/mine.jsonl; lines for the user. Raises `AlreadyThere`."""
    files = {folder / "memtrend.toml": CONFIG, folder / "suites" / "mine.jsonl": CASES}
    _write(files)
    return [
        *(f"wrote {path}" for path in files),
        "next:",
        "  memtrend doctor                # is everything in order?",
        "  memtrend run --suite mine      # ask your three cases of every backend",
        "  memtrend up                    # dashboard and schedules, until ^C",
    ]


def write_adapter(folder: Path, name: str) -> list[str]:
    """Write an adapter for the backend NAME, and its section at the end of the folder's memtrend.toml if that
    is there and has none; lines for the user. Raises `BadName`, `AlreadyThere`."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise BadName(f"{name!r} should be a letter, then letters, digits, - and _")
    module = _module(name)
    if find_spec(module):  # which would be imported instead of it
        module = f"our_{module}"
    path = folder / f"{module}.py"
    _write({path: ADAPTER.format(name=name, module=module, cls=_class(module))})
    return [
        f"wrote {path}",
        *_configure(folder / "memtrend.toml", name, module),
        f"then: memtrend doctor {name}",
    ]


def unconfigured(folder: Path, name: str) -> str | None:
    """What to add to memtrend.toml for an adapter that `init` wrote and that is no backend yet."""
    module = next(
        (m for m in (_module(name), f"our_{_module(name)}") if (folder / f"{m}.py").is_file()), None
    )
    return f"{module}.py is here; add to memtrend.toml:\n{_section(name, module)}" if module else None


def _module(name: str) -> str:
    return name.replace("-", "_").lower()


def _class(module: str) -> str:
    return "".join(part.capitalize() for part in module.split("_"))


def _section(name: str, module: str) -> str:
    return f'[backends.{name}]\ntype = "{module}:{_class(module)}"'


def _configure(config: Path, name: str, module: str) -> list[str]:
    section = _section(name, module)
    if not config.is_file():
        return ["next, in memtrend.toml:", *(f"  {line}" for line in section.splitlines())]
    before = config.read_text(encoding="utf-8")
    after = f"{before.rstrip()}\n\n{section}\n"
    try:
        tomllib.loads(after)
    except tomllib.TOMLDecodeError:  # the section is there already, or what is there is not TOML
        return [f"{config} stays as it is; it needs:", *(f"  {line}" for line in section.splitlines())]
    config.write_text(after, encoding="utf-8")
    return [f"added [backends.{name}] to {config}"]


def _write(files: dict[Path, str]) -> None:
    for path in files:
        if path.exists():
            raise AlreadyThere(f"{path} is there already; move it away first, nothing was written")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
