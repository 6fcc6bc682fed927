"""The simulated context agent of a claim: what the evidence says of it, and which items look at odds, with noise.

It has no answer key and understands nothing: it counts words. Two sentences look at odds to it if a quarter of the
shorter one's content words are in the other, and only one negates, each says one of two opposite words, or none of
their figures of one unit, or of none, is the same. That is looser than the rules of `moot.protocols.ceda.conflicts`: it
finds more, and is wrong more often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

from moot.actors.models.simulated.claim_prompt import (
    SeenEvidence,
    claim_of,
    covered_words,
    evidence_of,
    telling_words,
)
from moot.actors.models.simulated.turn import Draft, Turn
from moot.protocols.ceda.wording import OPPOSITES, Wording, wording_of
from moot.protocols.selene.sentences import split_sentences

_MOST_STATEMENTS, _MOST_CONFLICTS = 4, 3
_QUOTED_WORDS = 20
_FALSE_ALARM = 0.25
_ABOUT_ONE_THING = 0.25
_INVENTED = "as everybody knows"


def write_context(turn: Turn) -> Draft:
    """Puts evidence in order: a statement for each item that has words of the claim, and pairs that look at odds.

    A pair of items that looks at odds is told with the probability of the competence, any other one about one thing
    with a quarter of what is missing from 1. At temperature 0 all of the former are told, and none of the
    latter. The hallucination rate is the share of quotes that hold words which are not in the item.
    """
    evidence = evidence_of(turn.prompt)
    statements = _statements(claim_of(turn.prompt), evidence, turn)
    return turn.filled({"statements": statements, "conflicts": _conflicts(evidence, turn)})


def _statements(claim: str, evidence: Sequence[SeenEvidence], turn: Turn) -> list[dict[str, object]]:
    nearest = sorted(evidence, key=lambda each: -len(covered_words(claim, [each])))
    told: list[dict[str, object]] = []
    for each in nearest[:_MOST_STATEMENTS]:
        words = sorted(covered_words(claim, [each]))
        sentence = max(split_sentences(each.text), key=lambda s: len(telling_words(s) & set(words)), default="")
        quote = _quoted(sentence, turn)
        if words and sentence:
            text = f"{each.number} speaks of {', '.join(words[:3])}."
            told.append({"text": text, "facts": [{"item": each.number, "quote": quote}]})
    return told


def _conflicts(evidence: Sequence[SeenEvidence], turn: Turn) -> list[dict[str, str]]:
    competence, told = turn.settings.competence, []
    for one, other in combinations(evidence, 2):
        drawn = turn.random.random()
        pairs = list(_pairs(one, other))
        said, odd = next((pair for pair in pairs if pair[1]), pairs[0] if pairs else (None, False))
        share = competence if odd else _FALSE_ALARM * (1.0 - competence)
        if said is not None and (odd if turn.greedy else drawn < share):
            quotes = [_quoted(sentence, turn) for sentence in said]
            told.append(dict(item_1=one.number, quote_1=quotes[0], item_2=other.number, quote_2=quotes[1]))
    return told[:_MOST_CONFLICTS]


def _quoted(sentence: str, turn: Turn) -> str:
    invents = turn.random.random() < turn.settings.hallucination_rate
    quote = " ".join(sentence.split()[:_QUOTED_WORDS])
    return f"{quote} {_INVENTED}" if invents else quote


def _pairs(one: SeenEvidence, other: SeenEvidence) -> Iterator[tuple[tuple[str, str], bool]]:
    """The pairs of sentences about one thing, in order, and whether they look at odds."""
    for said in product(split_sentences(one.text), split_sentences(other.text)):
        first, second = wording_of(said[0]), wording_of(said[1])
        common = len(first.words & second.words)
        if common and common >= _ABOUT_ONE_THING * min(len(first.words), len(second.words)):
            yield said, _looks_at_odds(first, second)


def _looks_at_odds(first: Wording, second: Wording) -> bool:
    if first.negated != second.negated:
        return True
    if any(OPPOSITES.get(word, frozenset()) & second.words for word in first.words - second.words):
        return True
    figures = [
        (one, other)
        for unit, ones in first.quantities.items()
        for other_unit, others in second.quantities.items()
        if unit == other_unit or not unit or not other_unit
        for one, other in product(ones, others)
    ]
    return bool(figures) and not any(one.meets(other) for one, other in figures)
