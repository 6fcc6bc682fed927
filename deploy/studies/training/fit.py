"""Training on summaries: a classification head, and cross-validated probabilities."""

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
    """Training data.

    Attributes:
        outcome: `(n,)`, 1 for a hallucinated claim.
        groups: `(n,)`, a group is in one fold.
        fold: `(n,)`, 0 to `folds - 1`.
        folds, seed: of the cross-validation.
    """

    outcome: Floats
    groups: npt.NDArray[np.str_]
    fold: npt.NDArray[np.intp]
    folds: int
    seed: int


@dataclass(frozen=True)
class FittedHead:
    """A head, and its held-out probabilities.

    Attributes:
        head: fitted to all summaries.
        ridge: its L2 penalty.
        p: `(n,)`, of "hallucinated", each by a model trained without the summary's fold.
        p_masked: `(n,)`, the same of heads that learnt from, and read, summaries without verdict words; a body of the
            kind `setfit` has learnt from the summaries as they are.
    """

    head: Head
    ridge: float
    p: Floats
    p_masked: Floats


def train_logistic(
    vectors: npt.NDArray[np.float32], masked: npt.NDArray[np.float32], material: TrainingData
) -> FittedHead:
    """The kind `logistic`: a head on vectors of a frozen encoder.

    The penalty is chosen by cross-validation, nested in every training part for the held-out figures.

    Args:
        vectors, masked: `(n, d)`, unit vectors of the summaries with and without verdict words.
        material: labels, groups and folds.
    """
    of = (material.outcome, material.groups)
    chosen = fit_chosen(vectors, *of, material.folds, material.seed)
    head = Head(
        intercept=chosen.model.intercept,
        coefficients=tuple(chosen.model.coefficients.tolist()),
        least_probability=chosen.least,
    )
    p, p_masked = (
        held_out_probabilities(each, *of, material.fold, material.folds, material.seed) for each in (vectors, masked)
    )
    return FittedHead(head, chosen.ridge, p, p_masked)


def train_setfit(
    texts: Sequence[str],
    masked: Sequence[str],
    material: TrainingData,
    tuning: FineTuningSettings,
    say: Callable[[str], None],
) -> tuple[FittedHead, SentenceTransformer]:
    """The kind `setfit`: a sentence encoder fine-tuned on the summaries, and a head on its vectors.

    The body was trained on every summary that the head is fitted to, and moves those of one label together: on them the
    head would be overconfident. So every fold's figures come from a body and a head that have not seen the fold, and
    the head's log-odds are scaled by these (Platt). The published recipe leaves them as they are. The body of a fold
    learns from the summaries as they are; its head is fitted a second time to those without verdict words, and reads
    these.

    Args:
        texts, masked: `(n,)`, the summaries with and without verdict words.
        material: labels, groups and folds.
        tuning: settings of the fine-tuning.
        say: progress callback.
    """
    odds, odds_masked = np.empty(len(texts)), np.empty(len(texts))
    for number in range(material.folds):
        out = material.fold == number
        pairs = training_pairs(material.outcome[~out].astype(int).tolist(), tuning)
        say(f"fine-tuning on {pairs:,} pairs without fold {number + 1} of {material.folds} ...")
        body = _tuned(texts, material, ~out, tuning)
        for some, found in ((texts, odds), (masked, odds_masked)):
            vectors = _encoded(body, some)
            found[out] = fit_logistic(vectors[~out], material.outcome[~out], standardise=False).log_odds(vectors[out])
    say("fine-tuning on all summaries ...")
    everything = np.ones(len(texts), dtype=np.bool_)
    body = _tuned(texts, material, everything, tuning)
    model = fit_logistic(_encoded(body, texts), material.outcome, standardise=False)
    scaled = tuning.recipe == "short"
    scaling = fit_platt_scaling(odds, material.outcome) if scaled else _UNSCALED
    head = Head(
        intercept=scaling.intercept + scaling.coefficients[0] * model.intercept,
        coefficients=tuple((scaling.coefficients[0] * model.coefficients).tolist()),
        least_probability=_least(material, everything),
    )
    p, p_masked = (_probability(found, material, scaled=scaled) for found in (odds, odds_masked))
    return FittedHead(head, RIDGE, p, p_masked), body


def _tuned(
    texts: Sequence[str], material: TrainingData, rows: Known, tuning: FineTuningSettings
) -> SentenceTransformer:
    chosen: list[int] = np.flatnonzero(rows).tolist()
    labels = [int(material.outcome[i]) for i in chosen]
    return fine_tune([texts[i] for i in chosen], labels, tuning, seed=material.seed)


def _encoded(body: SentenceTransformer, texts: Sequence[str]) -> Rows:
    return unit_rows(np.asarray(body.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)))


def _probability(odds: Floats, material: TrainingData, *, scaled: bool) -> Floats:
    """Probabilities from held-out log-odds, each fold's scaled by the others', or unscaled."""
    p = np.empty(len(odds))
    for number in range(material.folds):
        out = material.fold == number
        scaling = fit_platt_scaling(odds[~out], material.outcome[~out]) if scaled else _UNSCALED
        p[out] = bounded(scaling.probability(odds[out, np.newaxis]), _least(material, ~out))
    return p


def _least(material: TrainingData, rows: Known) -> float:
    return least_probability(len(np.unique(material.groups[rows])))
