"""Whether a reply is held to a schema: what the backend offers, what the role wants, and what a schema can say."""

from __future__ import annotations

from pydantic import BaseModel

from moot.actors.models.interface import Capabilities
from moot.actors.models.json_schema import json_schema
from moot.protocols.errors import ConfigError
from moot.protocols.replies import FreeText


def reply_schema(
    capabilities: Capabilities, wanted: bool | None, reply_model: type[BaseModel]
) -> type[BaseModel] | None:
    """What the backend shall hold the reply to; None for a reply that is left free.

    Args:
        capabilities: the backend's; one that says `no` is never asked to.
        wanted: the role's `structured`; None leaves it to the backend.
        reply_model: what the reply must fit in any case. `FreeText` is always left free. So is one that no schema can
            hold, unless the role insists; then the call fails and says why.
    """
    offered = capabilities.structured_output
    if offered == "no" or wanted is False or reply_model is FreeText:
        return None
    if wanted:
        return reply_model
    return reply_model if offered == "yes" and _can_be_held(reply_model) else None


def _can_be_held(reply_model: type[BaseModel]) -> bool:
    try:
        json_schema(reply_model)
    except ConfigError:
        return False
    return True
