"""Check before a run: a model that writes no JSON is only asked for replies that plain text can give."""

from __future__ import annotations

from collections.abc import Iterator

from moot.actors.agent.roles import RoleBinding
from moot.deploy.results.run_info import doctor_command
from moot.deploy.runs.model_trials import needed_replies
from moot.deploy.runs.prepare import Prepared
from moot.protocols.base import DebateProtocol
from moot.protocols.errors import CapabilityMissing
from moot.protocols.plain_replies import has_plain_form
from moot.protocols.registry import PROTOCOLS, make_protocol
from moot.protocols.replies import FreeText
from moot.protocols.reply_ids import reply_id, reply_name


class NeedsJson(CapabilityMissing):
    """A model that writes no JSON is asked for a reply that has no plain form.

    Args:
        needs: what asks for it, and what helps.
        command: command that examines the model.
    """

    def __init__(self, needs: str, command: str) -> None:
        super().__init__(needs, command)
        self.needs = needs
        self._command = command

    def __str__(self) -> str:
        return f"{self.needs}; `{self._command}` shows what the model writes"


def check_plain_forms(prepared: Prepared) -> None:
    """Check that every reply of a model that writes no JSON has a plain form.

    Raises:
        NeedsJson: one has none; names the role, the reply and the command that examines the model.
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
                    needs = _needs(prepared.protocol, family, member, reply_name(name))
                    raise NeedsJson(needs, doctor_command(member.model_dump(), prepared.config.model_dump()))


def _needs(protocol: DebateProtocol, family: str, member: RoleBinding, reply: str) -> str:
    hint = f"{protocol.without_json}; or use" if protocol.without_json else "use"
    return (
        f"model {member.model!r} writes no JSON where a prompt asks for it, and protocol {protocol.name!r} needs it of "
        f"the role {family!r} ({reply}): {hint} another model, or a server that constrains replies to a schema. With "
        f"default settings these protocols work in plain text: {', '.join(_plain_protocols())}"
    )


def _plain_protocols() -> Iterator[str]:
    """Built-in protocols that need no reply without a plain form, with their default settings."""
    for name in PROTOCOLS:
        made = make_protocol(name)
        asked = [reply for family in made.roles for reply in made.replies.get(family, ())]
        if asked and all(has_plain_form(reply) for reply in asked):
            yield name
