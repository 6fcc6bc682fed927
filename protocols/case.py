"""Case: one thing to debate. Its gold label is stored separately and never reaches a message."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from moot.protocols.long_texts import characters

_SHARED_ID = re.compile("shared-[0-9a-f]{32}")


def is_shared_id(case_id: str) -> bool:
    """Whether an id is that of a reply shared by several cases: no case may have such an id."""
    return _SHARED_ID.fullmatch(case_id) is not None


class Image(msgspec.Struct, frozen=True):
    """Picture of the user: its media type (`image/png` ...) and its bytes."""

    media_type: str
    data: bytes


Domain = Literal["rubric scoring", "mathematics", "factual QA"]
"""Kind of answer of a case, where it affects the debate."""

Scoring = Literal["label", "number", "short answer", "score"]
"""How answers are compared with each other and with the gold one: as a label, by numeric value, as a short text of
which several may be accepted, or as a whole-number score that human raters also gave."""


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """Scoring criterion of a text.

    Attributes:
        trait: its name, such as `Organization`.
        lowest, highest: range of the scores, whole numbers.
        guide: meaning of the scores, as text.
        assignment: the writer's task; may be empty.
    """

    trait: str
    lowest: int
    highest: int
    guide: str
    assignment: str = ""


class JudgedReply(msgspec.Struct, frozen=True, kw_only=True):
    """Existing reply that is only to be judged, with the messages that it answers.

    Attributes:
        reply: its text.
        sent: the messages that it answers, each as speaker and text; empty when unknown.
        role: description of its author; may be empty.
        domain: description of its kind of task; may be empty.
    """

    reply: str
    sent: tuple[tuple[Literal["system", "user", "assistant"], str], ...] = ()
    role: str = ""
    domain: str = ""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Case to debate; everything in it may be shown to a model.

    Attributes:
        id: id, unique in its task; `TASK-INDEX` if the file gives none.
        question: the question or subject as the file has it.
        labels: the closed set of answers, in the order in which prompts list them; None for free-text answers.
        choices: for lettered labels, the text behind each label; empty otherwise.
        passage: the evidence that comes with the case; empty if there is none.
        title: a heading for the passage; may be empty.
        images: pictures that belong to the case.
        aliases: for each label, in the labels' order, its other spellings; empty if no label has any.
        documents: texts that a protocol may retrieve from; no prompt shows one that was not retrieved.
        domain: kind of answer that the case asks for; None if the task does not say.
        criterion: what the text in `passage` is scored on; None if the case is not about scoring a text.
        judged: the reply to judge; `passage` is then what judges know about the matter. None for a case to debate.
        scoring: how two answers are compared, see `moot.protocols.tasks.alike`; the task sets it from the reference. No
            message contains it.
    """

    id: str
    question: str
    labels: tuple[str, ...] | None = None
    choices: tuple[str, ...] = ()
    passage: str = ""
    title: str = ""
    images: tuple[Image, ...] = ()
    aliases: tuple[tuple[str, ...], ...] = ()
    documents: tuple[str, ...] = ()
    domain: Domain | None = None
    criterion: Criterion | None = None
    judged: JudgedReply | None = None
    scoring: Scoring = "label"

    def characters(self) -> int:
        """Total number of characters of its texts, including those of a reply to judge."""
        return characters(self) - len(self.scoring)

    def content_hash(self) -> str:
        """32 hex digits over everything but id and scoring: equal texts have equal hashes in any file."""
        body = {**msgspec.structs.asdict(self), "id": ""}
        del body["scoring"]
        # newer fields, which older records lack
        for later in ("aliases", "documents", "domain", "criterion", "judged"):
            if not body[later]:
                del body[later]
        return blake2b(msgspec.msgpack.encode(body), digest_size=16).hexdigest()


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """Reference for scoring a case: what else is known about its right answer. Like the gold label, it never reaches a
    message.

    Attributes:
        scoring: how an answer is compared with the gold answer, and with another answer.
        accepted: all answers that count as right, including the gold answer; empty if only that one is right.
        ratings: scores that human raters gave, in the raters' order, None where one is missing; empty for other tasks.
        group: names what several cases have in common, such as the essay whose traits are scored one by one: such cases
            are not independent. Empty when a case stands alone.
        part: names the part of the task that the case belongs to, such as one of its essay sets: figures of different
            parts are never pooled. Empty for a task of one part.
    """

    scoring: Scoring = "label"
    accepted: tuple[str, ...] = ()
    ratings: tuple[float | None, ...] = ()
    group: str = ""
    part: str = ""
    tags: dict[str, str] = {}


class LabelledCase(msgspec.Struct, frozen=True):
    """Case with its index in the task's file and its gold label, which only the record writer reads.

    Attributes:
        case: the case to debate.
        index: 0-based place in the file.
        gold: the right label; None if the file has none.
        invalid: why a row that could not be validated in advance is not a valid case; empty for a valid one.
        reference: what else is known about the right answer.
    """

    case: Case
    index: int
    gold: str | None = None
    invalid: str = ""
    reference: Reference = Reference()


def case_slots(case: Case) -> dict[str, Any]:
    """Slots of the case for the agents' templates."""
    return {
        "question": case.question,
        "labels": list(case.labels or ()),
        "choices": list(case.choices),
        "passage": case.passage,
        "title": case.title,
    }


def label_in_words(case: Case, answer: str) -> str:
    """An answer for a judge: a lettered label with the text of its choice.

    >>> label_in_words(Case(id="c", question="?", labels=("A", "B"), choices=("red", "blue")), "B")
    'B) blue'
    """
    if case.labels and case.choices and answer in case.labels:
        return f"{answer}) {case.choices[case.labels.index(answer)]}"
    return answer
