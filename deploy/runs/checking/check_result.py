"""Result of a claim check, read from its record: label, confidence, debate, and evidence with location."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, computed_field

from moot.deploy.results.figures.costs import run_totals
from moot.deploy.results.record import RunRecord
from moot.deploy.results.recorded_data import AttemptCost, Transcript
from moot.deploy.results.transcript import build_transcript
from moot.deploy.runs.outcome import EXIT_HALLUCINATED, EXIT_OK, EXIT_SOME_FAILED, EXIT_UNDECIDED
from moot.protocols.ceda.conflicts import Conflict
from moot.protocols.ceda.events import CheckPayload, EvidenceGathered, JudgeRuling, RulingGiven, StanceTaken
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.stance import Stance
from moot.protocols.claims import HALLUCINATED, SUPPORTED
from moot.protocols.errors import ConfigError
from moot.protocols.events import DebateEvent

CASE_ID = "claim"
"""Id of the only case."""

S = TypeVar("S", bound=DebateEvent)


class EvidenceItem(Item):
    """Piece of evidence with its location."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def place(self) -> str:
        """Location as text: chunks and pictures are counted from 1.

        >>> EvidenceItem(id="E1", kind="document", document="notes.txt", chunk=2, page=4, text="...").place
        'notes.txt, page 4, chunk 3'
        """
        return self.source


class DebateMessage(BaseModel):
    """Message of a debater.

    Attributes:
        turn: 1 and up.
        says: AGREE or DENY, about the previous message or the claim (`of`); None for neither.
        stance: stance on the claim, stated or implied; None if unknown.
    """

    model_config = ConfigDict(frozen=True)

    turn: int
    debater: str
    model: str
    text: str
    says: Literal["AGREE", "DENY"] | None
    of: Literal["claim", "message"]
    stance: Stance | None


class Checked(BaseModel):
    """Result of a claim check.

    Not a `DebateResult`: its fields are the documented JSON of `moot check`, a label with its evidence and rulings.

    Attributes:
        claim: the claim.
        label: `supported` or `hallucinated`; None if undecided or failed.
        confidence: confidence in the label, in [0, 1]; None if unknown.
        p_hallucinated: probability that the claim is hallucinated; None if unknown.
        source: the source of label and confidence: `classifier` or `judges`; None without a label.
        how: how the debate ended: `consensus` or `max turns`.
        rationale: the judge's summary.
        flags: notable conditions, such as `no-evidence`.
        evidence: the evidence with its location, most similar first.
        conflicts: pieces of evidence that seem to contradict each other, by their wording.
        missing_pictures: 0-based numbers of pictures without a description, which no model has seen.
        messages: the debate.
        judges: each judge's ruling, or why it is missing.
        failure, error: why there is no verdict; empty if there is one.
        cost: cost of all attempts, including descriptions of pictures.
        simulated: whether the simulated model replied; the label then means nothing.
        record: the run's folder; None if no record was kept.
    """

    model_config = ConfigDict(frozen=True)

    claim: str
    label: Literal["supported", "hallucinated"] | None
    confidence: float | None
    p_hallucinated: float | None
    source: Literal["classifier", "judges"] | None
    how: str
    rationale: str
    flags: list[str]
    evidence: list[EvidenceItem]
    conflicts: list[Conflict]
    missing_pictures: list[int]
    messages: list[DebateMessage]
    judges: list[JudgeRuling]
    failure: str
    error: str
    cost: AttemptCost
    simulated: bool
    record: str | None

    @property
    def exit_code(self) -> int:
        """0 supported, 5 hallucinated, 6 undecided, 3 when the check failed."""
        if self.failure:
            return EXIT_SOME_FAILED
        return {SUPPORTED: EXIT_OK, HALLUCINATED: EXIT_HALLUCINATED, None: EXIT_UNDECIDED}[self.label]


def read_checked(folder: str | Path, *, kept: bool = True) -> Checked | None:
    """Result of a check from its folder; None while it has no verdict.

    Args:
        folder: the run's folder.
        kept: whether the folder is permanent, so that the result names it as `record`.

    Raises:
        ConfigError: the folder does not contain a check of one claim.
        RecordError: the record cannot be read.
    """
    debate = build_transcript(folder, CASE_ID)
    verdict = debate.verdict
    if verdict is None:
        return None
    evidence = next(_events(debate, EvidenceGathered), EvidenceGathered(items=()))
    ruling = next(_events(debate, RulingGiven), None)
    payload = CheckPayload.read(verdict.payload)
    return Checked.model_validate(
        {
            "claim": debate.question,
            "label": verdict.answer,
            "confidence": verdict.confidence,
            "p_hallucinated": payload.p_hallucinated if payload is not None else None,
            "source": payload.source if payload is not None else None,
            "how": verdict.how,
            "rationale": payload.summary if payload is not None else "",
            "flags": verdict.flags,
            "evidence": [EvidenceItem(**item.model_dump()) for item in evidence.items],
            "conflicts": evidence.conflicts,
            "missing_pictures": evidence.missing_pictures,
            "messages": list(_messages(debate)),
            "judges": ruling.judges if ruling is not None else [],
            "failure": verdict.failure,
            "error": verdict.error,
            "cost": _cost(folder),
            "simulated": debate.simulated,
            "record": debate.run if kept else None,
        }
    )


def _cost(folder: str | Path) -> AttemptCost:
    totals = run_totals((record := RunRecord(folder)).replies, record.bookkeeping, {})
    return AttemptCost(
        calls=totals["calls"],
        tokens=totals["tokens_paid"],
        tokens_reused=totals["tokens_reused"],
        calls_without_usage=totals["calls_without_usage"],
    )


def _events(debate: Transcript, event_type: type[S]) -> Iterator[S]:
    for section in debate.sections:
        for event in section.events:
            if event.kind == event_type.kind:
                data = event_type.read(event.data)
                if data is None:
                    raise ConfigError(f"{debate.run}: this version cannot read the check's event at {event.path!r}")
                yield data


def _messages(debate: Transcript) -> Iterator[DebateMessage]:
    turns = {
        turn.path: turn
        for section in debate.sections
        for turn in section.turns
        if not turn.superseded and turn.outcome not in ("failed", "invalid", "cut")
    }
    for stance in sorted(_events(debate, StanceTaken), key=lambda each: each.turn):
        turn = turns.get(f"turn/{stance.turn}")
        if turn is not None:
            yield DebateMessage(
                turn=stance.turn,
                debater=stance.debater,
                model=turn.model,
                text=str((turn.data or {}).get("text") or turn.text),
                says=stance.says,
                of=stance.of,
                stance=stance.stance,
            )
