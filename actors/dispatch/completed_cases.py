"""Completed cases: index of the debates with a verdict on record when a run starts."""

from __future__ import annotations

from collections.abc import Mapping

from moot.actors.debate.moderator import Assignment
from moot.actors.record.schema import CaseKey
from moot.protocols.case import LabelledCase
from moot.protocols.errors import RunMismatch


class CompletedCases:
    """Index of the debates that the record contains when a run starts.

    Args:
        finished: whether each debate with a verdict failed, by (case id, attempt).
        content: content hash by case id.
        retry_failed: whether failed cases get a new attempt.
    """

    def __init__(
        self, finished: Mapping[CaseKey, bool], content: Mapping[str, str], *, retry_failed: bool = False
    ) -> None:
        self._content = dict(content)
        self._verdicts = len(finished)
        self._latest: dict[str, tuple[int, bool]] = {}
        for (case_id, attempt), failed in finished.items():
            if attempt >= self._latest.get(case_id, (-1, False))[0]:
                self._latest[case_id] = (attempt, failed)
        self._retry_failed = retry_failed

    def mark_started(self, case_id: str, content: str) -> None:
        """Note that a debate has started, so that the record may contain a part of it."""
        self._content[case_id] = content

    def mark_completed(self, case_id: str, attempt: int, *, failed: bool) -> None:
        """Note that a debate has its verdict on record."""
        self._latest[case_id] = (attempt, failed)

    @property
    def known(self) -> int:
        """Number of cases in the record."""
        return len(self._content)

    @property
    def superseded(self) -> int:
        """Number of superseded verdicts: of attempts with a later or a pending one."""
        return self._verdicts - sum(not (failed and self._retry_failed) for _, failed in self._latest.values())

    def is_completed(self, case_id: str) -> bool:
        """Whether a debate of this case has a verdict on record."""
        return case_id in self._latest

    def assignment(self, labelled: LabelledCase) -> Assignment | None:
        """Debate to run for a case; None when it is done.

        Raises:
            RunMismatch: the case's content differs from the record's.
        """
        case = labelled.case
        known = self._content.get(case.id)
        if known is not None and known != case.content_hash():
            raise RunMismatch(
                f"case {case.id!r} is not what it was when this run began: its content has changed, or two cases have "
                "that id; take another --out (in a pipeline `out`), or another id"
            )
        attempt, failed = self._latest.get(case.id, (-1, False))
        if attempt >= 0 and not (failed and self._retry_failed):
            return None
        return Assignment(case, max(attempt + 1, 0), replay=known is not None, invalid=labelled.invalid)
