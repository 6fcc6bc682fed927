"""SELENE: independent answers, a gate, a selective debate, and a judgment weighted by its variance."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

from moot.protocols.base import CaseField, DebateProtocol
from moot.protocols.case import Case
from moot.protocols.embeddings import text_hashes
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict
from moot.protocols.replies import Score, position_type
from moot.protocols.seeds import seeded
from moot.protocols.selene.agent_state import AgentState, answer_shares, comparable_intrinsic, known_part, mean_known
from moot.protocols.selene.debate import discuss
from moot.protocols.selene.events import BranchesCompared, SelenePayload, SkipAudited
from moot.protocols.selene.evidence import CaseVariants, Paraphrase, with_retrieved
from moot.protocols.selene.gate import (
    GateDecision,
    GateSignals,
    decide,
    embedding_text,
    gate_event,
    signals_of,
)
from moot.protocols.selene.judging import SeleneRuling, audit_judging, rule_on_candidates, rule_on_consensus
from moot.protocols.selene.opening import open_debate
from moot.protocols.selene.settings import SeleneSettings

_READS: frozenset[CaseField] = frozenset({"passage", "choices", "images"})

VOTING_TEMPERATURE = 1.0
"""Temperature of answers without debate or judges: a vote depends on their diversity (section 4.3)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Branch:
    """End of one branch of the protocol: its ruling, how it was reached, and the last replies."""

    ruling: SeleneRuling
    how: str
    states: Sequence[AgentState]
    rounds: int = 0
    flags: tuple[str, ...] = ()


