"""The protocol `judge-panel`: every judge scores the case's one reply under a rubric, some passes each, at once."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from moot.protocols.base import CaseField, DebateProtocol
from moot.protocols.case import Case
from moot.protocols.errors import CaseUnfit, QuorumFailed
from moot.protocols.floor import Floor
from moot.protocols.judge_panel.payload import DimensionFigures, PanelPayload
from moot.protocols.messages import Message, Verdict
from moot.protocols.rubrics.events import ReplyAssessed
from moot.protocols.rubrics.panel import AssessedReply, assess
from moot.protocols.rubrics.rubric import Rubric, shipped_rubric
from moot.protocols.rubrics.sheet import score_sheet_type
from moot.protocols.settings import Settings


class JudgePanelSettings(Settings):
    """How replies are judged.

    Attributes:
        rubric: the rubric of the judges, as data or as the name of a bundled one.
        passes: how often each judge scores each reply.
    """

    rubric: Rubric = shipped_rubric("reasoning")
    passes: int = Field(default=1, ge=1, le=20)

    @field_validator("rubric", mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        return shipped_rubric(given) if isinstance(given, str) else given


def _payload(found: ReplyAssessed) -> PanelPayload:
    medians = found.medians
    given = {name: [scores[name] for scores in found.given if name in scores] for name in found.scores}
    spread = {name: max(scores) - min(scores) if len(scores) > 1 else None for name, scores in given.items()}
    return PanelPayload(
        rubric=found.rubric,
        dimensions={
            name: DimensionFigures(mean=mean, median=medians[name], spread=spread[name])
            for name, mean in found.scores.items()
        },
        quality=found.quality,
        flag=found.flag,
        flagged=found.flagged,
        judgments=len(found.given),
        missing=found.missing,
        abstentions=found.abstentions,
    )


def in_words(counts: dict[str, int]) -> str:
    """Counts by kind as text.

    >>> in_words({"refused": 2, "timeout": 1})
    'refused 2, timeout 1'
    """
    return ", ".join(f"{kind} {count}" for kind, count in counts.items())


_PATH = "reply"
_REPLY_TOKENS = 500


class JudgePanel(DebateProtocol):
    """Judges score replies that were given elsewhere; nothing is debated.

    Args:
        settings: see `JudgePanelSettings`.

    Attributes:
        roles: `judge` alone; each of its members is a judge.
        speakers: none: the judged replies exist already.
        temperatures: 0 for a single pass; repeated passes at 0 would only repeat.
    """

    name = "judge-panel"
    Settings = JudgePanelSettings
    settings: JudgePanelSettings
    sample = "sample-replies"
    roles = ("judge",)
    speakers = ()
    needs_reply = True
    prompt_folders = frozenset({"rubric"})
    reads = frozenset[CaseField]({"passage"})

    def __init__(self, settings: JudgePanelSettings | None = None) -> None:
        self.settings = settings if settings is not None else JudgePanelSettings()
        self.replies = {"judge": (score_sheet_type(self.settings.rubric),)}
        self.reply_tokens = {"judge": _REPLY_TOKENS}
        self.temperatures = {"judge": 0.0} if self.settings.passes == 1 else {}

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Judge one reply; notes the event `assessment` with every judge's marks.

        Raises:
            CaseUnfit: the case has no reply to judge.
            QuorumFailed: no judge gave a sheet that could be read.
        """
        shown = _shown(case)
        role = shown.role or _PATH
        assessed = await assess(floor, self.settings.rubric, {role: shown}, passes=self.settings.passes)
        found = assessed[role]
        if not found.given:
            raise QuorumFailed(f"no judge gave a usable sheet, in {found.missing} asks ({in_words(found.abstentions)})")
        return Verdict(answer=None, how="judged", flags=_flags(found), payload=_payload(found).model_dump())


def _shown(case: Case) -> AssessedReply:
    if case.judged is None:
        raise CaseUnfit(f"case {case.id!r} has no reply to judge: take a task of replies")
    return AssessedReply(
        path=_PATH,
        role=case.judged.role,
        domain=case.judged.domain,
        sent=[Message(speaker, text) for speaker, text in case.judged.sent],
        reply=case.judged.reply,
        evidence=case.passage,
    )


def _flags(found: ReplyAssessed) -> tuple[str, ...]:
    raised = {"critical": bool(found.flagged), "judges-missing": bool(found.missing)}
    return tuple(flag for flag, is_so in raised.items() if is_so)
