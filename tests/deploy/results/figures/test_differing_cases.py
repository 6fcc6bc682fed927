"""Cases that differ between runs: those whose outcome differs first, failed ones said, equal ones left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from planted_records import Command, PlantedSession

from moot.actors.record.debate_result import WITHDRAWN
from moot.actors.record.schema import CANCELLED
from moot.deploy.results.figures.comparison import answer_words, compare, differing_cases
from moot.protocols.errors import ConfigError


def run_of(session: PlantedSession, answers: Mapping[str, str | None], name: str) -> Path:
    made = session.new()
    for case_id, answer in answers.items():
        made.case(case_id)
        if answer == "withdrawn":
            made.event(case_id, CANCELLED, "cancelled", {"why": WITHDRAWN})
        elif answer != "open":
            made.verdict(case_id, answer, "single")
    folder = made.plant()
    return folder.rename(folder.parent / name)


@pytest.fixture
def runs(session: PlantedSession) -> list[Path]:
    first = {"same": "Yes", "both-wrong": "No", "flips": "No", "open": "open", "gone": "withdrawn", "only-here": "No"}
    second = {"same": "Yes", "both-wrong": None, "flips": "Yes", "open": "Yes", "gone": "open"}
    return [run_of(session, first, "first"), run_of(session, second, "second")]


def test_cases_whose_outcome_differs_come_first(runs: list[Path]) -> None:
    found = {each.case_id: [answer_words(answer) for answer in each.answers] for each in differing_cases(runs)}
    assert list(found) == ["flips", "open", "both-wrong", "gone"]
    assert found["flips"] == ["No (wrong)", "Yes (right)"]
    assert found["open"] == ["open", "Yes (right)"]
    assert found["gone"] == ["withdrawn", "open"]
    assert found["both-wrong"] == ["No (wrong)", "none (wrong)"]


def test_the_baseline_is_named_by_the_end_of_its_path(runs: list[Path]) -> None:
    found = compare(runs, baseline="second", cases=True)
    assert [Path(row.run).name for row in found.rows] == ["second", "first"]
    assert found.rows[0].vs_first is None
    assert [answer.answer for answer in (found.cases or [])[0].answers] == ["Yes", "No"]
    with pytest.raises(ConfigError, match="none of the runs"):
        compare(runs, baseline="third")


def test_cases_are_listed_only_when_asked_for(runs: list[Path], command: Command) -> None:
    assert compare(runs).cases is None
    code, out, _ = command("compare", *map(str, runs), "--cases")
    assert code == 0
    assert "4 cases with different answers, 2 of them right in some runs only" in out
