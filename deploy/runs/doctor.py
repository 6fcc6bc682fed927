"""Health checks of `moot doctor`: of the installation, and of a model by a few small calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from moot.actors.agent.backend_factory import make_model
from moot.actors.agent.request_fingerprint import constrained_schema, sent_decoding
from moot.actors.agent.roles import RoleBinding
from moot.actors.models.api_key import ApiKey
from moot.actors.models.interface import (
    Model,
    ModelError,
    ModelReply,
    RateHeaders,
    ReplySchema,
    TokenLogprobs,
    fold_system_messages,
)
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.prices import Price, price_table
from moot.actors.models.probe import probe
from moot.actors.models.probe_calls import (
    PROBE_RETRIES,
    ExpectedReply,
    OnlyOverResponses,
    ProbeRequest,
    declared_profile,
)
from moot.actors.models.prompt_cuts import CONTEXT_REMEDY, LEAST_CONTEXT
from moot.actors.models.resolve import ModelBinding, ModelSpec, canonical_model, is_embedded, over_responses
from moot.actors.models.retry import call_with_retries
from moot.actors.record.rows import LENGTH
from moot.deploy.runs.bindings import model_defaults
from moot.deploy.runs.capabilities import CONSTRAINED_LOGPROBS, describe_capabilities, in_one_line, model_adaptations
from moot.deploy.runs.json_trial import writes_json
from moot.deploy.runs.versions import installed_versions
from moot.protocols.case import Case, case_slots
from moot.protocols.errors import IGNORES_LIMIT, RAISE_MAX_TOKENS, TRUNCATED, UserError
from moot.protocols.messages import Decoding, Message, Usage
from moot.protocols.replies import Position
from moot.protocols.reply_ids import reply_id
from moot.protocols.reply_parsing import InvalidReply, parse_reply
from moot.protocols.tasks import open_task
from moot.protocols.templates import Templates

TIMEOUT_S = 60.0
"""Timeout of a call in seconds, unless that of a run is longer: a server may have to load its weights first."""

_ALTERNATIVES = 5
_MESSAGES = (Message("system", "You answer with one word."), Message("user", "Is the sky blue? Answer Yes or No."))
_KEY_WORD = "marigold"
_KEY_WORD_LINE = f"The key word is {_KEY_WORD}."
_FILLER = " ".join(f"Line {n}: the boat left the harbour at noon and came back at night." for n in range(1, 641))
_KEY_WORD_QUESTION = "What is the key word? Answer with this word alone."
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
_EXTRAS = {
    "local": ("torch", "transformers"),
    "plot": ("matplotlib",),
    "sentence-transformers": ("torch", "sentence-transformers"),
    "small": ("xllamacpp",),
}
_SUM_SLACK = 1e-3
_LOGPROBS = "log-probabilities"
_SELENE_HINT = "SELENE needs --set gate.intrinsic=none or resampled"

State = Literal["ok", "note", "failed"]


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes:
        subject: name of the check.
        state: `failed` if a run would not work.
        detail: the result as text.
    """

    subject: str
    state: State
    detail: str


def machine() -> Iterator[Finding]:
    """Findings about the installation: versions, installed extras, and which API keys are set."""
    for name, version in installed_versions("moot", "ray").items():
        yield Finding(name, "ok", version)
    for name in _KEYS:
        is_set = ApiKey(name).set
        yield Finding(name, "ok" if is_set else "note", "set" if is_set else "not set")
    for extra, packages in _EXTRAS.items():
        missing = [package for package in packages if package not in installed_versions(*packages)]
        detail = "installed" if not missing else f"not installed: pip install 'moot[{extra}]'"
        yield Finding(f"extra {extra}", "ok" if not missing else "note", detail)


