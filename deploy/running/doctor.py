"""What works on this machine and with a model: asked with one small call, said in lines."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

import msgspec
import numpy as np

from moot.actors.models.api_key import ApiKey
from moot.actors.models.interface import Model, ModelError, ModelReply, RateHeaders, TokenLogprobs
from moot.actors.models.prices import Price, price_table
from moot.actors.models.reply_schema import reply_schema
from moot.actors.models.resolve import ModelBinding, canonical_model, make_model, over_responses
from moot.actors.models.responses_wire import only_over_responses
from moot.actors.roles import RoleBinding
from moot.deploy.running.declared import declared, in_one_line
from moot.protocols.case import case_slots
from moot.protocols.errors import UserError
from moot.protocols.messages import Decoding, Message, Usage
from moot.protocols.replies import InvalidReply, Position, parse_reply
from moot.protocols.tasks import open_task
from moot.protocols.templates import Templates

TIMEOUT_S = 60.0
"""Seconds that the call may take: a server may have to load its weights first."""

_ALTERNATIVES = 5
_MESSAGES = (Message("system", "You answer with one word."), Message("user", "Is the sky blue? Answer Yes or No."))
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
_EXTRAS = {
    "local": ("torch", "transformers"),
    "plot": ("matplotlib",),
    "sentence-transformers": ("torch", "sentence-transformers"),
    "small": ("xllamacpp",),
}
_SUM_SLACK = 1e-3
_LOGPROBS = "log-probabilities"
_WITHOUT = "SELENE needs --set gate.intrinsic=none or resampled"

State = Literal["ok", "note", "failed"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: a word or two.
        state: `failed` when a run would not work.
        said: what was found.
    """

    what: str
    state: State
    said: str


def machine() -> Iterator[Finding]:
    """What is installed here, and which keys are set, by name only."""
    yield Finding("python", "ok", platform.python_version())
    for package in ("moot", "ray"):
        yield Finding(package, "ok", version(package))
    for name in _KEYS:
        given = ApiKey(name).set
        yield Finding(name, "ok" if given else "note", "set" if given else "not set")
    for extra, packages in _EXTRAS.items():
        missing = [package for package in packages if not _installed(package)]
        said = "installed" if not missing else f"not installed: pip install 'moot[{extra}]'"
        yield Finding(f"extra {extra}", "ok" if not missing else "note", said)


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


async def examine(binding: ModelBinding, prices: str | None = None) -> list[Finding]:
    """Try a model with one small call; it may be billed.

    Args:
        prices: a YAML file of prices, over our own.

    Raises:
        ConfigError: the model's name or a setting is malformed, or the file of prices is wrong.
    """
    price = price_table(prices).price(canonical_model(binding.model))
    model = make_model(binding, seed=0, answer_key=None)
    used: Usage | None = None
    found = [Finding("declares", "ok", in_one_line(declared(model.capabilities)))]
    try:
        await model.check()
        found.append(Finding("reachable", "ok", "key and server" if binding.model.startswith("http") else "yes"))
        called, used = await _called(model)
        if used is None and (other := over_responses(binding)) and any(only_over_responses(f.said) for f in called):
            return await examine(other, prices)
        found += called
        if used is not None:
            found += [await _opening(model, held=held) for held in (False, True) if not held or _holds(model)]
    except UserError as error:
        found.append(Finding("reachable", "failed", str(error)))
    finally:
        await model.close()
    found.append(_priced(price, used))
    return found


def _priced(price: Price | None, used: Usage | None) -> Finding:
    """What tokens cost, and what the call has cost, as far as both are known."""
    if price is None:
        return Finding("price", "note", "unknown; give it in a file, --prices FILE")
    cost = None if used is None else price.cost_usd(used)
    this_call = "" if cost is None else f"; this call {cost:.7f}".rstrip("0").rstrip(".") + " USD"
    return Finding("price", "ok", f"{price.input:g} / {price.output:g} USD per million{this_call}")


