"""HaluEval as it is downloaded: one JSON object a line, in four layouts that are told by their fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from moot.protocols.claims import HALLUCINATED, SUPPORTED, answered_claim
from moot.protocols.tasks.claim_rows import Claim, claims_task, source_name
from moot.protocols.tasks.formats import jsonl_rows
from moot.protocols.tasks.row import Row, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task


@dataclass(frozen=True)
class _Pairs:
    """The fields of a layout with a right text and a hallucinated one; `asked` is what they answer, if anything."""

    evidence: str
    right: str
    hallucinated: str
    asked: str | None = None


_PAIRS = (
    _Pairs("knowledge", "right_answer", "hallucinated_answer", "question"),
    _Pairs("knowledge", "right_response", "hallucinated_response", "dialogue_history"),
    _Pairs("document", "right_summary", "hallucinated_summary"),
)
_GENERAL = ("user_query", "chatgpt_response", "hallucination")
_GOLD = {"no": SUPPORTED, "yes": HALLUCINATED}


def halueval_task(source: Source, spec: str) -> Task:
    """A task over one of HaluEval's files; `open_task("halueval:PATH")` is the usual way to it. Raises nothing."""
    return claims_task(
        partial(jsonl_rows, source),
        _claims,
        name="halueval",
        spec=spec,
        path=source.file,
        replayable=source.replayable,
    )


def _claims(row: Row) -> Iterator[Claim]:
    for layout in _PAIRS:
        if layout.right in row.values or layout.hallucinated in row.values:
            return _pair(row, layout)
    if _GENERAL[1] in row.values:
        return _judged(row)
    known = ", ".join((*(layout.right for layout in _PAIRS), _GENERAL[1]))
    raise row.error("", f"expected a record of HaluEval, which has one of the fields {known}")


def _pair(row: Row, layout: _Pairs) -> Iterator[Claim]:
    asked = () if layout.asked is None else (layout.asked,)
    row.require((layout.evidence, *asked, layout.right, layout.hallucinated))
    passage = row.text(layout.evidence)
    for gold, name in ((SUPPORTED, layout.right), (HALLUCINATED, layout.hallucinated)):
        text = row.text(name)
        if layout.asked == "question":
            text = answered_claim(row.text("question"), text)
        elif layout.asked is not None:
            text = f"Dialogue: {row.text(layout.asked).strip()}\nReply: {text.strip()}"
        yield Claim(text=text, gold=gold, passage=passage, group=source_name(passage))


def _judged(row: Row) -> Iterator[Claim]:
    """The reply to a user's query, which people marked as hallucinated or not."""
    row.require(_GENERAL)
    mark = row.text("hallucination").strip().lower()
    if mark not in _GOLD:
        raise row.error("hallucination", f"expected yes or no, found {shown(row.values['hallucination'])}")
    yield Claim(text=answered_claim(row.text("user_query"), row.text("chatgpt_response")), gold=_GOLD[mark])
