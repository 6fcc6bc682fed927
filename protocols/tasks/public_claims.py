"""Public sets of claims as they are downloaded: TruthfulQA, FEVER, HaluEval, QAGS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from moot.protocols.claims import HALLUCINATED, SUPPORTED, answered_claim
from moot.protocols.tasks.claim_rows import Claim, claims_task, source_name
from moot.protocols.tasks.formats import csv_rows, jsonl_rows
from moot.protocols.tasks.row import Row, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task

_SENTENCES = "summary_sentences"
_QAGS_GOLD = {"yes": SUPPORTED, "no": HALLUCINATED}


def _of_lines(source: Source, spec: str, name: str, claims: Callable[[Row], Iterator[Claim]]) -> Task:
    """A task over JSON Lines, each of which holds some claims."""
    read = partial(jsonl_rows, source)
    return claims_task(read, claims, name=name, spec=spec, path=source.file, replayable=source.replayable)


def qags_task(source: Source, spec: str) -> Task:
    """A task over QAGS, a case per sentence; `open_task("qags:PATH")` is the usual way to it. Raises nothing."""
    return _of_lines(source, spec, "qags", _qags_claims)


def _qags_claims(row: Row) -> Iterator[Claim]:
    row.require(("article", _SENTENCES))
    article = row.text("article")
    for item in _objects(row, row.values[_SENTENCES], "sentences"):
        text = row.checked(_SENTENCES, item.get("sentence"))
        yield Claim(text=text, gold=_majority(row, item), passage=article, group=source_name(article))


def _majority(row: Row, item: Mapping[str, object]) -> str | None:
    """What most of the people said; None where as many said yes as no."""
    votes = Counter[str]()
    for response in _objects(row, item.get("responses"), "responses"):
        vote = response.get("response")
        if vote not in ("yes", "no"):
            raise row.error(_SENTENCES, f"expected responses yes or no, found {shown(vote)}")
        votes[str(vote)] += 1
    if votes["yes"] == votes["no"]:
        return None
    return _QAGS_GOLD[max(votes, key=lambda vote: votes[vote])]


def _objects(row: Row, value: object, name: str) -> list[Mapping[str, object]]:
    if not isinstance(value, list) or not value or not all(isinstance(each, Mapping) for each in value):
        found = "an empty list" if value == [] else shown(value)
        raise row.error(_SENTENCES, f"expected a list of {name}, each an object, found {found}")
    return value


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
_HALUEVAL_GOLD = {"no": SUPPORTED, "yes": HALLUCINATED}


def halueval_task(source: Source, spec: str) -> Task:
    """A task over one of HaluEval's files; `open_task("halueval:PATH")` is the usual way to it. Raises nothing."""
    return _of_lines(source, spec, "halueval", _halueval_claims)


def _halueval_claims(row: Row) -> Iterator[Claim]:
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
    if mark not in _HALUEVAL_GOLD:
        raise row.error("hallucination", f"expected yes or no, found {shown(row.values['hallucination'])}")
    yield Claim(text=answered_claim(row.text("user_query"), row.text("chatgpt_response")), gold=_HALUEVAL_GOLD[mark])


_FEVER_GOLD = {"SUPPORTS": SUPPORTED, "REFUTES": HALLUCINATED}
_LEFT_OUT = "NOT ENOUGH INFO"


def fever_task(source: Source, spec: str) -> Task:
    """A task over FEVER; `open_task("fever:PATH")` is the usual way to it. Raises nothing.

    Claims without enough evidence for a verdict are left out: they are neither supported nor refuted.
    """
    return _of_lines(source, spec, "fever", _fever_claims)


def _fever_claims(row: Row) -> Iterator[Claim]:
    row.require(("claim", "label"))
    label = row.text("label")
    if label not in (*_FEVER_GOLD, _LEFT_OUT):
        raise row.error("label", f"expected {', '.join(_FEVER_GOLD)} or {_LEFT_OUT}, found {shown(label)}")
    claim, (passage, group) = row.text("claim"), _evidence(row)
    if label in _FEVER_GOLD:
        yield Claim(text=claim, gold=_FEVER_GOLD[label], passage=passage, group=group)


def _evidence(row: Row) -> tuple[str, str]:
    """The evidence's text, empty where the file only points to it, and what names it."""
    value = row.values.get("evidence")
    if isinstance(value, str):
        text = row.text("evidence")
        return text, source_name(text)
    return ("", "") if value is None or value == [] else ("", _first_page(row, value))


def _first_page(row: Row, value: object) -> str:
    """The page of the first pointer in lists of lists of them; empty where it points to none."""
    pointer = value
    for _ in ("sets", "pointers"):
        pointer = pointer[0] if isinstance(pointer, list) and pointer else None
    if not isinstance(pointer, list) or len(pointer) != 4:
        expected = "expected a text, or lists of lists of [annotation, evidence, page, sentence]"
        raise row.error("evidence", f"{expected}, found {shown(value)}")
    return "" if pointer[2] is None else row.checked("evidence", pointer[2])


COLUMNS = ("Question", "Best Answer", "Incorrect Answers")
"""What the header needs; `Best Incorrect Answer`, `Type` and `Category` may be missing."""

_BEST_INCORRECT = "Best Incorrect Answer"


def truthfulqa_task(source: Source, spec: str) -> Task:
    """A task over TruthfulQA; `open_task("truthfulqa:PATH")` is the usual way to it. Raises nothing."""
    return claims_task(
        partial(csv_rows, source, COLUMNS),
        _truthfulqa_claims,
        name="truthfulqa",
        spec=spec,
        path=source.file,
        replayable=source.replayable,
    )


def _truthfulqa_claims(row: Row) -> Iterator[Claim]:
    question = row.text("Question")
    tags = {name.lower(): text for name in ("Type", "Category") if (text := row.text(name, default="").strip())}
    answers = ((SUPPORTED, row.text("Best Answer")), (HALLUCINATED, _incorrect(row)))
    for gold, answer in answers:
        yield Claim(text=answered_claim(question, answer), gold=gold, group=question.strip(), tags=tags)


def _incorrect(row: Row) -> str:
    """The wrong answer that the file calls the best one, else the first of the list, which `; ` separates."""
    best = row.text(_BEST_INCORRECT, default="").strip()
    answers = (answer.strip() for answer in row.text("Incorrect Answers", default="").split(";"))
    found = best or next(filter(None, answers), "")
    if not found:
        raise row.error("Incorrect Answers", "expected at least one answer, found none")
    return found
