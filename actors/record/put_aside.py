"""Debates that were put aside without a verdict: what a writer keeps in mind of them is bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_KEPT = 256


class PutAside:
    """Cases that nobody has debated any more, the last one last.

    The last ones stay in mind: rows of theirs may still be on their way, and come within seconds.

    Args:
        kept: how many do.

    Attributes:
        all_stay: whether all do: until it is known which of the debates that an earlier life had open still are.
    """

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._cases: dict[str, None] = {}
        self.all_stay = False

    def add(self, case_ids: Iterable[str]) -> None:
        """Their debates were put aside just now."""
        for case_id in case_ids:
            self._cases.pop(case_id, None)
            self._cases[case_id] = None

    def take_back(self, case_id: str) -> None:
        """A case is debated again."""
        self._cases.pop(case_id, None)

    def over(self) -> Iterator[str]:
        """Those that need not stay in mind any longer; each is told once."""
        while len(self._cases) > self._kept and not self.all_stay:
            oldest = next(iter(self._cases))
            del self._cases[oldest]
            yield oldest
