"""Conversion of ask results to the protocol's view: turns, judgments, decisions."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel

from moot.actors.record.rows import DECISION
from moot.protocols.errors import REPLAY_DIVERGED, ReplayDiverged
from moot.protocols.messages import Ask, AskResult, Decision, Failure, Judgment, Missing, Turn
from moot.protocols.replies import UNSTATED, Score

R = TypeVar("R", bound=BaseModel)


def turn_of(answered: AskResult, role: str, reply: type[R], path: str) -> Turn[R] | Failure:
    """Turn of a reply, or its failure.

    Raises:
        ReplayDiverged: a replay cannot continue.
    """
    if answered.failure == REPLAY_DIVERGED:
        raise ReplayDiverged(answered.error)
    if answered.data is None:
        return Failure(path, role, answered.failure or "unparsable", answered.error)
    return Turn(
        path=path,
        role=role,
        model=answered.model,
        text=answered.text,
        reply=reply.model_validate(answered.data, context=UNSTATED),
        answer=answered.answer,
        intrinsic=answered.intrinsic,
        usage=answered.usage,
    )


def judgment_of(outcome: Turn[Score] | Failure, judge: str, variant: int, pass_index: int) -> Judgment | Missing:
    """A judge's score as a judgment; a missing one when it failed or abstained."""
    if isinstance(outcome, Failure):
        return Missing(outcome.path, judge, variant, pass_index, f"{outcome.kind}: {outcome.message}")
    score = outcome.reply
    return Judgment(
        path=outcome.path,
        judge=judge,
        model=outcome.model,
        variant=variant,
        pass_index=pass_index,
        score=score.score,
        support=score.support,
        rationale=score.rationale,
    )


def decision_id(ask: Ask) -> str:
    """Reply id of a decision: there is one per form, so its path names it."""
    return f"{DECISION}{ask.case_id}-{ask.attempt}-{ask.path}"


def decision_columns(ask: Ask, decision: Decision) -> dict[str, Any]:
    """Row of a decision in the journal; it costs nothing."""
    return {
        "case_id": ask.case_id,
        "attempt": ask.attempt,
        "path": ask.path,
        "role": "person",
        "model": decision.by,
        "template": "consult",
        "fingerprint": ask.fingerprint,
        "messages": msgspec.json.encode(ask.slots).decode(),
        "data": msgspec.json.encode(decision).decode(),
        "outcome": "ok",
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "reply_id": decision_id(ask),
        "at": time.time(),
    }
