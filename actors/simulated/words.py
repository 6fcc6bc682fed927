"""Texts of simulated replies: reasonings that cite the passage, in a register, and paraphrases.

The registers and their tone follow table 6.1 of the SocraSynth chapter, in our own wording. Contentiousness is
disagreement with the opponent, never with one's own answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, cycle, islice

from moot.actors.simulated.turn import DraftSignals, SimulatedTurn
from moot.protocols.seeds import stable_uniform

_MATERIAL_CHARACTERS = 20_000
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class Register:
    """Register of a reasoning; all registers have equal numbers of openings and of endings, so that a draw indexes
    each.

    Attributes:
        openers: words before the citation.
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
"""Register without a level of contentiousness."""

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
"""Registers by level, in [0, 1]."""


def register_of(level: float) -> Register:
    """Register of the nearest level in `REGISTERS`; the higher of two equally near ones."""
    return REGISTERS[min(REGISTERS, key=lambda known: abs(known - level))]


_OTHER_WORDS = {
    "because": "since",
    "however": "yet",
    "although": "though",
    "while": "whereas",
    "also": "in addition",
    "but": "yet",
    "usually": "as a rule",
    "often": "frequently",
    "many": "numerous",
    "large": "big",
    "begin": "start",
    "begins": "starts",
    "began": "started",
    "use": "employ",
    "uses": "employs",
    "called": "named",
    "located": "situated",
    "such as": "for instance",
}
_SWAPS = re.compile(rf"\b({'|'.join(_OTHER_WORDS)})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReasoningTrace:
    """Drawn reasoning, not yet rendered to text.

    Attributes:
        opener, closer: words before and after the citation.
        sentences: material for the citation, which begins at sentence `start`, counted from 0.
    """

    opener: list[str]
    sentences: list[str]
    start: int
    closer: list[str]

    def written(self, words: int, claim: str = "") -> str:
        """Renders the reasoning in about `words` words.

        Args:
            claim: a sentence inserted before the closer. It replaces other words, but is never truncated.
        """
        claimed = claim.split()
        room = words - len(claimed)
        if room <= 0 and claimed:
            return claim
        around = cycle([*self.sentences[self.start :], *self.sentences[: self.start]])
        printable = ([word for word in sentence.split() if word.isprintable()] or ["nothing."] for sentence in around)
        cited = list(islice(chain.from_iterable(printable), max(0, room - len(self.opener) - len(self.closer))))
        if cited and cited[-1][-1] not in ".!?":
            cited[-1] += "."
        pieces = [*self.opener, *cited, *self.closer][-room:]
        end = max(0, len(pieces) - len(self.closer))
        return " ".join([*pieces[:end], *claimed, *pieces[end:]])


def draw_reasoning(turn: SimulatedTurn, answer: str) -> ReasoningTrace:
    """Draws a reasoning that cites the passage, or the question without one, in the register of the turn.

    Agents with the same answer mostly cite the same sentence, so that agreement shows in the text too.
    """
    material = (turn.prompt.passage or turn.prompt.question)[:_MATERIAL_CHARACTERS]
    sentences = _SENTENCE_END.split(material.strip())
    place = stable_uniform("place", turn.prompt.question, answer)
    if turn.random.random() < 0.2:
        place = turn.random.random()
    level = turn.prompt.contentiousness
    plain = level is None or turn.settings.contentiousness_effect == 0.0
    register = PLAIN if plain else register_of(level or 0.0)
    opener, closer = turn.pick(register.openers).split(), turn.pick(register.closers).format(answer).split()
    return ReasoningTrace(opener, sentences, int(place * len(sentences)), closer)


def paraphrase(turn: SimulatedTurn) -> DraftSignals:
    """Paraphrases every piece of evidence; numbers, names and negations are unchanged."""
    evidence = turn.prompt.tagged("evidence")
    return DraftSignals({"sentences": [_reworded(fence.body, turn) for fence in evidence]} if evidence else {})


def _reworded(sentence: str, turn: SimulatedTurn) -> str:
    def swap(found: re.Match[str]) -> str:
        other = _OTHER_WORDS[found[0].casefold()]
        return other.capitalize() if found[0][0].isupper() else other

    printable = "".join(letter for letter in sentence if letter.isprintable() or letter.isspace())
    changed = _SWAPS.sub(swap, printable)
    if changed != printable and turn.random.random() < 0.5:
        return changed
    return f"{turn.pick(PLAIN.openers)} {changed}"
