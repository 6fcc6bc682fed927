"""Ids of rows without an id: a content hash, with a number for each further copy."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

BatchKey = tuple[str, str, int]
"""Key of a batch: the execution, the Ray task, and the index in the task. Ray retries a lost task with the same id, so
a retried batch has the same key."""

MAX_EXECUTIONS = 16
"""Maximum number of executions in memory (LRU), because the memory of each grows with its rows. Copies are renumbered
only if more pipelines run concurrently over one stage."""


class RowIds:
    """Assigns ids to rows, with numbers for copies of a row over all batches of an execution.

    Which copy gets which number depends on the order of batches, but copies are equal: every execution over the same
    rows uses the same set of ids.
    """

    def __init__(self) -> None:
        self._executions: OrderedDict[str, _ExecutionCopies] = OrderedDict()

    def assign(self, key: BatchKey, hashes: Sequence[str]) -> list[str]:
        """Ids of the rows of a batch; the same ones if the batch is retried.

        >>> numbering = RowIds()
        >>> numbering.assign(("one", "task", 0), ["a", "b", "a"]), numbering.assign(("one", "task", 1), ["a"])
        (['a', 'b', 'a~1'], ['a~2'])
        >>> numbering.assign(("one", "task", 0), ["a", "b", "a"]), numbering.assign(("two", "task", 0), ["a"])
        (['a', 'b', 'a~1'], ['a'])
        """
        execution = self._executions.setdefault(key[0], _ExecutionCopies())
        self._executions.move_to_end(key[0])
        while len(self._executions) > MAX_EXECUTIONS:
            self._executions.popitem(last=False)
        next_numbers = execution.first_numbers(key, Counter(hashes))
        ids = []
        for each in hashes:
            ids.append(f"{each}~{next_numbers[each]}" if next_numbers[each] else each)
            next_numbers[each] += 1
        return ids


class _ExecutionCopies:
    """Counts of copies in one execution."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._batches: dict[BatchKey, dict[str, int]] = {}

    def first_numbers(self, key: BatchKey, counts: Counter[str]) -> dict[str, int]:
        """Number of a batch's first copy, by hash."""
        known = self._batches.setdefault(key, {})
        for each, count in counts.items():
            if each not in known:
                known[each] = self._seen[each]
                self._seen[each] += count
        return {each: known[each] for each in counts}
