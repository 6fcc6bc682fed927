"""Scores of another tool (uqlm) for recorded replies, rebuilt from our numbers where they can be stated so."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from places import DATA

from moot.metrics.confidence_features import Feature, features, window_features
from moot.metrics.divergence import entropy
from moot.metrics.ragged import RaggedArray
from moot.metrics.trajectory import percent_grid

SLICE = DATA / "uqlm_reference"

pytestmark = pytest.mark.needs("data/uqlm_reference")


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SLICE / name).read_text(encoding="utf-8"))["data"]
    return found


def _replies(logprobs: list[list[dict[str, Any]]]) -> RaggedArray:
    return RaggedArray.from_lists([[token["logprob"] for token in reply] for reply in logprobs])


def test_their_scores_of_a_reply_are_features() -> None:
    """Length-normalised probability = exp(mean log-probability); least token probability = exp(min)."""
    recorded = _read("whitebox_results_file.json")
    replies = _replies(recorded["logprobs"])
    found = np.exp(window_features(replies))
    every = features("logprob")
    mean = found[:, every.index(Feature("logprob", "token 0", "full", "mean"))]
    least = found[:, every.index(Feature("logprob", "token 0", "full", "min"))]
    assert mean == pytest.approx(recorded["normalized_probability"], rel=1e-12)
    assert least == pytest.approx(recorded["min_probability"], rel=1e-12)
    assert len(set(recorded["normalized_probability"])) == 5
    assert (mean != least).any()  # one of the replies has two tokens
    product = [math.prod(math.exp(token["logprob"]) for token in reply) for reply in recorded["logprobs"]]
    assert mean**replies.lengths == pytest.approx(product)  # the sequence's probability
    assert percent_grid(replies).min(axis=1) == pytest.approx(np.log(recorded["min_probability"]), rel=1e-9)


def test_recorded_samples_of_several_tokens_are_measured_like_a_loop_does() -> None:
    samples = [
        reply for replies in _read("semanticdensity_results_file.json")["multiple_logprobs"] for reply in replies
    ]
    found = window_features(_replies(samples))
    column = {feature.name: number for number, feature in enumerate(features("logprob"))}
    assert max(map(len, samples)) >= 50
    for row, reply in zip(found, samples, strict=True):
        values = np.array([token["logprob"] for token in reply])
        assert row[column["logprob.full.median"]] == np.median(values)
        assert row[column["logprob.full.std"]] == pytest.approx(values.std(), abs=1e-15)
        half = values[: len(values) // 2]
        expected = half.mean() if len(half) else math.nan
        assert row[column["logprob.first-50%.mean"]] == pytest.approx(expected, nan_ok=True)


def test_their_semantic_entropy_is_the_entropy_of_the_groups_of_six_replies() -> None:
    """Confidence = 1 - H / ln 6. Who means the same is another model's word; its groups are read off the replies."""
    recorded = _read("semanticentropy_results_file.json")
    groups = [[6], [1, 2, 2, 1], [4, 2], [5, 1], [4, 1, 1]]
    for sizes, theirs, confidence in zip(
        groups, recorded["entropy_values"], recorded["confidence_scores"], strict=True
    ):
        found = float(entropy(np.array(sizes) / 6))
        assert found == pytest.approx(theirs, abs=1e-9)
        assert 1 - found / math.log(6) == pytest.approx(confidence, abs=1e-9)
