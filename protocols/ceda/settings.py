"""The settings of CEDA: one frozen tree."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from moot.protocols.ceda.evidence_split import Shown
from moot.protocols.settings import Settings


def _trimmed(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


PromptText = Annotated[str, BeforeValidator(_trimmed), Field(min_length=1, max_length=4000)]
"""Text of the user for prompts; a blank one is refused."""


class EvidenceSettings(Settings):
    """Which texts are evidence, and who is shown them (sections 3.1 and 3.3).

    Attributes:
        passages: n, the maximum number of chunks that are retrieved for a claim.
        shown: `conflicts` gives contradicting chunks to different debaters, and all others to both; `split` gives each
            debater a part of all texts; `shared` gives both everything, as in the printed prompts.
        least_similarity: a chunk is evidence only if its cosine with the claim is above this; depends on the encoder.
    """

    passages: int = Field(default=5, ge=1, le=50)
    shown: Shown = "conflicts"
    least_similarity: float = Field(default=0.0, ge=-1.0, lt=1.0, allow_inf_nan=False)


class VisionSettings(Settings):
    """How pictures are read.

    Attributes:
        prompt: with `dynamic` a model writes for each claim what to look for; `fixed` looks for everything, so that a
            run reads a picture of many claims once.
    """

    prompt: Literal["dynamic", "fixed"] = "dynamic"


class ContextSettings(Settings):
    """Who puts the evidence in order (agent C).

    Attributes:
        by: `rules` marks contradictions by their wording, without a call; `model` asks the role `context`, in one more
            call, what the evidence says about the claim, and which items contradict each other.
    """

    by: Literal["rules", "model"] = "rules"


class CedaSettings(Settings):
    """All settings of CEDA.

    Attributes:
        max_turns: maximum number of messages of a debate; with 1 there is no second message to agree with, and the only
            debater sees all evidence.
        evidence: the texts.
        vision: the pictures.
        context: the evidence put in order.
        role: who a debater is; a slot of the system prompt.
        instruction: what a debater does; a slot of the system prompt.
    """

    max_turns: int = Field(default=5, ge=1, le=20)
    evidence: EvidenceSettings = EvidenceSettings()
    vision: VisionSettings = VisionSettings()
    context: ContextSettings = ContextSettings()
    role: PromptText = "fact verifier"
    instruction: PromptText = "Verify from the evidence whether the claim is supported or hallucinated."

    @property
    def shown(self) -> Shown:
        """How texts are shown: one who debates alone is shown them all."""
        return self.evidence.shown if self.max_turns > 1 else "shared"

    def effective(self) -> CedaSettings:
        """These settings, with `evidence.shown` as it comes out: settings that are equal then debate alike."""
        return self.model_copy(update={"evidence": self.evidence.model_copy(update={"shown": self.shown})})
