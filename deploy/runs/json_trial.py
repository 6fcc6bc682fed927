"""JSON trial: whether a model whose replies nothing constrains writes the JSON object that a prompt asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice

import msgspec
import structlog

from moot.actors.agent.request_fingerprint import sent_decoding
from moot.actors.agent.roles import RoleBinding
from moot.actors.models.interface import Model, ModelReply, fold_system_messages
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.probe_calls import PROBE_RETRIES, STEP_KEY
from moot.actors.models.trial_servers import TrialFailure, TrialServers
from moot.protocols.case import Case, case_slots
from moot.protocols.replies import Position
from moot.protocols.reply_parsing import InvalidReply, parse_reply
from moot.protocols.tasks import open_task
from moot.protocols.templates import Templates

_log = structlog.get_logger(__name__)

_ASKS = 3
"""Most opening prompts of the bundled sample that are tried; two equal outcomes decide."""


async def writes_json(model: Model, role: RoleBinding, profile: ModelProfile) -> bool:
    """Whether the model writes a usable JSON object in most of a few openings of the bundled sample.

    The first two are asked at once, a third only if they differ. True without evidence, as when no reply came.

    Args:
        model: the model; of a pool, every server must write the object.
        role: decoding and deadline of the calls.
        profile: of the model.
    """
    cases = [each.case for each in islice(open_task("sample").cases(), _ASKS)]
    role = role.model_copy(update={"profile": profile})
    written = list(await asyncio.gather(*(_writes(model, role, case) for case in cases[:2])))
    if all(written) != any(written):
        written.append(await _writes(model, role, cases[2]))
    replies = [text for text in written if text]
    if len(replies) < 2:
        return True
    _log.warning(
        "the model writes no JSON where a prompt asks for it: it is asked for plain text, and read so",
        model=model.name,
        reply=replies[0][:60],
    )
    return False


async def _writes(model: Model, role: RoleBinding, case: Case) -> str:
    """The beginning of a reply that is not the object; empty for one that is, and for none."""
    messages = Templates().render("selene/opening", case_slots(case), role.persona)
    if role.profile is not None and role.profile.folds_system:
        messages = fold_system_messages(messages)
    decoding = msgspec.structs.replace(sent_decoding(role), top_logprobs=None)
    servers = TrialServers(model, timeout_s=role.timeout_s, retries=PROBE_RETRIES, step_key=STEP_KEY)
    replies = await servers.call(messages, decoding, None, streamed=False)
    return "" if isinstance(replies, TrialFailure) else _prose(list(replies.values()), case)


def _prose(replies: Sequence[ModelReply], case: Case) -> str:
    for reply in replies:
        try:
            parse_reply(reply.text, Position, case.labels, case.choices, case.aliases)
        except InvalidReply:
            if text := " ".join(reply.text.split()):  # an empty one is all hidden reasoning, and no evidence
                return text
    return ""
