"""Whether a server tells log-probabilities before or after a schema's mask: found from a reply that was held to one."""

from __future__ import annotations

import math
import re
from typing import Literal

from moot.actors.models.interface import TokenLogprobs

HeldStage = Literal["raw", "masked", "unknown"]

_BLANKS = " \n\t\r\u0120\u010a\u2581"
"""Blanks as servers write them at the start of a token: themselves, or as `Ġ`, `Ċ` and `▁`."""

_UNREADABLE = re.compile(r"token_id:|<|\ufffd")
"""How tokens begin whose text is not told: by a number in its place, a mark of the chat template, half a character."""

_NO_OTHER = 0.01
"""Probability that a mask may leave to tokens that are not listed among so few."""

_LEAST = -80.0
"""Log-probability below which a server means none: a mask leaves minus infinity, which some write as -100 or -9999."""


def held_stage(tokens: TokenLogprobs) -> HeldStage:
    """What a reply's first token, and what it could have been, say of the schema's mask.

    The model was asked to say Yes and held to a JSON object. Where a token that begins no object has a probability, the
    probabilities are the model's own. Where those that can begin one (`{`, `{"`, a blank) have all of it, a mask has
    taken it from the others: without one the model would rather say Yes. Raises nothing.
    """
    if not tokens.tokens:
        return "unknown"
    first = dict(zip(tokens.alt_tokens[: tokens.alternatives], tokens.alt_logprob[0].tolist(), strict=True))
    first[tokens.tokens[0]] = float(tokens.logprob[0])
    likely = {token: logprob for token, logprob in first.items() if math.isfinite(logprob) and logprob > _LEAST}
    if any(_cannot_open(token) for token in likely):
        return "raw"
    opens = sum(math.exp(min(logprob, 0.0)) for token, logprob in likely.items() if _opens(token))
    return "masked" if opens > 1.0 - _NO_OTHER else "unknown"


def _opens(token: str) -> bool:
    """Whether a JSON object can begin with the token: a blank one, or one whose first mark is the bracket."""
    return bool(token) and token.lstrip(_BLANKS)[:1] in ("", "{")


def _cannot_open(token: str) -> bool:
    """Whether no JSON object begins with the token; not of one whose text is not known."""
    return bool(token) and not _opens(token) and not _UNREADABLE.match(token)
