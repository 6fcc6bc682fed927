"""Figures of a run for a list of runs: those of its summary, for cases that stand alone and for grouped ones."""

from __future__ import annotations

import pytest
from planted_records import PlantedSession

from moot.deploy.results.figures.run_list import RunFigures, run_figures
from moot.deploy.results.figures.summary import summarise
from moot.protocols.case import Reference


@pytest.mark.parametrize(
    ("groups", "questions", "in_groups"),
    [
        (("", "", ""), "abc", None),
        (("a", "b", ""), "abc", None),
        (("a", "b", "a"), "abc", 2),
        (("", "", ""), "aba", 2),
        (("x", "y", ""), "aba", 2),
        (("x", "y", "y"), "aba", 1),
        (("c1", "", ""), "abc", None),
    ],
)
def test_they_are_those_of_the_summary(
    session: PlantedSession, groups: tuple[str, ...], questions: str, in_groups: int | None
) -> None:
    for number, (group, question) in enumerate(zip(groups, questions, strict=True)):
        session.case(f"c{number}", question=question, reference=Reference(group=group))
        session.verdict(f"c{number}", "Yes" if number else "No")
    session.case("open", reference=Reference(group="a"))
    run = session.plant()
    found, summary = run_figures(run), summarise(run)
    assert found.model_dump() == {name: getattr(summary, name) for name in RunFigures.model_fields}
    assert (found.accuracy_interval is None, summary.scored_groups) == (in_groups is not None, in_groups)
