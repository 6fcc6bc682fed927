"""The kind `setfit`: a sentence encoder fine-tuned on the summaries, and a head on its vectors.

The body has seen every summary that the head is fitted to, and brings those of one label together: on them the head
would be surer than it may be. So every fold's figures come from a body and a head that have not seen the fold, and the
head's log-odds are scaled by these (Platt). The published recipe leaves them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from moot.actors.classifiers.card import Head
from moot.actors.encoders.interface import Rows, unit_rows
from moot.deploy.training.contrastive import FineTuning, fine_tune, pairs_of
from moot.deploy.training.learned import Floats, Learned, Material
from moot.metrics.logistic_regression import (
    RIDGE,
    LogisticModel,
    bounded,
    fit_logistic,
    fit_scaling,
    least_probability,
)
from moot.metrics.pairwise_complete import Known

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_UNSCALED = LogisticModel(0.0, np.ones(1))


def learn_setfit(
    texts: Sequence[str],
    masked: Sequence[str],
    material: Material,
    tuning: FineTuning,
    say: Callable[[str], None],
) -> tuple[Learned, SentenceTransformer]:
    """A body and its head, and what those of every fold said of it.

    The body of a fold learns from the summaries as they are; its head is fitted a second time to those without verdict
    words, and reads these.

    Args:
        texts, masked: `(n,)`, the summaries with and without verdict words.
        material: labels, groups and folds.
        tuning: how a body is made.
        say: is told what is being done.
    """
    odds, odds_masked = np.empty(len(texts)), np.empty(len(texts))
    for number in range(material.folds):
        out = material.fold == number
        pairs = pairs_of(material.outcome[~out].astype(int).tolist(), tuning)
        say(f"fine-tuning on {pairs:,} pairs without fold {number + 1} of {material.folds} ...")
        body = _tuned(texts, material, ~out, tuning)
        for some, found in ((texts, odds), (masked, odds_masked)):
            vectors = _encoded(body, some)
            found[out] = _head(vectors[~out], material.outcome[~out]).log_odds(vectors[out])
    say("fine-tuning on all summaries ...")
    everything = np.ones(len(texts), dtype=np.bool_)
    body = _tuned(texts, material, everything, tuning)
    model = _head(_encoded(body, texts), material.outcome)
    scaled = tuning.recipe == "short"
    scaling = fit_scaling(odds, material.outcome) if scaled else _UNSCALED
    head = Head(
        intercept=scaling.intercept + scaling.coefficients[0] * model.intercept,
        coefficients=tuple((scaling.coefficients[0] * model.coefficients).tolist()),
        least_probability=_least(material, everything),
    )
    p, p_masked = (_probability(found, material, scaled=scaled) for found in (odds, odds_masked))
    return Learned(head, RIDGE, p, p_masked), body


def _tuned(texts: Sequence[str], material: Material, rows: Known, tuning: FineTuning) -> SentenceTransformer:
    chosen: list[int] = np.flatnonzero(rows).tolist()
    labels = [int(material.outcome[i]) for i in chosen]
    return fine_tune([texts[i] for i in chosen], labels, tuning, seed=material.seed)


def _encoded(body: SentenceTransformer, texts: Sequence[str]) -> Rows:
    return unit_rows(np.asarray(body.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)))


def _head(vectors: Rows, outcome: Floats) -> LogisticModel:
    return fit_logistic(vectors, outcome, ridge=RIDGE, standardise=False)


def _probability(odds: Floats, material: Material, *, scaled: bool) -> Floats:
    """Probabilities from held-out log-odds, each fold's scaled by the others', or as they are."""
    p = np.empty(len(odds))
    for number in range(material.folds):
        out = material.fold == number
        scaling = fit_scaling(odds[~out], material.outcome[~out]) if scaled else _UNSCALED
        p[out] = bounded(scaling.probability(odds[out, np.newaxis]), _least(material, ~out))
    return p


def _least(material: Material, rows: Known) -> float:
    return least_probability(len(np.unique(material.groups[rows])))
