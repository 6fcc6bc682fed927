"""The panel: every judge scores every reply under a rubric, some passes each, all in flight together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from moot.protocols.deprecated import deprecated_names
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Failure, Message, Turn
from moot.protocols.rubrics.events import JudgeMark, ReplyAssessed
from moot.protocols.rubrics.rubric import Rubric
from moot.protocols.rubrics.score_sheet import FLAG, ISSUES, REASONING, ScoreSheet
from moot.protocols.rubrics.sheet import score_sheet_type

TEMPLATE = "rubric/judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessedReply:
    """A reply as judges see it.

    Attributes:
        path: names it in this debate; the turn's own path for a turn of the debate.
        role: description of its author.
        domain: what kind of task it was; may be empty.
        sent: the messages that the reply answers, as its model was sent them, pictures included.
        reply: the reply.
        evidence: what is known to be true of the matter, where the judges are given such; may be empty.
    """

    path: str
    role: str
    domain: str
    sent: Sequence[Message]
    reply: str
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class RubricPanel:
    """A panel at work: what it asks, and what comes of the replies, so that a protocol can ask for more beside it.

    Attributes:
        rubric: what it judges by.
        replies: by the role family of who spoke.
        judges: their full role names.
        passes: how often each judge judges each reply.
    """

    rubric: Rubric
    replies: Mapping[str, AssessedReply]
    judges: Sequence[str]
    passes: int

    def _places(self) -> list[tuple[str, str, int]]:
        return [(role, judge, n) for role in self.replies for judge in self.judges for n in range(self.passes)]

    def requests(self) -> list[Request[ScoreSheet]]:
        """Requests to the judges; paths `assessment/PATH/judge/J/pass/P`."""
        return [_request(self.rubric, self.replies[role], judge, n) for role, judge, n in self._places()]

    def read(self, turns: Sequence[Turn[ScoreSheet] | Failure]) -> dict[str, ReplyAssessed]:
        """The assessments by role family.

        Args:
            turns: the outcomes of `requests()`, in that order.
        """
        marks: dict[str, list[JudgeMark]] = {role: [] for role in self.replies}
        for (role, judge, number), turn in zip(self._places(), turns, strict=True):
            marks[role].append(_mark(self.rubric, turn, judge, number))
        return {role: assessment_of(self.rubric, role, shown, marks[role]) for role, shown in self.replies.items()}


def note_assessments(floor: Floor, found: Mapping[str, ReplyAssessed]) -> None:
    """Put an event `assessment` for each reply into the record, at `assessment/PATH`."""
    for assessment in found.values():
        floor.note(assessment)


async def assess(
    floor: Floor, rubric: Rubric, replies: Mapping[str, AssessedReply], *, passes: int
) -> dict[str, ReplyAssessed]:
    """Every reply judged; paths `assessment/PATH/judge/J/pass/P`, and an event `assessment` for each.

    Args:
        replies: by the role family of who spoke.
    """
    panel = RubricPanel(rubric, replies, floor.panel("judge"), passes)
    found = panel.read(await floor.ask_all(panel.requests()))
    note_assessments(floor, found)
    return found


def assessment_of(rubric: Rubric, role: str, shown: AssessedReply, marks: Sequence[JudgeMark]) -> ReplyAssessed:
    """The marks of one reply put together; `role` is the family of who spoke. Missing ones are in no mean."""
    there = [mark for mark in marks if mark.scores is not None and mark.total is not None]
    return ReplyAssessed(
        path=f"assessment/{shown.path}",
        reply=shown.path,
        role=role,
        domain=shown.domain,
        rubric=rubric.name,
        scales=[(name, *ends) for name, ends in rubric.scales.items()],
        passes_at=rubric.passes_at,
        judges=list(marks),
        scores={
            name: fmean(mark.scores[name] for mark in there if mark.scores) if there else None
            for name in rubric.dimensions
        },
        flag=fmean(bool(mark.flag) for mark in there) if there and rubric.flag else None,
        quality=fmean(mark.total for mark in there if mark.total is not None) if there else None,
        missing=len(marks) - len(there),
    )


def _request(rubric: Rubric, shown: AssessedReply, judge: str, number: int) -> Request[ScoreSheet]:
    slots = {"rubric": rubric_slots(rubric), **shown_slots(shown)}
    path = f"assessment/{shown.path}/{judge}/pass/{number}"
    images = tuple(image for message in shown.sent for image in message.images)
    return Request(judge, TEMPLATE, slots, score_sheet_type(rubric), path, sample=number, images=images)


def rubric_slots(rubric: Rubric) -> dict[str, Any]:
    """The rubric as the template takes it: highest level first, and the form of the reply."""
    dimensions = [
        {
            "name": name,
            "question": dimension.question,
            "levels": [[score, dimension.levels[score]] for score in sorted(dimension.levels, reverse=True)],
        }
        for name, dimension in rubric.dimensions.items()
    ]
    form = {REASONING: "from which the scores follow"}
    if rubric.flag:
        form[ISSUES] = "text, empty without such an issue"
    form |= {name: f"{each.lowest} to {each.highest}" for name, each in rubric.dimensions.items()}
    if rubric.flag:
        form[FLAG] = "0 or 1"
    return {"instructions": rubric.instructions, "dimensions": dimensions, "flag": rubric.flag, "form": form}


def shown_slots(shown: AssessedReply) -> dict[str, Any]:
    """The reply and what it answers, as the template takes them."""
    return {
        "role": shown.role,
        "domain": shown.domain,
        "sent": [[message.role, message.content] for message in shown.sent],
        "reply": shown.reply,
        "evidence": shown.evidence,
    }


def _mark(rubric: Rubric, turn: Turn[ScoreSheet] | Failure, judge: str, number: int) -> JudgeMark:
    if isinstance(turn, Failure):
        return JudgeMark(
            judge=judge,
            model="",
            pass_index=number,
            scores=None,
            flag=None,
            total=None,
            missing=f"{turn.kind}: {turn.message}",
            issues="",
            reasoning="",
        )
    sheet = turn.reply
    scores, flagged = sheet.scores(), sheet.flagged
    return JudgeMark(
        judge=judge,
        model=turn.model,
        pass_index=number,
        scores=scores,
        flag=flagged,
        total=rubric.total(scores, flagged),
        missing="",
        issues=getattr(sheet, ISSUES, ""),
        reasoning=getattr(sheet, REASONING),
    )


__getattr__ = deprecated_names(__name__, Shown="AssessedReply")
