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
        values: `(N,)`, values of all rows, concatenated.
        offsets: `(R + 1,)`, int64, non-decreasing from 0 to N; row i is `values[offsets[i]:offsets[i + 1]]`.

    Raises:
        ValueError: if an array is not one-dimensional or has another dtype, or the offsets do not fit the values.

    >>> replies = RaggedArray.from_lists([[-0.1, -0.5], [], [-2.0]])
    >>> len(replies), replies.lengths.tolist(), replies.row(2).tolist()
    (3, [2, 0, 1], [-2.0])
    """

    values: Floats
    offsets: Integers

    def __post_init__(self) -> None:
        """Validate the offsets."""
        if self.values.ndim != 1 or not np.issubdtype(self.values.dtype, np.floating):
            raise ValueError(f"values must be a flat array of floats, not {self.values.dtype} {self.values.shape}")
        if self.offsets.ndim != 1 or self.offsets.dtype != np.int64 or not len(self.offsets):
            raise ValueError(f"offsets must be R + 1 numbers of int64, not {self.offsets.dtype} {self.offsets.shape}")
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.values) or (np.diff(self.offsets) < 0).any():
            raise ValueError(f"offsets must rise from 0 to the number of values, {len(self.values)}")

    @staticmethod
    def from_lists(rows: Sequence[npt.ArrayLike]) -> "RaggedArray":
        """Ragged array of sequences of numbers; None becomes NaN.

        Raises:
            ValueError: if a row is not one-dimensional.
        """
        arrays = [np.asarray(row, np.float64) for row in rows]
        if any(array.ndim != 1 for array in arrays):
            raise ValueError("each row must be a flat sequence of numbers")
        offsets = _offsets(np.array([len(array) for array in arrays], np.int64))
        return RaggedArray(np.concatenate(arrays) if arrays else np.empty(0), offsets)

    @staticmethod
    def concatenate(parts: Sequence["RaggedArray"]) -> "RaggedArray":
        """Concatenation of ragged arrays: the rows of all parts, in order."""
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
        """Row i, counted from 0: a view, not a copy.

        Raises:
            IndexError: if there is no such row.
        """
        if not 0 <= i < len(self):
            raise IndexError(f"row {i} is out of range for {len(self)} rows")
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def take(self, rows: npt.ArrayLike) -> "RaggedArray":
        """Rows at the given indices, in that order; an index may be repeated.

        Raises:
            IndexError: if an index is negative or out of range.

        >>> RaggedArray.from_lists([[1.0], [2.0, 3.0]]).take([1, 1]).values.tolist()
        [2.0, 3.0, 2.0, 3.0]
        """
        indices = np.asarray(rows, np.int64)
        if ((indices < 0) | (indices >= len(self))).any():
            raise IndexError(f"a row is out of range for {len(self)} rows")
        return self._slices(self.offsets[:-1][indices], self.lengths[indices])

    def from_starts(self, starts: npt.ArrayLike) -> "RaggedArray":
        """Each row without its first `starts[i]` values; empty if it has no more than these.

        Args:
            starts: `(R,)`, whole numbers, at least 0.

        Raises:
            ValueError: if a start is negative, or the number of starts is not R.

        >>> RaggedArray.from_lists([[1.0, 2.0, 3.0], [4.0]]).from_starts([1, 2]).lengths.tolist()
        [2, 0]
        """
        skipped = np.asarray(starts, np.int64)
        if skipped.shape != (len(self),) or (skipped < 0).any():
            raise ValueError(f"starts must be {len(self)} numbers of at least 0, one for each row")
        skipped = np.minimum(skipped, self.lengths)
        return self._slices(self.offsets[:-1] + skipped, self.lengths - skipped)

    def positions(self) -> Integers:
        """Position of each value in its row, `(N,)`, from 0.

        >>> RaggedArray.from_lists([[0.5, 0.6], [], [0.7]]).positions().tolist()
        [0, 1, 0]
        """
        return np.arange(len(self.values)) - np.repeat(self.offsets[:-1], self.lengths)

    def _slices(self, starts: Integers, lengths: Integers) -> "RaggedArray":
        offsets = _offsets(lengths)
        where = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return RaggedArray(self.values[where], offsets)


def _offsets(lengths: Integers) -> Integers:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
