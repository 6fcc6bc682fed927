"""Essays scored trait by trait: a case per essay and trait, whoever the raters are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from moot.protocols.case import Case, Criterion, Reference
from moot.protocols.tasks.row import Row


def rated(ratings: Sequence[float | None], group: str, part: str = "") -> tuple[str | None, Reference]:
    """The gold label and the reference of a text that raters scored.

    Every whole score that a rater gave is accepted, and the first of them is the gold label: where raters differ,
    none of them is wrong. Without any there is no gold label. Raises nothing.

    Args:
        ratings: by rater, None where one is missing.
        group, part: see `Reference`.

    >>> rated((None, 2.0, 3.0), "essay-1")[0]
    '2'
    """
    accepted = tuple(dict.fromkeys(f"{score:.0f}" for score in ratings if score is not None and score.is_integer()))
    reference = Reference(scoring="score", accepted=accepted, ratings=tuple(ratings), group=group, part=part)
    return (accepted[0] if accepted else None), reference


_MARKS = (
    "Words such as @PERSON1 or @CAPS1 stand where a name or another word was taken out of the essay. Ignore them: they "
    "say nothing about the writer."
)


def trait_rows(
    row: Row,
    essay: str,
    group: str,
    criteria: Sequence[Criterion],
    ratings: Mapping[str, Sequence[float | None]],
    part: str = "",
) -> Iterator[Row]:
    """One row per trait of an essay, as `parse_essay` takes them. Raises nothing.

    Args:
        row: where the essay stands.
        essay: its text.
        group: names it among the others; begins the cases' ids.
        criteria: the traits, in order.
        ratings: by trait, what each rater gave; None where one is missing.
        part: see `Reference.part`.
    """
    for criterion in criteria:
        trait = criterion.trait.lower().replace(" ", "-")
        values = {"id": f"{group}-{trait}", "essay": essay, "group": group, "part": part, "criterion": criterion}
        yield Row(row.file, row.line, {**values, "ratings": tuple(ratings[criterion.trait])})


def parse_essay(row: Row, default_id: str) -> tuple[Case, str | None]:
    """Gives a case, its essay untouched, and the first rater's score.

    The id is always made of the essay's and the trait's, so `default_id` is not used.

    Raises:
        TaskFileError: the essay is blank or holds half of a surrogate pair.
    """
    criterion = cast(Criterion, row.values["criterion"])
    case = Case(
        id=row.text("id"),
        question=rubric_question(criterion),
        labels=scores_of(criterion),
        passage=row.text("essay"),
        title=criterion.assignment,
        domain="rubric scoring",
        criterion=criterion,
    )
    return case, _rated(row)[0]


def refer_essay(row: Row) -> Reference:
    """What else is known of a row's right answer: all raters' scores. Raises nothing."""
    return _rated(row)[1]


def _rated(row: Row) -> tuple[str | None, Reference]:
    ratings = cast(tuple[float | None, ...], row.values["ratings"])
    return rated(ratings, row.text("group"), row.text("part", default=""))


def rubric_question(criterion: Criterion) -> str:
    """What is asked about an essay: the trait, its scale, what the scores mean and what was to be written.

    Raises nothing.
    """
    return (
        f"Which score from {criterion.lowest} to {criterion.highest} does the essay deserve for "
        f"{criterion.trait.lower()}?\n\n{criterion.guide}\n\nThe pupils were asked: {criterion.assignment}\n{_MARKS}"
    )


def scores_of(criterion: Criterion) -> tuple[str, ...]:
    """The scores of a scale as labels, lowest first. Raises nothing.

    >>> scores_of(Criterion(trait="style", lowest=0, highest=3, guide=""))
    ('0', '1', '2', '3')
    """
    return tuple(map(str, range(criterion.lowest, criterion.highest + 1)))
