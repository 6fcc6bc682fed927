"""The register of a simulated reasoning: how a level of contentiousness makes an agent speak.

The levels and what they sound like follow table 6.1 of the SocraSynth chapter, in words of our own. Contentiousness is
disagreement with the opponent, never with one's own answer: a high level runs the other side down, not one's own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Register:
    """How a reasoning begins and ends. All registers have equally many of both, so that a draw picks the same place.

    Attributes:
        openers: words before what is cited.
        closers: sentences at the end; `{}` is the answer.
    """

    openers: tuple[str, str, str, str]
    closers: tuple[str, str, str, str]


PLAIN = Register(
    ("The passage says that", "According to the text,", "The decisive point is this:", "It is stated that"),
    (
        "Hence the answer is {}.",
        "That speaks for {}.",
        "So {} follows.",
        "This makes {} the better answer.",
    ),
)
"""Without a level of contentiousness."""

REGISTERS: dict[float, Register] = {
    0.9: Register(
        (
            "The other side is flatly wrong:",
            "That view must not be allowed to stand:",
            "I reject this outright, for",
            "There is no excuse for overlooking it:",
        ),
        (
            "Any answer but {} is unacceptable.",
            "Nothing except {} can be defended.",
            "Whoever denies {} ignores the evidence.",
            "The case against {} collapses.",
        ),
    ),
    0.7: Register(
        (
            "There is something in it, yet serious doubts remain:",
            "The other view needs far more scrutiny:",
            "I grant a little and dispute the rest:",
            "That argument has a gap:",
        ),
        (
            "The doubts weigh for {}.",
            "I still maintain {}.",
            "For all its merits the other view fails, and {} holds.",
            "I must insist on {}.",
        ),
    ),
    0.5: Register(
        (
            "Both sides deserve to be weighed:",
            "There is something to be said either way:",
            "Considered with care, the text says that",
            "To be fair to both,",
        ),
        (
            "On balance it is {}.",
            "Weighed evenly, {} comes out ahead.",
            "A fair reading gives {}.",
            "Between the two, {} is nearer.",
        ),
    ),
    0.3: Register(
        (
            "I can go along with much of this, with one reservation:",
            "The other view helps, and I would only add that",
            "We are close to each other:",
            "With a little caution one may say that",
        ),
        (
            "I lean towards {} and remain open.",
            "Let us look at {} together once more.",
            "I would suggest {}, if nobody objects.",
            "There is good reason to go with {}.",
        ),
    ),
    0.0: Register(
        (
            "I gladly agree, and the text bears us out:",
            "What a helpful point, for indeed",
            "We are of one mind here:",
            "Together we see that",
        ),
        (
            "Let us all settle on {}.",
            "I am happy to support {}.",
            "Together we arrive at {}.",
            "We can warmly embrace {}.",
        ),
    ),
}
"""By level, in [0, 1]."""


def register_of(level: float) -> Register:
    """The register of the level in `REGISTERS` that is nearest; of two equally near ones the higher."""
    return REGISTERS[min(REGISTERS, key=lambda known: abs(known - level))]
