"""Rendered request of an ask (messages, decoding, schema), and its fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b

import msgspec
from pydantic import BaseModel

from moot.actors.agent.roles import RoleBinding
from moot.actors.models.interface import Offered, ReplySchema, fold_system_messages
from moot.actors.models.off_loop import off_loop_if_long
from moot.actors.models.reply_schema import declares_lengths, fitting_lengths, reply_schema, slot_sizes
from moot.actors.models.resolve import constrained_before_profiles, offered_schemas
from moot.actors.models.schema_dialects import DIALECTS
from moot.actors.models.token_bounds import bytes_per_character, texts_within
from moot.protocols.asked_lengths import AskedLength
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Ask, Decoding, Message
from moot.protocols.replies import FreeText
from moot.protocols.reply_ids import load_reply, reply_id
from moot.protocols.templates import Templates


def first_messages(ask: Ask, templates: Templates, binding: RoleBinding) -> tuple[Message, ...]:
    """First messages of an ask: the rendered template, with the ask's images on its last message.

    A model without system messages gets that text before the user's.

    Raises:
        ConfigError: the template cannot be rendered with the ask's slots.
    """
    messages = templates.render(ask.template, ask.slots, binding.persona, asked_lengths(ask, binding))
    if binding.profile is not None and binding.profile.folds_system:
        messages = fold_system_messages(messages)
    if ask.images:
        messages = (*messages[:-1], msgspec.structs.replace(messages[-1], images=ask.images))
    return messages


def asked_lengths(ask: Ask, binding: RoleBinding) -> Mapping[str, AskedLength]:
    """Lengths that the prompt asks for, by name: shorter where the schema or the reply's tokens have less room.

    A text of another script is as long as its schema permits, which counts each byte as a token; where no schema bounds
    texts, a token has as many characters as in Latin script.
    """
    try:
        reply_model = load_reply(ask.reply)
        if not declares_lengths(reply_model):
            return {}
        profile, max_tokens = binding.profile, max_reply_tokens(binding, sent_decoding(binding, ask.decoding))
        dialect = profile.mode_of(reply_id(reply_model))[0] if profile and binding.structured is not False else "free"
        is_bounded = dialect != "free" and DIALECTS[dialect].lengths
        bytes_each = bytes_per_character(texts_within(ask.slots)) if is_bounded else 1
        return fitting_lengths(reply_model, ask.labels, max_tokens, slot_sizes(reply_model, ask.slots), bytes_each)
    except ConfigError:  # a reply that no schema can describe
        return {}


async def render_messages(ask: Ask, templates: Templates, binding: RoleBinding) -> tuple[Message, ...]:
    """Renders as `first_messages`; leaves the event loop for long prompts."""
    return await off_loop_if_long(ask.slots, first_messages, ask, templates, binding)


def reask_messages(first: tuple[Message, ...], text: str, error: str, templates: Templates) -> tuple[Message, ...]:
    """Messages after an unparsable reply `text`: the conversation so far and what was wrong with it."""
    return (*first, Message("assistant", text), *templates.render("reask", {"error": error}))


def sent_decoding(binding: RoleBinding, given: Decoding | None = None) -> Decoding:
    """Decoding of an ask: its own, or else its role's.

    Parameters that the model does not support are omitted. A reasoning model gets its reasoning tokens on top.
    """
    decoding = binding.decoding() if given is None else msgspec.structs.replace(given, **binding.beside_sampling())
    if binding.profile is None:
        return decoding
    changes: dict[str, object] = {}
    if binding.profile.reasons:
        changes["max_tokens"] = decoding.max_tokens + binding.reasoning_tokens
    if binding.profile.server == "llama.cpp" and decoding.repetition_penalty is not None:
        changes |= {"repetition_penalty": None, "extra": _with_key(decoding.extra, "repeat_penalty", decoding)}
    return binding.profile.adapted(msgspec.structs.replace(decoding, **changes) if changes else decoding)


def _with_key(extra: str, key: str, decoding: Decoding) -> str:
    body = {**(msgspec.json.decode(extra) if extra else {}), key: decoding.repetition_penalty}
    return msgspec.json.encode(body, order="sorted").decode()


def max_reply_tokens(binding: RoleBinding, decoding: Decoding) -> int:
    """Length of the longest reply in tokens, without hidden reasoning; `decoding` as sent."""
    reasons = binding.profile is not None and binding.profile.reasons
    return max(decoding.max_tokens - binding.reasoning_tokens, 1) if reasons else decoding.max_tokens


def constrained_schema(
    binding: RoleBinding,
    offered: Offered,
    reply_model: type[BaseModel],
    labels: tuple[str, ...] | None,
    max_tokens: int,
    slots: Mapping[str, object],
) -> ReplySchema | None:
    """Schema to which the backend constrains a reply; None for an unconstrained one.

    Args:
        binding: of the role. A model without a profile gets the bare schema that preceded profiles.
        offered: the backend's support for schemas; with `no` none is sent.
        reply_model: the reply's type. `FreeText` is always unconstrained, and so is a type that no schema can describe,
            unless the role insists.
        labels: the case's closed set of labels; None for an open one.
        max_tokens: bound of the reply's length.
        slots: of the ask; they determine numbers of items and the reply's script.

    Raises:
        ConfigError: the role sets `structured: true` and no schema can describe the reply.
    """
    if offered == "no" or binding.structured is False or reply_model is FreeText:
        return None
    profile = binding.profile
    if profile is None:
        return legacy_constrained_schema(binding, offered, reply_model)
    dialect, listed = profile.mode_of(reply_id(reply_model))
    if dialect == "free":
        return None
    try:
        return reply_schema(
            reply_model,
            dialect,
            labels,
            max_tokens,
            listed_labels=listed,
            sizes=slot_sizes(reply_model, slots),
            bytes_each=bytes_per_character(texts_within(slots)),
        )
    except ConfigError:
        if binding.structured:
            raise
        return None


def legacy_constrained_schema(
    binding: RoleBinding, offered: Offered, reply_model: type[BaseModel]
) -> ReplySchema | None:
    """Schema of a reply before dialects were known: none at a URL, unless its role set `structured: true`.

    Also None for a backend that constrained no replies then.

    Raises:
        ConfigError: see `constrained_schema`.
    """
    if offered == "no" or binding.structured is False or reply_model is FreeText:
        return None
    if not binding.structured and (offered != "yes" or not constrained_before_profiles(binding.model)):
        return None
    try:
        return reply_schema(reply_model, None)
    except ConfigError:
        if binding.structured:
            raise
        return None


def fingerprint(ask: Ask, binding: RoleBinding, template_hash: str) -> str:
    """Fingerprint of a request: 32 hex digits over everything that the reply depends on, except the ask's path.

    The lengths that its prompt asks for follow from what it covers, the template's numbers among it.

    Equal requests have equal fingerprints, whatever `structured` of their roles: it counts as unset.
    """
    return _fingerprint(ask, binding, template_hash, None)


def earlier_fingerprints(ask: Ask, binding: RoleBinding, template_hash: str) -> tuple[str, ...]:
    """Fingerprints that earlier records may have for the same request, in which a role's `structured` counted
    separately."""
    return tuple(_fingerprint(ask, binding, template_hash, structured) for structured in (False, True))


def fingerprint_of_role(ask: Ask, binding: RoleBinding, template_hash: str) -> str:
    """Fingerprint in which the role's `structured` counts separately."""
    return _fingerprint(ask, binding, template_hash, binding.structured)


