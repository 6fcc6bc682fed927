"""What a panel found of one reply, as its verdict says it: means, medians, and who did not judge and why."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Any

from moot.protocols.rubrics.panel import Assessment


def abstentions(found: Assessment) -> dict[str, int]:
    """How many marks are missing, by the kind of failure, most first."""
    kinds = Counter(mark.missing.partition(":")[0] for mark in found.marks if mark.missing)
    return dict(kinds.most_common())


def panel_result(found: Assessment) -> dict[str, Any]:
    """The panel's verdict as plain data; a missing mark is in no figure but the counts.

    `flag` is the share of the marks that flag the reply, `quality` their mean Q.
    """
    there = [mark.scores for mark in found.marks if mark.scores is not None]
    return {
        "rubric": found.rubric,
        "dimensions": {
            name: {"mean": mean, "median": median(scores[name] for scores in there) if there else None}
            for name, mean in found.scores.items()
        },
        "quality": found.quality,
        "flag": found.flag,
        "flagged": found.flagged,
        "judgments": len(there),
        "missing": found.missing,
        "abstentions": abstentions(found),
    }


def in_words(counts: dict[str, int]) -> str:
    """Counts by kind in words.

    >>> in_words({"refused": 2, "timeout": 1})
    'refused 2, timeout 1'
    """
    return ", ".join(f"{kind} {count}" for kind, count in counts.items())
