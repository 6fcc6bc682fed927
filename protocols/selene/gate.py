"""The gate (SELENE section 3.2): from the openings' signals to "skip" or "debate", with the reasons."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy.typing as npt

from moot.metrics.disagreement import confidence_misalignment, semantic_disagreement
from moot.protocols.case import Case, label_in_words
from moot.protocols.selene.agent_state import AgentState, all_equal, comparable, comparable_intrinsic, mean_known
from moot.protocols.selene.events import UNKNOWN, GateDecided
from moot.protocols.selene.settings import GateSettings


def known(value: float) -> float | None:
    """The value, or None for NaN: records contain no NaN."""
    return None if math.isnan(value) else value


def embedding_text(case: Case, state: AgentState, *, with_rationale: bool) -> str:
    """Embedded parts of a reply: question, rationale and answer (eq. 1); never the shared passage.

    Joined by line breaks, without empty parts. The answer is as the agent gave it; a lettered one is followed by the
    text of its choice.
    """
    parts = (case.question, state.reasoning if with_rationale else "", label_in_words(case, state.said))
    return "\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class GateSignals:
    """Signals of the gate.

    Attributes:
        disagreement: D, eq. 2; None with fewer than two openings.
        misalignment: M, eq. 3, over the agents whose p_i is known; None if none is, or if they are of several
            stages.
        mean_intrinsic: mean of the known p_i; None likewise.
        mean_stated: mean stated confidence.
        equal: whether all valid answers are the same.
        answers, stated, intrinsic, stages: per valid opening, in the agents' order; see `AgentState`.
        complete: whether every asked agent gave a valid opening.
        comparable: whether the known p_i are of one stage.
        embedded: hash of the embedded text per valid opening, see `moot.protocols.embeddings.text_hash`.
    """

    disagreement: float | None
    misalignment: float | None
    mean_intrinsic: float | None
    mean_stated: float | None
    equal: bool
    answers: tuple[str, ...] = ()
    stated: tuple[float | None, ...] = ()
    intrinsic: tuple[float | None, ...] = ()
    stages: tuple[str, ...] = ()
    complete: bool = True
    comparable: bool = True
    embedded: tuple[str, ...] = ()

    @property
    def unanimous(self) -> bool:
        """Whether every asked agent gave the same answer: a failed opening counts as disagreement."""
        return self.equal and self.complete


def signals_of(agent_states: Sequence[AgentState], embeddings: npt.ArrayLike, asked: int) -> GateSignals:
    """Signals of the valid openings of `asked` agents; `embeddings` has one row per state."""
    stated = [state.confidence for state in agent_states]
    intrinsic = comparable_intrinsic(agent_states)
    return GateSignals(
        disagreement=known(semantic_disagreement(embeddings)),
        misalignment=known(confidence_misalignment(stated, intrinsic)),
        mean_intrinsic=mean_known(intrinsic),
        mean_stated=mean_known(stated),
        equal=all_equal(agent_states),
        answers=tuple(state.answer for state in agent_states),
        stated=tuple(stated),
        intrinsic=tuple(state.intrinsic for state in agent_states),
        stages=tuple(state.stage for state in agent_states),
        complete=len(agent_states) == asked,
        comparable=comparable(agent_states),
    )


@dataclass(frozen=True, slots=True)
class GateDecision:
    """Decision of the gate.

    Attributes:
        skip: whether the debate is skipped.
        reasons: when debating, the tests that failed: `disagreement`, `misalignment`, `low_intrinsic`,
            `not_comparable`, `not_unanimous`, `incomplete`, those that could not be made, as `misalignment_unknown`, or
            `always`; when skipping, `all_tests_passed`, `known_tests_passed` with those that could not be made, or
            `never`.
        untested: tests that are on but could not be made: a value was unknown.
    """

    skip: bool
    reasons: tuple[str, ...]
    untested: tuple[str, ...] = ()


def decide(signals: GateSignals, gate: GateSettings) -> GateDecision:
    """Skip if every enabled test passes.

    The tests are D < tau_d, M < tau_m, mean p >= tau_p, equal answers, and a valid answer of every agent. Those of M
    and p need the p_i of every valid answer; the known ones alone can only fail them. What happens if a test cannot be
    made is set by `gate.if_untested`. An unknown D always debates, as do p_i of several stages: each may be low, which
    no mean of them shows.
    """
    if gate.when != "selective":
        return GateDecision(gate.when == "never", (gate.when,))
    partly = None in signals.intrinsic
    failed, untested = [], []
    for name, value, passes, tau, incomplete in (
        ("disagreement", signals.disagreement, operator.lt, gate.tau_d, False),
        ("misalignment", signals.misalignment, operator.lt, gate.tau_m, partly),
        ("low_intrinsic", signals.mean_intrinsic, operator.ge, gate.tau_p, partly),
    ):
        if tau is None:
            continue
        if value is not None and not passes(value, tau):
            failed.append(name)
        elif value is None or incomplete:
            untested.append(name)
    if not signals.comparable and any(name != "disagreement" for name in untested):
        failed.append("not_comparable")
    if gate.require_unanimity and not signals.equal:
        failed.append("not_unanimous")
    if gate.require_complete and not signals.complete:
        failed.append("incomplete")
    debates = signals.comparable and not gate.skips_untested
    failed += [name + UNKNOWN for name in untested if debates or name == "disagreement"]
    unknown = [name + UNKNOWN for name in untested]
    passed = ("known_tests_passed", *unknown) if unknown else ("all_tests_passed",)
    return GateDecision(not failed, tuple(failed) or passed, tuple(untested))


def gate_event(signals: GateSignals, decision: GateDecision, gate: GateSettings) -> GateDecided:
    """Event of a decision."""
    return GateDecided(
        path="gate",
        skip=decision.skip,
        reasons=list(decision.reasons),
        untested=list(decision.untested),
        **({"if_untested": gate.if_untested} if decision.untested else {}),
        when=gate.when,
        d=signals.disagreement,
        tau_d=gate.tau_d,
        tau_d_encoder=gate.tau_d_encoder,
        m=signals.misalignment,
        tau_m=gate.tau_m,
        p=signals.mean_intrinsic,
        tau_p=gate.tau_p,
        c=signals.mean_stated,
        unanimous=signals.unanimous,
        equal=signals.equal,
        require_unanimity=gate.require_unanimity,
        complete=signals.complete,
        require_complete=gate.require_complete,
        comparable=signals.comparable,
        intrinsic_reading=gate.intrinsic,
        answers=list(signals.answers),
        stated=list(signals.stated),
        intrinsic=list(signals.intrinsic),
        logprob_stages=list(signals.stages),
        embedded=list(signals.embedded),
    )
