"""Where a reply's log-probabilities are taken, and what is made of a token that a schema's mask may have forced."""

from __future__ import annotations

import math

import numpy as np
import pytest

from moot.actors.agent.intrinsic import intrinsic_of, mean_surprisal, stage_of
from moot.actors.models.interface import ModelReply, ReplaySource, TokenLogprobs
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.sampling import Sampling
from moot.actors.record.assessment_figures import AssessmentFigures
from moot.actors.record.signal_group import JudgedReplySignals
from moot.deploy.results.figures.judged_replies import Tokens
from moot.metrics.ragged import RaggedArray
from moot.protocols.constructor_auditor.replies import Synthesis
from moot.protocols.messages import Ask, LogprobStage, Usage
from moot.protocols.reply_ids import reply_id

ASK = Ask(
    case_id="c", attempt=0, path="p", role="agent/0", template="t", slots={}, reply=reply_id(Synthesis),
    labels=("Yes", "No"),
)  # fmt: skip


def reply(logprob: float, replayed: ReplaySource | None = None) -> ModelReply:
    chosen = np.array([-0.5, logprob, -0.5], np.float32)
    rest = math.log(-math.expm1(logprob)) if logprob < 0.0 else -np.inf
    listed = np.array([[-0.5, -9.0], [logprob, rest], [-0.5, -9.0]], np.float32)
    tokens = TokenLogprobs(['{"answer": "', "Yes", '"}'], chosen, ["{", "x", "Yes", "No", '"}', "y"], listed)
    return ModelReply('{"answer": "Yes"}', "stop", Usage(), tokens, replayed=replayed)


def known(logprob: float, stage: LogprobStage, *, constrained: bool, replayed: ReplaySource | None = None) -> bool:
    found = intrinsic_of(reply(logprob, replayed), "Yes", ASK, stage, constrained=constrained)
    assert found is not None
    assert (found.normalised is None) == bool(found.reason)
    return found.normalised is not None


@pytest.mark.parametrize("logprob", [0.0, -0.2])
def test_a_certainty_that_a_mask_may_have_made_is_unknown(logprob: float) -> None:
    sure = logprob == 0.0
    assert known(logprob, "raw", constrained=True)
    assert known(logprob, "before", constrained=True)
    assert known(logprob, "masked", constrained=True) is not sure
    assert known(logprob, "unknown", constrained=True) is not sure
    assert known(logprob, "unknown", constrained=False)
    assert known(logprob, "before", constrained=False, replayed=ReplaySource("r", "unknown")) is not sure
    assert known(logprob, "before", constrained=False, replayed=ReplaySource("r", "raw"))
    assert known(logprob, "before", constrained=True, replayed=ReplaySource("r", "unknown", constrained=False))


def test_the_stage_of_a_reply() -> None:
    profiles = {
        stage: ModelProfile(schemas="vllm", held_logprobs=stage) for stage in ("raw", "masked", "unknown", None)
    }
    assert [stage_of("unknown", each, constrained=True) for each in profiles.values()] == [
        "raw",
        "masked",
        "unknown",
        "unknown",
    ]
    assert [stage_of("unknown", each, constrained=False) for each in profiles.values()] == [
        "raw",
        "raw",
        "raw",
        "unknown",
    ]
    assert stage_of("unknown", None, constrained=True) == "unknown"
    assert stage_of("before", profiles["masked"], constrained=True) == "before"  # a backend that knows is believed


def test_what_a_mask_has_changed_is_no_surprisal_beside_others() -> None:
    tokens = reply(-0.5).tokens
    assert tokens is not None
    assert mean_surprisal(tokens, "raw", constrained=True) == pytest.approx(0.5)
    assert mean_surprisal(tokens, "unknown", constrained=False) == pytest.approx(0.5)
    assert mean_surprisal(tokens, "unknown", constrained=True) is None
    assert mean_surprisal(tokens, "masked", constrained=True) is None


def test_token_features_leave_forced_tokens_out() -> None:
    kinds = [  # stage, constrained, whether forced tokens are left out; None in older records
        ("masked", True, True),
        ("raw", True, False),
        ("unknown", True, True),
        ("unknown", False, False),
        ("unknown", None, False),
        (None, None, False),
    ]
    samplings = [Sampling.recorded(0.3, None, stage, constrained) for stage, constrained, _ in kinds]
    logprobs = RaggedArray.from_lists([[0.0, -0.5]] * len(kinds))
    alternatives = RaggedArray.from_lists([[0.0, -np.inf, -0.5, -1.0]] * len(kinds))
    tokens = Tokens(logprobs, alternatives, np.ones(len(kinds), np.bool_), [[]] * len(kinds))
    own = tokens.own(samplings)
    lower = own.entropies(None)["lower"]
    for row, (sampling, (_, _, unknown)) in enumerate(zip(samplings, kinds, strict=True)):
        for found in (own.logprobs.row(row), lower.row(row)):
            assert np.isnan(found).tolist() == [unknown, False]
            assert unknown or found[0] == 0.0
        judged = JudgedReplySignals(
            np.array([0.0, -0.5], np.float32), "m", sampling, AssessmentFigures(reply="r", role="a"), None
        )
        assert np.isnan(judged.own[0]) == unknown


def test_the_constraint_distinguishes_samplings_only_at_an_unknown_stage() -> None:
    constrained, free, before_it_was_recorded = (
        [Sampling.recorded(0.3, None, stage, constrained) for stage in ("raw", "unknown")]
        for constrained in (True, False, None)
    )
    assert free == before_it_was_recorded
    assert (constrained[0] == free[0], constrained[1] == free[1]) == (True, False)
