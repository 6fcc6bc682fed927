"""Argument quality of the sides: CRIT of each side's texts, in a round or in its closing statements."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from moot.protocols.case import Case
from moot.protocols.crit.appraisal import CritDocument
from moot.protocols.crit.evaluate import crit_all
from moot.protocols.crit.result import CritResult
from moot.protocols.crit.settings import CritSettings
from moot.protocols.floor import Floor
from moot.protocols.socrasynth.debater_slots import Positions
from moot.protocols.socrasynth.sides import SIDES, Side, SideTurn, Topic, open_answers, other

Texts = Mapping[Side, str]
"""Texts by side; sides without any are excluded."""

OpposedTexts = Mapping[Side, tuple[str, str]]
"""By side its text, and the opponent's text against which CRIT reads it; may be empty. Sides without any are excluded.
"""


def read_together(texts: Texts) -> OpposedTexts:
    """Texts that were written at the same time, each against the opponent's."""
    return {side: (text, texts.get(other(side), "")) for side, text in texts.items()}


def round_texts(turns: Sequence[SideTurn], number: int, scope: Literal["latest", "whole"]) -> OpposedTexts:
    """Texts of a refutation round, each against what the opponent had said before it.

    So CRIT knows as much when it reads A's turn as when it reads B's: what the turn answers, and not the reply to it,
    which follows in the same round for A, and for B in the next.

    Args:
        scope: `latest`: the side's turn, against the opponent's last one before it; `whole`: all of both up to there.
    """
    texts = {}
    for place, turn in enumerate(turns):
        if turn.number == number and turn.by_topic:
            own = [one for one in turns[: place + 1] if one.side is turn.side and one.by_topic]
            others = [one for one in turns[:place] if one.side is not turn.side and one.by_topic]
            texts[turn.side] = (_joined(own, scope), _joined(others, scope))
    return texts


def _joined(turns: Sequence[SideTurn], scope: Literal["latest", "whole"]) -> str:
    return "\n\n".join(one.text() for one in (turns if scope == "whole" else turns[-1:]))


@dataclass(frozen=True, slots=True)
class ArgumentQuality:
    """CRIT of both sides.

    Attributes:
        results: by side, for sides with texts.
        unopposed: sides whose text was read without one of the opponent.
    """

    results: Mapping[Side, CritResult]
    unopposed: frozenset[Side] = frozenset()

    def scores(self) -> dict[str, float | None]:
        """Scores by role, in [0, 1]; None for a side without texts or without a judge's score, or that is unopposed.

        Rivals from an opponent's text lower a score: one that was read without them is higher than the others for that
        reason alone, and must not be compared with them.
        """
        return {
            side.name: self.results[side].score if side in self.results and side not in self.unopposed else None
            for side in SIDES
        }

    @property
    def gamma(self) -> float | None:
        """The panel's mean over both sides, in [0, 1]; None unless both are known, as one alone has no counterpart."""
        known = [score for score in self.scores().values() if score is not None]
        return fmean(known) if len(known) == len(SIDES) else None

    def weak(self, side: Side) -> tuple[str, ...]:
        """The reasons of a side that are below `crit.weak_below` and do not contradict the given facts, at most two."""
        return self.results[side].weak if side in self.results else ()

    def contradicted(self, side: Side) -> tuple[str, ...]:
        """The reasons of a side that contradict the given facts."""
        return self.results[side].contradicted if side in self.results else ()


async def appraise(
    case: Case, floor: Floor, texts: OpposedTexts, settings: CritSettings, path: str, positions: Positions
) -> ArgumentQuality:
    """CRIT of every side's text; paths start with `{path}/agent/I`."""
    documents = _documents(case, texts, path, positions)
    return _quality(documents, await crit_all(floor, documents, settings), texts)


async def appraise_topics(
    case: Case,
    floor: Floor,
    statements: Mapping[Side, Mapping[str, str]],
    topics: Sequence[Topic],
    settings: CritSettings,
    path: str,
    positions: Positions,
) -> dict[str, list[float | None]]:
    """CRIT of both sides on each topic, by role, in the topics' order; paths start with `{path}/topic/N/agent/I`.

    None for a topic that either side skipped, and for one that no judge scored.
    """
    texts_by_topic = [
        {side: texts[topic.title] for side, texts in statements.items() if topic.title in texts} for topic in topics
    ]
    by_topic = [
        _documents(case, read_together(texts), f"{path}/topic/{number}", positions)
        for number, texts in enumerate(texts_by_topic, start=1)
    ]
    results = iter(await crit_all(floor, [document for documents in by_topic for document in documents], settings))
    found = [
        _quality(documents, [next(results) for _ in documents], texts).scores()
        for texts, documents in zip(texts_by_topic, by_topic, strict=True)
    ]
    return {side.name: [scores[side.name] for scores in found] for side in SIDES}


def _quality(
    documents: Sequence[tuple[str, CritDocument]], results: Sequence[CritResult], sides: Collection[Side]
) -> ArgumentQuality:
    unopposed = [side for side, (_, document) in zip(sides, documents, strict=True) if not document.opposing.strip()]
    return ArgumentQuality(dict(zip(sides, results, strict=True)), frozenset(unopposed))


def _documents(case: Case, texts: OpposedTexts, path: str, positions: Positions) -> list[tuple[str, CritDocument]]:
    facts = _facts(case)
    return [
        (f"{path}/{side.name}", CritDocument(_claim(case, side, positions), text, facts, opposing))
        for side, (text, opposing) in texts.items()
    ]


def _claim(case: Case, side: Side, positions: Positions) -> str:
    """Position of a side, for a judge of arguments."""
    if side in positions.named:
        return f"The answer is {positions.word(case, side)}."
    return f"{'In favour of' if side.stance == 'for' else 'Against'}: {case.question}"


def _facts(case: Case) -> str:
    """Given facts; on a closed list also the question and the possible answers, which the claim does not repeat."""
    answers = open_answers(case)
    listed = [case.question, f"Possible answers: {'; '.join(answers)}"] if answers else []
    return "\n".join(part for part in (*listed, case.passage) if part)
