"""Whether a server tells log-probabilities after a schema's mask: found from a reply that was held to one."""

from __future__ import annotations

import math

from moot.actors.models.interface import TokenLogprobs

_BLANKS = " \n\t\r\u0120\u010a\u2581"
"""Blanks as servers write them at the start of a token: themselves, or as `Ġ`, `Ċ` and `▁`."""

_NO_OTHER = 0.01
"""Probability below which a model that is asked to say Yes is not free to open its reply by anything but a bracket."""


def surely_opens(tokens: TokenLogprobs) -> bool:
    """Whether a reply's first token, and what it could have been, leave no probability to anything but an opening.

    The model was asked to say Yes, so without a mask it would rather do that. Several tokens open a JSON object (`{`,
    `{"`, a blank): a mask shares the whole among them. False where the first token has no probability. Raises nothing.
    """
    if not tokens.tokens or not math.isfinite(tokens.logprob[0]):
        return False
    first = dict(zip(tokens.alt_tokens[: tokens.alternatives], tokens.alt_logprob[0].tolist(), strict=True))
    first[tokens.tokens[0]] = float(tokens.logprob[0])
    opens = sum(
        math.exp(min(logprob, 0.0)) for token, logprob in first.items() if _opens(token) and math.isfinite(logprob)
    )
    return opens > 1.0 - _NO_OTHER


def _opens(token: str) -> bool:
    """Whether a JSON object can begin with the token: a blank one, or one whose first mark is the bracket."""
    return bool(token) and token.lstrip(_BLANKS)[:1] in ("", "{")