class Selene(DebateProtocol):
    """Selective debate initiation and evidence-weighted self-consistency (SELENE, Algorithm 1).

    The baselines are this class with other settings; see `moot.protocols.registry`.

    Args:
        settings: see `SeleneSettings`.
        name: name of this configuration for users.

    Attributes:
        roles: `agent`, and `judge` if judges are asked.
        temperatures: 1 for answers that are only counted, as in the paper's Self-Consistency; else the roles' own.
            goes_on_without_logprobs: unless `gate.intrinsic` is set explicitly.
        embedding_threshold, threshold_encoder: `gate.tau_d` and, if it was set, its encoder.
    """

    name = "selene"
    Settings = SeleneSettings
    settings: SeleneSettings
    prompt_folders = frozenset({"selene"})
    without_logprobs = (
        "the gate can go on without them (`--set gate.intrinsic=none`), or estimate them from further replies "
        "(`--set gate.intrinsic=resampled`)"
    )
    without_json = "`--set judging.variants=subset` asks for no paraphrases"

    def __init__(self, settings: SeleneSettings | None = None, name: str | None = None) -> None:
        self.settings = settings if settings is not None else SeleneSettings()
        self.name = name or self.name
        judged = self.settings.judging.method != "none" or self.settings.audit_judging
        self.roles = ("agent", "judge") if judged else ("agent",)
        rewritten = (Paraphrase,) if self.settings.judging.variants == "paraphrase" else ()
        position = position_type(answer_first=self.settings.answer_first)
        self.replies = {"agent": (position,), "judge": (Score, *rewritten)}
        self.needs_logprobs = self.settings.needs_logprobs
        self.goes_on_without_logprobs = "intrinsic" not in self.settings.gate.model_fields_set
        counted = self.settings.votes_only and self.settings.agents * self.settings.vote.samples > 1
        self.temperatures = {"agent": VOTING_TEMPERATURE} if counted else {}
        self.most_members = {"agent": self.settings.agents}
        self.compares_embeddings = self.settings.measures_disagreement
        self.gated = self.settings.gate.when == "selective"
        self.reads_documents = self.settings.evidence.passages > 0
        self.reads = _READS | {"documents"} if self.reads_documents else _READS
        self._read_threshold()

    def for_encoder(self, encoder: str) -> Selene:
        """This protocol for a run with `encoder`; see `SeleneSettings.for_encoder`.

        Raises:
            ConfigError: `gate.tau_d` was set for another encoder.
        """
        fitted = copy.copy(self)
        fitted.settings = self.settings.for_encoder(encoder)
        fitted._read_threshold()
        return fitted

    def _read_threshold(self) -> None:
        gate = self.settings.gate
        self.embedding_threshold = gate.tau_d if self.gated else None
        self.threshold_encoder = gate.tau_d_encoder if "tau_d" in gate.model_fields_set else None

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case.

        Notes the events `retrieved`, `gate`, `round`, `stop`, `judging`, and, where configured, `audit` and `branches`.

        Raises:
            QuorumFailed: with fewer than two valid openings.
        """
        settings = self.settings
        case = await with_retrieved(case, floor, settings.evidence.passages)
        variants = CaseVariants(floor, settings.judging.k, settings.judging.variants)
        agent_states = await open_debate(case, floor, settings)
        if settings.gate.when == "never":
            branch = await self._undebated(case, floor, agent_states, variants)
            payload = SelenePayload()
        else:
            signals = await self._signals(case, floor, agent_states)
            decision = decide(signals, settings.gate)
            floor.note(gate_event(signals, decision, settings.gate))
            branch = await self._branches(case, floor, agent_states, variants, signals, decision)
            payload = SelenePayload(
                skip=decision.skip,
                reasons=list(decision.reasons),
                d=signals.disagreement,
                m=signals.misalignment,
                p=signals.mean_intrinsic,
            ).model_copy(update=_coverage(signals))
        if settings.audit_judging:
            await audit_judging(case, floor, branch.states, settings.judging, variants)
        if len(agent_states) < settings.agents * settings.vote.samples:
            branch = dataclasses.replace(branch, flags=("opening-failed", *branch.flags))
        return _verdict(case, branch, payload)

    async def _signals(self, case: Case, floor: Floor, agent_states: Sequence[AgentState]) -> GateSignals:
        with_rationale = self.settings.gate.embed_rationale
        texts = [embedding_text(case, state, with_rationale=with_rationale) for state in agent_states]
        signals = signals_of(agent_states, await floor.embed(texts), self.settings.agents)
        return dataclasses.replace(signals, embedded=tuple(text_hashes(texts)))

    async def _undebated(
        self, case: Case, floor: Floor, agent_states: Sequence[AgentState], variants: CaseVariants
    ) -> Branch:
        ruling = await rule_on_candidates(case, floor, agent_states, self.settings.judging, variants)
        if self.settings.judging.method != "none":
            return Branch(ruling, "judged", agent_states)
        alone = self.settings.agents * self.settings.vote.samples == 1
        return Branch(ruling, "single" if alone else "vote", agent_states)

    async def _branches(
        self,
        case: Case,
        floor: Floor,
        agent_states: Sequence[AgentState],
        variants: CaseVariants,
        signals: GateSignals,
        decision: GateDecision,
    ) -> Branch:
        """Run the branch chosen by the gate; for an audit or calibration also the other one."""
        both = self.settings.both_branches
        audited = not both and decision.skip and seeded(floor.seed, "audit").random() < self.settings.audit_skipped
        skipped = debated = None
        if decision.skip or both:
            ruling = await rule_on_consensus(case, floor, agent_states, self.settings.judging)
            skipped = Branch(ruling, "skipped", agent_states)
        if not decision.skip or both or audited:
            debated = await self._debated(case, floor, agent_states, variants, signals.disagreement)
        if skipped is not None and debated is not None:
            floor.note(_compared(BranchesCompared if both else SkipAudited, skipped, debated, decision))
        chosen = skipped if decision.skip else debated
        assert chosen is not None, "the branch that the gate chose always runs"
        return chosen

    async def _debated(
        self,
        case: Case,
        floor: Floor,
        agent_states: Sequence[AgentState],
        variants: CaseVariants,
        disagreement: float | None,
    ) -> Branch:
        talk = await discuss(case, floor, agent_states, disagreement, self.settings)
        ruling = await rule_on_candidates(case, floor, talk.states, self.settings.judging, variants)
        flags = ("revision-failed",) if talk.revision_failed else ()
        return Branch(ruling, talk.stop, talk.states, talk.rounds, flags)


def _coverage(signals: GateSignals) -> dict[str, int]:
    """Number of known p_i among the openings; empty if all or none are known."""
    known, openings = sum(p is not None for p in signals.intrinsic), len(signals.intrinsic)
    return {"p_known": known, "openings": openings} if 0 < known < openings else {}


def _compared(
    made: type[BranchesCompared], skipped: Branch, debated: Branch, decision: GateDecision
) -> BranchesCompared:
    return made(
        path=made.kind,
        verdict_from="skip" if decision.skip else "debate",
        skipped_answer=skipped.ruling.answer,
        skipped_confidence=skipped.ruling.score,
        skipped_flags=list(skipped.ruling.flags),
        debated_answer=debated.ruling.answer,
        debated_confidence=debated.ruling.score,
        debated_flags=[*debated.flags, *debated.ruling.flags],
        stop=debated.how,
        rounds=debated.rounds,
    )


def _verdict(case: Case, branch: Branch, gate: SelenePayload) -> Verdict:
    """Verdict; its confidence is the judge's score, else the supporters' mean known p, else None.

    The payload says which, and of a mean p where it is taken, as a p before a schema's mask and one after it are not of
    one kind. The distribution is shares of votes, which nobody stated and no judging moves; the payload says so.
    """
    ruling = branch.ruling
    backers = [state for state in branch.states if state.answer == ruling.answer]
    backing = mean_known(comparable_intrinsic(backers))
    confidence = ruling.score if ruling.score is not None else backing
    source = "judge" if ruling.score is not None else "intrinsic" if backing is not None else "unknown"
    sources: dict[str, Any] = {"confidence_from": source}
    if source == "intrinsic" and (stage := _common_stage(backers)):
        sources["confidence_stage"] = stage
    if source == "intrinsic" and (known := known_part(backers)) is not None:
        sources |= {"confidence_known": known, "confidence_agents": len(backers)}
    if voted := answer_shares(case, branch.states):
        sources["distribution_from"] = "votes"
    return Verdict(
        answer=ruling.answer,
        how=branch.how,
        confidence=confidence,
        distribution=voted,
        rounds=branch.rounds,
        flags=(*branch.flags, *ruling.flags),
        payload=gate.model_copy(update=sources).model_dump(exclude_unset=True),
    )


def _common_stage(agent_states: Sequence[AgentState]) -> str:
    """The common stage of their p; empty if none has one."""
    return next((state.stage for state in agent_states if state.stage), "")
