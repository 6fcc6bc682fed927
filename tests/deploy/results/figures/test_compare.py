"""Runs side by side, and what ties of votes do to their accuracies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from not_none import not_none
from planted_records import PlantedSession, Printed

from moot.deploy.results.figures.comparison import RunComparison, compare, comparison_blocks
from moot.deploy.results.figures.summary import summarise, summary_rows
from moot.deploy.results.references import scored_verdicts
from moot.deploy.results.report.render import show_report
from moot.deploy.results.show import show
from moot.deploy.results.stats import PairedComparison, compare_paired
from moot.protocols.case import JudgedReply, Reference


def run_of(session: PlantedSession, right: dict[str, bool | None], **case: Any) -> Any:
    made = session.new()
    for case_id, is_right in right.items():
        made.case(case_id, **case)
        made.reply(case_id, "opening/agent/0", 10)
        if is_right is None:
            made.verdict(case_id, None, "failed", failure="bug")
        else:
            made.verdict(case_id, "Yes" if is_right else "No", "single")
    return made


def test_pairs_are_independent_where_no_two_compared_cases_share_a_text(session: PlantedSession) -> None:
    of_text = {"alone": "x", "shared": "y", "failed-there": "y"}
    runs = []
    for right in (
        {"alone": True, "shared": True, "failed-there": True},
        {"alone": True, "shared": False, "failed-there": None},
    ):
        made = session.new()
        for case_id, is_right in right.items():
            made.case(case_id, reference=Reference(group=of_text[case_id]))
            made.verdict(case_id, "Yes" if is_right else "No", "single", failure="bug" if is_right is None else "")
        runs.append(made.plant())
    paired = not_none(compare(runs).rows[1].vs_first)
    assert (paired.n, paired.groups) == (2, None)


@pytest.fixture
def two(session: PlantedSession) -> tuple[Path, Path]:
    first = run_of(session, {"a": True, "b": False, "c": True, "d": True, "e": None})
    second = run_of(session, {"a": True, "b": True, "c": False, "d": None, "f": True})
    return first.plant(protocol="one"), second.plant(protocol="two")


def test_pairs_are_the_cases_that_both_scored(two: tuple[Path, Path]) -> None:
    found = compare(two)
    first, second = found.rows
    assert (first.n, first.failed, first.accuracy, first.scored) == (4, 1, 0.75, 4)
    assert first.vs_first is None
    assert second.vs_first == compare_paired([True, True, False], [True, False, True])
    assert not_none(second.vs_first).n == 3
    assert (second.tokens_per_case, second.token_cost_x) == (10.0, 1.0)
    assert any("only 4 cases are shared" in warning for warning in found.warnings)


def test_no_answer_is_wrong_in_the_accuracy_and_in_the_pairs(session: PlantedSession) -> None:
    answers = {"full": ("Yes", "No", "Yes", "Yes"), "gaps": ("Yes", None, None, "No")}
    folders = []
    for given in answers.values():
        made = session.new()
        for number, answer in enumerate(given):
            made.case(f"case-{number}")
            made.verdict(f"case-{number}", answer, "single")
        folders.append(made.plant())
    found = compare(folders)
    full, gaps = found.rows
    assert (full.accuracy, full.scored, full.answered) == (3 / 4, 4, 4)
    assert (gaps.accuracy, gaps.scored, gaps.answered) == (1 / 4, 4, 2)
    assert gaps.vs_first == compare_paired([True, False, False, False], [True, False, True, True])
    summary = summarise(folders[1])
    assert (summary.accuracy_answered, summary.answered) == (1 / 2, 2)
    rows = dict(summary_rows(summary))
    assert (rows["answered"], rows["accuracy of answered"][:6]) == ("2 of 4", "50.0 %")
    assert "answered" not in dict(summary_rows(summarise(folders[0])))


def test_judged_replies_are_no_wrong_answers(session: PlantedSession) -> None:
    session.case("a", judged=JudgedReply(reply="Yes."))
    session.verdict("a", None)
    found = summarise(session.plant())
    assert (found.accuracy, found.scored) == (None, 0)


def test_a_record_from_before_is_read_as_it_would_be_written_now(session: PlantedSession) -> None:
    rows: list[dict[str, Any]] = [
        {"case_id": "a", "failed": False, "answer": None, "gold": "Yes", "correct": None},
        {"case_id": "b", "failed": False, "answer": None, "gold": "Yes", "correct": None},
        {"case_id": "c", "failed": True, "answer": None, "gold": "Yes", "correct": None},
        {"case_id": "d", "failed": False, "answer": None, "gold": None, "correct": None},
        {"case_id": "e", "failed": False, "answer": "Yes", "gold": "Yes", "correct": True},
    ]
    for row in rows:
        session.case(row["case_id"], judged=JudgedReply(reply="Yes.") if row["case_id"] == "b" else None)
    found = scored_verdicts(pa.Table.from_pylist(rows), session.plant())
    assert found["correct"].to_pylist() == [False, None, None, None, True]


def test_equal_ids_of_other_texts_are_not_paired(session: PlantedSession) -> None:
    first = run_of(session, {"a": True, "b": False}).plant()
    other = run_of(session, {"a": True, "b": False}, question="Something else?").plant()
    found = compare([first, other])
    assert found.rows[1].vs_first == PairedComparison(only_first=0, only_second=0, difference=None, p_value=None, n=0)
    assert any("2 case ids have other texts" in warning for warning in found.warnings)


def test_a_comparison_shows_pairs_by_run_and_reads_back(two: tuple[Path, Path], printed: Printed) -> None:
    found = compare(two)
    shown = {form: printed(show_report, found, lambda: comparison_blocks(found), form=form) for form in ("md", "json")}
    assert "| +0.0 [-100.0, +100.0] | 1.0000 | +1/-1 | 3 |" in shown["md"].replace("\\", "")
    assert RunComparison.model_validate_json(shown["json"]) == found


def vote(answer: str, tied: list[str]) -> dict[str, Any]:
    votes = [{"answer": each, "count": 1, "stated": 0.5} for each in tied or [answer]]
    broken = "stated_confidence" if tied else ""
    return {"votes": votes, "tied": tied, "tie_broken_by": broken, "answer": answer}


def voted(
    session: PlantedSession, case_id: str, answer: str, *tied: str, how: str = "vote", path: str = "vote"
) -> None:
    session.case(case_id)
    session.event(case_id, "vote", path, vote(answer, list(tied)))
    session.verdict(case_id, answer, how)


def test_ties_are_counted(session: PlantedSession, printed: Printed) -> None:
    """Right: a, c and e (gold is Yes); a, b and e were ties, e one of a consensus, f only in the branch not taken."""
    voted(session, "a", "Yes", "No", "Yes")
    voted(session, "b", "No", "No", "Yes")
    voted(session, "c", "Yes")
    voted(session, "d", "No")
    voted(session, "e", "Yes", "No", "Yes", how="skipped", path="vote/consensus")
    voted(session, "f", "No", "No", "Yes", how="skipped")
    session.case("g")
    session.verdict("g", "Yes", "stable-agree", rounds=1)
    folder = session.plant()
    found = summarise(folder)
    assert found.votes is not None
    assert (found.votes.n, found.votes.tied, found.votes.scored, found.votes.scored_untied) == (5, 3, 5, 2)
    assert found.votes.accuracy_untied == pytest.approx(1 / 2)
    assert found.votes.accuracy_strict == pytest.approx(1 / 5)
    assert found.accuracy == pytest.approx(4 / 7)
    assert "3 of 5" in printed(show, folder)
    assert "chosen: Yes (a tie of No, Yes, broken by stated confidence)" in printed(show, folder, "a")
    consensus = printed(show, folder, "e")
    assert "Consensus by vote" in consensus
    assert "Further answers" not in consensus, "nobody was asked for any"


def test_a_run_without_votes_has_no_such_figures(session: PlantedSession) -> None:
    session.case("a")
    session.event("a", "vote", "vote", {"by": "another protocol"})
    session.verdict("a", "Yes", "vote")
    folder = session.plant()
    assert summarise(folder).votes is None
    show(folder, "a")


def test_copies_of_cases_are_compared_as_one_group(session: PlantedSession) -> None:
    runs = []
    for right in ({0, 1, 2, 3, 4, 5}, {0}):
        made = session.new()
        for number in range(36):
            made.case(f"c{number:02}", question=f"q{number % 12}")
            made.verdict(f"c{number:02}", "Yes" if number % 12 in right else "No")
        runs.append(made.plant())
    found = compare(runs[::-1])
    paired = not_none(found.rows[1].vs_first)
    once = compare_paired([n < 6 for n in range(12)], [n < 1 for n in range(12)])
    assert (paired.n, paired.groups, paired.only_first, once.groups) == (36, 12, 15, None)
    assert (paired.p_value, *not_none(paired.interval)) == pytest.approx((once.p_value, *not_none(once.interval)))
    assert found.rows[0].scored_groups == 12
    assert not_none(found.rows[0].accuracy_interval) == pytest.approx((0.012, 0.410), abs=1e-3)
