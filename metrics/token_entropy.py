"""Token entropy: bounds and estimates from the listed alternatives of each token.

Functions raise ValueError if the rows do not match, or more tokens are listed than the vocabulary has.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from moot.metrics.confidence_features import LEAST_LOGPROB
from moot.metrics.distribution import Floats
from moot.metrics.ragged import RaggedArray

Integers = npt.NDArray[np.int64]

MOST_TOKENS: Final = 10_000_000
"""Upper bound of the size of a vocabulary."""

TOLERANCE: Final = 1e-3
"""Tolerance by which the listed probabilities may exceed 1; beyond it the entropy of the token is unknown."""

_SAME: Final = 1e-4  # nats; servers may round the chosen token's log-probability differently from the list's
_CELLS: Final = 1 << 18  # of a block's matrix of alternatives


@dataclass(frozen=True, slots=True)
class _KnownDistributions:
    """Known parts of the distributions of n tokens.

    Attributes:
        probability: `(n, K + 1)`, of the alternatives, and of the chosen token if it is not among them; 0 elsewhere.
        count: `(n,)`, number of these tokens.
        rest: `(n,)`, total probability of all others.
        cap: `(n,)`, upper bound of the probability of each other token.
    """

    probability: Floats
    count: Integers
    rest: Floats
    cap: Floats


def entropy_lower(chosen: RaggedArray, alternatives: RaggedArray) -> RaggedArray:
    """Lower bound of each token's entropy: the unlisted mass is on as few tokens as possible.

    H = sum over seen p ln(1/p) + m c ln(1/c) + s ln(1/s), where the rest r = 1 - sum of seen p is split into m =
    floor(r / c) tokens with the cap c and one with s = r - m c. "Seen" are the alternatives and the chosen token, which
    counts once; it is taken to be among the alternatives unless it is less probable than all of them. The cap is the
    smallest listed probability, except that of the chosen token, which some servers append whatever its rank.

    Args:
        chosen: log-probability of each token, nats; R replies.
        alternatives: log-probabilities of the most probable alternatives of each token, R rows; T x K values per reply,
            token by token, padded with NaN. K may differ between replies.

    Returns:
        R rows of T entropies, nats, at least 0. NaN for a token without alternatives, and if the list cannot be that of
        the most probable tokens: a probability or their sum exceeds 1 by more than `TOLERANCE`, or the rest would be on
        more than `MOST_TOKENS` tokens. A log-probability that is not finite or at most `LEAST_LOGPROB` counts as
        unlisted.

    >>> chosen = RaggedArray.from_lists([np.log([0.5])])
    >>> alternatives = RaggedArray.from_lists([np.log([0.5, 0.25])])  # the rest: one token of 0.25
    >>> round(float(entropy_lower(chosen, alternatives).values[0] / np.log(2)), 12)
    1.5
    """
    return _per_token(chosen, alternatives, _lower)


def entropy_upper(chosen: RaggedArray, alternatives: RaggedArray, vocabulary: int | None = None) -> RaggedArray:
    """Upper bound of each token's entropy: the unlisted mass is uniform on the other tokens of the vocabulary.

    H = sum over seen p ln(1/p) + r ln((V - n) / r), with V the size of the vocabulary, n the number of seen tokens, and
    r the rest; "seen" is as for `entropy_lower`.

    Args:
        chosen, alternatives: as for `entropy_lower`.
        vocabulary: V; None if unknown.

    Returns:
        As for `entropy_lower`; at most ln V, and equal to the lower bound if the whole distribution is listed. NaN for
        an unknown V.

    >>> chosen = RaggedArray.from_lists([np.log([0.5])])
    >>> alternatives = RaggedArray.from_lists([np.log([0.5, 0.25])])
    >>> round(float(entropy_upper(chosen, alternatives, 4).values[0] / np.log(2)), 12)
    1.75
    """

    def upper(seen: _KnownDistributions) -> Floats:
        if vocabulary is None:
            return np.full(len(seen.count), np.nan)
        others = vocabulary - seen.count
        if (others < 0).any():
            raise ValueError(f"{seen.count.max()} tokens are listed out of a vocabulary of {vocabulary}")
        each = np.where(others > 0, seen.rest / np.maximum(others, 1), 0.0)
        return np.asarray(_information(seen.probability).sum(axis=1) + others * _information(each))

    return _per_token(chosen, alternatives, upper)


def entropy_renormalised(chosen: RaggedArray, alternatives: RaggedArray) -> RaggedArray:
    """Renormalised entropy: the entropy over the listed tokens as if they were the whole vocabulary.

    H = sum over seen q ln(1/q), q = p / sum of seen p. "Seen" is as for `entropy_lower`, so that it does not matter
    whether a server appends a chosen token that is not among its K most probable.

    Args:
        chosen, alternatives: as for `entropy_lower`.

    Returns:
        As for `entropy_lower`; at most ln(K + 1). Not a bound of the true entropy, which may be larger or smaller.

    >>> chosen = RaggedArray.from_lists([np.log([0.1])])
    >>> alternatives = RaggedArray.from_lists([np.log([0.4, 0.1, 0.1, 0.1, 0.1])])
    >>> round(float(entropy_renormalised(chosen, alternatives).values[0] / np.log(2)), 12)
    2.0
    """
    return _per_token(chosen, alternatives, _renormalised)


def _lower(seen: _KnownDistributions) -> Floats:
    full = np.floor(seen.rest / seen.cap)
    last = np.maximum(seen.rest - full * seen.cap, 0.0)
    listed = _information(seen.probability).sum(axis=1)
    least = listed + full * _information(seen.cap) + _information(last)
    return np.where(full <= MOST_TOKENS, least, np.nan)


def _renormalised(seen: _KnownDistributions) -> Floats:
    total = seen.probability.sum(axis=1, keepdims=True)
    return np.asarray(_information(seen.probability / total).sum(axis=1))


def _information(p: Floats) -> Floats:
    """`p ln(1/p)`, 0 at p = 0; rounding errors above 1 count as 1."""
    bounded = np.minimum(p, 1.0)
    return -bounded * np.log(np.where(bounded > 0.0, bounded, 1.0))


def _per_token(
    chosen: RaggedArray, alternatives: RaggedArray, entropy: Callable[[_KnownDistributions], Floats]
) -> RaggedArray:
    result = np.full(len(chosen.values), np.nan)
    for tokens, listed in _blocks(chosen, alternatives):
        seen, known = _seen(chosen.values[tokens].astype(np.float64), listed)
        result[tokens[known]] = entropy(seen)
    return RaggedArray(result, chosen.offsets)


def _blocks(chosen: RaggedArray, alternatives: RaggedArray) -> Iterator[tuple[Integers, Floats]]:
    """Indices of tokens with the matrix of their alternatives, for each K in blocks of about `_CELLS` cells."""
    lengths, listed = chosen.lengths, alternatives.lengths
    if len(listed) != len(lengths):
        raise ValueError(f"{len(listed)} rows of alternatives for {len(lengths)} replies")
    width = listed // np.maximum(lengths, 1)
    if (width * lengths != listed).any():
        row = int(np.argmax(width * lengths != listed))
        raise ValueError(f"row {row} has {listed[row]} alternatives for {lengths[row]} tokens, not the same for each")
    widths = np.repeat(width, lengths)
    first = np.repeat(alternatives.offsets[:-1], lengths) + chosen.positions() * widths
    for k in np.unique(width[width > 0]).tolist():
        tokens = np.flatnonzero(widths == k)
        for part in np.array_split(tokens, -(-len(tokens) * k // _CELLS)):
            yield part, alternatives.values[first[part][:, np.newaxis] + np.arange(k)].astype(np.float64)


def _seen(chosen: Floats, listed: Floats) -> tuple[_KnownDistributions, npt.NDArray[np.bool_]]:
    """Known parts of the distributions of tokens with valid alternatives, and the indices of these tokens."""
    known_alt = np.isfinite(listed) & (listed > LEAST_LOGPROB)
    least = np.where(known_alt, listed, np.inf).min(axis=1)
    chosen_known = np.isfinite(chosen) & (chosen > LEAST_LOGPROB)
    unlisted = chosen_known & (chosen < least - _SAME)
    probability = np.exp(np.where(known_alt, np.minimum(listed, 1.0), -np.inf))
    own = np.exp(np.where(unlisted, chosen, -np.inf))
    probability = np.column_stack([probability, own])
    total = probability.sum(axis=1)
    known = known_alt.any(axis=1) & (total <= 1.0 + TOLERANCE) & ~(chosen_known & (chosen > np.log1p(TOLERANCE)))
    appended = chosen_known & ~unlisted & (chosen <= least + _SAME)
    seen = _KnownDistributions(
        probability[known],
        (known_alt.sum(axis=1) + unlisted)[known],
        np.maximum(1.0 - total, 0.0)[known],
        _cap(listed, known_alt, appended)[known],
    )
    return seen, known


def _cap(listed: Floats, known_alt: npt.NDArray[np.bool_], appended: npt.NDArray[np.bool_]) -> Floats:
    """Smallest listed probability, or the second smallest if that is the chosen token's; 1 if there is none."""
    ordered = np.sort(np.where(known_alt, listed, np.inf), axis=1)
    ordered = np.column_stack([ordered, np.full(len(ordered), np.inf)])
    least = np.where(appended, ordered[:, 1], ordered[:, 0])
    return np.maximum(np.exp(np.minimum(least, 0.0)), np.finfo(np.float64).tiny)
