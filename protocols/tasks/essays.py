"""Essays scored trait by trait: a case per essay and trait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from moot.protocols.case import Case, Criterion, Reference
from moot.protocols.tasks.row import ParsedCase


def ratings_reference(ratings: Sequence[float | None], group: str, part: str = "") -> tuple[str | None, Reference]:
    """Gold label and reference of a text that raters scored.

    Every whole score that a rater gave is accepted, and the first of them is the gold label: where raters differ,
    none of them is wrong. Without any there is no gold label. Raises nothing.

    Args:
        ratings: by rater, None where one is missing.
        group, part: see `Reference`.

    >>> ratings_reference((None, 2.0, 3.0), "essay-1")[0]
    '2'
    """
    accepted = tuple(dict.fromkeys(f"{score:.0f}" for score in ratings if score is not None and score.is_integer()))
    reference = Reference(scoring="score", accepted=accepted, ratings=tuple(ratings), group=group, part=part)
    return (accepted[0] if accepted else None), reference


_MARKS = (
    "Words such as @PERSON1 or @CAPS1 stand where a name or another word was taken out of the essay. Ignore them: they "
    "say nothing about the writer."
)


def trait_cases(
    essay: str,
    group: str,
    criteria: Sequence[Criterion],
    ratings: Mapping[str, Sequence[float | None]],
    part: str = "",
) -> Iterator[ParsedCase]:
    """One case per trait of an essay, its text unchanged, with the first rater's score as its gold label.

    Args:
        essay: its text.
        group: its name among the others, and prefix of the cases' ids.
        criteria: the traits, in order.
        ratings: scores of each rater by trait; None for a missing one.
        part: see `Reference.part`.
    """
    for criterion in criteria:
        gold, reference = ratings_reference(tuple(ratings[criterion.trait]), group, part)
        case = Case(
            id=f"{group}-{criterion.trait.lower().replace(' ', '-')}",
            question=rubric_question(criterion),
            labels=scores_of(criterion),
            passage=essay,
            title=criterion.assignment,
            domain="rubric scoring",
            criterion=criterion,
        )
        yield ParsedCase(case, gold, reference)


def rubric_question(criterion: Criterion) -> str:
    """Question about an essay: the trait, its scale, the meaning of the scores and the assignment.

    Raises nothing.
    """
    return (
        f"Which score from {criterion.lowest} to {criterion.highest} does the essay deserve for "
        f"{criterion.trait.lower()}?\n\n{criterion.guide}\n\nThe pupils were asked: {criterion.assignment}\n{_MARKS}"
    )


def criteria_of(traits: Mapping[str, tuple[str, ...]], highest: int, assignment: str) -> tuple[Criterion, ...]:
    """Criteria of an assignment.

    Args:
        traits: meanings of the scores by name, the highest first.
    """
    return tuple(
        Criterion(
            trait=trait,
            lowest=highest + 1 - len(meanings),
            highest=highest,
            guide="\n".join(f"{highest - place}: {meaning}" for place, meaning in enumerate(meanings)),
            assignment=assignment,
        )
        for trait, meanings in traits.items()
    )


def scores_of(criterion: Criterion) -> tuple[str, ...]:
    """Scores of a scale as labels, lowest first. Raises nothing.

    >>> scores_of(Criterion(trait="style", lowest=0, highest=3, guide=""))
    ('0', '1', '2', '3')
    """
    return tuple(map(str, range(criterion.lowest, criterion.highest + 1)))
