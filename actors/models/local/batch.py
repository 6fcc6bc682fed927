"""Generation batch: rows join between two steps and leave when they end (continuous batching)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import pad
from transformers import DynamicCache

from moot.actors.models.local.sequence import SequenceState
from moot.actors.models.local.weights import Weights

Tensor = Any


class Batch:
    """Generation batch: rows with their keys and values, left-padded to the longest.

    Between two steps `logits` are those of each row's next token.

    Attributes:
        rows: the sequences in it.
        logits: shape (B, V), float32; None while it is empty.

    Args:
        weights: the model.
    """

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self.clear()

    def clear(self) -> None:
        """Remove all rows."""
        self.rows: list[SequenceState] = []
        self.logits: Tensor = None
        self._mask: Tensor = None
        self._cache: Any = None

    def join(self, rows: Sequence[SequenceState]) -> None:
        """Read the prompts of new rows and add them; on failure the batch is unchanged."""
        longest = max(len(row.prompt) for row in rows)
        device = self._weights.device
        ids = torch.tensor([[0] * (longest - len(row.prompt)) + row.prompt for row in rows], device=device)
        lengths = torch.tensor([[len(row.prompt)] for row in rows], device=device)
        places = torch.arange(longest, device=device)[None, :] - (longest - lengths)
        mask = (places >= 0).long()
        cache = DynamicCache()
        logits = self._forward(ids, mask, places.clamp(min=0), cache)
        if self.rows:
            mask = _stacked(self._mask[:, None, :, None], mask[:, None, :, None])[:, 0, :, 0]
            logits = torch.cat([self.logits, logits])
            _take_in(self._cache, cache)
            cache = self._cache
        self._cache, self._mask, self.logits = cache, mask, logits
        self.rows = [*self.rows, *rows]

    def keep(self, places: Sequence[int]) -> None:
        """Keep only the rows at these positions."""
        if not places:
            self.clear()
            return
        self.rows = [self.rows[place] for place in places]
        index = torch.tensor(places, device=self._weights.device)
        self.logits, mask = self.logits[index], self._mask[index]
        unused = int(mask.any(0).long().argmax())
        self._mask = mask[:, unused:]
        for layer in filter(_is_filled, self._cache.layers):
            layer.keys, layer.values = layer.keys[index, :, unused:], layer.values[index, :, unused:]

    def advance(self, chosen: Tensor) -> None:
        """Read the tokens chosen for the rows, B ids, and compute the next logits."""
        self._mask = pad(self._mask, (0, 1), value=1)
        places = self._mask.sum(-1, keepdim=True) - 1
        self.logits = self._forward(chosen[:, None], self._mask, places, self._cache)

    def _forward(self, ids: Tensor, mask: Tensor, places: Tensor, cache: Any) -> Tensor:
        """Logits of the last token, shape (B, V), float32; the new keys and values are added to `cache`."""
        known = {"position_ids": places, "logits_to_keep": 1}
        some = {name: value for name, value in known.items() if name in self._weights.takes}
        output = self._weights.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True, **some)
        return output.logits[:, -1].float()


def _take_in(cache: Any, other: Any) -> None:
    """Append the keys and values of `other` to those of `cache`, layer by layer."""
    stacked = [
        (layer, _stacked(layer.keys, new.keys), _stacked(layer.values, new.values))
        for layer, new in zip(cache.layers, other.layers, strict=True)
        if _is_filled(layer)
    ]
    for layer, keys, values in stacked:
        layer.keys, layer.values = keys, values


def _is_filled(layer: Any) -> bool:
    return layer.keys is not None and layer.keys.numel() > 0


def _stacked(first: Tensor, second: Tensor) -> Tensor:
    """Two tensors of shape (B, H, T, D) as one, the shorter T padded on the left with zeros."""
    longest = max(first.shape[2], second.shape[2])
    return torch.cat([pad(part, (0, 0, longest - part.shape[2], 0)) for part in (first, second)])
