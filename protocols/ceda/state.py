"""The state of a debate: read and extended by each agent, version by version (section 3.2).

The record holds what each step added, as events of kind `state`; `rebuild` restores every full version.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from moot.protocols.ceda.conflicts import Conflict
from moot.protocols.ceda.events import Stage, StateAdvanced
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.pictures import MissingPicture
from moot.protocols.ceda.stance import ClaimMessage
from moot.protocols.ceda.synthesis import EvidenceSynthesis
from moot.protocols.errors import RecordError
from moot.protocols.events import EventData, Listed


class _SparseData(EventData):
    """A part recorded without fields at their defaults."""

    @model_serializer(mode="wrap")
    def _sparse(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        usual = {name: field.get_default(call_default_factory=True) for name, field in type(self).model_fields.items()}
        return {name: value for name, value in dump(self).items() if getattr(self, name) != usual[name]}


class SystemPrompt(EventData):
    """Slots of the debaters' system prompt, which evolves.

    Attributes:
        role, instruction: as the user configured them.
        evidence: whether any was found; None while unknown.
        conflicts: pairs of contradictory items, with reasons as text.
    """

    role: str
    instruction: str
    evidence: bool | None = None
    conflicts: Listed[str] = ()


class CaseMaterial(EventData):
    """Material of the case other than its claim.

    Attributes:
        passage: number of characters of its passage.
        documents, pictures: their numbers.
    """

    passage: int
    documents: int
    pictures: int


class Output(_SparseData):
    """The output state.

    Attributes:
        label: supported or hallucinated; None while undecided.
        p_hallucinated: in [0, 1]; None when unknown.
        rationale: the summary of the first judge with the verdict.
    """

    label: str | None = None
    p_hallucinated: float | None = None
    rationale: str = ""


class StateContent(_SparseData):
    """Content of a state, or a step's additions to it.

    Attributes:
        claim: the claim to check.
        material: of the case.
        system_prompt: its current slots.
        evidence: items, in order of arrival.
        looked_for: the extraction prompt for the pictures.
        missing_pictures: those that could not be described.
        conflicts: contradictory pairs of items.
        synthesis: a model's statements on the evidence; None if no model was asked.
        shown_to: by debater, the ids of items.
        debate: the messages.
        output: the outcome; None before it is known.
    """

    model_config = ConfigDict(extra="forbid")

    claim: str = ""
    material: CaseMaterial | None = None
    system_prompt: SystemPrompt | None = None
    evidence: Listed[Item] = ()
    looked_for: str = ""
    missing_pictures: Listed[MissingPicture] = ()
    conflicts: Listed[Conflict] = ()
    synthesis: EvidenceSynthesis | None = None
    shown_to: dict[str, Listed[str]] = Field(default_factory=dict)
    debate: Listed[ClaimMessage] = ()
    output: Output | None = None

    def with_added(self, added: StateContent) -> StateContent:
        """This content after a step: lists are extended, all other fields replaced."""
        return StateContent(
            claim=added.claim or self.claim,
            material=added.material or self.material,
            system_prompt=added.system_prompt or self.system_prompt,
            evidence=(*self.evidence, *added.evidence),
            looked_for=added.looked_for or self.looked_for,
            missing_pictures=(*self.missing_pictures, *added.missing_pictures),
            conflicts=(*self.conflicts, *added.conflicts),
            synthesis=added.synthesis or self.synthesis,
            shown_to={**self.shown_to, **added.shown_to},
            debate=(*self.debate, *added.debate),
            output=added.output or self.output,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CedaState:
    """One version of the state.

    Attributes:
        version: from 0.
        stage: initial, intermediate (mutable) or output.
        by: the last step.
        content: the full content of this version.
    """

    version: int
    stage: Stage
    by: str
    content: StateContent


def next_state(before: CedaState | None, stage: Stage, by: str, added: StateContent) -> CedaState:
    """The version after `before`; the first one if that is None."""
    content = (before.content if before else StateContent()).with_added(added)
    return CedaState(version=before.version + 1 if before else 0, stage=stage, by=by, content=content)


def state_event(state: CedaState, added: StateContent) -> StateAdvanced:
    """Event of a version: the additions, not the full content."""
    path = f"state/{state.version}"
    return StateAdvanced(version=state.version, stage=state.stage, by=state.by, added=added.model_dump(), path=path)


def rebuild(data: Iterable[dict[str, Any]]) -> list[CedaState]:
    """All versions in full, in order.

    Args:
        data: of the events of kind `state` of one debate, in any order.

    Raises:
        RecordError: the data is not of such events, or a version is missing.
    """
    try:
        steps = sorted(map(StateAdvanced.model_validate, data), key=lambda step: step.version)
        contents = [StateContent.model_validate(step.added) for step in steps]
    except ValidationError as error:
        raise RecordError(f"an event of kind `state` cannot be read: {error}") from None
    states: list[CedaState] = []
    for number, (step, added) in enumerate(zip(steps, contents, strict=True)):
        if step.version != number:
            raise RecordError(f"version {number} of the state is not on record: the next one is {step.version}")
        states.append(next_state(states[-1] if states else None, step.stage, step.by, added))
    return states
