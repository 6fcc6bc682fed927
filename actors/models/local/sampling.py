"""Token sampler: draws the next tokens of a batch from its logits, and computes their log-probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

_COLDEST = 1e-5
"""Temperatures below this count as 0: the most likely token."""

_FIRST_WIDTH = 256

Tensor = Any


def uniforms(digest: bytes, count: int) -> npt.NDArray[np.float64]:
    """Deterministic uniform variates: `count` numbers in (0, 1) from the digest, one for each token of a reply."""
    raw = np.random.Philox(key=int.from_bytes(digest, "little")).random_raw(count)
    drawn: npt.NDArray[np.float64] = ((raw >> np.uint64(32)).astype(np.float64) + 0.5) * 2.0**-32
    return drawn


def next_tokens(
    logits: Tensor, temperature: Sequence[float], top_p: Sequence[float], uniform: Sequence[float]
) -> Tensor:
    """Samples one token id for each row, with temperature and nucleus (top-p) sampling.

    The number `uniform` is looked up in the cumulative distribution, in the order of the ids, so that rounding errors
    move a draw only where they exceed its distance to the next token.

    Args:
        logits: shape (B, V), float32.
        temperature: B temperatures; 0 takes the likeliest token.
        top_p: B shares in (0, 1]; only the most likely tokens that together reach that share can be drawn.
        uniform: B numbers in (0, 1).

    Returns:
        B ids, on the device of the logits.
    """
    chosen = logits.argmax(-1)
    drawn = [row for row, heat in enumerate(temperature) if heat >= _COLDEST]
    if not drawn:
        return chosen
    rows = torch.tensor(drawn, device=logits.device)
    heat, share, number = (
        torch.tensor([values[row] for row in drawn], device=logits.device, dtype=dtype)
        for values, dtype in ((temperature, torch.float32), (top_p, torch.float32), (uniform, torch.float64))
    )
    some = logits[rows]
    probability = ((some - some.amax(-1, keepdim=True)) / heat[:, None]).softmax(-1)
    kept = probability.where(probability >= _nucleus_floor(probability, share)[:, None], 0.0)
    cumulative = kept.double().cumsum(-1)
    place = torch.searchsorted(cumulative, (number * cumulative[:, -1])[:, None], right=True)
    chosen[rows] = place[:, 0].clamp(max=logits.shape[-1] - 1)
    return chosen


def _nucleus_floor(probability: Tensor, share: Tensor) -> Tensor:
    """Probability of each row's least likely token within its share; 0 for a share of 1."""
    width, whole = _FIRST_WIDTH, share >= 1.0
    while True:
        # Sorting a whole vocabulary is slow on a CPU, and the share is nearly always reached early.
        best = probability.topk(min(width, probability.shape[-1]), dim=-1).values
        inside = best.cumsum(-1) - best < share[:, None]
        if width >= probability.shape[-1] or not (inside[:, -1] & ~whole).any():
            return best.where(inside, 2.0).amin(-1).where(~whole, 0.0)
        width *= 16


def log_probabilities(logits: Tensor, chosen: Tensor, alternatives: int) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities under the model's own distribution, before temperature and `top_p`.

    Args:
        logits: shape (B, V), float32.
        chosen: B ids.
        alternatives: K, at most V.

    Returns:
        Log-probabilities of the chosen tokens, shape (B,); ids of the K most likely tokens, best first, shape (B, K);
        and their log-probabilities, shape (B, K).
    """
    total = logits.logsumexp(-1, keepdim=True)
    best = logits.topk(alternatives, dim=-1)
    return (logits.gather(-1, chosen[:, None]) - total)[:, 0], best.indices, best.values - total
