"""What mem0 asks of its LLM, counted in every release, and priced where a price is known. Stdlib only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from collectors.backend import Usage

PRICED = ("input", "output")
"""Keys of a price: USD for a million tokens."""


class Meter:
    """Calls are counted where the vendor asks its LLM, whichever that is; tokens where the client below is of
    OpenAI's shape, and says them. Without a price money is 0.0."""

    def __init__(self, price: Mapping[str, float]) -> None:
        self._price, self._used = price, Usage()

    def attach(self, llm: Any) -> None:
        llm.generate_response = self._counted(llm.generate_response)
        completions = getattr(getattr(getattr(llm, "client", None), "chat", None), "completions", None)
        if completions is not None:
            # Not the vendor's `response_callback`: only one of its many providers has it.
            completions.create = self._costed(completions.create)

    def _counted(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*positional: Any, **named: Any) -> Any:
            self._used += Usage(calls=1)
            return ask(*positional, **named)

        return asked

    def _costed(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*positional: Any, **named: Any) -> Any:
            answer = ask(*positional, **named)
            self._used += self._cost(answer)
            return answer

        return asked

    def _cost(self, answer: Any) -> Usage:
        used = getattr(answer, "usage", None)
        asked, said, total = (
            getattr(used, f"{name}_tokens", None) or 0 for name in ("prompt", "completion", "total")
        )
        money = asked * self._price.get("input", 0.0) + said * self._price.get("output", 0.0)
        return Usage(tokens=total or asked + said, money=money / 1e6)

    def read(self) -> Usage:
        """What was used since the last reading."""
        used, self._used = self._used, Usage()
        return used
