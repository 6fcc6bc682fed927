"""Ids of rows that bring none: a hash of the content, and a number for each further copy of it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

BatchKey = tuple[str, str, int]
"""Names one batch for as long as its pipeline goes on: the execution, the Ray task, and the place in it. Ray calls a
task that was lost again under the same id, so a batch that comes again has the key that it had."""

MOST_EXECUTIONS = 16
"""Remembered, those that had a batch last: each takes memory by its rows. Only where more pipelines than this go on at
once over one stage are the copies of one numbered anew."""


class RowIds:
    """Tells copies of a row apart, over all batches of an execution.

    Which copy gets which number hangs on the order in which batches come, but copies are alike: an execution always
    uses the same set of ids, and so does the next one over the same rows.
    """

    def __init__(self) -> None:
        self._executions: OrderedDict[str, _ExecutionCopies] = OrderedDict()

    def assign(self, key: BatchKey, hashes: Sequence[str]) -> list[str]:
        """An id for each row of a batch; the same ones when the batch comes again.

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
    """The copies of one execution."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._batches: dict[BatchKey, dict[str, int]] = {}

    def firsts(self, key: BatchKey, counts: Counter[str]) -> dict[str, int]:
        """By hash the number of the first copy in a batch."""
        known = self._batches.setdefault(key, {})
        for each, count in counts.items():
            if each not in known:
                known[each] = self._seen[each]
                self._seen[each] += count
        return {each: known[each] for each in counts}