def _fingerprint(ask: Ask, binding: RoleBinding, template_hash: str, structured: bool | None) -> str:
    """Fingerprint of the request as of a role with this `structured`."""
    decoding = sent_decoding(binding, ask.decoding)
    schema: tuple[tuple[str, bytes], ...] = ()
    if binding.profile is not None or binding.structured is not structured:
        schema, decoding = _differing_schema(ask, binding, decoding, structured)
    images = [blake2b(image.data, digest_size=16).digest() for image in ask.images]
    body = (
        binding.model,
        binding.base_url,
        binding.persona,
        structured,
        {name: getattr(decoding, name) for name in _SAMPLING},
        template_hash,
        ask.slots,
        ask.reply,
        ask.labels,
        ask.choices,
        ask.sample,
        images,
    )
    # newer fields are omitted where unused, so that older records still match
    aliases = (ask.aliases,) if ask.aliases else ()
    early_stop = (binding.early_stop.model_dump(),) if binding.early_stop is not None else ()
    beside = _beside_sampling(decoding)
    folded = ("folded",) if binding.profile is not None and binding.profile.folds_system else ()
    api = (("api", binding.profile.api),) if binding.profile is not None and binding.profile.api != "chat" else ()
    plain = (("plain",),) if ask.plain else ()
    return blake2b(
        _ENCODER.encode((*body, *aliases, *early_stop, *beside, *schema, *folded, *api, *plain)), digest_size=16
    ).hexdigest()


def _beside_sampling(decoding: Decoding) -> tuple[dict[str, object], ...]:
    """Request parameters beside the usual sampling settings; empty when there are none."""
    usual = Decoding()
    others = {name: getattr(decoding, name) for name in Decoding.__struct_fields__ if name not in _SAMPLING}
    changed = {name: value for name, value in others.items() if value != getattr(usual, name)}
    return ({"beside": changed},) if changed else ()


def _differing_schema(
    ask: Ask, binding: RoleBinding, decoding: Decoding, structured: bool | None
) -> tuple[tuple[tuple[str, bytes], ...], Decoding]:
    """Schema of a reply, where it differs from the bare schema of a role with this `structured`, and the decoding sent
    with it. The schema is empty where none replaces the bare one.
    """
    offered, reply_model = offered_schemas(binding.model), load_reply(ask.reply)
    try:
        schema = constrained_schema(
            binding, offered, reply_model, ask.labels, max_reply_tokens(binding, decoding), ask.slots
        )
    except ConfigError:  # nothing is sent: the ask fails
        return (("unsent", b""),), decoding
    sent = decoding if schema is None or binding.profile is None else binding.profile.beside_schema(decoding)
    with suppress(ConfigError):
        if schema == legacy_constrained_schema(
            binding.model_copy(update={"structured": structured}), offered, reply_model
        ):
            return (), sent
    return (("schema", schema.body if schema is not None else b""),), sent


_SAMPLING = ("temperature", "top_p", "max_tokens", "top_logprobs")
_ENCODER = msgspec.msgpack.Encoder(order="sorted")
