"""What a panel found of one reply, as its verdict says it: means, medians, spread, and who did not judge and why."""

from __future__ import annotations

from typing import Any

from moot.protocols.rubrics.assessed import AssessmentData


def panel_result(found: AssessmentData) -> dict[str, Any]:
    """The panel's verdict as plain data; a missing mark is in no figure but the counts.

    `flag` is the share of the marks that flag the reply, `quality` their mean Q. `spread` is a dimension's highest
    less its lowest score; None with fewer than two marks.
    """
    medians, marks = found.medians, found.marks
    given = {name: [scores[name] for scores in marks if name in scores] for name in found.scores}
    spread = {name: max(scores) - min(scores) if len(scores) > 1 else None for name, scores in given.items()}
    return {
        "rubric": found.rubric,
        "dimensions": {
            name: {"mean": mean, "median": medians[name], "spread": spread[name]} for name, mean in found.scores.items()
        },
        "quality": found.quality,
        "flag": found.flag,
        "flagged": found.flagged,
        "judgments": len(found.marks),
        "missing": found.missing,
        "abstentions": found.abstentions,
    }


def in_words(counts: dict[str, int]) -> str:
    """Counts by kind in words.

    >>> in_words({"refused": 2, "timeout": 1})
    'refused 2, timeout 1'
    """
    return ", ".join(f"{kind} {count}" for kind, count in counts.items())
