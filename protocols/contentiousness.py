"""Contentiousness: how strongly a debater disagrees with the OTHER side, from 0 (full agreement) to 1.

The tone, emphasis and language of a level follow SocraSynth, table 6.1. That table is written for the opponent of one
subject, so that its lowest level praises the subject; here every level is relative to the debater's own position and to
the other side's, whatever these are. At 0.7 and above no debater is asked for arguments against its own position; at
0.5, where a compromise is sought, for the weaknesses of both.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

START = 0.9
"""Level of an opening, in every schedule of the sources."""

FLOOR = 0.1
"""Lowest level of the sources' schedules."""


@dataclass(frozen=True, slots=True)
class Style:
    """Style of a level; each field is a phrase that completes "Your tone: ...".

    Attributes:
        tone: towards the other side.
        emphasis: what to dwell on.
        language: choice of words.
    """

    tone: str
    emphasis: str
    language: str


STYLES: dict[float, Style] = {
    0.0: Style(
        "fully agreeable; you meet the other side with warmth",
        "what the other side gets right, and what both of you can build on together",
        "appreciative; call its best points strong and adopt them",
    ),
    0.3: Style(
        "more agreeable than confrontational, with reservations",
        "common ground first, then the few conditions under which you could join the other side",
        "constructive and careful; offer amendments instead of objections",
    ),
    0.5: Style(
        "balanced and matter-of-fact",
        "strengths and weaknesses of both stands with equal weight, in search of a middle way",
        "neutral; weigh and compare, praise and blame nobody",
    ),
    0.7: Style(
        "confrontational, yet open to what the other side has in its favour",
        "the gaps and costs of the other side's stand, with its merits granted in passing",
        "firm but measured; speak of serious doubts and of what needs closer scrutiny",
    ),
    0.9: Style(
        "as confrontational as the facts allow; you attack every weak point of the other side",
        "the errors, risks and unproven claims in the other side's stand",
        "definitive and uncompromising; say plainly that its claims do not hold",
    ),
}
"""Styles at the levels that the source describes."""


@dataclass(frozen=True, slots=True)
class ContentiousnessLevel:
    """Level with its style, for prompts.

    Attributes:
        level: the contentiousness, in [0, 1].
        style: its style in words.
    """

    level: float
    style: Style

    def slots(self) -> dict[str, object]:
        """Slot `contentiousness` of a debater's prompt: level with two digits, tone, emphasis, language."""
        return {
            "level": f"{self.level:.2f}",
            "tone": self.style.tone,
            "emphasis": self.style.emphasis,
            "language": self.style.language,
        }


def contentiousness_level(level: float) -> ContentiousnessLevel:
    """Style of any level; between two described ones their phrases are mixed, the nearer one first.

    Below the lowest and above the highest described level, the style is that of the nearest one.

    Raises:
        ValueError: the level is not in [0, 1].

    >>> contentiousness_level(0.5).style.tone
    'balanced and matter-of-fact'
    >>> contentiousness_level(0.45).style.tone
    'balanced and matter-of-fact; and a little: more agreeable than confrontational, with reservations'
    """
    if not 0.0 <= level <= 1.0:
        raise ValueError(f"contentiousness lies between 0 and 1, not {level!r}")
    levels = sorted(STYLES)
    above = bisect_left(levels, level)
    if above == len(levels) or levels[above] == level:
        return ContentiousnessLevel(level, STYLES[levels[min(above, len(levels) - 1)]])
    low, high = levels[above - 1], levels[above]
    share = (level - low) / (high - low)
    nearer, further = (STYLES[high], STYLES[low]) if share >= 0.5 else (STYLES[low], STYLES[high])
    joined = "; just as much: " if 0.4 <= share <= 0.6 else "; and a little: "
    mixed = [
        f"{one}{joined}{other}"
        for one, other in (
            (nearer.tone, further.tone),
            (nearer.emphasis, further.emphasis),
            (nearer.language, further.language),
        )
    ]
    return ContentiousnessLevel(level, Style(*mixed))
