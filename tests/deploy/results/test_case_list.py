"""Lists of cases: which case is of which kind, how a list is shown, and which flags of `moot show` go together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gated_cases import gate
from planted_records import CONTROL, EVIL, Command, InlineRun, PlantedSession

from moot.deploy.results.case_table import MOST, case_list, case_list_blocks
from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.report.render import report_markdown
from moot.protocols.errors import ConfigError


@pytest.fixture
def planted(session: PlantedSession) -> Path:
    """One case of every kind; three of them had a reply that was cut off, one of these in an attempt that was retried,
    one in a retry that has no verdict yet."""
    for case_id in ("skipped", "debated", "wrong", "failed", "open", "retried"):
        session.case(case_id, question=f"Is {case_id} it?")
    session.event("skipped", "gate", "gate", gate(0.1, 0.1))
    session.verdict("skipped", "Yes", "skipped")
    session.event("debated", "gate", "gate", gate(0.6, 0.1, skip=False, reasons=["disagreement"]))
    session.reply("debated", "round/1/agent/0", 9, finish_reason="length")
    session.verdict("debated", "Yes", "stable-agree", rounds=1)
    session.verdict("wrong", None, "vote")
    session.verdict("failed", None, "failed", failure="quorum")
    session.reply("retried", "opening/agent/0", 9, finish_reason="length")
    session.verdict("retried", None, "failed", failure="ask-failed")
    again = session.new()
    again.case("retried", question="Is retried it?")
    again.reply("retried", "opening/agent/0", 9, attempt=1)
    again.verdict("retried", "No", "vote", attempt=1)
    again.reply("failed", "opening/agent/0", 9, attempt=1, finish_reason="length")
    return session.plant(again, simulated=True)


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        ([], ["skipped", "debated", "wrong", "failed", "open", "retried"]),
        (["right"], ["skipped", "debated"]),
        (["wrong"], ["wrong", "retried"]),
        (["failed"], ["failed"]),
        (["debated"], ["debated"]),
        (["truncated"], ["debated"]),
        (["right", "debated", "truncated"], ["debated"]),
        (["wrong", "debated"], []),
    ],
)
def test_a_list_contains_the_cases_of_all_requested_kinds(planted: Path, kinds: list[str], found: list[str]) -> None:
    assert [row.case_id for row in case_list(planted).only(*kinds)] == found


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (["right", "wrong"], "no case is both right and wrong"),
        (["debated", "failed"], "no case is both debated and failed"),
        (["wrnog"], "wrong"),
    ],
)
def test_kinds_that_exclude_each_other_or_do_not_exist_are_refused(planted: Path, kinds: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        case_list(planted).only(*kinds)


def test_the_outcome_of_a_case_is_text_and_unknown_is_none(planted: Path) -> None:
    rows = {row.case_id: row for row in case_list(planted)}
    assert rows["skipped"].ending == "the gate skipped the debate"
    assert (rows["failed"].ending, rows["failed"].rounds, rows["failed"].answer) == ("failed: quorum", None, None)
    assert (rows["open"].ending, rows["open"].tokens, rows["open"].outcome) == (None, None, "open")
    assert "no verdict yet" in str(case_list(planted))


def test_a_terminal_lists_fifty_and_says_how_many_more(session: PlantedSession) -> None:
    for number in range(MOST + 3):
        session.case(f"c{number:03}", question=EVIL)
        session.verdict(f"c{number:03}")
    found = case_list(session.plant())
    text, whole = str(found), report_markdown(case_list_blocks(found))
    assert (f"c{MOST - 1:03}" in text, f"c{MOST:03}" in text, "3 more" in text) == (True, False, True)
    assert (f"c{MOST + 2:03}" in whole, " more" in whole) == (True, False)
    for shown in (text, whole, found._repr_html_()):
        assert not CONTROL.search(shown)
    assert "<script" not in found._repr_html_()
    assert repr(found) == f"<CaseList {len(found)} of {len(found)} cases of {found.run}>"


def test_a_case_is_found_by_its_id(planted: Path) -> None:
    cases = case_list(planted)
    assert cases["wrong"] is cases[2]
    assert cases[:2] == cases.cases[:2]
    assert ("wrong" in cases, cases[2] in cases, "wrnog" in cases) == (True, True, False)
    with pytest.raises(ConfigError, match="the list has 1 case, nearest 'failed'"):
        cases.only("failed")["faild"]
    frame = cases.to_pandas()
    assert list(frame["case_id"]) == [case.case_id for case in cases]
    assert list(cases.only("wrong").only("truncated").to_pandas().columns) == list(frame.columns)


def test_cases_that_have_not_begun_are_counted(session: PlantedSession) -> None:
    session.case("a")
    found = case_list(session.plant(cases=3))
    assert (len(found), found.total) == (1, 3)
    assert "1 of 3 cases have begun" in str(found)
    assert "0 of 3 cases wrong" in str(found.only("wrong"))


def test_the_lists_of_a_run_agree_with_its_summary(inline_run: InlineRun) -> None:
    folder = inline_run("selene")
    cases, summary = case_list(folder), summarise(folder)
    assert len(cases.only("debated", "right")) + len(cases.only("debated", "wrong")) == summary.scored_debated
    assert len(cases.only("right")) / summary.scored == summary.accuracy
    assert len(cases.only("failed")) == summary.failed


def test_the_command_lists_cases(planted: Path, command: Command) -> None:
    code, out, _ = command("show", str(planted), "--wrong", "--format", "json")
    assert (code, [row["case_id"] for row in json.loads(out)["cases"]]) == (0, ["wrong", "retried"])
    for flags, said in {
        ("--wrong", "--failed"): "no case is both wrong and failed: leave one out",
        ("--wrong", "--rounds"): "--wrong lists cases: leave out --rounds",
        ("skipped", "--right"): "--right lists cases: leave out the case",
    }.items():
        code, _, err = command("show", str(planted), *flags)
        assert (code, said in err) == (2, True), err


def test_a_debate_without_rounds_was_debated_where_a_gate_wanted_it(session: PlantedSession) -> None:
    for case_id in ("wanted", "single"):
        session.case(case_id)
        session.verdict(case_id, "Yes", "turn-failed", rounds=0)
    session.event("wanted", "gate", "gate", gate(0.6, 0.1, skip=False, reasons=["disagreement"]))
    run = session.plant()
    assert [case.case_id for case in case_list(run).only("debated")] == ["wanted"]
    assert summarise(run).debate_rounds_mean_debated == 0.0
