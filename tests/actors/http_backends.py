"""Both OpenAI backends, and small servers on loopback for them to meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.interface import StreamingModel
from moot.actors.models.openai_sdk import OpenAIModel
from moot.protocols.messages import Decoding, Message

KEY = "sk-very-secret-0123456789"
KEY_ENV = "MOOT_TEST_KEY"
MESSAGES = [Message("system", "Be brief."), Message("user", "Can penguins fly?")]
DECODING = Decoding(temperature=0.3, top_p=None, max_tokens=9)
WITH_LOGPROBS = Decoding(top_logprobs=2)

Backend = StreamingModel
MakeModel = Callable[[str], Backend]


def compatible(url: str) -> CompatibleModel:
    """The lean client."""
    return CompatibleModel(url, "m", api_key_env=KEY_ENV)


def openai(url: str) -> OpenAIModel:
    """The one on the official SDK."""
    return OpenAIModel("m", api_key_env=KEY_ENV, base_url=url)


BACKENDS: dict[str, MakeModel] = {"compatible": compatible, "openai": openai}


def completion(text: str | None = "No.", **choice: Any) -> dict[str, Any]:
    """A whole reply as the wire has it."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    return {"choices": [{"message": message, "finish_reason": "stop", **choice}], "usage": usage}
