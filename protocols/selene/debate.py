"""Stage 2: rounds of simultaneous revision until the disagreement is stable (SELENE section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from moot.metrics.disagreement import semantic_disagreement
from moot.protocols.case import Case
from moot.protocols.embeddings import text_hashes
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Failure, Turn
from moot.protocols.replies import Position, position_type
from moot.protocols.seeds import seeded
from moot.protocols.selene.agent_state import AgentState, agent_state_of, all_equal, with_shared_spelling
from moot.protocols.selene.events import DebateStopped, RoundEnded
from moot.protocols.selene.gate import embedding_text, known
from moot.protocols.selene.opening import opening_slots
from moot.protocols.selene.settings import DebateSettings, SeleneSettings

TEMPLATE = "selene/revision"
JOINING = "selene/joining"

Stop = Literal["unanimous", "stable-agree", "stable-disagree", "diverging", "t_max"]
"""Reason why a debate stopped; see `stop_reason`."""


@dataclass(frozen=True, slots=True)
class Discussion:
    """A finished discussion.

    Attributes:
        states: last valid reply of every agent, including those that joined.
        rounds: completed rounds.
        stop: why it stopped.
        revision_failed: whether any revision failed; that agent keeps its last reply.
    """

    states: list[AgentState]
    rounds: int
    stop: Stop
    revision_failed: bool


def stop_reason(
    before: float | None, after: float | None, *, agree: bool, revised: bool, last: bool, epsilon: float
) -> Stop | None:
    """Reason to stop after a round, or None to continue.

    - |D(t-1) - D(t)| < epsilon, the rule of Algorithm 1: `stable-agree` when all give the same answer, else
      `stable-disagree`. A round in which every revision failed does not indicate stability.
    - Otherwise at the last round: `diverging` if D rose (by at least epsilon); `unanimous` if all give
      the same answer, although their wording still changes; else `t_max`.

    Args:
        before, after: D before and after the round; None if unknown, which never counts as stable.
        agree: whether all give the same answer after the round.
        revised: whether at least one revision succeeded.
        last: whether no further round is allowed.
        epsilon: the bound.
    """
    rise = None if before is None or after is None else after - before
    if revised and rise is not None and abs(rise) < epsilon:
        return "stable-agree" if agree else "stable-disagree"
    if not last:
        return None
    if rise is not None and rise > 0.0:
        return "diverging"
    return "unanimous" if agree else "t_max"


async def discuss(
    case: Case,
    floor: Floor,
    agent_states: Sequence[AgentState],
    opening_disagreement: float | None,
    settings: SeleneSettings,
) -> Discussion:
    """Let all agents revise simultaneously, round by round; paths `round/T/agent/I`, T from 1.

    With `debate.failed_openings=join` agents without a valid answer so far are asked for one at the same paths. A round
    in which one joins does not indicate stability: D before and after it are of different agents.

    Notes `RoundEnded` after each round, and `DebateStopped`.
    """
    current, before, any_failed = list(agent_states), opening_disagreement, False
    rules: DebateSettings = settings.debate
    for number in range(1, rules.max_rounds + 1):
        asked = [*(state.agent for state in current), *_absent(current, settings)]
        turns = await floor.ask_all([_request(case, floor, number, agent, current, settings) for agent in asked])
        revised = with_shared_spelling(case, _after(current, asked, turns, settings.gate.intrinsic), current)
        failures = {t.role: t.kind for t in turns if isinstance(t, Failure)}
        any_failed = any_failed or any(state.name in failures for state in current)
        texts = [embedding_text(case, state, with_rationale=settings.gate.embed_rationale) for state in revised]
        after = known(semantic_disagreement(await floor.embed(texts)))
        floor.note(_ended(number, before, after, current, revised, failures, texts))
        stop = stop_reason(
            before if len(revised) == len(current) else None,
            after,
            agree=all_equal(revised),
            revised=len(failures) < len(turns),
            last=number == rules.max_rounds,
            epsilon=rules.epsilon,
        )
        current = revised
        if stop is not None:
            floor.note(_stopped(stop, number, before, after, rules))
            return Discussion(current, number, stop, any_failed)
        before = after
    raise AssertionError("the last round always stops")


def _absent(current: Sequence[AgentState], settings: SeleneSettings) -> list[int]:
    """Agents without a valid answer so far that are asked for one."""
    if settings.debate.failed_openings == "leave-out":
        return []
    return sorted(set(range(settings.agents)) - {state.agent for state in current})


def _after(
    current: Sequence[AgentState], asked: Sequence[int], turns: Sequence[Turn[Position] | Failure], reading: str
) -> list[AgentState]:
    """Every agent's last valid reply after a round, in the agents' order."""
    last = {state.agent: state for state in current}
    for agent, turn in zip(asked, turns, strict=True):
        if not isinstance(turn, Failure):
            last[agent] = agent_state_of(agent, turn, reading)
    return [last[agent] for agent in sorted(last)]


def _request(
    case: Case, floor: Floor, number: int, agent: int, everyone: Sequence[AgentState], settings: SeleneSettings
) -> Request[Position]:
    """Request to an agent in a round: to revise its answer, or, without one, to join.

    The others' replies are in a random order per agent, drawn by the seed.
    """
    path, confidence = f"round/{number}/agent/{agent}", settings.debate.show_confidence
    own = next((state for state in everyone if state.agent == agent), None)
    shown = [other.shown(confidence=confidence) for other in everyone if other is not own]
    seeded(floor.seed, f"order/{path}").shuffle(shown)
    revising = {} if own is None else {"round": number, "own": own.shown(confidence=confidence)}
    slots = opening_slots(case, settings) | revising | {"others": shown}
    reply = position_type(answer_first=settings.answer_first)
    return Request(f"agent/{agent}", JOINING if own is None else TEMPLATE, slots, reply, path, images=case.images)


def _delta(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _ended(
    number: int,
    before: float | None,
    after: float | None,
    old: Sequence[AgentState],
    new: Sequence[AgentState],
    failures: dict[str, str],
    texts: Sequence[str],
) -> RoundEnded:
    before_of = {state.name: state.answer for state in old}
    return RoundEnded(
        path=f"round/{number}",
        round=number,
        d=after,
        d_before=before,
        delta=_delta(before, after),
        answers={state.name: state.answer for state in new},
        stated={state.name: state.confidence for state in new},
        changed=[state.name for state in new if before_of.get(state.name, state.answer) != state.answer],
        joined=[state.name for state in new if state.name not in before_of],
        failed=failures,
        embedded=dict(zip((state.name for state in new), text_hashes(texts), strict=True)),
    )


def _stopped(
    stop: Stop, rounds: int, before: float | None, after: float | None, rules: DebateSettings
) -> DebateStopped:
    return DebateStopped(
        path="stop",
        reason=stop,
        rounds=rounds,
        d=after,
        delta=_delta(before, after),
        epsilon=rules.epsilon,
        max_rounds=rules.max_rounds,
    )
