"""Seeded randomness: generators and numbers that depend on hashed parts, not on process, clock or order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import blake2b

from moot.protocols.messages import Message


def seeded(seed: int, purpose: str) -> random.Random:
    """Random generator for `purpose` in the debate with `seed`: equal on every machine and in any process.

    >>> seeded(7, "audit").random() == seeded(7, "audit").random()
    True
    """
    digest = blake2b(f"{seed}/{purpose}".encode(), digest_size=16).digest()
    return random.Random(int.from_bytes(digest, "big"))


def stable_digest(*parts: str | int | bytes) -> bytes:
    """16 bytes over the parts and their boundaries; equal on every platform and in every process."""
    hasher = blake2b(digest_size=16)
    for part in parts:
        body = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        hasher.update(len(body).to_bytes(8, "little"))
        hasher.update(body)
    return hasher.digest()


def stable_uniform(*parts: str | int | bytes) -> float:
    """Number in [0, 1) that depends on the parts alone.

    >>> stable_uniform(7, "jitter", "case/0/opening") == stable_uniform(7, "jitter", "case/0/opening")
    True
    """
    return (int.from_bytes(stable_digest(*parts)[:8], "little") >> 11) * 2.0**-53


def call_digest(seed: int, messages: Sequence[Message], step_key: str, greedy: bool) -> bytes:
    """16 bytes over everything that a simulated reply may depend on: any change of the history changes them."""
    parts: list[str | int | bytes] = [seed, step_key, int(greedy), len(messages)]
    for message in messages:
        parts += (message.role, message.content, len(message.images))
        for image in message.images:
            parts += (image.media_type, image.data)
    return stable_digest(*parts)
