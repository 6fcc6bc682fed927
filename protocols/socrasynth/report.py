"""A round in words, for the person who moderates, and why the rounds ended."""

from __future__ import annotations

from moot.protocols.socrasynth.quality import Quality
from moot.protocols.socrasynth.sides import SIDES


def stop_words(reason: str, *, patience: int, min_delta: float, max_rounds: int) -> str:
    """Why the rounds ended, or will; an unknown reason as it is.

    >>> stop_words("plateau", patience=2, min_delta=0.01, max_rounds=5)
    'the quality of the arguments rose by less than 0.01 in 2 rounds'
    """
    return {
        "agreed": "both sides hold the same answer",
        "plateau": f"the quality of the arguments rose by less than {min_delta:g} in {patience} rounds",
        "schedule-ended": "the schedule of contentiousness came to its end",
        "both-done": "both sides said that they had no more to say",
        "max_rounds": f"no more than {max_rounds} were allowed",
        "ended-by-person": "a person ended them",
        "declined": "a side would not argue on",
        "turn-failed": "no usable reply came from a side",
    }.get(reason, reason)


def round_report(quality: Quality, kappa: float, due: str | None, following: float | None) -> str:
    """How a round was scored, and what comes next.

    Args:
        kappa: contentiousness of the round.
        due: in words, why no further round follows; None when one does.
        following: contentiousness of the next round; None when the schedule has none.
    """
    scores = quality.scores()
    marks = ", ".join(f"{side.letter} {_out_of_ten(scores[side.name])}" for side in SIDES)
    scored = f"Contentiousness {kappa:.2f}. Quality of the arguments (CRIT, 0 to 10): {marks}."
    if due is not None:
        return f"{scored}\nNext: the closing statements, for {due}."
    return f"{scored}\nNext: another round at contentiousness {following:.2f}."


def _out_of_ten(score: float | None) -> str:
    return "unknown" if score is None else f"{10.0 * score:.1f}"
