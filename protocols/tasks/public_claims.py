"""Public sets of claims in their original formats: TruthfulQA, FEVER, HaluEval, QAGS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED, answered_claim, text_hash
from moot.protocols.tasks.claim_fields import claim_case
from moot.protocols.tasks.formats import csv_rows, jsonl_rows
from moot.protocols.tasks.row import ParsedCase, Row, shown
from moot.protocols.tasks.task import FileLayout

_SENTENCES = "summary_sentences"
_QAGS_GOLD = {"yes": SUPPORTED, "no": HALLUCINATED}


def source_name(text: str) -> str:
    """Group name of a text that several claims share: 16 hex digits, equal for equal texts.

    >>> source_name("An article."), source_name(" an  article .\\n") == source_name("An article.")
    ('96a97c9ecca2590c', True)
    """
    return text_hash(text)[:16]


def _qags_claims(row: Row) -> Iterator[ParsedCase]:
    row.require(("article", _SENTENCES))
    article = row.text("article")
    for item in _objects(row, row.values[_SENTENCES], "sentences"):
        text = row.checked(_SENTENCES, item.get("sentence"))
        yield claim_case(text, _majority(row, item), passage=article, group=source_name(article))


def _majority(row: Row, item: Mapping[str, object]) -> str | None:
    """Majority answer of the people; None for a tie."""
    votes = Counter[str]()
    for response in _objects(row, item.get("responses"), "responses"):
        vote = response.get("response")
        if vote not in ("yes", "no"):
            raise row.error(_SENTENCES, f"expected responses yes or no, found {shown(vote)}")
        votes[str(vote)] += 1
    if votes["yes"] == votes["no"]:
        return None
    return _QAGS_GOLD[max(votes, key=lambda vote: votes[vote])]


QAGS = FileLayout(jsonl_rows, _qags_claims, CLAIM_LABELS)
"""Cases of a summary, one per sentence."""


def _objects(row: Row, value: object, name: str) -> list[Mapping[str, object]]:
    if not isinstance(value, list) or not value or not all(isinstance(each, Mapping) for each in value):
        found = "an empty list" if value == [] else shown(value)
        raise row.error(_SENTENCES, f"expected a list of {name}, each an object, found {found}")
    return value


@dataclass(frozen=True)
class _Pairs:
    """Fields of a layout with a right text and a hallucinated one; `asked` is their question, if any."""

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
_HALUEVAL_GOLD = {"no": SUPPORTED, "yes": HALLUCINATED}


def _halueval_claims(row: Row) -> Iterator[ParsedCase]:
    for layout in _PAIRS:
        if layout.right in row.values or layout.hallucinated in row.values:
            return _pair(row, layout)
    if _GENERAL[1] in row.values:
        return _judged(row)
    known = ", ".join((*(layout.right for layout in _PAIRS), _GENERAL[1]))
    raise row.error("", f"expected a record of HaluEval, which has one of the fields {known}")


def _pair(row: Row, layout: _Pairs) -> Iterator[ParsedCase]:
    asked = () if layout.asked is None else (layout.asked,)
    row.require((layout.evidence, *asked, layout.right, layout.hallucinated))
    passage = row.text(layout.evidence)
    for gold, name in ((SUPPORTED, layout.right), (HALLUCINATED, layout.hallucinated)):
        text = row.text(name)
        if layout.asked == "question":
            text = answered_claim(row.text("question"), text)
        elif layout.asked is not None:
            text = f"Dialogue: {row.text(layout.asked).strip()}\nReply: {text.strip()}"
        yield claim_case(text, gold, passage=passage, group=source_name(passage))


def _judged(row: Row) -> Iterator[ParsedCase]:
    """Reply to a user's query, annotated as hallucinated or not."""
    row.require(_GENERAL)
    mark = row.text("hallucination").strip().lower()
    if mark not in _HALUEVAL_GOLD:
        raise row.error("hallucination", f"expected yes or no, found {shown(row.values['hallucination'])}")
    yield claim_case(answered_claim(row.text("user_query"), row.text("chatgpt_response")), _HALUEVAL_GOLD[mark])


HALUEVAL = FileLayout(jsonl_rows, _halueval_claims, CLAIM_LABELS)
"""Cases, one per text of a pair, or per annotated reply."""

_FEVER_GOLD = {"SUPPORTS": SUPPORTED, "REFUTES": HALLUCINATED}
_LEFT_OUT = "NOT ENOUGH INFO"


def _fever_claims(row: Row) -> Iterator[ParsedCase]:
    row.require(("claim", "label"))
    label = row.text("label")
    if label not in (*_FEVER_GOLD, _LEFT_OUT):
        raise row.error("label", f"expected {', '.join(_FEVER_GOLD)} or {_LEFT_OUT}, found {shown(label)}")
    claim, (passage, group) = row.text("claim"), _evidence(row)
    if label in _FEVER_GOLD:
        yield claim_case(claim, _FEVER_GOLD[label], passage=passage, group=group)


FEVER = FileLayout(jsonl_rows, _fever_claims, CLAIM_LABELS)
"""Cases of claims; those without enough evidence for a verdict are excluded."""


def _evidence(row: Row) -> tuple[str, str]:
    """Text of the evidence, empty where the file only references it, and its name."""
    value = row.values.get("evidence")
    if isinstance(value, str):
        text = row.text("evidence")
        return text, source_name(text)
    return ("", "") if value is None or value == [] else ("", _first_page(row, value))


def _first_page(row: Row, value: object) -> str:
    """Page of the first reference in nested lists; empty without one."""
    pointer = value
    for _ in ("sets", "pointers"):
        pointer = pointer[0] if isinstance(pointer, list) and pointer else None
    if not isinstance(pointer, list) or len(pointer) != 4:
        expected = "expected a text, or lists of lists of [annotation, evidence, page, sentence]"
        raise row.error("evidence", f"{expected}, found {shown(value)}")
    return "" if pointer[2] is None else row.checked("evidence", pointer[2])


COLUMNS = ("Question", "Best Answer", "Incorrect Answers")
"""Columns of the header; `Best Incorrect Answer`, `Type` and `Category` are optional."""

_BEST_INCORRECT = "Best Incorrect Answer"


def _truthfulqa_claims(row: Row) -> Iterator[ParsedCase]:
    question = row.text("Question")
    tags = {name.lower(): text for name in ("Type", "Category") if (text := row.text(name, default="").strip())}
    answers = ((SUPPORTED, row.text("Best Answer")), (HALLUCINATED, _incorrect(row)))
    for gold, answer in answers:
        yield claim_case(answered_claim(question, answer), gold, group=question.strip(), tags=tags)


TRUTHFULQA = FileLayout(partial(csv_rows, columns=COLUMNS), _truthfulqa_claims, CLAIM_LABELS)
"""Claims of a question: its best answer and an incorrect one."""


def _incorrect(row: Row) -> str:
    """Best incorrect answer of the file, else the first of the list, separated by `; `."""
    best = row.text(_BEST_INCORRECT, default="").strip()
    answers = (answer.strip() for answer in row.text("Incorrect Answers", default="").split(";"))
    found = best or next(filter(None, answers), "")
    if not found:
        raise row.error("Incorrect Answers", "expected at least one answer, found none")
    return found
