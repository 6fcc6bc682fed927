"""Stage 1: every agent answers independently; if configured, p_i is estimated by resampling."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from moot.protocols.case import Case, case_slots
from moot.protocols.errors import QuorumFailed
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Failure
from moot.protocols.replies import Position, position_type
from moot.protocols.selene.agent_state import AgentState, agent_state_of, with_shared_spelling
from moot.protocols.selene.settings import SeleneSettings
from moot.protocols.tasks.scoring import same_answer

TEMPLATE = "selene/opening"


def opening_slots(case: Case, settings: SeleneSettings) -> dict[str, Any]:
    """Common slots of every agent's template: the case, its retrieved evidence, and the order of the reply."""
    evidence = {"evidence": list(case.documents)} if case.documents else {}
    return case_slots(case) | evidence | {"answer_first": settings.answer_first}


def _request(case: Case, settings: SeleneSettings, agent: int, path: str, sample: int = 0) -> Request[Position]:
    reply = position_type(answer_first=settings.answer_first)
    slots = opening_slots(case, settings)
    return Request(f"agent/{agent}", TEMPLATE, slots, reply, path, sample=sample, images=case.images)


def _opening_path(agent: int, sample: int) -> str:
    return f"opening/agent/{agent}" if sample == 0 else f"vote/agent/{agent}/{sample}"


async def open_debate(case: Case, floor: Floor, settings: SeleneSettings) -> list[AgentState]:
    """The valid independent answers, in the agents' order; paths `opening/agent/I`, `vote/agent/I/SAMPLE`.

    Raises:
        QuorumFailed: with fewer than two valid openings (fewer than one if only one was requested).
    """
    wanted = [(agent, sample) for sample in range(settings.vote.samples) for agent in range(settings.agents)]
    turns = await floor.ask_all([_request(case, settings, a, _opening_path(a, s), s) for a, s in wanted])
    agent_states = [
        agent_state_of(agent, turn, settings.gate.intrinsic)
        for (agent, _), turn in zip(wanted, turns, strict=True)
        if not isinstance(turn, Failure)
    ]
    agent_states = with_shared_spelling(case, agent_states)
    quorum = min(2, len(wanted))
    if len(agent_states) < quorum:
        failed = "; ".join(f"{t.path}: {t.kind}" for t in turns if isinstance(t, Failure))
        raise QuorumFailed(f"{len(agent_states)} of {len(wanted)} openings are valid, {quorum} needed ({failed})")
    if settings.gate.intrinsic == "resampled" and settings.gate.uses_intrinsic:
        return await resample(case, floor, agent_states, settings)
    return agent_states


async def resample(
    case: Case, floor: Floor, agent_states: Sequence[AgentState], settings: SeleneSettings
) -> list[AgentState]:
    """The states with p_i = share of equal answers among `gate.resamples` further replies of the same agent.

    Paths `resample/agent/I/N`, N from 1, each with `sample=N` and the opening's decoding. Failed replies are
    excluded from both counts; an agent with only failed replies keeps an unknown p_i.
    """
    wanted = [(state, n) for state in agent_states for n in range(1, settings.gate.resamples + 1)]
    turns = await floor.ask_all(
        [_request(case, settings, state.agent, f"resample/agent/{state.agent}/{n}", n) for state, n in wanted]
    )
    equal: dict[int, list[bool]] = {state.agent: [] for state in agent_states}
    for (state, _), turn in zip(wanted, turns, strict=True):
        if not isinstance(turn, Failure):
            again = agent_state_of(state.agent, turn, "resampled").answer
            equal[state.agent].append(same_answer(state.answer, again, case.scoring))
    return [
        dataclasses.replace(state, intrinsic=sum(found) / len(found) if (found := equal[state.agent]) else None)
        for state in agent_states
    ]
