"""CEDA: evidence from texts and pictures, a debate between two models, judges, and a classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any

from moot.protocols.base import CaseField, DebateProtocol
from moot.protocols.case import Case
from moot.protocols.ceda.conflicts import Conflict, conflicts_of, pairs_of
from moot.protocols.ceda.context_reply import ContextReply, OneItemReply
from moot.protocols.ceda.debate import StateHistory, debate
from moot.protocols.ceda.events import EvidenceGathered
from moot.protocols.ceda.evidence_split import Shown, split_evidence
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.judging import collect_ruling, ruling_event
from moot.protocols.ceda.outcome import output_of, verdict_of
from moot.protocols.ceda.pictures import describe_pictures
from moot.protocols.ceda.replies import JudgeReply, MessageReply
from moot.protocols.ceda.retrieval import retrieve
from moot.protocols.ceda.settings import CedaSettings
from moot.protocols.ceda.slots import conflicts_in_words, context_slots
from moot.protocols.ceda.state import CaseMaterial, StateContent, SystemPrompt
from moot.protocols.ceda.synthesis import EvidenceSynthesis, grounded
from moot.protocols.claims import CLAIM_LABELS, is_claim
from moot.protocols.errors import AskFailed, CaseUnfit
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict

CONTEXT = "ceda/context"


@dataclass(frozen=True, slots=True)
class EvidenceContext:
    """Context of the evidence of a debate.

    Attributes:
        conflicts: contradictory pairs of items.
        considered: number of examined pairs.
        shown_to: by debater, the ids of the items in its prompts.
        synthesis: a model's statements on the evidence; None if no model was asked.
    """

    conflicts: tuple[Conflict, ...]
    considered: int
    shown_to: dict[str, tuple[str, ...]]
    synthesis: EvidenceSynthesis | None = None


def context_of(items: Sequence[Item], shown: Shown) -> EvidenceContext:
    """Context of a claim's evidence by rules; see `conflicts` and `evidence_split`."""
    conflicts = conflicts_of(items)
    return EvidenceContext(conflicts, len(pairs_of(items)), split_evidence(items, conflicts, shown))


async def synthesised(floor: Floor, content: StateContent, shown: Shown) -> EvidenceContext:
    """Context of a claim's evidence by a model, at the path `context`; without evidence no model is asked.

    If the model gives no reply, the evidence is unchanged and has no known conflicts.
    """
    items = content.evidence
    if not items:
        return EvidenceContext((), 0, split_evidence(items, (), shown), _no_synthesis())
    kind = ContextReply if len(items) > 1 else OneItemReply
    try:
        turn = await floor.ask("context/0", CONTEXT, context_slots(content), reply=kind, path="context")
    except AskFailed as failed:
        missing = _no_synthesis(f"{failed.kind}: {failed.message}")
        return EvidenceContext((), 0, split_evidence(items, (), shown), missing)
    synthesis, conflicts = grounded(turn.reply, items)
    return EvidenceContext(
        conflicts, len(list(combinations(items, 2))), split_evidence(items, conflicts, shown), synthesis
    )


def _no_synthesis(missing: str = "") -> EvidenceSynthesis:
    return EvidenceSynthesis(statements=(), unfounded=0, missing=missing)