async def examine(binding: ModelBinding, prices: str | None = None) -> list[Finding]:
    """Check a model by a few small calls, made as a run makes them; they may be billed.

    Of several servers each is checked separately.

    Args:
        binding: the model.
        prices: a YAML file of prices; overrides the built-in ones.

    Raises:
        ConfigError: the model's name or a setting is malformed, or the file of prices is invalid.
    """
    spec = ModelSpec.parse(binding.model)
    if not spec.more_urls:
        return await _examined(binding, prices)
    findings = []
    for url in (spec.base_url, *spec.more_urls):
        one = binding.model_copy(update={"model": f"{url}#{spec.model}"})
        findings += [Finding("server", "ok", url), *await _examined(one, prices)]
    return findings


async def _examined(binding: ModelBinding, prices: str | None) -> list[Finding]:
    """Findings about one model on one server."""
    price = price_table(prices).price(canonical_model(binding.model))
    model = make_model(binding, seed=0, answer_key=None)
    used: Usage | None = None
    findings = [Finding("declares", "ok", in_one_line(describe_capabilities(model.capabilities)))]
    try:
        await model.check()
        findings.append(Finding("reachable", "ok", "a server answers" if binding.model.startswith("http") else "yes"))
        from_calls, used = await _call_findings(model, binding)
        findings += from_calls
    except OnlyOverResponses as error:
        if (other := over_responses(binding)) is not None:
            return await _examined(other, prices)
        findings.append(Finding("a call", "failed", str(error)))
    except UserError as error:
        findings.append(Finding("reachable", "failed", str(error)))
    finally:
        await model.close()
    findings.append(_priced(price, used))
    return findings


def _priced(price: Price | None, used: Usage | None) -> Finding:
    """Finding about token prices and the cost of a call, as far as known."""
    if price is None:
        return Finding("price", "note", "unknown; give it in a file, --prices FILE")
    cost = None if used is None else price.cost_usd(used)
    this_call = "" if cost is None else f"; this call {cost:.7f}".rstrip("0").rstrip(".") + " USD"
    return Finding("price", "ok", f"{price.input:g} / {price.output:g} USD per million{this_call}")


async def _call_findings(model: Model, binding: ModelBinding) -> tuple[list[Finding], Usage | None]:
    """Findings from calls to a reachable model, and the usage of one call; None if it failed.

    Raises:
        OnlyOverResponses: only another API offers the model.
    """
    try:
        profile = await _profile(model, binding)
    except OnlyOverResponses:
        raise
    except UserError as error:
        return [Finding("a call", "failed", str(error))], None
    role = _role(binding, profile=profile)
    called, used = await _called(model, role)
    openings = [] if used is None else await _openings(model, role)
    if used is not None and (binding.model.startswith("http") or binding.base_url):
        openings.append(await _long_prompt(model, role))
    return [*_differences(model, profile), *called, *openings], used


async def _profile(model: Model, binding: ModelBinding) -> ModelProfile:
    """Profile that the trial calls of a run would detect.

    Raises:
        OnlyOverResponses: only another API offers the model.
        ModelUnavailable: it cannot be called.
    """
    if is_embedded(binding.model):
        return declared_profile(model, model.capabilities.dialect if _supports_schema(model) else "free")
    role = _role(binding, top_logprobs=_alternatives(model))
    replies = [ExpectedReply(Position, _opening_case().labels, role.max_tokens)] if _supports_schema(model) else []
    trial = ProbeRequest(
        role.decoding(), role.timeout_s, replies, needs_logprobs=True, reasoning_tokens=role.reasoning_tokens
    )
    profile = (await probe(model, trial)).profile
    if profile.mode_of(reply_id(Position))[0] == "free":
        return profile.model_copy(update={"writes_json": await writes_json(model, role, profile)})
    return profile


def _role(binding: ModelBinding, **known: Any) -> RoleBinding:
    return RoleBinding(**{"model": binding.model, "timeout_s": TIMEOUT_S, **model_defaults(binding.model), **known})


def _differences(model: Model, profile: ModelProfile) -> Iterator[Finding]:
    """Findings about a run's adaptations to this model, and its log-probabilities under a schema."""
    if adaptations := model_adaptations(profile, offers_schemas=_supports_schema(model)):
        yield Finding("a run adapts", "note", "; ".join(adaptations))
    can = model.capabilities
    given = can.max_alternatives and profile.alternatives != 0 and profile.logprobs_when_held
    if given and can.logprob_stage == "unknown" and profile.schemas != "free" and profile.held_logprobs is not None:
        raw = profile.held_logprobs == "raw"
        yield Finding(
            "under a schema", "ok" if raw else "note", f"{_LOGPROBS}: {CONSTRAINED_LOGPROBS[profile.held_logprobs]}"
        )


