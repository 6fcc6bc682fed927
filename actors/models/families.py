"""Model families: capabilities known from their vendors' documentation, read from `families.yaml`."""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

Vendor = Literal["openai", "anthropic", "any"]
Api = Literal["chat", "responses"]
"""Which of OpenAI's APIs: Chat Completions, or Responses."""


class ModelFamily(BaseModel):
    """Capabilities of a model family.

    Attributes:
        vendor: whose models; `any` for those behind a URL.
        match: pattern of the whole name, in lower case.
        sampling: whether `temperature` and `top_p` are taken.
        logprobs: whether token log-probabilities are given.
        reasons: whether hidden reasoning counts against the longest reply.
        api: over which of OpenAI's APIs they can be used; `chat` for those of other vendors.
        efforts: the values of `reasoning_effort` that Anthropic's service takes for them; empty where it takes none.
        as_of: when the documentation was read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    vendor: Vendor
    match: str
    sampling: bool
    logprobs: bool
    reasons: bool
    api: Api = "chat"
    efforts: tuple[str, ...] = ()
    as_of: date


@cache
def families() -> tuple[ModelFamily, ...]:
    """All families, in lookup order."""
    data = yaml.safe_load(Path(__file__).with_name("families.yaml").read_text())
    return tuple(TypeAdapter(list[ModelFamily]).validate_python(data))


def family_of_model(vendor: Vendor, name: str) -> ModelFamily | None:
    """The family of a model; None when none is known.

    >>> [family_of_model("openai", name).reasons for name in ("o4-mini", "gpt-5.4", "gpt-5-chat-latest")]
    [True, True, False]
    >>> family_of_model("openai", "gpt-4o-mini") is None
    True
    """
    plain = name.lower()
    fitting = (each for each in families() if each.vendor == vendor and re.fullmatch(each.match, plain))
    return next(fitting, None)
