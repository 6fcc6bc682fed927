"""Where a reply's log-probabilities are taken, and what is made of a token that a schema's mask may have forced."""

from __future__ import annotations

import math

import numpy as np
import pytest

from moot.actors.intrinsic import intrinsic_of, mean_surprisal, stage_of
from moot.actors.models.interface import ModelReply, Replayed, TokenLogprobs
from moot.actors.models.model_profile import ModelProfile
from moot.actors.record.sampling import Sampling
from moot.actors.record.signal_group import JudgedReply
from moot.deploy.analysis.tokens import Tokens
from moot.metrics.ragged import Ragged
from moot.protocols.messages import Ask, LogprobStage, Usage
from moot.protocols.rubrics.assessed import AssessmentData

ASK = Ask(case_id="c", attempt=0, path="p", role="agent/0", template="t", slots={}, reply="r:R", labels=("Yes", "No"))


def reply(logprob: float, replayed: Replayed | None = None) -> ModelReply:
    chosen = np.array([-0.5, logprob, -0.5], np.float32)
    rest = math.log(-math.expm1(logprob)) if logprob < 0.0 else -np.inf
    listed = np.array([[-0.5, -9.0], [logprob, rest], [-0.5, -9.0]], np.float32)
    tokens = TokenLogprobs(['{"answer": "', "Yes", '"}'], chosen, ["{", "x", "Yes", "No", '"}', "y"], listed)
    return ModelReply('{"answer": "Yes"}', "stop", Usage(), tokens, replayed=replayed)


def known(logprob: float, stage: LogprobStage, *, held: bool, replayed: Replayed | None = None) -> bool:
    found = intrinsic_of(reply(logprob, replayed), "Yes", ASK, stage, held=held)
    assert found is not None
    assert (found.normalised is None) == bool(found.reason)
    return found.normalised is not None


@pytest.mark.parametrize("logprob", [0.0, -0.2])
def test_a_certainty_that_a_mask_may_have_made_is_unknown(logprob: float) -> None:
    sure = logprob == 0.0
    assert known(logprob, "raw", held=True)
    assert known(logprob, "before", held=True)
    assert known(logprob, "masked", held=True) is not sure
    assert known(logprob, "unknown", held=True) is not sure
    assert known(logprob, "unknown", held=False)
    assert known(logprob, "before", held=False, replayed=Replayed("r", "unknown")) is not sure
    assert known(logprob, "before", held=False, replayed=Replayed("r", "raw"))


def test_the_stage_of_a_reply() -> None:
    profiles = {
        stage: ModelProfile(schemas="vllm", held_logprobs=stage) for stage in ("raw", "masked", "unknown", None)
    }
    assert [stage_of("unknown", each, held=True) for each in profiles.values()] == [
        "raw",
        "masked",
        "unknown",
        "unknown",
    ]
    assert [stage_of("unknown", each, held=False) for each in profiles.values()] == ["raw", "raw", "raw", "unknown"]
    assert stage_of("unknown", None, held=True) == "unknown"
    assert stage_of("before", profiles["masked"], held=True) == "before"  # a backend that knows is believed


def test_what_a_mask_has_changed_is_no_surprisal_beside_others() -> None:
    tokens = reply(-0.5).tokens
    assert tokens is not None
    assert mean_surprisal(tokens, "raw") == pytest.approx(0.5)
    assert mean_surprisal(tokens, "masked") is None


def test_token_features_leave_forced_tokens_out() -> None:
    logprobs = Ragged.from_lists([[0.0, -0.5], [0.0, -0.5]])
    alternatives = Ragged.from_lists([[0.0, -np.inf, -0.5, -1.0]] * 2)
    tokens = Tokens(logprobs, alternatives, np.ones(2, np.bool_), [[], []])
    masked, raw = (Sampling(0.3, None, stage) for stage in ("masked", "raw"))
    own = tokens.own([masked, raw])
    assert np.isnan(own.logprobs.row(0)).tolist() == [True, False]
    assert own.logprobs.row(1).tolist() == [0.0, -0.5]
    lower = own.entropies(None)["lower"]
    assert np.isnan(lower.row(0)).tolist() == [True, False]
    assert lower.row(1)[0] == 0.0
    for sampling, unknown in ((masked, True), (raw, False)):
        judged = JudgedReply(
            np.array([0.0, -0.5], np.float32), "m", sampling, AssessmentData(reply="r", role="a"), None
        )
        assert np.isnan(judged.own[0]) == unknown
