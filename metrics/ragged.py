"""Ragged array: rows of different lengths in one flat array, such as the token values of many replies."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RaggedArray:
    """Ragged array of R rows of floating-point numbers, concatenated in a flat array.

    Attributes:
        values: `(N,)`, the rows' values, joined; N is the sum of the lengths.
        offsets: `(R + 1,)`; row i is `values[offsets[i]:offsets[i + 1]]`. Begins with 0, ends with N, never falls.

    Raises:
        ValueError: when `offsets` does not cut `values` into rows, or one of them is not flat or of another kind.

    >>> replies = RaggedArray.from_lists([[-0.1, -0.5], [], [-2.0]])
    >>> len(replies), replies.lengths.tolist(), replies.row(2).tolist()
    (3, [2, 0, 1], [-2.0])
    """

    values: Floats
    offsets: Integers

    def __post_init__(self) -> None:
        """Check that the offsets fit the values."""
        if self.values.ndim != 1 or not np.issubdtype(self.values.dtype, np.floating):
            raise ValueError(f"values are a flat array of floats, not {self.values.dtype} {self.values.shape}")
        if self.offsets.ndim != 1 or self.offsets.dtype != np.int64 or not len(self.offsets):
            raise ValueError(f"offsets are R + 1 numbers of int64, not {self.offsets.dtype} {self.offsets.shape}")
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.values) or (np.diff(self.offsets) < 0).any():
            raise ValueError(f"offsets rise from 0 to the number of values, {len(self.values)}")

    @staticmethod
    def from_lists(rows: Sequence[npt.ArrayLike]) -> "RaggedArray":
        """Ragged array from a list of flat sequences of numbers; None becomes NaN.

        Raises:
            ValueError: for a row that is not flat.
        """
        arrays = [np.asarray(row, np.float64) for row in rows]
        if any(array.ndim != 1 for array in arrays):
            raise ValueError("each row is a flat sequence of numbers")
        offsets = _offsets(np.array([len(array) for array in arrays], np.int64))
        return RaggedArray(np.concatenate(arrays) if arrays else np.empty(0), offsets)

    @staticmethod
    def concatenate(parts: Sequence["RaggedArray"]) -> "RaggedArray":
        """Concatenation of the rows of all parts, in order."""
        if not parts:
            return RaggedArray.from_lists([])
        lengths = np.concatenate([part.lengths for part in parts])
        return RaggedArray(np.concatenate([part.values for part in parts]), _offsets(lengths))

    @property
    def lengths(self) -> Integers:
        """Row lengths, `(R,)`."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    def row(self, i: int) -> Floats:
        """Values of row i, from 0: a view, not a copy.

        Raises:
            IndexError: when there is no such row.
        """
        if not 0 <= i < len(self):
            raise IndexError(f"row {i} of {len(self)}")
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def take(self, rows: npt.ArrayLike) -> "RaggedArray":
        """Rows at these indices, from 0, in this order; an index may be repeated.

        Raises:
            IndexError: when there is no such row.

        >>> RaggedArray.from_lists([[1.0], [2.0, 3.0]]).take([1, 1]).values.tolist()
        [2.0, 3.0, 2.0, 3.0]
        """
        wanted = np.asarray(rows, np.int64)
        if ((wanted < 0) | (wanted >= len(self))).any():
            raise IndexError(f"a row outside 0 to {len(self) - 1}")
        return self._cut(self.offsets[:-1][wanted], self.lengths[wanted])

    def from_starts(self, starts: npt.ArrayLike) -> "RaggedArray":
        """Each row without its first `starts[i]` values; empty where it has no more than these.

        Args:
            starts: `(R,)`, whole numbers of at least 0.

        Raises:
            ValueError: for a negative start, or another number of starts than of rows.

        >>> RaggedArray.from_lists([[1.0, 2.0, 3.0], [4.0]]).from_starts([1, 2]).lengths.tolist()
        [2, 0]
        """
        skipped = np.asarray(starts, np.int64)
        if skipped.shape != (len(self),) or (skipped < 0).any():
            raise ValueError(f"starts are {len(self)} numbers of at least 0, one for each row")
        skipped = np.minimum(skipped, self.lengths)
        return self._cut(self.offsets[:-1] + skipped, self.lengths - skipped)

    def positions(self) -> Integers:
        """Position of each value in its row, `(N,)`, from 0.

        >>> RaggedArray.from_lists([[0.5, 0.6], [], [0.7]]).positions().tolist()
        [0, 1, 0]
        """
        return np.arange(len(self.values)) - np.repeat(self.offsets[:-1], self.lengths)

    def _cut(self, starts: Integers, lengths: Integers) -> "RaggedArray":
        offsets = _offsets(lengths)
        where = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return RaggedArray(self.values[where], offsets)


def _offsets(lengths: Integers) -> Integers:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
