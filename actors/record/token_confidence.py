"""Token confidence by speaker: log-probability along the replies, and of whole replies by round; mergeable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moot.actors.models.sampling import Sampling, mask_forced_tokens
from moot.actors.record.round_bands import LAST_ROUND, merged_histograms
from moot.actors.record.rows import round_of
from moot.metrics.confidence_features import LEAST_LOGPROB
from moot.metrics.distribution import Floats
from moot.metrics.online.moments import Moments
from moot.metrics.online.quantile_bands import QuantileBands
from moot.metrics.online.value_histogram import ValueHistogram
from moot.metrics.ragged import RaggedArray
from moot.metrics.trajectory import percent_grid
from moot.protocols.messages import family_of

MOST_SPEAKERS = 32
"""Most speakers with sums of their own: a protocol may sample each reply in another way, and memory must not grow."""


class Speaker(NamedTuple):
    """Replies that may be pooled: of one role, model and sampling.

    Attributes:
        role: family of roles, such as `agent`.
    """

    role: str
    model: str
    sampling: Sampling


class SpokenReply(NamedTuple):
    """Reply with log-probabilities `(T,)` of a debate with a verdict; `round` is None outside the rounds."""

    speaker: Speaker
    round: int | None
    logprobs: npt.NDArray[np.float32]

    @classmethod
    def of(cls, role: str, model: str, sampling: Sampling, path: str, logprobs: npt.NDArray[np.float32]) -> SpokenReply:
        """Reply at a path; without its forced tokens, which show no confidence."""
        own = mask_forced_tokens(logprobs) if sampling.may_be_masked else logprobs
        return cls(Speaker(family_of(role), model, sampling), round_of(path), own)


@dataclass(frozen=True, slots=True, eq=False)
class SpeakerSums:
    """Sums over the replies of a speaker.

    Attributes:
        replies: number of replies.
        curve, along: moments and histograms of log-probability from the first token to the last.
        by_round: histograms of the replies' mean log-probability, by round.
    """

    replies: int
    curve: Moments
    along: QuantileBands
    by_round: Mapping[int, ValueHistogram]

    @classmethod
    def of(cls, replies: Sequence[SpokenReply]) -> SpeakerSums:
        """Sums over replies with at least one token."""
        tokens = [each.logprobs for each in replies]
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(each) for each in tokens])))
        ragged = RaggedArray(np.concatenate(tokens), offsets.astype(np.int64))
        means, by_round = _means(ragged), dict[int, list[float]]()
        for each, mean in zip(replies, means, strict=True):
            if each.round is not None and each.round <= LAST_ROUND:
                by_round.setdefault(each.round, []).append(mean)
        histograms = {number: ValueHistogram.of(np.array(found, np.float64)) for number, found in by_round.items()}
        curves = percent_grid(ragged)
        return cls(len(replies), Moments.of(curves), QuantileBands.of(curves), histograms)

    def merge(self, other: SpeakerSums) -> SpeakerSums:
        """Sum of both."""
        return SpeakerSums(
            self.replies + other.replies,
            self.curve.merge(other.curve),
            self.along.merge(other.along),
            merged_histograms(self.by_round, other.by_round),
        )


def _means(replies: RaggedArray) -> Floats:
    """Mean log-probability of each reply over its tokens of a finite one; NaN without any."""
    values = replies.values.astype(np.float64)
    known = np.isfinite(values) & (values > LEAST_LOGPROB)
    first = replies.offsets[:-1]
    sums = np.add.reduceat(np.where(known, values, 0.0), first)
    counts = np.add.reduceat(known.astype(np.float64), first)
    means: Floats = np.divide(sums, counts, out=np.full(len(first), np.nan), where=counts > 0)
    return means


@dataclass(frozen=True, slots=True, eq=False)
class TokenConfidence:
    """Sums by speaker, over debates with a verdict that did not fail.

    Attributes:
        kept: sums of at most `MOST_SPEAKERS` speakers, the first in order.
        left_out: number of replies of the others.
    """

    kept: Mapping[Speaker, SpeakerSums] = field(default_factory=dict)
    left_out: int = 0

    @classmethod
    def of(cls, replies: Sequence[SpokenReply]) -> TokenConfidence:
        """Sums over some replies; those without tokens are left out of all counts."""
        members: dict[Speaker, list[SpokenReply]] = {}
        for each in replies:
            if len(each.logprobs):
                members.setdefault(each.speaker, []).append(each)
        return cls({speaker: SpeakerSums.of(found) for speaker, found in members.items()})._bounded()

    def merge(self, other: TokenConfidence) -> TokenConfidence:
        """Sum of both."""
        merged = dict(self.kept)
        for speaker, sums in other.kept.items():
            merged[speaker] = merged[speaker].merge(sums) if speaker in merged else sums
        return TokenConfidence(merged, self.left_out + other.left_out)._bounded()

    def _bounded(self) -> TokenConfidence:
        """The first speakers in order, so that the order of merging does not matter."""
        if len(self.kept) <= MOST_SPEAKERS:
            return self
        beyond = sorted(self.kept, key=repr)[MOST_SPEAKERS:]
        left_out = sum(self.kept[speaker].replies for speaker in beyond)
        kept = {speaker: sums for speaker, sums in self.kept.items() if speaker not in set(beyond)}
        return TokenConfidence(kept, self.left_out + left_out)

    @property
    def replies(self) -> int:
        """Number of replies."""
        return self.left_out + sum(sums.replies for sums in self.kept.values())

    def speakers(self) -> list[Speaker]:
        """Speakers, in order."""
        return sorted(self.kept, key=repr)
