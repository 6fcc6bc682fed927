"""A case and a verdict as rows of the record: their columns by name."""

from __future__ import annotations

from typing import Any

import msgspec

from moot.actors.record.closing import Closing
from moot.protocols.case import LabelledCase


def case_columns(labelled: LabelledCase) -> dict[str, Any]:
    """Of the table `cases`."""
    case, reference = labelled.case, labelled.reference
    return {
        "case_id": case.id,
        "index": labelled.index,
        "content_hash": case.content_hash(),
        "question": case.question,
        "labels": list(case.labels) if case.labels is not None else None,
        "choices": list(case.choices),
        "passage": case.passage,
        "title": case.title,
        "aliases": [list(spellings) for spellings in case.aliases],
        "documents": list(case.documents),
        "gold": labelled.gold,
        "invalid": labelled.invalid,
        "domain": case.domain,
        "criterion": None if case.criterion is None else sorted_json(case.criterion),
        "scoring": reference.scoring,
        "accepted": list(reference.accepted),
        "ratings": list(reference.ratings),
        "group": reference.group,
        "part": reference.part,
        "judged": None if case.judged is None else sorted_json(case.judged),
        "tags": sorted_json(reference.tags) if reference.tags else None,
    }


def verdict_columns(closing: Closing, gold: str | None, correct: bool | None, at: float) -> dict[str, Any]:
    """Of the table `verdicts`.

    Args:
        closing: how the debate ended.
        gold: the correct label; None when there is none.
        correct: how the answer was scored; None when it was not.
        at: Unix time.
    """
    columns = msgspec.structs.asdict(closing)
    del columns["replies"], columns["noted_in"]
    return columns | {
        "distribution": sorted_json(closing.distribution) if closing.distribution is not None else None,
        "payload": sorted_json(closing.payload),
        "flags": list(closing.flags),
        "failed": bool(closing.failure),
        "gold": gold,
        "correct": correct,
        "at": at,
    }


def sorted_json(value: Any) -> str:
    """JSON that is the same for the same value, whatever the order of its keys."""
    return msgspec.json.encode(value, order="sorted").decode()
