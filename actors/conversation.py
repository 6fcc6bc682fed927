"""The messages of an ask, as its model is sent them: rendered here for the agent and for `Floor.sent` alike."""

from __future__ import annotations

import msgspec

from moot.actors.models.off_loop import off_loop_if_long
from moot.actors.roles import RoleBinding
from moot.protocols.messages import Ask, Message
from moot.protocols.templates import Templates


def first_messages(ask: Ask, templates: Templates, binding: RoleBinding) -> tuple[Message, ...]:
    """What is sent first: the rendered template, with the ask's images on its last message.

    A model that takes no system message gets its text before the user's.

    Raises:
        ConfigError: when the template cannot be rendered with the ask's slots.
    """
    messages = templates.render(ask.template, ask.slots, binding.persona)
    if binding.profile is not None and binding.profile.folds_system:
        messages = folded(messages)
    if ask.images:
        messages = (*messages[:-1], msgspec.structs.replace(messages[-1], images=ask.images))
    return messages


async def rendered(ask: Ask, templates: Templates, binding: RoleBinding) -> tuple[Message, ...]:
    """As `first_messages`, which leaves the event loop where there is much to render."""
    return await off_loop_if_long(ask.slots, first_messages, ask, templates, binding)


def folded(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages with those of the system before the first one of the user."""
    system = [message.content for message in messages if message.role == "system"]
    others = [message for message in messages if message.role != "system"]
    if not system or not others:
        return messages
    first = msgspec.structs.replace(others[0], content="\n\n".join([*system, others[0].content]))
    return (first, *others[1:])


def reask_messages(first: tuple[Message, ...], text: str, error: str, templates: Templates) -> tuple[Message, ...]:
    """What is sent after an unreadable reply `text`: the conversation so far and what was wrong with it."""
    return (*first, Message("assistant", text), *templates.render("reask", {"error": error}))
