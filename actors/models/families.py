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
"""OpenAI's API: Chat Completions, or Responses."""


class ModelFamily(BaseModel):
    """Capabilities of a model family.

    Attributes:
        vendor: of the models; `any` for models behind a URL.
        match: pattern of the whole name, in lower case.
        sampling: whether `temperature` and `top_p` are supported.
        logprobs: whether token log-probabilities are returned.
        reasons: whether hidden reasoning counts against the reply's length.
        api: OpenAI's API that serves them; `chat` for those of other vendors.
        efforts: values of `reasoning_effort` that Anthropic's service accepts for them; empty for none.
        as_of: date of the documentation.
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
    """Family of a model; None when unknown.

    >>> [family_of_model("openai", name).reasons for name in ("o4-mini", "gpt-5.4", "gpt-5-chat-latest")]
    [True, True, False]
    >>> family_of_model("openai", "gpt-4o-mini") is None
    True
    """
    plain = name.lower()
    fitting = (each for each in families() if each.vendor == vendor and re.fullmatch(each.match, plain))
    return next(fitting, None)
