"""What a case in memory says of its kind and of its right answer beside its gold label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from moot.protocols.case import Criterion, Reference, Scoring
from moot.protocols.tasks.essays import rated
from moot.protocols.tasks.numbers import stated_number
from moot.protocols.tasks.row import Row, shown

KEYS = ("scoring", "accepted", "ratings", "group", "part", "tags")
"""The keys of a case in memory that make its reference."""


def refer_memory(row: Row) -> Reference:
    """Gives a case's reference.

    Raises:
        TaskFileError: a value has the wrong type, is out of the criterion's range, or goes with another scoring.
    """
    scoring: Scoring = named(row, "scoring", Scoring) or "label"
    group, part = (row.text(name, default="") for name in ("group", "part"))
    tags = _tags(row)
    if scoring == "score":
        ratings = _ratings(row, criterion_of(row))
        found = rated(ratings, group, part)[1]
        return msgspec.structs.replace(found, accepted=_accepted(row) or found.accepted, tags=tags)
    if row.values.get("ratings"):
        raise row.error("ratings", f"go with the scoring 'score', found {shown(scoring)}")
    return Reference(scoring=scoring, accepted=_accepted(row), group=group, part=part, tags=tags)


def check_gold(row: Row, gold: str | None, reference: Reference) -> None:
    """Refuses a gold answer that nothing could ever be held against.

    Raises:
        TaskFileError: it is to be compared by value and is no number.
    """
    for field, text in (("gold", gold), *(("accepted", each) for each in reference.accepted)):
        if text is not None and reference.scoring in ("number", "score") and stated_number(text) is None:
            raise row.error(field, f"expected a number, as it is compared by value, found {shown(text)}")


def named(row: Row, field: str, names: Any) -> Any:
    """A field that holds one of a few names; None when it is missing or null.

    Raises:
        TaskFileError: it holds something else.
    """
    value = row.values.get(field)
    if value is not None and value not in get_args(names):
        raise row.error(field, f"expected one of {', '.join(get_args(names))}, found {shown(value)}")
    return value


def criterion_of(row: Row) -> Criterion | None:
    """The criterion of a case, from a mapping or a `Criterion`; None when it has none.

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
    """The accepted answers: a list, or one text."""
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
