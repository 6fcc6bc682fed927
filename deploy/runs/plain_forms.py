"""Check before a run: a model that writes no JSON is only asked for replies that plain text can give."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from moot.actors.agent.roles import RoleBinding
from moot.deploy.runs.model_trials import needed_replies
from moot.deploy.runs.prepare import Prepared
from moot.protocols.errors import CapabilityMissing
from moot.protocols.plain_replies import has_plain_form
from moot.protocols.registry import PROTOCOLS, make_protocol
from moot.protocols.replies import FreeText
from moot.protocols.reply_ids import reply_id, reply_name


def check_plain_forms(prepared: Prepared) -> None:
    """Check that every reply of a model that writes no JSON has a plain form.

    Raises:
        CapabilityMissing: one has none; names the role, the reply and the command that examines the model.
    """
    if not any(member.profile is not None and not member.profile.writes_json for member in prepared.members):
        return
    needed, _ = needed_replies(prepared)
    for family, members in prepared.bindings.items():
        for reply in needed.get(family, ()):
            if reply is FreeText or has_plain_form(reply):
                continue
            for member in members:
                if member.writes_prose(name := reply_id(reply)):
                    raise CapabilityMissing(_refusal(prepared.protocol.name, family, member, reply_name(name)))


def _refusal(protocol: str, family: str, member: RoleBinding, reply: str) -> str:
    return (
        f"model {member.model!r} writes no JSON where a prompt asks for it, and protocol {protocol!r} needs it of the "
        f"role {family!r} ({reply}): `{doctor_command(member)}` shows what it writes. Use another model, or a server "
        f"that constrains replies to a schema; in plain text these protocols work: {', '.join(_plain_protocols())}"
    )


def doctor_command(member: RoleBinding) -> str:
    """Command that examines the model of a role.

    >>> doctor_command(RoleBinding(model="http://127.0.0.1:8000/v1#m", api_key_env="KEY"))
    "moot doctor --model 'http://127.0.0.1:8000/v1#m' --api-key-env KEY"
    """
    words = ["moot", "doctor", "--model", member.model]
    words += [] if member.api_key_env is None else ["--api-key-env", member.api_key_env]
    words += [] if member.base_url is None else ["--base-url", member.base_url]
    return shlex.join(words)


def _plain_protocols() -> Iterator[str]:
    """Built-in protocols that need no reply without a plain form, with their default settings."""
    for name in PROTOCOLS:
        made = make_protocol(name)
        asked = [reply for family in made.roles for reply in made.replies.get(family, ())]
        if asked and all(has_plain_form(reply) for reply in asked):
            yield name
