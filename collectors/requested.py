"""What may be asked of the collector: the payloads of requests, by their kind."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class RunRequest(BaseModel):
    """The payload of a request of kind `run`."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    suite: str
    backend: str
    trials: int = Field(1, ge=1)
    tag: str = ""
    meta: dict[str, str] = {}


class LookRequest(BaseModel):
    """The payload of a request of kind `look`: a run that is asked once more."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    run: int = Field(ge=1)


class ProofRequest(BaseModel):
    """The payload of a request of kind `proof`: a drill, now."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    suite: str
    backend: str
