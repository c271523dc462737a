"""What the tests of chroma, qdrant and lancedb share: memories to plant, and a hand in the vendor's store."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

from collectors import envs
from collectors.backend import Backend, Hit, Isolation
from collectors.suite import Memory, Scope

BOX = Scope("memtrend-test-1", "anna")
FERRY, VIOLIN, STORM = (
    "The ferry to Bornholm leaves at seven.",
    "Violin lessons cost thirty euros.",
    "Ferries do not sail in storms.",
)
ASKED = "When does the ferry to Bornholm leave?"
ODD_METADATA: Mapping[str, Any] = {
    "text": "a name that the adapter uses too",
    "tags": ["gate", "winter"],
    "nested": {"deep": [1, {"er": None}]},
    "nothing": None,
    "many": 2**70,
    "share": 0.25,
    "sure": True,
    "memtrend": "ours",
    "naïve key": "日本語",
}


def plant(backend: Backend, scope: Scope, *texts: str, **said: Any) -> None:
    backend.remember(scope, [Memory(f"m-{n}", text, **said) for n, text in enumerate(texts)])
    backend.settle(scope)


def found(backend: Backend, query: str = ASKED, k: int = 10, leg: str | None = None) -> tuple[Hit, ...]:
    return backend.recall(BOX, query, k, leg).hits


def run_beside(isolation: Isolation, script: str, *arguments: str) -> str:
    """What a script prints that uses the SDK itself, as somebody else on the same store."""
    with envs.using(isolation) as (env, _):
        command = [str(env.executable), "-I", "-c", script, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
