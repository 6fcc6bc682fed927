"""One small call before a run: what no list of models tells, a reply does."""

from __future__ import annotations

import asyncio

import numpy as np
from pydantic import BaseModel

from moot.actors.models.interface import Model, ModelError
from moot.actors.models.response_format import refuses_response_format
from moot.actors.models.retry import RetryPolicy, call_with_retries
from moot.protocols.errors import ModelUnavailable
from moot.protocols.messages import Decoding, Message

PROBE_RETRIES = RetryPolicy(max_attempts=4, total_s=20.0, cap_s=2.0, retry_after_cap_s=5.0)
"""How a call before a run is repeated: the user waits for it."""

_MESSAGES = (Message("user", "Say Yes"),)
STEP_KEY = "moot/probe"


async def probe(model: Model, decoding: Decoding, timeout_s: float, schema: type[BaseModel] | None = None) -> bool:
    """Make one call as the run will make them; it may be billed.

    Args:
        decoding: as in the run, so that a setting which the server does not take is found.
        timeout_s: the deadline of an ask of the run.
        schema: a reply model of the run, if its replies will be held to their schemas.

    Returns:
        Whether log-probabilities with alternatives came back; False when `decoding` asks for none.

    Raises:
        ModelUnavailable: the call failed for another reason than the log-probabilities.
    """
    try:
        async with asyncio.timeout(timeout_s):
            reply = await call_with_retries(
                PROBE_RETRIES, lambda: model.complete(_MESSAGES, decoding, step_key=STEP_KEY, schema=schema)
            )
    except ModelError as error:
        if error.kind == "request" and schema is not None and refuses_response_format(error.message):
            raise ModelUnavailable(
                f"{model.name} cannot hold replies to a schema: say `structured: false` for its roles ({error.message})"
            ) from None
        if error.kind == "request" and decoding.top_logprobs and "logprob" in error.message.lower():
            return False
        raise ModelUnavailable(f"{model.name}: {error.message}") from None
    except TimeoutError:
        raise ModelUnavailable(f"{model.name} did not answer within {timeout_s:g} s") from None
    return reply.tokens is not None and bool(np.isfinite(reply.tokens.alt_logprob).any())
