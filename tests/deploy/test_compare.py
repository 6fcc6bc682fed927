"""Runs side by side."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.deploy.reading.references import score_as_now
from moot.deploy.reading.summaries.compare import Comparison, compare, run_names, show_comparison
from moot.deploy.reading.summaries.paired import Paired
from moot.deploy.reading.summaries.summary import summarise
from moot.deploy.reading.summaries.summary_rows import summary_rows
from moot.protocols.case import JudgedReply


def run_of(session: Any, right: dict[str, bool | None], **case: Any) -> Any:
    made = type(session)()
    for case_id, is_right in right.items():
        made.case(case_id, **case)
        made.reply(case_id, "opening/agent/0", 10)
        if is_right is None:
            made.verdict(case_id, None, "failed", failure="bug")
        else:
            made.verdict(case_id, "Yes" if is_right else "No", "single")
    return made


@pytest.fixture
def two(planted: Callable[..., Path], session: Any) -> tuple[Path, Path]:
    first = run_of(session, {"a": True, "b": False, "c": True, "d": True, "e": None})
    second = run_of(session, {"a": True, "b": True, "c": False, "d": None, "f": True})
    return planted(first, protocol="one"), planted(second, protocol="two")


def test_pairs_are_the_cases_that_both_scored(two: tuple[Path, Path]) -> None:
    found = compare(two)
    first, second = found.rows
    assert (first.n, first.failed, first.accuracy, first.scored) == (4, 1, 0.75, 4)
    assert first.vs_first is None
    assert second.vs_first == Paired(only_first=1, only_second=1, difference=0.0, p_value=1.0, n=3)
    assert (second.tokens_per_case, second.token_cost_x) == (10.0, 1.0)
    assert any("only 4 cases are shared" in warning for warning in found.warnings)


def test_no_answer_is_wrong_in_the_accuracy_and_in_the_pairs(planted: Callable[..., Path], session: Any) -> None:
    answers = {"full": ("Yes", "No", "Yes", "Yes"), "gaps": ("Yes", None, None, "No")}
    folders = []
    for given in answers.values():
        made = type(session)()
        for number, answer in enumerate(given):
            made.case(f"case-{number}")
            made.verdict(f"case-{number}", answer, "single")
        folders.append(planted(made))
    found = compare(folders)
    full, gaps = found.rows
    assert (full.accuracy, full.scored, full.answered) == (3 / 4, 4, 4)
    assert (gaps.accuracy, gaps.scored, gaps.answered) == (1 / 4, 4, 2)
    assert gaps.vs_first == Paired(only_first=0, only_second=2, difference=-0.5, p_value=0.5, n=4)
    summary = summarise(folders[1])
    assert (summary.accuracy_answered, summary.answered) == (1 / 2, 2)
    rows = dict(summary_rows(summary))
    assert (rows["answered"], rows["accuracy of answered"][:6]) == ("2 of 4", "50.0 %")
    assert "answered" not in dict(summary_rows(summarise(folders[0])))


def test_judged_replies_are_no_wrong_answers(planted: Callable[..., Path], session: Any) -> None:
    session.case("a", judged=JudgedReply(reply="Yes."))
    session.verdict("a", None)
    found = summarise(planted(session))
    assert (found.accuracy, found.scored) == (None, 0)


def test_a_record_from_before_is_read_as_it_would_be_written_now(planted: Callable[..., Path], session: Any) -> None:
    rows = [
        {"case_id": "a", "failed": False, "answer": None, "gold": "Yes", "correct": None},
        {"case_id": "b", "failed": False, "answer": None, "gold": "Yes", "correct": None},
        {"case_id": "c", "failed": True, "answer": None, "gold": "Yes", "correct": None},
        {"case_id": "d", "failed": False, "answer": None, "gold": None, "correct": None},
        {"case_id": "e", "failed": False, "answer": "Yes", "gold": "Yes", "correct": True},
    ]
    for row in rows:
        session.case(row["case_id"], judged=JudgedReply(reply="Yes.") if row["case_id"] == "b" else None)
    score_as_now(planted(session), rows)
    assert [row["correct"] for row in rows] == [False, None, None, None, True]


def test_equal_ids_of_other_texts_are_not_paired(planted: Callable[..., Path], session: Any) -> None:
    first = planted(run_of(session, {"a": True, "b": False}))
    other = planted(run_of(session, {"a": True, "b": False}, question="Something else?"))
    found = compare([first, other])
    assert found.rows[1].vs_first == Paired(only_first=0, only_second=0, difference=None, p_value=None, n=0)
    assert any("2 case ids stand for other texts" in warning for warning in found.warnings)


def test_other_models_are_said(planted: Callable[..., Path], session: Any) -> None:
    runs = [planted(run_of(session, {"a": True}), models={"agent": [name]}) for name in ("x", "y")]
    assert "the runs' agents are not the same models" in compare(runs).warnings


def test_figures_are_those_of_the_summaries(inline_run: Callable[..., Path]) -> None:
    runs = [inline_run(name) for name in ("selene", "always-debate", "single-agent")]
    for row, run in zip(compare(runs).rows, runs, strict=True):
        summary = summarise(run)
        assert (row.accuracy, row.skip_rate) == (summary.accuracy, summary.skip_rate)
        assert (row.n, row.token_cost_x) == (summary.finished, summary.token_cost_x)


def test_a_debate_that_is_always_held_is_what_costs_are_held_against(
    inline_run: Callable[..., Path], printed: Callable[..., str]
) -> None:
    runs = [inline_run(name) for name in ("selene", "always-debate", "single-agent")]
    title = "a case's cost beside debating always"
    found = compare(runs)
    shown = printed(show_comparison, found, width=300).partition(title)[2].splitlines()
    assert shown[3].split()[-3:] == [*shown[3].split()[-3:-1], "1.00x"]
    assert [row.judge_passes_per_case == 0 for row in found.rows] == [False, False, True]
    assert title not in printed(show_comparison, compare([runs[0], runs[2]]), width=300)


def test_the_same_audit_makes_judges_comparable(inline_run: Callable[..., Path], printed: Callable[..., str]) -> None:
    runs = [inline_run(name, audit_judging=True) for name in ("selene", "single-agent")]
    found = compare(runs)
    assert all(row.judge_stability is not None for row in found.rows)
    assert found.rows[1].token_cost_x == 1.0, "an audit's passes are no cost of the method"
    assert "judge stability" in printed(show_comparison, found, width=300)


@pytest.mark.parametrize("form", ["text", "json", "md"])
def test_all_formats(two: tuple[Path, Path], printed: Callable[..., str], form: str) -> None:
    found = compare(two)
    shown = printed(show_comparison, found, form=form, width=300)
    if form == "json":
        assert Comparison.model_validate_json(shown) == found
    else:
        row = "| +0.0 | 1.0000 | +1/-1 | 3 |" if form == "md" else "+0.0 1.0000 +1/-1 3"
        assert row in " ".join(shown.replace("\\", "").split())


def test_it_fits_a_terminal_and_cuts_no_name(inline_run: Callable[..., Path], printed: Callable[..., str]) -> None:
    names = ("selene", "always-debate", "single-agent", "majority-vote")
    found = compare([inline_run(name, audit_judging=True) for name in ("selene", "single-agent")])
    rows = [
        found.rows[place // 2].model_copy(
            update={"run": f"a/long/way/to/the/runs/{name}", "protocol": name, "scored": 9427, "answered": 9427}
        )
        for place, name in enumerate(names)
    ]
    shown = printed(show_comparison, found.model_copy(update={"rows": rows}), width=80).splitlines()
    assert max(map(len, shown)) <= 80
    for name in names:
        (figures,) = (line for line in shown if line.startswith(f"{name} ") and "[" in line)
        assert len(figures.split()) == 10
    assert not any("/to/the/runs" in line or "…" in line for line in shown)


def test_runs_are_named_by_what_tells_them_apart(two: tuple[Path, Path], printed: Callable[..., str]) -> None:
    assert run_names(["runs/a/x", "runs/b/x", "runs/b/y"]) == ["a/x", "b/x", "b/y"]
    assert run_names(["runs/x", "runs/x"]) == ["x", "x"]
    shown = printed(show_comparison, compare(two), width=80)
    assert re.search(r"^run0 +one +75\.0 \[.*\] +4 +1 ", shown, re.MULTILINE), "another name does not say the protocol"
