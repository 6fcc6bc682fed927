"""Common part of judges' replies under any rubric."""

from __future__ import annotations

from typing import ClassVar

from moot.protocols.replies import Reply

FLAG, ISSUES, REASONING = "critical_flag", "critical_issues_description", "reasoning"
"""The keys of a judge's reply that are no dimensions."""


class ScoreSheet(Reply):
    """Base of the replies of judges; the fields are those of a rubric."""

    made_by: ClassVar[str] = ""

    def scores(self) -> dict[str, int]:
        """The score of each dimension, in the rubric's order."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in (FLAG, ISSUES, REASONING)}

    @property
    def flagged(self) -> bool | None:
        """Whether the judge found a severe failure; None under a rubric without a flag."""
        flag: int | None = getattr(self, FLAG, None)
        return None if flag is None else bool(flag)
