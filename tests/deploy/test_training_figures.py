"""Held-out figures of answers and probabilities made by hand: what stands in the card, against counting and the run."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from moot.deploy.reading.detection.calibration import calibrations
from moot.deploy.reading.detection.claims import Claim
from moot.deploy.training.figures import HeldOutCases
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, classified_label


def held_out(outcome: list[float]) -> HeldOutCases:
    """Cases that stand alone, in two folds."""
    n = len(outcome)
    return HeldOutCases(np.array(outcome), np.array([f"g{i:03d}" for i in range(n)]), np.arange(n) // 2 % 2, 0)


def test_a_probability_means_the_same_label_as_in_a_run() -> None:
    p = [0.2, 0.499, 0.5, 0.501, 0.9, 0.5]
    run = [float(classified_label(each) == HALLUCINATED) for each in p]
    assert run[2] == 1.0
    assert held_out(run).of_probabilities("x", np.array(p)).accuracy.value == 1.0


def test_the_calibration_error_is_that_of_a_runs_figures() -> None:
    random = np.random.default_rng(2)
    p = random.random(120)
    outcome = (random.random(120) < p**2).astype(float)
    claims = [
        Claim(case_id=str(i), gold=CLAIM_LABELS[int(true)], group=str(i), p_classifier=float(stated))
        for i, (true, stated) in enumerate(zip(outcome, p, strict=True))
    ]
    (run,) = calibrations(claims)
    card = held_out(outcome.tolist()).of_probabilities("x", p)
    assert card.ece == run.calibration_error
    assert run.calibration_null is not None
    assert card.ece_null_high == run.calibration_null[1]
    assert (card.brier and card.brier.value) == run.brier.value
    assert run.brier.value == pytest.approx(brier_score_loss(outcome, p))
