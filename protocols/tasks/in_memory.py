"""Cases given as Python objects, validated like those of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec

from moot.protocols.case import Case, Criterion, Domain, Image, JudgedReply, LabelledCase, Reference, Scoring
from moot.protocols.errors import TaskFileError
from moot.protocols.replies import json_text
from moot.protocols.tasks.claim_fields import spelled_out
from moot.protocols.tasks.essays import ratings_reference, scores_of
from moot.protocols.tasks.label_set import LabelSet
from moot.protocols.tasks.row import ParsedCase, Row, is_blank, shown
from moot.protocols.text.folding import fold
from moot.protocols.text.labels import Sets, read_label
from moot.protocols.text.numbers import plain_number, stated_number

REFERENCE_KEYS = ("scoring", "accepted", "ratings", "group", "part", "tags")
"""Keys of a case in memory for its reference."""


def _reference(row: Row, criterion: Criterion | None) -> Reference:
    scoring: Scoring = named(row, "scoring", Scoring) or "label"
    group, part = (row.text(name, default="") for name in ("group", "part"))
    tags = _tags(row)
    if scoring == "score":
        ratings = _ratings(row, criterion)
        found = ratings_reference(ratings, group, part)[1]
        return msgspec.structs.replace(found, accepted=_accepted(row) or found.accepted, tags=tags)
    if row.values.get("ratings"):
        raise row.error("ratings", f"go with the scoring 'score', found {shown(scoring)}")
    return Reference(scoring=scoring, accepted=_accepted(row), group=group, part=part, tags=tags)


def check_gold(row: Row, gold: str | None, reference: Reference) -> None:
    """Refuses a gold answer that no answer could match.

    Raises:
        TaskFileError: it is compared by value but is no number.
    """
    for field, text in (("gold", gold), *(("accepted", each) for each in reference.accepted)):
        if text is not None and reference.scoring in ("number", "score") and stated_number(text) is None:
            raise row.error(field, f"expected a number, as it is compared by value, found {shown(text)}")


def named(row: Row, field: str, names: Any) -> Any:
    """Field with one of a few names; None when it is missing or null.

    Raises:
        TaskFileError: it has another value.
    """
    value = row.values.get(field)
    if value is not None and value not in get_args(names):
        raise row.error(field, f"expected one of {', '.join(get_args(names))}, found {shown(value)}")
    return value


def criterion_of(row: Row) -> Criterion | None:
    """Criterion of a case, from a mapping or a `Criterion`; None without one.

    Raises:
        TaskFileError: it is neither, lacks a field, or its scale has fewer than two scores.
    """
    value = row.values.get("criterion")
    if value is None:
        if row.values.get("scoring") == "score":
            raise row.error("criterion", "is missing; a score needs its trait, lowest, highest and guide")
        return None
    given = msgspec.structs.asdict(value) if isinstance(value, Criterion) else value
    if not isinstance(given, Mapping):
        raise row.error("criterion", f"expected a mapping with trait, lowest, highest and guide, found {shown(value)}")
    try:
        found = msgspec.convert(dict(given), Criterion)
    except msgspec.ValidationError as error:
        raise row.error("criterion", f"expected trait, lowest, highest and guide: {error}") from None
    if not found.lowest < found.highest:
        raise row.error("criterion", f"expected lowest < highest, found {found.lowest} and {found.highest}")
    return found


def _accepted(row: Row) -> tuple[str, ...]:
    """Accepted answers: a list, or one text."""
    return (row.text("accepted"),) if isinstance(row.values.get("accepted"), str) else row.texts("accepted")


def _tags(row: Row) -> dict[str, str]:
    value = row.values.get("tags")
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise row.error("tags", f"expected texts by name, found {shown(value)}")
    return {row.checked("tags", name): row.checked("tags", text) for name, text in value.items()}


def _ratings(row: Row, criterion: Criterion | None) -> tuple[float | None, ...]:
    value = row.values.get("ratings") or ()
    if not isinstance(value, (list, tuple)):
        raise row.error("ratings", f"expected a list of numbers, None for a missing rater, found {shown(value)}")
    return tuple(_rating(row, each, criterion) for each in value)


def _rating(row: Row, value: object, criterion: Criterion | None) -> float | None:
    if value is None:
        return None
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if number is None or criterion is None or not criterion.lowest <= number <= criterion.highest:
        scale = f" from {criterion.lowest} to {criterion.highest}" if criterion else ""
        raise row.error("ratings", f"expected numbers{scale}, None for a missing rater, found {shown(value)}")
    return number


_OF_CASE = (
    *("id", "question", "passage", "title", "labels", "choices", "aliases"),
    *("images", "documents", "domain", "criterion", "judged"),
)

KEYS = (*_OF_CASE, "gold", *REFERENCE_KEYS)
"""Fields of a case in memory; only `question` is required, and not where there is a reply to judge."""


def memory_rows(cases: tuple[LabelledCase | Mapping[str, object], ...], file: str) -> Iterator[Row]:
    """One row per case, `line` being its index + 1; a malformed one contains its `problem`. Raises nothing."""
    for line, item in enumerate(cases, start=1):
        if isinstance(item, LabelledCase):
            problem = TaskFileError(file, line, "", item.invalid) if item.invalid else None
            values = {key: getattr(item.case, key) for key in _OF_CASE}
            values |= {key: getattr(item.reference, key) for key in REFERENCE_KEYS}
            if not item.case.id:
                del values["id"]
            yield Row(file, line, {**values, "gold": item.gold}, problem)
        elif isinstance(item, Mapping):
            yield Row(file, line, item)
        else:
            expected = f"expected a LabelledCase or a mapping, found {shown(item)}"
            yield Row(file, line, {}, TaskFileError(file, line, "", expected))


def case_rows(cases: tuple[LabelledCase | Mapping[str, object], ...], file: str) -> Iterator[Row]:
    """As `memory_rows`; a claim is converted to a case. Raises nothing."""
    return map(spelled_out, memory_rows(cases, file))


def parse_memory(row: Row) -> Iterator[ParsedCase]:
    """Builds a case with its gold label; by default the first of the accepted answers or ratings.

    A text that raters scored has the whole scores of its criterion as labels, unless it has others.

    Raises:
        TaskFileError: a key is unknown, the question is empty though there is no reply to judge, a value has the wrong
            type, labels are ambiguous, choices or aliases do not match the labels, the gold label is not one of
            them, or it is no number where numbers are compared.
    """
    for key in row.values:
        if key not in KEYS:
            raise row.error(str(key), f"is unknown; expected {', '.join(KEYS)}")
    criterion = criterion_of(row)
    reference = _reference(row, criterion)
    found = _label_set(row, criterion if reference.scoring == "score" else None)
    labels = None if found is None else found.labels
    choices = row.texts("choices")
    if choices and len(choices) != len(labels or ()):
        raise row.error("choices", f"expected one text per label ({len(labels or ())}), found {len(choices)}")
    gold = row.values.get("gold")
    aliases = () if found is None else _aliases(row, found, choices)
    gold = None if is_blank(gold) else row.checked("gold", json_text(gold))
    if labels is not None:
        gold = gold and _label(row, "gold", gold, (labels, choices, aliases))
        accepted = tuple(_label(row, "accepted", each, (labels, choices, aliases)) for each in reference.accepted)
        reference = msgspec.structs.replace(reference, accepted=accepted)
    gold = gold or next(iter(reference.accepted), None)
    if labels is None and row.values.get("scoring") is None and _are_numbers(gold, *reference.accepted):
        reference = msgspec.structs.replace(reference, scoring="number")
    check_gold(row, gold, reference)
    judged = _judged(row)
    case = Case(
        id=row.identity(),
        question=row.text("question", default=None if judged is None else ""),
        labels=labels,
        choices=choices,
        passage=row.text("passage", default=""),
        title=row.text("title", default=""),
        images=_images(row),
        aliases=aliases,
        documents=row.texts("documents"),
        domain=named(row, "domain", Domain),
        criterion=criterion,
        judged=judged,
    )
    yield ParsedCase(case, gold, reference)


def _are_numbers(*texts: str | None) -> bool:
    return all(text is not None and plain_number(text) is not None for text in texts)


def _label(row: Row, field: str, text: str, sets: Sets) -> str:
    """The label that a text names, as in a reply."""
    named = read_label(text, *sets)
    if named is None:
        raise row.error(field, f"expected one of {', '.join(sets[0])}, found {shown(text)}")
    return named.label


def _label_set(row: Row, scale: Criterion | None) -> LabelSet | None:
    if row.values.get("labels") is None and scale is not None:
        row = Row(row.file, row.line, {**row.values, "labels": scores_of(scale)})
    if row.values.get("labels") is None:
        if row.values.get("aliases"):
            raise row.error("aliases", "expected labels that they are spellings of, found none")
        return None
    labels = row.texts("labels")
    if len(labels) < 2:
        raise row.error("labels", f"expected at least two labels or none at all, found {len(labels)}")
    found = LabelSet()
    for label in labels:
        if label in found:
            raise row.error("labels", f"expected distinct labels, {shown(label)} is there twice")
        found.add(row, label, "labels")
    return found


def _aliases(row: Row, found: LabelSet, choices: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Aliases of each label, from a mapping of labels or from one list per label."""
    texts_of = {fold(choice): label for label, choice in zip(found.labels, choices, strict=False)}
    for label, spellings in _spellings(row, found.labels):
        for alias in Row(row.file, row.line, {"aliases": spellings}).texts("aliases"):
            found.add_alias(row, label, alias)
            if texts_of.get(fold(alias), label) != label:
                raise row.error("aliases", f"expected spellings of {shown(label)}, {shown(alias)} is another choice")
    return found.aliases


def _spellings(row: Row, labels: tuple[str, ...]) -> Iterable[tuple[str, object]]:
    value = row.values.get("aliases") or ()
    if isinstance(value, Mapping):
        for label in value:
            if label not in labels:
                raise row.error("aliases", f"expected labels as keys ({', '.join(labels)}), found {shown(label)}")
        return value.items()
    if not isinstance(value, (list, tuple)) or len(value) not in (0, len(labels)):
        raise row.error("aliases", f"expected a list of texts for each of the {len(labels)} labels, or a mapping")
    return zip(labels, value, strict=False)


def _judged(row: Row) -> JudgedReply | None:
    value = row.values.get("judged")
    if value is None:
        return None
    try:
        found = msgspec.convert(value, JudgedReply, from_attributes=True)
    except msgspec.ValidationError as error:
        raise row.error("judged", f"expected the reply and, where known, sent, role and domain: {error}") from None
    row.checked("judged", found.reply)
    return found


def _images(row: Row) -> tuple[Image, ...]:
    value = row.values.get("images") or ()
    if not isinstance(value, (list, tuple)) or not all(isinstance(image, Image) for image in value):
        raise row.error("images", "expected a list of moot.Image (moot.load_image gives one)")
    return tuple(value)
