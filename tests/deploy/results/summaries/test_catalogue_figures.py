"""Figures of a run for a list of runs: those of its summary, for cases that stand alone and for grouped ones."""

from __future__ import annotations

import pytest
from planted_records import PlantedSession

from moot.deploy.results.summaries.catalogue_figures import RunFigures, run_figures
from moot.deploy.results.summaries.summary import summarise
from moot.protocols.case import Reference


@pytest.mark.parametrize(
    ("groups", "independent"), [(("", "", ""), True), (("a", "b", ""), True), (("a", "b", "a"), False)]
)
def test_they_are_those_of_the_summary(session: PlantedSession, groups: tuple[str, ...], independent: bool) -> None:
    for number, group in enumerate(groups):
        session.case(f"c{number}", reference=Reference(group=group))
        session.verdict(f"c{number}", "Yes" if number else "No")
    session.case("open", reference=Reference(group="a"))
    run = session.plant()
    found, summary = run_figures(run), summarise(run)
    assert found.model_dump() == {name: getattr(summary, name) for name in RunFigures.model_fields}
    assert (found.accuracy_interval is not None) == independent
