"""A round in words, for the person who moderates."""

from __future__ import annotations

from collections.abc import Sequence

from moot.protocols.socrasynth.quality import Quality
from moot.protocols.socrasynth.sides import SIDES, Said

_WHY = {
    "declined": "a side would not argue on",
    "turn-failed": "no usable reply came from a side",
    "both-done": "both sides have said all that they have to say",
    "max_rounds": "that was the last round allowed",
    "plateau": "the quality of the arguments no longer rises",
    "schedule-ended": "the schedule of contentiousness has ended",
}


def round_report(said: Sequence[Said], quality: Quality, kappa: float, due: str | None, following: float | None) -> str:
    """What was said, how it was scored, and what comes next.

    Args:
        said: in the round.
        kappa: contentiousness of the round.
        due: why no further round follows; None when one does.
        following: contentiousness of the next round; None when the schedule has none.
    """
    scores = quality.scores()
    marks = ", ".join(f"{side.letter} {_out_of_ten(scores[side.name])}" for side in SIDES)
    lines = [f"Contentiousness {kappa:.2f}. Quality of the arguments (CRIT, 0 to 10): {marks}."]
    lines += [f"{one.side.letter} ({one.side.stance}):\n{one.text()}" for one in said]
    if due is not None:
        lines.append(f"Next: the closing statements, for {_WHY[due]}.")
    else:
        lines.append(f"Next: another round at contentiousness {following:.2f}.")
    return "\n\n".join(lines)


def _out_of_ten(score: float | None) -> str:
    return "unknown" if score is None else f"{10.0 * score:.1f}"
