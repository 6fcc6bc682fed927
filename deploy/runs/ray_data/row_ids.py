"""Ids of rows without one: a content hash, and a number for each further copy."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

BatchKey = tuple[str, str, int]
"""Key of a batch within its execution: the execution, the Ray task, and the index in it. Ray retries a lost task under
the same id, so a retried batch has the same key."""

MOST_EXECUTIONS = 16
"""Maximum executions in memory (LRU): each takes memory by its rows. Only with more concurrent pipelines over one stage
are copies renumbered."""


class RowIds:
    """Numbers copies of a row, over all batches of an execution.

    Which copy gets which number depends on the order of batches, but copies are equal: an execution always uses the
    same set of ids, and so does the next one over the same rows.
    """

    def __init__(self) -> None:
        self._executions: OrderedDict[str, _ExecutionCopies] = OrderedDict()

    def assign(self, key: BatchKey, hashes: Sequence[str]) -> list[str]:
        """Assign an id to each row of a batch; the same ids when the batch is retried.

        >>> numbering = RowIds()
        >>> numbering.assign(("one", "task", 0), ["a", "b", "a"]), numbering.assign(("one", "task", 1), ["a"])
        (['a', 'b', 'a~1'], ['a~2'])
        >>> numbering.assign(("one", "task", 0), ["a", "b", "a"]), numbering.assign(("two", "task", 0), ["a"])
        (['a', 'b', 'a~1'], ['a'])
        """
        execution = self._executions.setdefault(key[0], _ExecutionCopies())
        self._executions.move_to_end(key[0])
        while len(self._executions) > MOST_EXECUTIONS:
            self._executions.popitem(last=False)
        following = execution.firsts(key, Counter(hashes))
        ids = []
        for each in hashes:
            ids.append(f"{each}~{following[each]}" if following[each] else each)
            following[each] += 1
        return ids


class _ExecutionCopies:
    """Copy counts of one execution."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._batches: dict[BatchKey, dict[str, int]] = {}

    def firsts(self, key: BatchKey, counts: Counter[str]) -> dict[str, int]:
        """Number of a batch's first copy by hash."""
        known = self._batches.setdefault(key, {})
        for each, count in counts.items():
            if each not in known:
                known[each] = self._seen[each]
                self._seen[each] += count
        return {each: known[each] for each in counts}
