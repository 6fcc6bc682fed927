"""The report of a run: its charts say what the record and the summary say, and each part is there where it belongs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted_records import InlineRun, PlantedSession

from moot import run
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.summary import summarise, summary_rows
from moot.deploy.results.figures.worth import (
    VOTE,
    AgentAnswers,
    agent_answers,
    baselines,
    flips,
    opening_votes,
    single_agent_step,
)
from moot.deploy.results.record import RunRecord
from moot.deploy.results.report.blocks import Block, Chart, Heading, Note, Pairs, Table
from moot.deploy.results.run_report.overview import next_steps
from moot.deploy.results.run_report.report import build_report
from moot.deploy.results.stats import compare_paired, paired_sentence
from moot.deploy.results.text import times


def chart(blocks: list[Block], name: str) -> Chart:
    [found] = [block for block in blocks if isinstance(block, Chart) and block.name == name]
    return found


@pytest.fixture(scope="module")
def selene(inline_run: InlineRun) -> Path:
    return inline_run("always-debate")


def test_the_overview_has_the_rows_of_the_terminal(selene: Path) -> None:
    blocks = build_report(selene).blocks
    rows = [row for block in blocks if isinstance(block, Pairs) for row in block.rows]
    assert set(summary_rows(summarise(selene))) <= set(rows)
    [title] = [block.text for block in blocks if isinstance(block, Heading) and block.level == 1]
    assert title.endswith(selene.name)


def test_accuracy_against_tokens_is_that_of_the_summary(selene: Path) -> None:
    summary, blocks = summarise(selene), build_report(selene).blocks
    points = {series.name: series for series in chart(blocks, "worth").series}
    everyone = points["all cases"]
    assert everyone.y == [summary.accuracy]
    assert (everyone.low[0], everyone.high[0]) == summary.accuracy_interval
    assert everyone.x[0] == pytest.approx(summary.tokens_per_case)
    for by_rounds in summary.accuracy_by_rounds or ():
        name = f"{by_rounds.rounds} round{'s' if by_rounds.rounds > 1 else ''}"
        assert points[name].y == [by_rounds.accuracy]


def test_lengths_and_endings_count_every_finished_case(selene: Path) -> None:
    blocks = build_report(selene).blocks
    verdicts = read_table(selene, "verdicts", ["rounds", "how"]).to_pylist()
    bars = chart(blocks, "rounds").series[0]
    assert dict(zip(bars.x, bars.y, strict=True)) == {
        str(n): count for n, count in Counter(row["rounds"] for row in verdicts).items()
    }
    [endings] = [block for block in blocks if isinstance(block, Table) and block.title == "How the cases ended"]
    assert {row[1]: int(row[2]) for row in endings.rows} == Counter(row["how"] for row in verdicts)


def answers_of(*rows: tuple[str, int, int, str]) -> AgentAnswers:
    """Answers `right` and others, of case, agent and round."""
    cases, answers = sorted({row[0] for row in rows}), sorted({row[3] for row in rows})
    columns = zip(
        *((cases.index(c), a, n, said == "right", answers.index(said)) for c, a, n, said in rows), strict=True
    )
    return AgentAnswers(cases, *map(np.array, columns))


def test_changed_answers_are_counted_from_the_round_before() -> None:
    answers = answers_of(
        *(("a", 0, n, said) for n, said in enumerate(("wrong", "right", "right"))),
        *(("a", 1, n, said) for n, said in enumerate(("right", "wrong", "right"))),
        ("b", 0, 0, "right"),
        ("b", 0, 2, "wrong"),
    )
    found = [(each.round, each.answers, each.to_right, each.to_wrong) for each in flips(answers)]
    assert found == [(1, 2, 1, 1), (2, 2, 1, 0)]


def test_a_vote_of_the_first_answers_needs_a_majority_of_three() -> None:
    def agents(case_id: str, *firsts: str) -> list[tuple[str, int, int, str]]:
        return [(case_id, agent, 0, first) for agent, first in enumerate(firsts)]

    answers = [
        *agents("alone", "right"),
        *agents("lost", "wrong", "wrong", "right"),
        *agents("tied", "right", "wrong"),
        *agents("won", "right", "wrong", "right"),
    ]
    assert opening_votes(answers_of(*answers)) == {"won": True, "lost": False, "tied": False, "alone": True}
    assert opening_votes(answers_of(*agents("two", "right", "right"))) == {}


def test_the_vote_of_the_first_answers_is_that_of_the_record(selene: Path) -> None:
    run = RunRecord(selene)
    votes: dict[str, Counter[str]] = {}
    for row in read_table(selene, "turns", ["answer"]).to_pylist():
        if row["path"].startswith("opening/agent/"):
            votes.setdefault(row["case_id"], Counter())[row["answer"]] += 1
    gold = {verdict.case_id: verdict.gold for verdict in run.verdicts}
    right = [gold[case_id] == of.most_common(1)[0][0] for case_id, of in votes.items() if max(of.values()) > 1]
    voted = {series.name: series for series in chart(build_report(selene).blocks, "worth").series}[VOTE]
    assert voted.y[0] == pytest.approx(sum(right) / len(votes))


@pytest.mark.parametrize("price", [{"m": {"input": 2.0, "output": 10.0}}, {}])
def test_a_way_to_answer_costs_what_the_runs_prices_say(session: PlantedSession, price: dict[str, Any]) -> None:
    for case_id, of_agent in (("a", 100), ("b", 300)):
        session.case(case_id)
        for agent in range(3):
            session.reply(case_id, f"opening/agent/{agent}", of_agent, answer="Yes")
        session.reply(case_id, "judge/candidate/0/judge/0/variant/0/pass/0", 50)
        session.verdict(case_id, answer="Yes")
    blocks = build_report(session.plant(schema_version=1, price_table=price)).blocks
    [table] = [block for block in blocks if isinstance(block, Table) and "tokens per case" in block.header]
    rows = {row[0]: row for row in table.rows}
    assert [rows[name][1] for name in ("agent 0's first answer", VOTE, "all cases")] == ["200", "600", "650"]
    if not price:
        assert "USD per case" not in table.header
        return
    usd = [float(rows[name][2]) for name in ("agent 0's first answer", VOTE, "all cases")]
    per_call = 8.0 / 1e6  # one token of each call is of the completion
    assert usd == pytest.approx([400 / 1e6 + per_call, 1200 / 1e6 + 3 * per_call, 1300 / 1e6 + 4 * per_call], rel=1e-3)


def test_ways_to_answer_are_priced_on_the_same_cases(session: PlantedSession) -> None:
    """The debate of a costly case has a call of unknown usage: its first answers must not count against the others."""
    for case_id, of_agent, judged in (("short", 100, 50), ("long", 900, None)):
        session.case(case_id)
        for agent in range(3):
            session.reply(case_id, f"opening/agent/{agent}", of_agent, answer="Yes")
        session.reply(case_id, "judge/candidate/0/judge/0/variant/0/pass/0", judged)
        session.verdict(case_id, answer="Yes")
    blocks = build_report(session.plant(schema_version=1)).blocks
    [table] = [block for block in blocks if isinstance(block, Table) and "tokens per case" in block.header]
    tokens = {row[0]: row[1] for row in table.rows}
    assert tokens == {"agent 0's first answer": "100 (n = 1)", VOTE: "300 (n = 1)", "all cases": "350 (n = 1)"}


def test_what_next_names_what_the_run_needs(selene: Path) -> None:
    done = summarise(selene)
    assert "--wrong" in " ".join(next_steps(done))
    perfect = done.model_copy(update={"accuracy": 1.0, "simulated": False})
    assert not list(next_steps(perfect))
    interrupted = perfect.model_copy(update={"open": 3})
    assert ["3 cases have no verdict" in step for step in next_steps(interrupted)] == [True]


def test_the_first_line_counts_in_the_singular_and_the_outcomes_of_unscored_debates(
    session: PlantedSession, tmp_path: Path
) -> None:
    def first_line(folder: Path) -> str:
        return next(
            each.text for each in build_report(folder).blocks if isinstance(each, Note) and each.style == "strong"
        )

    session.case("a")
    assert first_line(session.plant()).startswith("0 of 1 case finished, 1 is open: the run is not complete.")
    debates = run(protocol="socrasynth", task="sample-subjects", engine="inline", limit=2, out=tmp_path / "run").path
    summary = summarise(debates)
    assert summary.rulings is not None
    assert all(f"{name} {n}" in first_line(debates) for name, n in summary.rulings.winners.items() if n)
    assert not [name for name, _ in summary_rows(summary) if name.startswith("accuracy")]


def test_skipped_cases_are_no_debates_of_no_rounds(inline_run: InlineRun) -> None:
    blocks, cases = build_report(inline_run("selene")).blocks, summarise(inline_run("selene"))
    lengths = chart(blocks, "rounds")
    assert "0" not in lengths.series[0].x
    assert f"Left out: {cases.how['skipped']} case" in lengths.note
    [prices] = [block for block in blocks if isinstance(block, Table) and "tokens per case" in block.header]
    assert "skipped by the gate" in [row[0] for row in prices.rows]


def test_the_headline_says_whether_each_baseline_is_shown_to_differ(selene: Path) -> None:
    run = RunRecord(selene)
    blocks = build_report(selene).blocks
    found = [each.text for each in blocks if isinstance(each, Note) and each.text.startswith("Against ")]
    assert len(found) == len(run.once(baselines)) == 2
    for text, each in zip(found, run.once(baselines), strict=True):
        assert f"Against {each.name}, on the same cases: " in text
        assert paired_sentence(each.against, "with the debates", "without") in text
        assert text.endswith(f"at {times(each.times_tokens)} its tokens.")


def test_a_comparison_over_groups_says_their_number() -> None:
    same, other = [True] * 8 + [False] * 8, [True] * 16
    shown = paired_sentence(compare_paired(other, same), "in A", "in B")
    assert shown.startswith("+50.0 points [")
    assert "], shown to differ (8 cases right only in A, 0 only in B; McNemar p = 0.0047, n = 16)" in shown
    grouped = paired_sentence(compare_paired(other, same, [str(i // 2 % 5) for i in range(16)]), "in A", "in B")
    assert (
        "], not shown to differ (8 cases right only in A, 0 only in B; McNemar p = 0.0625, n = 16 in 5 groups)"
        in grouped
    )


def test_a_run_without_a_baseline_names_the_commands_for_one(inline_run: InlineRun) -> None:
    folder = inline_run("constructor-auditor")
    step = single_agent_step(RunRecord(folder)) or ""
    _, _, commands = step.partition("compare: ")
    assert commands == (
        f"moot run --protocol single-agent --task sample --model simulated --limit 40 --seed 1 --out "
        f"{folder}-single-agent; moot report {folder}-single-agent {folder}"
    )
    assert single_agent_step(RunRecord(inline_run("always-debate"))) is None


def test_changes_by_round_are_those_of_the_recorded_answers(selene: Path) -> None:
    run = RunRecord(selene)
    gold = {verdict.case_id: verdict.gold for verdict in run.verdicts}
    turns = {
        (row["case_id"], row["path"]): row["answer"] == gold[row["case_id"]]
        for row in read_table(selene, "turns", ["answer"]).to_pylist()
        if row["answer"] is not None
    }
    expected = Counter(
        (turns[case_id, f"opening/agent/{agent}"], right)
        for (case_id, path), right in turns.items()
        for agent in range(3)
        if path == f"round/1/agent/{agent}"
    )
    first = flips(agent_answers(run))[0]
    assert (first.to_right, first.to_wrong) == (expected[False, True], expected[True, False])
    assert first.answers == expected.total()


def test_calibration_has_the_points_of_the_confidences(selene: Path) -> None:
    summary, blocks = summarise(selene), build_report(selene).blocks
    [figures] = summary.confidence or []
    measured = next(each for each in chart(blocks, "calibration-0-reliability").series if each.name == "measured")
    assert all(y is not None and 0.0 <= y <= 1.0 for y in measured.y)
    risk = chart(blocks, "calibration-0-risk").series[0]
    assert risk.y[-1] == pytest.approx(1.0 - (summary.accuracy or 0.0))
    tables = [row for block in blocks if isinstance(block, Table) for row in block.rows]
    [ece] = [row[1] for row in tables if row[0].startswith("expected calibration error")]
    assert ece == f"{figures.calibration_error:.3f}", "without an interval: none covers"
