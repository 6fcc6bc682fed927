"""Ids of rows that bring none: a hash of the content, and a number for each further copy of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

BatchKey = tuple[str, str, int]
"""Names one batch for as long as its pipeline goes on: the execution, the Ray task, and the place in it. Ray calls a
task that was lost again under the same id, so a batch that comes again has the key that it had."""


class Numbering:
    """Tells copies of a row apart, over all batches of an execution.

    Which copy gets which number hangs on the order in which batches come, but copies are alike: an execution always
    uses the same set of ids, and so does the next one over the same rows.
    """

    def __init__(self) -> None:
        self._executions: dict[str, dict[str, list[tuple[BatchKey, int, int]]]] = {}

    def ids(self, key: BatchKey, hashes: Sequence[str]) -> list[str]:
        """An id for each row of a batch; the same ones when the batch comes again.

        >>> numbering = Numbering()
        >>> numbering.ids(("one", "task", 0), ["a", "b", "a"]), numbering.ids(("one", "task", 1), ["a"])
        (['a', 'b', 'a~1'], ['a~2'])
        >>> numbering.ids(("one", "task", 0), ["a", "b", "a"]), numbering.ids(("two", "task", 0), ["a"])
        (['a', 'b', 'a~1'], ['a'])
        """
        known = self._executions.setdefault(key[0], {})
        following = {
            each: self._first(known.setdefault(each, []), key, count) for each, count in Counter(hashes).items()
        }
        ids = []
        for each in hashes:
            ids.append(f"{each}~{following[each]}" if following[each] else each)
            following[each] += 1
        return ids

    @staticmethod
    def _first(batches: list[tuple[BatchKey, int, int]], key: BatchKey, count: int) -> int:
        """The number of the first copy in a batch."""
        for batch, first, _ in batches:
            if batch == key:
                return first
        first = sum(batches[-1][1:]) if batches else 0
        batches.append((key, first, count))
        return first
