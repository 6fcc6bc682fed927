"""Trial calls before a run: what no list of models tells, a reply does."""

from __future__ import annotations

import numpy as np
import structlog

from moot.actors.models.held_trial import HeldTrial
from moot.actors.models.interface import Model, ModelReply
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.trial import LogprobsRefused, Trial
from moot.actors.models.trial_calls import TrialCalls
from moot.protocols.errors import CapabilityMissing, ConfigError
from moot.protocols.replies import reply_name

_log = structlog.get_logger(__name__)


async def probe(model: Model, trial: Trial) -> tuple[ModelProfile, bool]:
    """Make calls as the run will make them, until it is known how; they may be billed.

    Where a server refuses log-probabilities, fewer are asked for, then none; only then a reply is left free.

    Returns:
        What was found, and whether log-probabilities with alternatives came back; False when none were asked for.

    Raises:
        OnlyOverResponses: the service says so of an OpenAI model that is asked over chat completions.
        ModelUnavailable: a call failed for another reason than a schema, a log-probability or a setting that nobody
            wrote down.
        CapabilityMissing: a role insists on schemas, and the model holds no replies to them; or it gives no
            log-probabilities of a reply that is held and of no use without.
        ConfigError: the model does not take a setting that the user wrote down, or log-probabilities are refused that
            only the user wants.
    """
    calls = TrialCalls(model, trial)
    held = HeldTrial(model, trial, calls)
    await held.find()
    given: list[ModelReply | None] = [held.reply] if held.reply is not None else []
    is_free = calls.profile.schemas == "free"
    if is_free or trial.free_logprobs or held.refused:
        given += [await _freely(calls, model, trial)]
    if held.refused and calls.profile.alternatives != 0:
        _go_on_without(calls, model, trial, held.refused)
    if trial.streams and model.capabilities.streaming:
        await calls.reply(None, logprobs=calls.profile.alternatives != 0, streamed=True)
    come = bool(given) and all(map(_has_alternatives, given))
    if come or not trial.needs_logprobs:
        _say_what_is_free(calls.profile, model, held)
    return calls.profile, come


async def _freely(calls: TrialCalls, model: Model, trial: Trial) -> ModelReply | None:
    """A reply that is held to nothing; None where log-probabilities are refused, which the profile then says.

    Raises:
        ConfigError: only the user wants them.
    """
    wanted = trial.decoding.top_logprobs is not None
    try:
        return await calls.reply(None, logprobs=wanted)
    except LogprobsRefused as refused:
        if not trial.needs_logprobs:
            raise ConfigError(
                f"model {model.name!r} gives no log-probabilities: leave `top_logprobs` out ({refused})"
            ) from None
        calls.learn(alternatives=0)
        return None


def _go_on_without(calls: TrialCalls, model: Model, trial: Trial, why: str) -> None:
    """Log-probabilities are refused together with a schema only: replies that are held come without.

    Raises:
        CapabilityMissing: some are of no use then.
    """
    if any(asked.logprobs == "needed" for asked in trial.replies):
        raise CapabilityMissing(
            f"{model.name} gives log-probabilities or holds replies to a schema, not both: say `--structured off`, or "
            f"ask for no log-probabilities ({why})"
        )
    calls.learn(logprobs_when_held=False)
    _log.warning(
        "replies that are held to a schema come without log-probabilities, and what tests them goes on without: "
        "with `--structured off` they come",
        model=model.name,
        why=why,
    )


def _say_what_is_free(profile: ModelProfile, model: Model, held: HeldTrial) -> None:
    """One line about replies that were to be held and are read as free JSON."""
    if not held.why:
        return
    if profile.schemas == "free":
        _log.warning("replies are not held to a schema, and read as free JSON", model=model.name, why=held.why)
    else:
        free = [reply_name(each.reply) for each in profile.exceptions if each.schemas == "free"]
        _log.warning(
            "some replies are not held to a schema, and read as free JSON", model=model.name, replies=free, why=held.why
        )


def _has_alternatives(reply: ModelReply | None) -> bool:
    return reply is not None and reply.tokens is not None and bool(np.isfinite(reply.tokens.alt_logprob).any())
