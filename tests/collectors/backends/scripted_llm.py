"""An OpenAI-compatible server on loopback that answers by rules: extraction without a model.

It knows the questions of mem0 by their prompts: the facts of a message, and up to 1.x what becomes of them.
"""

from __future__ import annotations

import ast
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from zlib import crc32

import pytest

KEY = "sk-very-secret-1234"
USAGE = {"prompt_tokens": 100, "completion_tokens": 11, "total_tokens": 111}
"""Of every answer."""
DIMENSIONS = 64


class Decision(NamedTuple):
    """What is done to the known memory with these words, because of a new fact."""

    event: str
    known: str


class ScriptedLlm:
    """`facts`: words of a message -> what is extracted from it; a message with none of them holds nothing.
    `decisions`: fact -> what it does to a known memory; one without is added. `status`: 200, or that of
    a refusal. `requests`: (path, body) of all that was asked, in order."""

    def __init__(
        self, facts: Mapping[str, Sequence[str]] = {}, decisions: Mapping[str, Decision] = {}
    ) -> None:
        self.facts, self.decisions, self.status = dict(facts), dict(decisions), 200
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._serving = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> ScriptedLlm:
        self._serving.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._serving.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def llm(self) -> dict[str, Any]:
        """mem0's section of that name."""
        config = {"model": "tiny", "api_key": KEY, "openai_base_url": self.url}
        return {"provider": "openai", "config": config}

    @property
    def embedder(self) -> dict[str, Any]:
        """mem0's section of that name."""
        config = {"model": "tiny-embed", "api_key": KEY, "embedding_dims": DIMENSIONS}
        return {"provider": "openai", "config": {**config, "openai_base_url": self.url}}

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.requests.append((path, body))
        if self.status != 200:
            return {"error": {"message": "not today"}}
        return {"/v1/chat/completions": self._completion, "/v1/embeddings": _embedded}[path](body)

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["response_format"] == {"type": "json_object"}
        message = {"role": "assistant", "content": json.dumps(self._said(body["messages"][-1]["content"]))}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        named = {"id": "1", "object": "chat.completion", "created": 0, "model": "tiny-001"}
        return {**named, "choices": [choice], "usage": USAGE}

    def _said(self, prompt: str) -> dict[str, Any]:
        if prompt.startswith("Input:"):
            return {"facts": self._extracted(prompt)}
        if "## New Messages" in prompt:
            new = prompt.partition("## New Messages")[2].partition("## Observation Date")[0]
            return {"memory": [{"id": str(n), "text": fact} for n, fact in enumerate(self._extracted(new))]}
        return {"memory": self._decided(prompt)}

    def _extracted(self, message: str) -> list[str]:
        return [fact for words, facts in self.facts.items() if words in message for fact in facts]

    def _decided(self, prompt: str) -> list[dict[str, str]]:
        """The prompt ends with what is known, if anything is, and the new facts, both fenced."""
        fenced = prompt.split("```")
        facts = ast.literal_eval(fenced[-2].strip())
        known = [] if "Current memory is empty" in prompt else ast.literal_eval(fenced[-4].strip())
        ids = {memory["text"]: memory["id"] for memory in known}
        return [self._decision(fact, ids) for fact in facts]

    def _decision(self, fact: str, ids: Mapping[str, str]) -> dict[str, str]:
        decision = self.decisions.get(fact)
        if decision is None or decision.known not in ids:
            return {"id": str(len(ids)), "text": fact, "event": "ADD"}
        text = decision.known if decision.event == "DELETE" else fact
        told = {"id": ids[decision.known], "text": text, "event": decision.event}
        return {**told, "old_memory": decision.known}


FACTS = {
    "take the ferry": ["The ferry leaves at seven", "Anna sails to Bornholm"],
    "allergic to peanuts": ["Anna is fond of peanuts"],
    "live in Ystad": ["Anna lives in Ystad"],
    "moved to Lund": ["Anna lives in Lund"],
    "have a dog": ["Anna has a dog"],
    "dog died": ["Anna has no dog"],
}
DECISIONS = {
    "Anna lives in Lund": Decision("UPDATE", "Anna lives in Ystad"),
    "Anna has no dog": Decision("DELETE", "Anna has a dog"),
}


@contextmanager
def speaking(environment: pytest.MonkeyPatch) -> Iterator[ScriptedLlm]:
    """One that knows these facts, and is asked whatever the environment says of proxies and routers."""
    environment.setenv("NO_PROXY", "127.0.0.1")
    environment.delenv("OPENROUTER_API_KEY", raising=False)
    with ScriptedLlm(FACTS, DECISIONS) as llm:
        yield llm


def _embedded(body: dict[str, Any]) -> dict[str, Any]:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    data = [{"object": "embedding", "index": n, "embedding": _vector(text)} for n, text in enumerate(texts)]
    return {"object": "list", "model": "tiny-embed", "data": data, "usage": USAGE}


def _vector(text: str) -> list[float]:
    """Words counted in as many places as there are dimensions: equal words, near texts."""
    words = Counter(crc32(word.encode()) % DIMENSIONS for word in text.lower().split())
    length = sum(count**2 for count in words.values()) ** 0.5
    return [words[place] / length if length else 0.0 for place in range(DIMENSIONS)]


def _handler(llm: ScriptedLlm) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            data = json.dumps(llm.answer(self.path, body)).encode()
            self.send_response(llm.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler
