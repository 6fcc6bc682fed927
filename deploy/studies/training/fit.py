"""Training on summaries: a classification head, and its held-out probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from moot.actors.classifiers.card import Head
from moot.actors.encoders.interface import Rows, unit_rows
from moot.deploy.studies.training.contrastive import FineTuningSettings, fine_tune, training_pairs
from moot.metrics.logistic_regression import (
    RIDGE,
    LogisticModel,
    bounded,
    fit_chosen,
    fit_logistic,
    fit_platt_scaling,
    held_out_probabilities,
    least_probability,
)

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Floats = npt.NDArray[np.float64]
Known = npt.NDArray[np.bool_]

_UNSCALED = LogisticModel(0.0, np.ones(1))


@dataclass(frozen=True)
class TrainingData:
    """Labels, groups and folds of the training data.

    Attributes:
        outcome: `(n,)`, 1 for a hallucinated claim.
        groups: `(n,)`, group of each summary; each group is in one fold.
        fold: `(n,)`, 0 to `folds - 1`.
        folds, seed: number of cross-validation folds, and random seed.
    """

    outcome: Floats
    groups: npt.NDArray[np.str_]
    fold: npt.NDArray[np.intp]
    folds: int
    seed: int


@dataclass(frozen=True)
class FittedHead:
    """Classification head with its held-out probabilities.

    Attributes:
        head: fitted to all summaries.
        ridge: its L2 penalty.
        p: `(n,)`, out-of-fold probability of "hallucinated".
        p_masked: `(n,)`, likewise, of heads trained and evaluated on summaries without verdict words. With the kind
            `setfit` the body is still trained on the full summaries.
    """

    head: Head
    ridge: float
    p: Floats
    p_masked: Floats


def train_logistic(vectors: npt.NDArray[np.float32], masked: npt.NDArray[np.float32], data: TrainingData) -> FittedHead:
    """Train the kind `logistic`: a head on vectors labels a frozen encoder.

    The penalty is selected by cross-validation; for the held-out figures, by nested cross-validation.

    Args:
        vectors, masked: `(n, d)`, unit vectors labels the summaries with and without verdict words.
        data: labels, groups and folds.
    """
    labels = (data.outcome, data.groups)
    chosen = fit_chosen(vectors, *labels, data.folds, data.seed)
    head = Head(
        intercept=chosen.model.intercept,
        coefficients=tuple(chosen.model.coefficients.tolist()),
        least_probability=chosen.least,
    )
    p, p_masked = (
        held_out_probabilities(each, *labels, data.fold, data.folds, data.seed) for each in (vectors, masked)
    )
    return FittedHead(head, chosen.ridge, p, p_masked)


def train_setfit(
    texts: Sequence[str],
    masked: Sequence[str],
    data: TrainingData,
    tuning: FineTuningSettings,
    progress: Callable[[str], None],
) -> tuple[FittedHead, SentenceTransformer]:
    """Train the kind `setfit`: a sentence encoder fine-tuned on the summaries, and a head on its vectors.

    Fine-tuning moves the training summaries of one label together, so that a head fitted to them is overconfident. For
    each fold, a body and a head are therefore trained without it. Its log-odds give the held-out figures and, by Platt
    scaling, calibrate the final head; the published recipe does not calibrate. The body of a fold is trained on the
    full summaries; a second head is fitted and evaluated without verdict words.

    Args:
        texts, masked: `(n,)`, summaries with and without verdict words.
        data: labels, groups and folds.
        tuning: settings of the fine-tuning.
        progress: progress callback.
    """
    odds, odds_masked = np.empty(len(texts)), np.empty(len(texts))
    for number in range(data.folds):
        out = data.fold == number
        pairs = training_pairs(data.outcome[~out].astype(int).tolist(), tuning)
        progress(f"fine-tuning on {pairs:,} pairs without fold {number + 1} of {data.folds} ...")
        body = _tuned(texts, data, ~out, tuning)
        for inputs, held_out in ((texts, odds), (masked, odds_masked)):
            vectors = _encoded(body, inputs)
            held_out[out] = fit_logistic(vectors[~out], data.outcome[~out], standardise=False).log_odds(vectors[out])
    progress("fine-tuning on all summaries ...")
    everything = np.ones(len(texts), dtype=np.bool_)
    body = _tuned(texts, data, everything, tuning)
    model = fit_logistic(_encoded(body, texts), data.outcome, standardise=False)
    scaled = tuning.recipe == "short"
    scaling = fit_platt_scaling(odds, data.outcome) if scaled else _UNSCALED
    head = Head(
        intercept=scaling.intercept + scaling.coefficients[0] * model.intercept,
        coefficients=tuple((scaling.coefficients[0] * model.coefficients).tolist()),
        least_probability=_least(data, everything),
    )
    p, p_masked = (_probability(held_out, data, scaled=scaled) for held_out in (odds, odds_masked))
    return FittedHead(head, RIDGE, p, p_masked), body


def _tuned(texts: Sequence[str], data: TrainingData, rows: Known, tuning: FineTuningSettings) -> SentenceTransformer:
    selected: list[int] = np.flatnonzero(rows).tolist()
    labels = [int(data.outcome[i]) for i in selected]
    return fine_tune([texts[i] for i in selected], labels, tuning, seed=data.seed)


def _encoded(body: SentenceTransformer, texts: Sequence[str]) -> Rows:
    return unit_rows(np.asarray(body.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)))


def _probability(odds: Floats, data: TrainingData, *, scaled: bool) -> Floats:
    """Probabilities from out-of-fold log-odds; each fold is calibrated on the others, or not at all."""
    p = np.empty(len(odds))
    for number in range(data.folds):
        out = data.fold == number
        scaling = fit_platt_scaling(odds[~out], data.outcome[~out]) if scaled else _UNSCALED
        p[out] = bounded(scaling.probability(odds[out, np.newaxis]), _least(data, ~out))
    return p


def _least(data: TrainingData, rows: Known) -> float:
    return least_probability(len(np.unique(data.groups[rows])))
