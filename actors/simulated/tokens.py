"""Token probabilities of a simulated reply: random, but consistent with the belief at the decision's tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import shake_128

import numpy as np
import numpy.typing as npt

from moot.actors.models.interface import TokenLogprobs
from moot.actors.simulated.turn import ReplyDraft

_PIECE = re.compile(r" ?[^\W\d_]{1,9}|\d{1,3}| ?[^\w\s]{1,3}|[\s\S]")
_LOWEST = -15.0
_DECISION_MASS = 0.985
_VARIANTS = (0.97, 0.02, 0.01)
_NEXT = 0.97
_DEPTH = 0.55
_STEADIED, _STEADIED_FIRST, _FIRST = 0.6, 0.9, 10
"""Reduction of the depth at a confidence of 1: of every token, and of the first ten."""
_LEAST_INVENTED, _MOST_INVENTED = 0.1, 0.45
_FILLERS = tuple(
    re.findall(
        r" \w+",
        " the a of and in to is that it as for was on are by with from at this which or an be not The This"
        " It has its were also had one their more than but can other when evidence passage answer because"
        " since says states shows would does about only both some such there these they used first may no so",
    )
)
_RING = _FILLERS + _FILLERS

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TokenSplit:
    """Tokens of a draft; their concatenation is its text.

    Attributes:
        tokens: all of them.
        start, end: token range of the decision, without `end`.
        invented: indices of fabricated words; ascending.
    """

    tokens: list[str]
    start: int
    end: int
    invented: tuple[int, ...] = ()


def split_text(text: str) -> list[str]:
    """Splits a text into tokens of realistic size, words with their leading space; lossless.

    >>> split_text('{"answer": "Yes"}')
    ['{"', 'answer', '":', ' "', 'Yes', '"}']
    """
    return _PIECE.findall(text)


def split_draft(draft: ReplyDraft) -> TokenSplit:
    """Splits a draft into tokens, with token boundaries at both ends of the decision."""
    before, decision = split_text(draft.before), split_text(draft.decision)
    start, end = len(before), len(before) + len(decision)
    tokens = [*before, *decision, *split_text(draft.after)]
    return TokenSplit(tokens, start, end, _invented(draft, tokens))


def _invented(draft: ReplyDraft, tokens: Sequence[str]) -> tuple[int, ...]:
    if not draft.invented:
        return ()
    begin = draft.text.index(draft.invented)
    places, at = [], 0
    for place, token in enumerate(tokens):
        at += len(token)
        if begin < at <= begin + len(draft.invented) and token[-1].isalnum():
            places.append(place)
    return tuple(places)


def draw_logprobs(draft: ReplyDraft, split: TokenSplit, kept: int, alternatives: int, digest: bytes) -> TokenLogprobs:
    """Draws log-probabilities of the first `kept` tokens, with `alternatives` (0 to 20) listed for each.

    At the decision, the listed probabilities are the belief, a little of it on other spellings; a decision that was not
    the most believed is then not the first of its row. A token of a fabricated word has 0.1 to 0.45 times the belief in
    the answer: less than any other word, because many would fit, and more for a more confident reply. Everywhere else
    the values are plausible and mean nothing. The probabilities of a row sum to at most 1; values have six decimals, so
    that JSON represents them exactly.
    """
    tokens = split.tokens[:kept]
    drawn = _uniforms(digest, len(tokens), alternatives + 1)
    chosen = _chosen(tokens, drawn[:, 0]) if draft.surety is None else _alike(drawn[:, 0], draft.surety)
    invented = [place for place in split.invented if place < kept]
    chosen[invented] = draft.belief.get(draft.decision, 1.0) * _of_invented(drawn[invented, 0])
    listed = _listed(chosen, drawn[:, 1:])
    names = _fill(tokens, alternatives, drawn[:, 0])
    for place, row in _decision_rows(draft, split).items():
        if place >= len(tokens):
            continue
        chosen[place] = row[tokens[place]]
        best = _best(row, alternatives)
        names[place * alternatives : (place + 1) * alternatives] = [name for name, _ in best]
        listed[place] = [probability for _, probability in best]
    return TokenLogprobs(tokens, _log(chosen), names, _log(listed))


def _uniforms(digest: bytes, rows: int, columns: int) -> Floats:
    raw = shake_128(digest).digest(4 * rows * columns)
    return (np.frombuffer(raw, dtype="<u4").astype(np.float64) * 2.0**-32).reshape(rows, columns)


def _log(probabilities: Floats) -> npt.NDArray[np.float32]:
    return np.round(np.maximum(np.log(probabilities), _LOWEST), 6).astype(np.float32)


def _chosen(tokens: Sequence[str], uniform: Floats) -> Floats:
    """Probabilities of chosen tokens: punctuation near 1, words mostly high; all above 0.44."""
    structural = np.fromiter((not token[-1].isalnum() for token in tokens), dtype=bool, count=len(tokens))
    words = 0.999 - _DEPTH * uniform**4
    return np.where(structural, 0.9995 - 0.004 * uniform, words)


def _alike(uniform: Floats, surety: float) -> Floats:
    """Probabilities as for words, but higher; also for punctuation, so that it does not reveal the text's quality."""
    depth = np.full(len(uniform), _DEPTH * (1.0 - _STEADIED * surety))
    depth[:_FIRST] = _DEPTH * (1.0 - _STEADIED_FIRST * surety)
    return 0.999 - depth * uniform**4


