"""Results in Python: `print` gives the terminal's tables, a notebook escaped HTML, and `repr` one short line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from planted_records import CONTROL, EVIL, GridOf, PlantedSession, Printed

from moot.deploy.results.case_table import case_list
from moot.deploy.results.figures.comparison import compare
from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.report.display import DisplayMixin
from moot.deploy.results.show import show_summary
from moot.deploy.results.transcript import build_transcript
from moot.deploy.studies.ablation.report import show_ablation


@pytest.fixture
def evil(session: PlantedSession) -> PlantedSession:
    """A debate in which a model and a data set wrote what may be taken for a command."""
    session.case("c1", question=EVIL)
    session.said("c1", "opening/agent/0", "Yes", 0.9, EVIL)
    session.verdict("c1", EVIL, "vote")
    return session


def made(session: PlantedSession) -> dict[str, DisplayMixin]:
    """A result of each class, of this record."""
    folder, other = session.plant(models={"agent": EVIL}), session.new()
    other.case("c1", question=EVIL)
    other.verdict("c1", "Yes", "vote")
    return {
        "Summary": summarise(folder),
        "Transcript": build_transcript(folder, "c1"),
        "RunComparison": compare([folder, other.plant()], cases=True),
        "CaseList": case_list(folder),
    }


@pytest.mark.parametrize("name", ["Summary", "Transcript", "RunComparison", "CaseList"])
def test_nothing_that_was_written_is_taken_for_a_command(evil: PlantedSession, name: str) -> None:
    found: Any = made(evil)[name]
    text, page = str(found), found._repr_html_()
    assert not CONTROL.search(text)
    assert not CONTROL.search(page)
    assert "gnp.exe" in text + page
    assert not re.search(r"<(script|style)|<[^>]* (style|on\w+)=", page)
    assert repr(found).startswith(f"<{name} ")
    assert len(repr(found)) < 200


def printed_lines(text: str) -> list[str]:
    """The lines without blanks at their ends."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def test_print_shows_what_the_command_shows(
    session: PlantedSession, grid_of: GridOf, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    session.case("c1")
    session.verdict("c1", "Yes", "vote")
    summary = summarise(session.plant())
    grid = grid_of("agents=2,3")
    for number in range(2):
        grid.plant(number, session)
    ablation = grid.measured()
    shows: list[tuple[Callable[..., None], DisplayMixin]] = [(show_summary, summary), (show_ablation, ablation)]
    for show, found in shows:
        assert str(found).split("\n") == printed_lines(printed(show, found, width=100))