async def _called(model: Model, role: RoleBinding) -> tuple[list[Finding], Usage | None]:
    """Findings from one call, and its usage; None if it failed."""
    alternatives = _alternatives(model)
    decoding = sent_decoding(role, Decoding(temperature=0.0, top_p=None, max_tokens=64, top_logprobs=alternatives))
    began = time.perf_counter()
    try:
        async with asyncio.timeout(role.timeout_s):
            reply = await _completed(model, _as_sent(role, _MESSAGES), decoding, "moot/doctor")
    except ModelError as error:
        return [Finding("a call", "failed", f"{error.kind}: {error.message}"), *_limits(error.limits)], None
    except TimeoutError:
        return [Finding("a call", "failed", f"no reply within {role.timeout_s:g} s")], None
    latency_s = time.perf_counter() - began
    usage = reply.usage
    tokens = f"{usage.prompt_tokens} + {usage.completion_tokens} tokens" if usage != Usage() else "usage unknown"
    findings = [
        Finding("a call", "ok", f"{latency_s:.2f} s, {tokens}, finished by {reply.finish_reason or 'unknown'!r}")
    ]
    if reply.overlong:
        findings.append(Finding("reply length", "note", _overlong(decoding)))
    if alternatives:
        findings.append(check_logprobs(reply.tokens))
    return findings + _limits(reply.limits), usage


def _overlong(decoding: Decoding) -> str:
    return f"longer than {decoding.max_tokens:,} tokens can be: {IGNORES_LIMIT}"


def _alternatives(model: Model) -> int | None:
    return min(_ALTERNATIVES, model.capabilities.max_alternatives) or None


def _supports_schema(model: Model) -> bool:
    return model.capabilities.structured_output != "no"


def _opening_case() -> Case:
    return next(iter(open_task("sample").cases())).case


async def _openings(model: Model, role: RoleBinding) -> list[Finding]:
    """Check whether an opening of a debate parses: unconstrained, and under its schema or as plain text, if a run would
    ask for that.

    An unusable reply is `failed` in the mode that a run would use, and a `note` in the other.
    """
    labels = _opening_case().labels
    schema = constrained_schema(role, model.capabilities.structured_output, Position, labels, role.max_tokens, {})
    plain = role.writes_prose(reply_id(Position))
    free = await _opening(model, role, "an opening, free", None, "note" if schema or plain else "failed")
    if plain:
        return [free, await _opening(model, role, "an opening as plain text", None, "failed", plain=True)]
    if schema is None:
        return [free]
    return [free, await _opening(model, role, "an opening under a schema", schema, "failed")]


async def _opening(
    model: Model, role: RoleBinding, what: str, schema: ReplySchema | None, unusable: State, *, plain: bool = False
) -> Finding:
    case, templates = _opening_case(), Templates()
    template = templates.plain_form("selene/opening") if plain else "selene/opening"
    messages = _as_sent(role, templates.render(template, case_slots(case), ""))
    decoding = sent_decoding(role)
    reply = None
    try:
        async with asyncio.timeout(role.timeout_s):
            reply = await _completed(model, messages, decoding, "moot/doctor/opening", schema)
        parse_reply(reply.text, Position, case.labels, case.choices, case.aliases, plain=plain)
    except (ModelError, InvalidReply) as error:
        why = error.plain if isinstance(error, InvalidReply) else str(error)
        if reply is not None and reply.overlong:
            why = _overlong(decoding)
        elif reply is not None and reply.finish_reason == LENGTH:
            why = f"{TRUNCATED}{decoding.max_tokens}: {RAISE_MAX_TOKENS}"
        return Finding(what, unusable, f"unusable: {why}")
    except TimeoutError:
        return Finding(what, unusable, f"no reply within {role.timeout_s:g} s")
    return Finding(what, "ok", "usable")