def _of_invented(uniform: Floats) -> Floats:
    return _MOST_INVENTED - (_MOST_INVENTED - _LEAST_INVENTED) * uniform


def _listed(chosen: Floats, uniform: Floats) -> Floats:
    """Alternatives: the chosen token first, then decreasing shares of 0.7 of the rest, all below the chosen one."""
    alternatives = uniform.shape[1]
    if alternatives < 2:
        return chosen[:, None][:, :alternatives].copy()
    weights = 0.5 ** np.arange(alternatives - 1) * (0.75 + 0.5 * uniform[:, 1:])
    weights *= (0.7 * (1.0 - chosen) / weights.sum(axis=1))[:, None]
    highest = chosen[:, None] * _NEXT ** np.arange(1, alternatives)
    return np.concatenate([chosen[:, None], np.minimum(weights, highest)], axis=1)


def _fill(tokens: Sequence[str], alternatives: int, uniform: Floats) -> list[str]:
    names: list[str] = []
    if alternatives == 0:
        return names
    starts = (uniform * len(_FILLERS)).astype(int).tolist()
    for token, start in zip(tokens, starts, strict=True):
        others = _RING[start : start + alternatives - 1]
        if token in others:
            others = (*(other for other in others if other != token), _RING[start + alternatives - 1])
        names.append(token)
        names += others
    return names


def _decision_rows(draft: ReplyDraft, split: TokenSplit) -> dict[int, dict[str, float]]:
    """Conditional distribution of each token of the decision, and of the one after it."""
    if split.start == split.end or not draft.belief:
        return {}
    ending = split.tokens[split.end]
    sequences = [([*split_text(label), ending], probability) for label, probability in draft.belief.items()]
    spoken = split.tokens[split.start : split.end + 1]
    rows = {}
    for place in range(len(spoken)):
        following: dict[str, float] = {}
        for sequence, probability in sequences:
            if len(sequence) > place and sequence[:place] == spoken[:place]:
                following[sequence[place]] = following.get(sequence[place], 0.0) + probability
        if place < len(spoken) - 1 or len(following) > 1:
            rows[split.start + place] = _spelled(following, first=place == 0)
    return rows


def _spelled(following: Mapping[str, float], first: bool) -> dict[str, float]:
    total = sum(following.values())
    row: dict[str, float] = {}
    for token, weight in following.items():
        probability = _DECISION_MASS * weight / total
        spellings = (token, f" {token}", token.swapcase() if len(token) == 1 else token.lower())
        if not first:
            spellings = (token, token, token)
        for spelling, share in zip(spellings, _VARIANTS, strict=True):
            row[spelling] = row.get(spelling, 0.0) + share * probability
    return row


def _best(row: Mapping[str, float], alternatives: int) -> list[tuple[str, float]]:
    """Top-k tokens of a row, padded with improbable ones."""
    best = sorted(row.items(), key=lambda item: -item[1])[:alternatives]
    lowest = min(best[-1][1] if best else 0.0, (1.0 - _DECISION_MASS) / 2)
    fillers = (filler for filler in _FILLERS if filler not in row)
    while len(best) < alternatives:
        lowest /= 2.0
        best.append((next(fillers), lowest))
    return best
