"""Signal groups: mergeable sums over judged replies of one kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moot.actors.models.sampling import Sampling, mask_forced_tokens
from moot.actors.record.assessment_figures import AssessmentFigures
from moot.metrics.confidence_features import features, window_features
from moot.metrics.online.divergence_counts import JointCounts
from moot.metrics.online.moments import CoMoments, Moments
from moot.metrics.online.quantile_bands import QuantileBands
from moot.metrics.ragged import RaggedArray
from moot.metrics.signal_divergences import FLAGGED
from moot.metrics.trajectory import GRID, percent_grid

Floats = npt.NDArray[np.float64]

_WINDOWS = ("full", "first-3", "first-10", "last-10", "first-50%")
_WATCHED = [number for number, feature in enumerate(features("logprob")) if feature.window in _WINDOWS]

FEATURES = tuple(features("logprob")[number].name for number in _WATCHED)
"""Names of the features aggregated during a run; the full sweep is for afterwards."""

PLACES = np.linspace(0.0, 1.0, GRID)
"""Grid of relative positions in a reply, from its first to its last token, at which log-probability is aggregated."""

_MU = FEATURES.index("logprob.full.mean")

QUALITY, FLAG, CORRECT = "quality", "flag", "correct"
"""Targets beside the dimensions of the rubric: Q, whether at least half of the marks flag the reply, and whether the
answer is right."""


class JudgedReplySignals(NamedTuple):
    """Judged reply of a debate with a verdict.

    Attributes:
        logprobs: `(T,)` float32, of its tokens; None when not recorded.
        model: of the reply.
        sampling: sampling parameters of the reply.
        assessment: of the judges, without their individual marks.
        correct: whether the debate's answer is right; None when unknown.
    """

    logprobs: npt.NDArray[np.float32] | None
    model: str
    sampling: Sampling
    assessment: AssessmentFigures
    correct: bool | None

    @property
    def own(self) -> npt.NDArray[np.float32]:
        """Log-probabilities of unforced tokens, NaN for the others; empty when not recorded."""
        if self.logprobs is None:
            return np.zeros(0, np.float32)
        return mask_forced_tokens(self.logprobs) if self.sampling.may_be_masked else self.logprobs


@dataclass(frozen=True, slots=True, eq=False)
class SignalGroup:
    """Mergeable sums over the judged replies of a group.

    Attributes:
        replies: number of replies.
        without_logprobs: number of those without a log-probability.
        curve: moments of the log-probability on the grid.
        bands: histograms of the same.
        with_targets: by target, covariance sums of the features with it: `(len(FEATURES), 1)`.
        joint: counts over mean log-probability, quality, flag and correctness.
    """

    replies: int
    without_logprobs: int
    curve: Moments
    bands: QuantileBands
    with_targets: Mapping[str, CoMoments]
    joint: JointCounts

    @classmethod
    def empty(cls) -> SignalGroup:
        """Group without replies."""
        return cls(0, 0, Moments.empty(GRID), QuantileBands.empty(GRID), {}, JointCounts.empty())

    @classmethod
    def of(cls, judged: Sequence[JudgedReplySignals]) -> SignalGroup:
        """Group of some replies."""
        tokens = [one.own for one in judged]
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        replies = RaggedArray(np.concatenate([np.zeros(0, np.float32), *tokens]), offsets)
        watched, curves = window_features(replies)[:, _WATCHED], percent_grid(replies)
        targets = _targets(judged)
        joint = JointCounts.of(watched[:, _MU], targets[QUALITY], targets[FLAG], targets[CORRECT])
        with_targets = {name: CoMoments.of(watched, column[:, np.newaxis]) for name, column in targets.items()}
        silent = int(np.count_nonzero(lengths == 0))
        return cls(len(judged), silent, Moments.of(curves), QuantileBands.of(curves), with_targets, joint)

    def merge(self, other: SignalGroup) -> SignalGroup:
        """Sum of both groups."""
        none = CoMoments.empty(len(FEATURES), 1)
        names = [*self.with_targets, *(other.with_targets.keys() - self.with_targets.keys())]
        return SignalGroup(
            self.replies + other.replies,
            self.without_logprobs + other.without_logprobs,
            self.curve.merge(other.curve),
            self.bands.merge(other.bands),
            {name: self.with_targets.get(name, none).merge(other.with_targets.get(name, none)) for name in names},
            self.joint.merge(other.joint),
        )


def _targets(judged: Sequence[JudgedReplySignals]) -> dict[str, Floats]:
    """Targets by name, `(R,)` each, NaN where unknown."""
    found = [one.assessment for one in judged]
    dimensions = sorted({name for one in found for name in one.scores})
    columns = {name: [one.scores.get(name) for one in found] for name in dimensions}
    columns[QUALITY] = [one.quality for one in found]
    columns[FLAG] = [None if one.flag is None else one.flag >= FLAGGED for one in found]
    columns[CORRECT] = [one.correct for one in judged]
    return {name: np.array(column, np.float64) for name, column in columns.items()}
