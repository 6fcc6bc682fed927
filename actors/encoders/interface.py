"""Encoder interface, and the one place where vectors become unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]
"""One row per text, shape (n, dimension)."""


class Encoder(Protocol):
    """Interface of a text encoder: texts to unit vectors. One instance serves many debates at once.

    Attributes:
        name: identifies the encoder; embeddings are stored under it, and thresholds depend on it.
        dimension: length of a vector; None until the first vectors arrive.
    """

    name: str

    @property
    def dimension(self) -> int | None: ...

    async def encode(self, texts: Sequence[str]) -> Rows:
        """Encode texts: one unit vector per text, shape (n, dimension), float32. May be cancelled at any await.

        Raises:
            EncoderFailed: a text could not be encoded.
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
        ValueError: a row has only zeros or a number that is not finite, so that it has no direction.
    """
    with np.errstate(over="ignore"):  # an overflowing length is infinite, and refused below
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0.0).all()):
        raise ValueError("a vector is zero or not finite")
    unit: Rows = (rows / lengths).astype(np.float32)
    return unit