class Ceda(DebateProtocol):
    """Cross-modal evaluation through debate agents: is a claim supported or hallucinated?

    Source: the CEDA paper; where it is silent or inconsistent, docs/protocols/ceda.md states the choice.

    Args:
        settings: see `CedaSettings`.

    Attributes:
        roles: `debater` (two members), `judge` (one or several), `vision` (asked if there are pictures), and
            `context` if `context.by` is `model`.
        speakers: `vision`, which sees the pictures.
        needs_claims: its cases are claims, with their two labels.
    """

    name = "ceda"
    Settings = CedaSettings
    settings: CedaSettings
    sample = "sample-claims"
    speakers = ("vision",)
    needs_claims = True
    prompt_folders = frozenset({"ceda"})
    reads = frozenset[CaseField]({"passage", "documents", "images"})
    reads_documents = True
    classifies = True
    replies = MappingProxyType(
        {"debater": (MessageReply,), "judge": (JudgeReply,), "context": (ContextReply, OneItemReply)}
    )
    reply_tokens = MappingProxyType({"debater": 130, "judge": 500, "vision": 400, "context": 1200})
    most_members = MappingProxyType({"debater": 2, "vision": 1, "context": 1})
    temperatures = MappingProxyType({"debater": (0.2, 0.6)})

    def __init__(self, settings: CedaSettings | None = None) -> None:
        self.settings = settings if settings is not None else CedaSettings()
        by_model = self.settings.context.by == "model"
        self.roles = ("debater", "judge", "vision", *(("context",) if by_model else ()))

    def effective_settings(self) -> Mapping[str, Any]:
        """Settings, with ineffective ones normalised."""
        return self.settings.effective().model_dump(mode="json")

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Check one claim. Notes the events `state`, `evidence`, `stance` and `ruling`.

        Raises:
            CaseUnfit: the case is not a claim.
            AskFailed: a debater's reply failed, or no evidence remains because pictures could not be described.
            QuorumFailed: no judge replied.
        """
        if not is_claim(case) or not case.question.strip():
            raise CaseUnfit(f"ceda checks claims: the case needs a question and the labels {', '.join(CLAIM_LABELS)}")
        settings = self.settings
        versions = StateHistory(floor, self._initial(case))
        texts = await retrieve(case, floor, settings.evidence)
        versions.add("intermediate", "retrieval", StateContent(evidence=tuple(texts)))
        if case.images:
            seen = await describe_pictures(case, floor, settings, texts)
            versions.add(
                "intermediate",
                "vision",
                StateContent(looked_for=seen.looked_for, evidence=seen.items, missing_pictures=seen.missing),
            )
        await self._set_context(floor, versions)
        ending = await debate(floor, versions, max_turns=settings.max_turns)
        ruling = await collect_ruling(floor, versions.content)
        versions.add("output", "judge", StateContent(output=output_of(ruling, None)))
        classified = await floor.classify(ruling.spoken_by.classifier_text)
        if classified is not None:
            versions.add("output", "classifier", StateContent(output=output_of(ruling, classified)))
        floor.note(ruling_event(ruling, classified))
        return verdict_of(versions.content, ending, ruling, classified)

    def _initial(self, case: Case) -> StateContent:
        return StateContent(
            claim=case.question,
            material=CaseMaterial(passage=len(case.passage), documents=len(case.documents), pictures=len(case.images)),
            system_prompt=SystemPrompt(role=self.settings.role, instruction=self.settings.instruction),
        )

    async def _set_context(self, floor: Floor, versions: StateHistory) -> None:
        """Agent C: structure the evidence; from then on the system prompt names the conflicts."""
        before = versions.content
        if self.settings.context.by == "model":
            context = await synthesised(floor, before, self.settings.shown)
        else:
            context = await floor.compute(context_of, before.evidence, self.settings.shown)
        found = StateContent(conflicts=context.conflicts, synthesis=context.synthesis, shown_to=context.shown_to)
        prompt = before.system_prompt
        assert prompt is not None, "the first version of the state has it"
        prompt = prompt.model_copy(update={"evidence": bool(before.evidence), "conflicts": conflicts_in_words(found)})
        versions.add("intermediate", "context", found.with_added(StateContent(system_prompt=prompt)))
        known = versions.content
        floor.note(
            EvidenceGathered(
                items=known.evidence,
                conflicts=known.conflicts,
                considered=context.considered,
                shown_to=known.shown_to,
                missing_pictures=tuple(missing.picture for missing in known.missing_pictures),
                synthesis=known.synthesis,
                path="evidence",
            )
        )
