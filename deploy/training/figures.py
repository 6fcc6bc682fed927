"""How well a way to decide does on held-out summaries, with intervals by group of cases."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from moot.actors.classifiers.card import Figure, Figures, known
from moot.deploy.reading.detection.calibration import BINS
from moot.deploy.reading.detection.estimates import RESAMPLES, estimate
from moot.metrics.calibration_error import calibration_null_band, expected_calibration_error
from moot.metrics.class_separation import within_groups_auroc
from moot.metrics.cluster_bootstrap import cluster_weights, resampled_auroc
from moot.metrics.detection import detection_figures, detection_outcomes, resampled_figures
from moot.protocols.claims import HALLUCINATED, classified_label

Floats = npt.NDArray[np.float64]


class HeldOutCases:
    """The summaries that figures are about.

    Args:
        outcome: `(n,)`, 1 for a hallucinated claim.
        groups: `(n,)`; whole groups are drawn.
        fold: `(n,)`, the fold in which each was held out.
        seed: of the draws.
    """

    def __init__(self, outcome: Floats, groups: npt.NDArray[np.str_], fold: npt.NDArray[np.intp], seed: int) -> None:
        self._outcome, self._fold, self._seed = outcome, fold, seed
        self._weights = cluster_weights(groups, RESAMPLES, seed)
        self._groups = len(np.unique(groups))

    def of_probabilities(self, name: str, p: Floats) -> Figures:
        """The figures of probabilities of "hallucinated", `(n,)`; the answers are those that a run would give."""
        squares = (p - self._outcome) ** 2
        drawn = self._weights @ squares / self._weights.sum(axis=1)
        answer = np.array([float(classified_label(each) == HALLUCINATED) for each in p])
        return self._figures(name, answer, p).model_copy(
            update={
                "brier": self._figure(squares.mean(), drawn),
                "ece": known(expected_calibration_error(p, self._outcome, bins=BINS)),
                "ece_null_high": known(calibration_null_band(p, bins=BINS).high),
            }
        )

    def of_answers(self, name: str, answer: Floats) -> Figures:
        """The figures of bare answers: `(n,)`, 1 for "hallucinated", 0 for "supported", NaN for undecided."""
        return self._figures(name, answer, np.where(np.isnan(answer), 0.5, answer))

    def _figures(self, name: str, answer: Floats, score: Floats) -> Figures:
        outcomes = detection_outcomes(self._outcome, answer)
        counts = outcomes.sum(axis=0)
        seen, drawn = detection_figures(counts), resampled_figures(counts, self._weights @ outcomes)
        (supported, hallucinated), (supported_drawn, hallucinated_drawn) = seen.f1, drawn.f1.T
        return Figures(
            name=name,
            n=len(answer),
            accuracy=self._figure(seen.accuracy, drawn.accuracy, is_share=True),
            f1_hallucinated=self._figure(hallucinated, hallucinated_drawn),
            f1_supported=self._figure(supported, supported_drawn),
            macro_f1=self._figure(seen.macro_f1, drawn.macro_f1),
            auroc=self._figure(
                within_groups_auroc(score, self._outcome, self._fold).squeeze(), self._drawn_auroc(score)
            ),
        )

    def _drawn_auroc(self, score: Floats) -> Floats:
        """The AUROC of every resample, over pairs of one fold."""
        wins, pairs = np.zeros(RESAMPLES), np.zeros(RESAMPLES)
        for number in np.unique(self._fold):
            some = self._fold == number
            weights, ones = self._weights[:, some], self._outcome[some]
            found = resampled_auroc(score[some], ones, weights)[:, 0, 0]
            count = (weights @ ones) * (weights @ (1.0 - ones))
            wins += np.where(count > 0.0, np.nan_to_num(found) * count, 0.0)
            pairs += count
        area: Floats = np.divide(wins, pairs, out=np.full(RESAMPLES, np.nan), where=pairs > 0.0)
        return area

    def _figure(self, value: npt.ArrayLike, drawn: Floats, *, is_share: bool = False) -> Figure:
        found = estimate(value, drawn, groups=self._groups, is_share=is_share)
        low, high = found.interval or (None, None)
        return Figure(value=found.value, low=low, high=high)