async def _called(model: Model) -> tuple[list[Finding], Usage | None]:
    """What one call shows, and what it used; None when it failed."""
    asks = bool(model.capabilities.max_alternatives)
    hot = model.capabilities.max_temperature is not None
    decoding = Decoding(
        temperature=0.0 if hot else None,
        top_p=None,
        max_tokens=64,
        top_logprobs=min(_ALTERNATIVES, model.capabilities.max_alternatives) if asks else None,
    )
    began = time.perf_counter()
    try:
        reply = await _reply(model, decoding)
    except ModelError as error:
        return [Finding("a call", "failed", f"{error.kind}: {error.message}"), *_limits(error.limits)], None
    except TimeoutError:
        return [Finding("a call", "failed", f"no reply within {TIMEOUT_S:g} s")], None
    took = time.perf_counter() - began
    usage = reply.usage
    told = f"{usage.prompt_tokens} + {usage.completion_tokens} tokens" if usage != Usage() else "usage unknown"
    found = [Finding("a call", "ok", f"{took:.2f} s, {told}, finished by {reply.finish_reason or 'unknown'!r}")]
    if asks:
        found.append(logprobs_finding(reply.tokens))
    return found + _limits(reply.limits), usage


def _holds(model: Model) -> bool:
    return model.capabilities.structured_output != "no"


async def _opening(model: Model, *, held: bool) -> Finding:
    """One real opening of a debate, free or held to its schema: whether it can be read."""
    what = "an opening, held to a schema" if held else "an opening, free"
    case = next(iter(open_task("sample").cases())).case
    messages = Templates().render("selene/opening", case_slots(case), "")
    hot = model.capabilities.max_temperature is not None
    decoding = Decoding() if hot else Decoding(temperature=None, top_p=None)
    if model.capabilities.reasons:
        decoding = msgspec.structs.replace(decoding, max_tokens=decoding.max_tokens + RoleBinding().reasoning_tokens)
    schema = reply_schema(Position, model.capabilities.dialect, case.labels) if held else None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reply = await model.complete(messages, decoding, step_key="moot/doctor/opening", schema=schema)
        parse_reply(reply.text, Position, case.labels, case.choices, case.aliases)
    except (ModelError, InvalidReply) as error:
        return Finding(what, "note", f"unusable: {error}")
    except TimeoutError:
        return Finding(what, "note", f"no reply within {TIMEOUT_S:g} s")
    return Finding(what, "ok", "usable")


async def _reply(model: Model, decoding: Decoding) -> ModelReply:
    """One call; another without log-probabilities when the server refuses those."""
    async with asyncio.timeout(TIMEOUT_S):
        try:
            return await model.complete(_MESSAGES, decoding, step_key="moot/doctor")
        except ModelError as error:
            if decoding.top_logprobs is None or error.kind != "request" or "logprob" not in error.message.lower():
                raise
        plain = msgspec.structs.replace(decoding, top_logprobs=None)
        return await model.complete(_MESSAGES, plain, step_key="moot/doctor/plain")


def logprobs_finding(tokens: TokenLogprobs | None) -> Finding:
    """Whether log-probabilities are there, and are such: some servers send zeros, or nothing but -9999."""
    if tokens is None:
        return Finding(_LOGPROBS, "note", f"none given: {_WITHOUT}")
    known = tokens.alt_logprob[np.isfinite(tokens.alt_logprob)]
    if not known.size:
        return Finding(_LOGPROBS, "note", f"no alternative has a number: {_WITHOUT}")
    sums = np.nansum(np.exp(np.where(np.isfinite(tokens.alt_logprob), tokens.alt_logprob, -np.inf)), axis=1)
    if not np.any(known) or not np.any(tokens.logprob):
        return Finding(_LOGPROBS, "failed", "bogus: every one is 0")
    if np.any(sums > 1.0 + _SUM_SLACK):
        return Finding(_LOGPROBS, "failed", f"bogus: the probabilities of one token add up to {sums.max():.2f}")
    return Finding(_LOGPROBS, "ok", f"real: {tokens.alternatives} alternatives for {len(tokens.tokens)} tokens")


def _limits(limits: RateHeaders | None) -> list[Finding]:
    if limits is None:
        return []
    said = []
    for what, left, limit in (
        ("requests", limits.requests_left, limits.requests_limit),
        ("tokens", limits.tokens_left, limits.tokens_limit),
    ):
        if left is not None or limit is not None:
            said.append(f"{what}: {'?' if left is None else left} of {'?' if limit is None else limit} left")
    return [Finding("limits seen", "ok", "; ".join(said) or "a reset time only")]
