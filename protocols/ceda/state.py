"""The state of a debate: what each agent reads and adds to, version by version (section 3.2).

The record holds what each step added, as events of kind `state`; `rebuild` gives every full version back.
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
    """A part of which only what differs from its default is recorded."""

    @model_serializer(mode="wrap")
    def _sparse(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        usual = {name: field.get_default(call_default_factory=True) for name, field in type(self).model_fields.items()}
        return {name: value for name, value in dump(self).items() if getattr(self, name) != usual[name]}


class SystemPrompt(EventData):
    """The slots of the debaters' system prompt, which evolves.

    Attributes:
        role, instruction: as the user put them.
        evidence: whether any was found; None before that is known.
        conflicts: pairs of contradictory items, with reasons as text.
    """

    role: str
    instruction: str
    evidence: bool | None = None
    conflicts: Listed[str] = ()


class CaseMaterial(EventData):
    """Material of the case beside its claim.

    Attributes:
        passage: characters of its passage.
        documents, pictures: how many.
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
    """Content of a state, or what a step adds to one.

    Attributes:
        claim: to be checked.
        material: of the case.
        system_prompt: its current slots.
        evidence: items, in the order in which they came.
        looked_for: the extraction prompt for the pictures.
        missing_pictures: those that could not be described.
        conflicts: items that are at odds.
        synthesis: what a model made of the evidence; None where none was asked.
        shown_to: by debater the ids of items.
        debate: the messages.
        output: the outcome, once there is one.
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
        """This content after a step: lists grow, everything else is replaced by what was added."""
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
    """One version.

    Attributes:
        version: from 0.
        stage: initial, intermediate (mutable) or output.
        by: who added last.
        content: all that is known by then.
    """

    version: int
    stage: Stage
    by: str
    content: StateContent


def next_state(before: CedaState | None, stage: Stage, by: str, added: StateContent) -> CedaState:
    """The version after `before`; the first one when there is none."""
    content = (before.content if before else StateContent()).with_added(added)
    return CedaState(version=before.version + 1 if before else 0, stage=stage, by=by, content=content)


def state_event(state: CedaState, added: StateContent) -> StateAdvanced:
    """The event of a version: what was added, not all that is known."""
    path = f"state/{state.version}"
    return StateAdvanced(version=state.version, stage=state.stage, by=state.by, added=added.model_dump(), path=path)


def rebuild(data: Iterable[dict[str, Any]]) -> list[CedaState]:
    """Every version in full, in order.

    Args:
        data: of the events of kind `state` of one debate, in any order.

    Raises:
        RecordError: the data is no such event's, or a version is missing.
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
