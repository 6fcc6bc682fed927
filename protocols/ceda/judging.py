"""The judges: each reads the whole debate; their verdict is the majority's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from moot.protocols.ceda.events import ClassifierReading, PanelJudgeRuling, RulingGiven
from moot.protocols.ceda.replies import JudgeReply
from moot.protocols.ceda.slots import judge_slots
from moot.protocols.ceda.state import StateContent
from moot.protocols.errors import QuorumFailed
from moot.protocols.floor import Floor, Request
from moot.protocols.lookups import Classified
from moot.protocols.messages import Failure

JUDGE = "ceda/judge"


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """One judge: its full role name, and its reply, or the reason for a missing one."""

    judge: str
    reply: JudgeReply | None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class CedaRuling:
    """Result of the judges on a debate. Missing judges are excluded from every figure, and listed.

    Attributes:
        heard: every judge, in the panel's order; at least one replied.
        verdict: the majority's, 1 for supported and 0 for hallucinated; None for a tie, or when all abstain.
        p_hallucinated: mean of what those with a verdict state; None unless every one of them states it.
        spoken_by: the first judge with the verdict; without one the first who replied. Its summary counts.
    """

    heard: tuple[JudgeResult, ...]
    verdict: Literal[0, 1] | None
    p_hallucinated: float | None
    spoken_by: JudgeReply

    @property
    def is_short(self) -> bool:
        """Whether a judge is missing."""
        return any(each.reply is None for each in self.heard)


async def collect_ruling(floor: Floor, content: StateContent) -> CedaRuling:
    """Asks every judge; paths `judge/J`.

    Raises:
        QuorumFailed: no judge gave a valid reply.
    """
    judges, slots = floor.panel("judge"), judge_slots(content)
    turns = await floor.ask_all(
        [Request(name, JUDGE, slots, JudgeReply, f"judge/{number}") for number, name in enumerate(judges)]
    )
    heard = tuple(
        JudgeResult(name, None, f"{turn.kind}: {turn.message}")
        if isinstance(turn, Failure)
        else JudgeResult(name, turn.reply)
        for name, turn in zip(judges, turns, strict=True)
    )
    return ruling_of(heard)


def ruling_of(heard: Sequence[JudgeResult]) -> CedaRuling:
    """Combine the judges' replies.

    Raises:
        QuorumFailed: there is no reply.
    """
    replies = [each.reply for each in heard if each.reply is not None]
    if not replies:
        raise QuorumFailed(f"no judge replied; {heard[0].judge}: {heard[0].missing}")
    verdict = majority([reply.verdict for reply in replies])
    spoken_by = next((reply for reply in replies if reply.verdict == verdict), replies[0])
    return CedaRuling(tuple(heard), verdict, _stated(replies), spoken_by)


def _stated(replies: Sequence[JudgeReply]) -> float | None:
    """Mean probability; None unless every judge with a verdict states one."""
    voting = [reply.p_hallucinated for reply in replies if reply.verdict is not None]
    stated = [p for p in voting if p is not None]
    return fmean(stated) if stated and len(stated) == len(voting) else None


def majority(verdicts: Sequence[Literal[0, 1] | None]) -> Literal[0, 1] | None:
    """Majority verdict; None for a tie, or without any verdict.

    >>> majority([1, None, 0, 1]), majority([1, 0]), majority([None])
    (1, None, None)
    """
    lead = verdicts.count(1) - verdicts.count(0)
    return None if lead == 0 else 1 if lead > 0 else 0


def ruling_event(ruling: CedaRuling, classified: Classified | None) -> RulingGiven:
    """Event of a ruling."""
    return RulingGiven(
        judges=tuple(_judge_ruling(each) for each in ruling.heard),
        verdict=ruling.verdict,
        p_hallucinated=ruling.p_hallucinated,
        summary=ruling.spoken_by.summary,
        classifier_text=ruling.spoken_by.classifier_text,
        classifier=classifier_reading(classified),
        path="ruling",
    )


def classifier_reading(classified: Classified | None) -> ClassifierReading | None:
    """Recorded form of a classification; None without one."""
    if classified is None:
        return None
    return ClassifierReading(p_hallucinated=classified.p_hallucinated, trained_on=classified.trained_on)


def _judge_ruling(heard: JudgeResult) -> PanelJudgeRuling:
    reply = heard.reply
    return PanelJudgeRuling(
        judge=heard.judge,
        verdict=reply.verdict if reply else None,
        confidence=reply.confidence if reply else None,
        summary=reply.summary if reply else "",
        consensus=reply.consensus if reply else None,
        missing=heard.missing,
    )
