"""Encoder interface, and the one place where vectors become unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]
"""One vector per text, shape (n, dimension)."""


class Encoder(Protocol):
    """Interface of a text encoder: texts to unit vectors. One instance serves many debates at once.

    Attributes:
        name: identifies the encoder; embeddings are stored under it, and thresholds belong to it.
        dimension: length of a vector; None until the first vectors arrive.
    """

    name: str

    @property
    def dimension(self) -> int | None: ...

    async def encode(self, texts: Sequence[str]) -> Rows:
        """Encode texts: one unit vector per text, shape (n, dimension), float32. May be cancelled at any await.

        Raises:
            EncoderFailed: no vector for one of the texts.
        """
        ...

    async def check(self) -> None:
        """Raise a `UserError` if the encoder cannot be used; encodes one short text, which may be billed."""
        ...

    async def close(self) -> None:
        """Release connections and threads."""
        ...


def unit_rows(rows: npt.NDArray[np.floating]) -> Rows:
    """L2 normalisation: every row scaled to length 1.

    Args:
        rows: shape (n, dimension).

    Raises:
        ValueError: a row has a number that is not finite, or only zeros: it has no direction.
    """
    with np.errstate(over="ignore"):  # a length beyond what a float holds is not finite, and refused as such
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0.0).all()):
        raise ValueError("a vector is zero or not finite")
    unit: Rows = (rows / lengths).astype(np.float32)
    return unit
