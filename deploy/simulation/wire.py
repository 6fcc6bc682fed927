"""What the server asks of a wire: how requests are read, and how replies, streams, lists and errors are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from moot.actors.models.interface import ModelReply
from moot.deploy.simulation.rate_limit import Allowance
from moot.protocols.messages import Decoding, Message

TOKENS_PER_EVENT = 4
"""Tokens that one event of a stream carries."""


class WireError(Exception):
    """A request that is answered with an error object.

    Args:
        status: the HTTP status; a wire's words for the error follow from it.
        message: what is wrong, fit to be shown.
        headers: what else the response carries.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, message, headers)
        self.status, self.message, self.headers = status, message, headers or {}


def require(holds: bool, message: str) -> None:
    """Refuse a request that does not hold what it must.

    Raises:
        WireError: 400.
    """
    if not holds:
        raise WireError(400, message)


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that has been checked, whatever wire it came by.

    Attributes:
        model: the model's name as the client wrote it; any name is served.
        messages: the conversation; text parts of one message are joined by line ends.
        decoding: `top_logprobs` is 0 when log-probabilities without alternatives were asked for.
        stream: whether to answer with server-sent events.
        schema: the JSON schema that the reply is to be held to; None for a free one.
    """

    model: str
    messages: tuple[Message, ...]
    decoding: Decoding
    stream: bool
    schema: dict[str, Any] | None = None


R = TypeVar("R", bound=ChatRequest)


@dataclass(frozen=True, slots=True)
class Wire(Generic[R]):
    """One vendor's wire format.

    Attributes:
        path: where its requests are posted.
        read: checks and translates a body and its headers; raises `WireError`.
        whole: the body of a reply that is not streamed, from request, reply, identity and Unix seconds.
        events: the same as server-sent events; the reply must have its tokens.
        models: the list of models, from Unix seconds.
        error: an error's body.
        rate_headers: what a response says of the rate limit, from what is left of it and the time, with its zone.
    """

    path: str
    read: Callable[[bytes, Mapping[str, str]], R]
    whole: Callable[[R, ModelReply, str, int], bytes]
    events: Callable[[R, ModelReply, str, int], Iterator[bytes]]
    models: Callable[[int], bytes]
    error: Callable[[WireError], bytes]
    rate_headers: Callable[[Allowance, datetime], dict[str, str]]
