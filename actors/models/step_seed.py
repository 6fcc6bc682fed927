"""The seed of one request: another one for each step, so that repeated samples differ and a repeated run does not."""

from __future__ import annotations

from collections.abc import Sequence

from moot.actors.models.simulated.draws import call_digest
from moot.protocols.messages import Decoding, Message


def step_seed(seed: int, messages: Sequence[Message], step_key: str, decoding: Decoding) -> int:
    """A number below 2**31, as every server takes it, by what is sent and by the step."""
    digest = call_digest(seed, messages, step_key, decoding.temperature == 0)
    return int.from_bytes(digest[:4], "little") >> 1
