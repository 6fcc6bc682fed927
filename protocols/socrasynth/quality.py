"""Argument quality of the sides: CRIT of each side's texts, in a round or in its closing statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from moot.protocols.case import Case
from moot.protocols.crit.appraisal import CritDocument
from moot.protocols.crit.evaluate import crit_all
from moot.protocols.crit.result import CritResult
from moot.protocols.crit.settings import CritSettings
from moot.protocols.floor import Floor
from moot.protocols.socrasynth.debater_slots import Positions
from moot.protocols.socrasynth.sides import SIDES, Side, Topic, open_answers, other

Texts = Mapping[Side, str]
"""Texts by side; sides without any are excluded."""


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
        """The weakest reasons of a side."""
        return self.results[side].weak if side in self.results else ()

    def contradicted(self, side: Side) -> tuple[str, ...]:
        """The reasons of a side that contradict the given facts."""
        return self.results[side].contradicted if side in self.results else ()


async def appraise(
    case: Case, floor: Floor, texts: Texts, settings: CritSettings, path: str, positions: Positions
) -> ArgumentQuality:
    """CRIT of every side's text against the other's; paths start with `{path}/agent/I`."""
    documents = _documents(case, texts, path, positions)
    return _quality(texts, documents, await crit_all(floor, documents, settings))


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
        _documents(case, texts, f"{path}/topic/{number}", positions)
        for number, texts in enumerate(texts_by_topic, start=1)
    ]
    results = iter(await crit_all(floor, [document for documents in by_topic for document in documents], settings))
    found = [
        _quality(texts, documents, [next(results) for _ in documents]).scores()
        for texts, documents in zip(texts_by_topic, by_topic, strict=True)
    ]
    return {side.name: [scores[side.name] for scores in found] for side in SIDES}


def _quality(
    texts: Texts, documents: Sequence[tuple[str, CritDocument]], results: Sequence[CritResult]
) -> ArgumentQuality:
    unopposed = [side for side, (_, document) in zip(texts, documents, strict=True) if not document.opposing.strip()]
    return ArgumentQuality(dict(zip(texts, results, strict=True)), frozenset(unopposed))


def _documents(case: Case, texts: Texts, path: str, positions: Positions) -> list[tuple[str, CritDocument]]:
    facts = _facts(case)
    return [
        (f"{path}/{side.name}", CritDocument(_claim(case, side, positions), text, facts, texts.get(other(side), "")))
        for side, text in texts.items()
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
