"""State of an agent: its last valid reply, and simple counts over several of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from moot.protocols.case import Case
from moot.protocols.messages import Intrinsic, Turn
from moot.protocols.replies import Position
from moot.protocols.tasks.scoring import alike


@dataclass(frozen=True, slots=True)
class AgentState:
    """An agent's last valid reply.

    Attributes:
        agent: the agent's number.
        name: its full role name, e.g. `agent/1`.
        answer: canonical label or folded free text, in the spelling of the first agent with an equal answer.
        reasoning: the agent's reasoning.
        confidence: the stated confidence c_i, in [0, 1]; None if none was stated.
        intrinsic: the intrinsic probability p_i as configured; None if unknown.
        stage: sampling stage of p_i, see `Intrinsic.stage`; empty if it is not used.
        spelling: the agent's own spelling, if different; else empty.
    """

    agent: int
    name: str
    answer: str
    reasoning: str
    confidence: float | None
    intrinsic: float | None
    stage: str = ""
    spelling: str = ""

    @property
    def said(self) -> str:
        """Answer in the agent's own spelling."""
        return self.spelling or self.answer

    def shown(self, *, confidence: bool) -> dict[str, Any]:
        """Form of the reply in agents' prompts, with or without its stated confidence, if it has one."""
        shown = {"name": self.name, "answer": self.said, "reasoning": self.reasoning}
        return shown | {"confidence": self.confidence} if confidence and self.confidence is not None else shown


def agent_state_of(agent: int, turn: Turn[Position], reading: str) -> AgentState:
    """State of an agent after a turn; `reading` is `gate.intrinsic`."""
    p = read_intrinsic(turn.intrinsic, reading)
    return AgentState(
        agent=agent,
        name=turn.role,
        answer=turn.answer if turn.answer is not None else turn.reply.answer,
        reasoning=turn.reply.reasoning,
        confidence=turn.reply.confidence,
        intrinsic=p,
        stage=turn.intrinsic.stage if turn.intrinsic is not None and p is not None else "",
    )


def with_shared_spelling(
    case: Case, agent_states: Sequence[AgentState], before: Sequence[AgentState] = ()
) -> list[AgentState]:
    """States with equal answers spelled alike, those of `before` first.

    Equality is defined by the task (`Case.scoring`): numbers by value, short answers after normalisation.
    """
    if case.labels:
        return list(agent_states)
    answers = alike([*(state.answer for state in before), *(state.said for state in agent_states)], case.scoring)
    return [
        dataclasses.replace(state, answer=answer, spelling="" if answer == state.said else state.said)
        for state, answer in zip(agent_states, answers[len(before) :], strict=True)
    ]


def read_intrinsic(intrinsic: Intrinsic | None, reading: str) -> float | None:
    """p_i under a reading of the token probabilities; None for readings that use none, and if unknown."""
    if intrinsic is None:
        return None
    return {"normalised": intrinsic.normalised, "printed": intrinsic.printed}.get(reading)


def comparable(agent_states: Sequence[AgentState]) -> bool:
    """Whether all known p_i are taken at one stage.

    After a schema's mask p_i is a share of the permitted labels, before it the model's own probability; before and
    after temperature are different numbers, too, and `raw` does not say which of the two it is.
    """
    return len({state.stage for state in agent_states if state.stage}) < 2


def comparable_intrinsic(agent_states: Sequence[AgentState]) -> list[float | None]:
    """p_i of each; all unknown if they are of several stages."""
    same = comparable(agent_states)
    return [state.intrinsic if same else None for state in agent_states]


def mean_known(values: Sequence[float | None]) -> float | None:
    """Mean of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def known_part(agent_states: Sequence[AgentState]) -> int | None:
    """Number of states with a known p_i, where a mean covers only these; None if it covers all, or none."""
    known = sum(p is not None for p in comparable_intrinsic(agent_states))
    return known if 0 < known < len(agent_states) else None


def all_equal(agent_states: Sequence[AgentState]) -> bool:
    """Whether all states have the same answer; agents without an answer have no state."""
    return len({state.answer for state in agent_states}) <= 1


def answer_shares(case: Case, agent_states: Sequence[AgentState]) -> dict[str, float] | None:
    """Share of the agents behind each label of a closed set; None for free text."""
    if not case.labels or not agent_states:
        return None
    return {label: sum(s.answer == label for s in agent_states) / len(agent_states) for label in case.labels}