async def _long_prompt(model: Model, role: RoleBinding) -> Finding:
    """Check whether a prompt of about 11,000 tokens, with a key word at its start, is read whole or refused.

    It is not sent to the vendors' own services, which refuse what is too long and would bill it.
    """
    what = "a long prompt"
    messages = _as_sent(role, (Message("user", f"{_KEY_WORD_LINE} {_FILLER} {_KEY_WORD_QUESTION}"),))
    decoding = sent_decoding(role, Decoding(temperature=0.0, top_p=None, max_tokens=64))
    try:
        async with asyncio.timeout(role.timeout_s):
            reply = await _completed(model, messages, decoding, "moot/doctor/long")
    except ModelError as error:
        refused = error.kind == "context_length"
        return Finding(what, "ok" if refused else "note", f"{'refused, not cut' if refused else error.kind}: {error}")
    except TimeoutError:
        return Finding(what, "note", f"not known whether it is cut: no reply within {role.timeout_s:g} s")
    words, counted = len(messages[-1].content.split()), reply.usage.prompt_tokens
    whole = counted is not None and counted + (reply.usage.cached_tokens or 0) >= words
    if counted is not None and counted >= LEAST_CONTEXT and not whole:
        cut = f"the server cuts prompts silently: it counted {counted:,} tokens of {words:,} words"
        return Finding(what, "note", f"{cut}: {CONTEXT_REMEDY}")
    if _KEY_WORD in (reply.text + reply.reasoning).lower():
        tokens = "" if counted is None else f", {counted:,} tokens"
        return Finding(what, "ok", f"read from its start: {words:,} words{tokens}")
    if whole:
        return Finding(what, "ok", f"counted whole: {counted:,} tokens; the model did not find the word at its start")
    return Finding(what, "note", f"not counted, and its start was not found: it may be cut; if so, {CONTEXT_REMEDY}")


def _as_sent(role: RoleBinding, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return fold_system_messages(messages) if role.profile is not None and role.profile.folds_system else messages


async def _completed(
    model: Model,
    messages: tuple[Message, ...],
    decoding: Decoding,
    step_key: str,
    schema: ReplySchema | None = None,
) -> ModelReply:
    """Reply to a call with retries: the previous calls may have exhausted a rate limit."""
    return await call_with_retries(
        PROBE_RETRIES, lambda: model.complete(messages, decoding, step_key=step_key, schema=schema)
    )


def check_logprobs(tokens: TokenLogprobs | None) -> Finding:
    """Check whether log-probabilities are present and plausible: some servers send zeros, or only -9999."""
    if tokens is None:
        return Finding(_LOGPROBS, "note", f"none given: {_SELENE_HINT}")
    finite = tokens.alt_logprob[np.isfinite(tokens.alt_logprob)]
    if not finite.size:
        return Finding(_LOGPROBS, "note", f"no alternative has a number: {_SELENE_HINT}")
    sums = np.nansum(np.exp(np.where(np.isfinite(tokens.alt_logprob), tokens.alt_logprob, -np.inf)), axis=1)
    if not np.any(finite) or not np.any(tokens.logprob):
        return Finding(_LOGPROBS, "failed", "bogus: every one is 0")
    if np.any(sums > 1.0 + _SUM_SLACK):
        return Finding(_LOGPROBS, "failed", f"bogus: the probabilities of one token add up to {sums.max():.2f}")
    return Finding(_LOGPROBS, "ok", f"real: {tokens.alternatives} alternatives for {len(tokens.tokens)} tokens")


def _limits(limits: RateHeaders | None) -> list[Finding]:
    if limits is None:
        return []
    parts = []
    for what, left, limit in (
        ("requests", limits.requests_left, limits.requests_limit),
        ("tokens", limits.tokens_left, limits.tokens_limit),
    ):
        if left is not None or limit is not None:
            parts.append(f"{what}: {'?' if left is None else left} of {'?' if limit is None else limit} left")
    return [Finding("limits seen", "ok", "; ".join(parts) or "a reset time only")]
