"""Every figure of a summary, on records where it can be worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from not_none import not_none
from planted_records import PlantedSession, Printed

from moot.deploy.results.figures.confidence import confidence_rows
from moot.deploy.results.figures.costs import costs_of_finished, measurement_only, prices_of_finished
from moot.deploy.results.figures.summary import record_summary, summarise, summary_rows
from moot.deploy.results.record import RunRecord
from moot.deploy.results.show import show
from moot.metrics.significance import wilson_interval
from moot.protocols.errors import RecordError

GATE = {"skip": True, "reasons": []}


def judging(*stabilities: float | None, flip_rate: float | None = None) -> dict[str, Any]:
    candidates: list[dict[str, Any]] = [{"answer": "Yes", "stability": s, "judgments": []} for s in stabilities]
    return {"candidates": candidates, "flip_rate": flip_rate}


def seven_cases(first: PlantedSession, second: PlantedSession) -> tuple[PlantedSession, PlantedSession]:
    """Two sessions:

    a  session 1, skipped, right: openings 15 + 15, consensus 22 = 52
    b  session 2, debated 2 rounds, wrong: opening/agent/0 13 unreadable + 17, agent 1 15, rounds 4 x 20, judge 30 = 155
    c  session 1, attempt 0: failed (11 tokens); attempt 1 skipped, right: opening 10
    d  failed: opening of unknown usage
    e  open, waits for a person: 7 tokens
    f  debated 1 round, no gold label: opening 40 (superseded) then 10; reused reply 100 = 110 standing
    g  debated 1 round, right: openings 10 (asked twice) and None
    """
    first.case("a")
    for agent in (0, 1):
        first.reply("a", f"opening/agent/{agent}", 15)
    first.reply("a", "judge/consensus/judge/0/variant/0/pass/0", 22)
    first.event("a", "gate", "gate", GATE)
    first.event("a", "judging", "judge/consensus", judging(None))
    first.verdict("a", "Yes", "skipped")

    first.case("c")
    first.reply("c", "opening/agent/0", 11, outcome="failed", failure="timeout")
    first.verdict("c", None, "failed", failure="quorum_failed")

    for case_id in "bcdeg":
        second.case(case_id)
    second.case("f", gold=None)
    second.reply("b", "opening/agent/0~1", 13, outcome="invalid")
    second.reply("b", "opening/agent/0", 17, outcome="reasked")
    second.reply("b", "opening/agent/1", 15)
    for number in (1, 2):
        for agent in (0, 1):
            second.reply("b", f"round/{number}/agent/{agent}", 20)
    second.reply("b", "judge/candidate/0/judge/0/variant/0/pass/0", 30)
    second.event("b", "gate", "gate", GATE)
    second.event("b", "judging", "judge", judging(0.98, 0.92, flip_rate=1 / 3))
    second.verdict("b", "No", "t_max", rounds=2)

    second.reply("c", "opening/agent/0", 10, attempt=1)
    second.event("c", "gate", "gate", GATE, attempt=1)
    second.verdict("c", "Yes", "skipped", attempt=1)

    second.reply("d", "opening/agent/0", None, outcome="failed", failure="timeout", unconfirmed_attempts=1)
    second.reply("d", "opening/agent/1", None, outcome="failed", failure="rate_limited")
    second.verdict("d", None, "failed", failure="quorum_failed")

    second.reply("e", "opening/agent/0", 7)
    second.event("e", "parked", "ask-a-person")

    second.reply("f", "opening/agent/0", 40, reply_id="f-old")
    second.reply("f", "opening/agent/0", 10, reply_id="f-new", supersedes="f-old")
    second.reply("f", "round/1/agent/0", 100, reused_from="old-run")
    second.event("f", "gate", "gate", GATE)
    second.verdict("f", "No", "stable-agree", rounds=1)

    second.reply("g", "opening/agent/0", 10)
    second.reply("g", "opening/agent/1", None)
    second.event("g", "gate", "gate", GATE)
    second.event("g", "judging", "judge", judging(1.0, flip_rate=0.0))
    second.verdict("g", "Yes", "unanimous", rounds=1)
    for _ in range(2):
        second.event("g", "asked", "opening/agent/0")
    second.event("g", "asked", "opening/agent/1")
    for _ in range(2):
        second.event("f", "asked", "opening/agent/0")
    return first, second


@pytest.fixture
def seven(session: PlantedSession) -> Path:
    first, second = seven_cases(session.new(), session.new())
    return first.plant(
        second, schema_version=1, task="boolq:x", protocol="selene", models={"agent": ["m", "n"], "judge": "j"},
        simulated=False, sessions=[{"epoch": 1, "wall_s": 1.5}, {"epoch": 2, "wall_s": 2}],
    )  # fmt: skip


def test_case_counts(seven: Path) -> None:
    found = summarise(seven)
    assert (found.cases, found.finished, found.failed, found.open, found.parked) == (7, 5, 1, 1, 1)
    assert found.reused == 1
    assert found.how == {"failed": 1, "skipped": 2, "stable-agree": 1, "t_max": 1, "unanimous": 1}
    assert found.failures == {"quorum_failed": 1}
    assert found.asks_failed == {"rate_limited": 1, "timeout": 1}, "what failed in the first attempt at c is over"
    assert found.replies == {"failed": 2, "invalid": 1, "ok": 16, "reasked": 1}
    assert (found.task, found.protocol, found.simulated, found.wall_s) == ("boolq:x", "selene", False, 3.5)
    assert found.models == {"agent": ["m", "n"], "judge": ["j"]}


def test_accuracy_is_over_scored_verdicts_of_the_latest_attempts(seven: Path) -> None:
    found = summarise(seven)
    assert (found.accuracy, found.scored) == (3 / 4, 4)
    ends = wilson_interval(3, 4)
    assert found.accuracy_interval == (ends.low, ends.high)
    assert (found.accuracy_skipped, found.scored_skipped) == (1.0, 2)
    assert (found.accuracy_debated, found.scored_debated) == (1 / 2, 2)
    assert found.skip_rate == 2 / 5
    assert found.debate_rounds_mean == (2 + 1 + 1) / 5
    assert found.debate_rounds_mean_debated == 4 / 3
    assert [(each.rounds, each.accuracy, each.scored) for each in found.accuracy_by_rounds or ()] == [
        (1, 1.0, 1),
        (2, 0.0, 1),
    ]


def test_judges(seven: Path) -> None:
    found = summarise(seven)
    assert found.judge_stability == pytest.approx(((0.98 + 0.92) / 2 + 1.0) / 2), "a question counts once"
    assert found.flip_rate == pytest.approx(1 / 6)
    assert (found.judge_stability_cases, found.flip_rate_cases, found.flip_rate_split_cases) == (2, 2, 0)
    assert (found.judge_stability_audit, found.flip_rate_audit) == (None, None)
    assert (found.judge_stability_audit_cases, found.audit_variants) == (0, [])
    rows = dict(summary_rows(found))
    assert rows["judge stability"].endswith("(n = 2 of 5 cases)")
    assert "(n = 2 of 5 cases)" in rows["judge flip rate"]
    assert found.judge_passes_per_case == pytest.approx(2 / 5)


def test_evidence_that_was_not_perturbed_measures_no_stability(session: PlantedSession) -> None:
    for case_id, path, data in (
        ("a", "audit/judge", judging(1.0, flip_rate=0.0) | {"variants": "subset", "unperturbed": True}),
        ("b", "audit/judge", judging(0.9, flip_rate=0.5) | {"variants": "paraphrase", "unperturbed": False}),
        ("c", "judge", judging(1.0, flip_rate=0.0) | {"variants": "subset", "unperturbed": True}),
    ):
        session.case(case_id)
        session.event(case_id, "judging", path, data)
        session.verdict(case_id)
    found = summarise(session.plant())
    assert (found.judge_stability, found.judge_stability_cases, found.flip_rate) == (None, 0, None)
    assert (found.judge_stability_audit, found.judge_stability_audit_cases) == (0.9, 1)
    assert (found.flip_rate_audit, found.flip_rate_audit_cases, found.audit_variants) == (0.5, 1, ["paraphrase"])


def test_a_judge_flips_and_contradicts_itself_only_where_it_can(session: PlantedSession) -> None:
    def judged(*answers: str, flip_rate: float, readings: Sequence[tuple[str | None, float | None]]) -> dict[str, Any]:
        place = {"path": "judge", "judge": "judge/0", "variant": 0, "pass": 0, "missing": ""}
        judgments = [place | {"support": support, "score": score} for support, score in readings]
        candidates = [{"answer": answer, "judgments": judgments} for answer in answers]
        return {"candidates": candidates, "flip_rate": flip_rate}

    for case_id, data in (
        ("a", judged("Yes", flip_rate=0.0, readings=[("supported", 0.2), (None, None)])),
        ("b", judged("Yes", "No", flip_rate=0.5, readings=[("contradicted", 0.1)])),
    ):
        session.case(case_id)
        session.event(case_id, "judging", "judge", data)
        session.event(case_id, "judging", "audit/judge", data)
        session.verdict(case_id)
    found = summarise(session.plant())
    assert (found.flip_rate, found.flip_rate_split) == (0.25, 0.5)
    assert (found.flip_rate_audit, found.flip_rate_audit_split) == (0.25, 0.5)
    assert (found.flip_rate_audit_cases, found.flip_rate_audit_split_cases) == (2, 1)
    assert (found.judgments_read, found.judgments_at_odds) == (3, 1)


def test_confidences_of_different_stages_are_never_pooled(session: PlantedSession) -> None:
    kinds = (("raw", 0.25, "Yes"), ("masked", 1.0, "Yes"), ("raw", 0.75, "No"), (None, 0.5, "Yes"))
    for number, (stage, confidence, answer) in enumerate(kinds):
        session.case(f"c{number}")
        told = {"confidence_from": "intrinsic"} | ({"confidence_stage": stage} if stage else {})
        session.verdict(f"c{number}", answer, confidence=confidence, payload=told)
    found = not_none(summarise(session.plant()).confidence)
    figures = [(each.stage, each.n, each.brier) for each in found]
    assert figures == [(None, 1, 0.25), ("masked", 1, 0.0), ("raw", 2, 0.5625)]
    names = [name for name, _ in confidence_rows(found)]
    assert len(set(names)) == len(names) == 6


def test_tokens(seven: Path) -> None:
    found = summarise(seven)
    assert found.tokens_paid == 52 + 155 + 11 + 10 + 7 + 50 + 10
    assert (found.calls, found.calls_without_usage) == (20, 2), "a refused call has used nothing"
    assert found.tokens_reused == 100
    assert found.tokens_repaid == 10  # g once; f's first reply lies in the record, superseded
    # g has a call of unknown usage and is left out on both sides
    assert found.token_cost_x == pytest.approx((52 + 155 + 10 + 110) / (15 + 30 + 10 + 10))
    assert found.token_cost_x_without_audits == found.token_cost_x
    assert found.tokens_per_case == pytest.approx((52 + 155 + 10 + 110) / 4)


def test_order_of_rows_changes_nothing(seven: Path, session: PlantedSession) -> None:
    first, second = seven_cases(session.new(), session.new())
    second.cases.reverse()
    second.events.reverse()
    new = [row for row in second.replies if row["reply_id"] == "f-new"]
    second.replies = [row for row in second.replies[::-1] if row["reply_id"] != "f-new"] + new
    second.closings.reverse()
    other = summarise(first.plant(second)).model_dump()
    same = summarise(seven).model_dump()
    for name in ("run", "task", "protocol", "models", "wall_s"):
        del other[name], same[name]
    assert other == same


def test_nothing_known_is_none_and_never_zero(session: PlantedSession) -> None:
    found = summarise(session.plant(x=1))
    assert (found.cases, found.finished, found.reused, found.calls) == (0, 0, 0, 0)
    unknown = (
        "task", "protocol", "accuracy", "accuracy_interval", "skip_rate", "accuracy_skipped", "accuracy_debated",
        "debate_rounds_mean", "judge_stability", "flip_rate", "token_cost_x", "tokens_per_case", "wall_s", "audit",
    )  # fmt: skip
    assert {name: getattr(found, name) for name in unknown} == dict.fromkeys(unknown)
    assert found.tokens_paid == 0
    json.loads(found.model_dump_json())


def test_no_usage_at_all_is_unknown(session: PlantedSession) -> None:
    session.case("a")
    session.reply("a", "opening/agent/0", None)
    session.verdict("a")
    found = summarise(session.plant())
    assert (found.tokens_paid, found.token_cost_x, found.calls_without_usage) == (None, None, 1)


@pytest.mark.parametrize(("unconfirmed", "tokens"), [(None, 15), (1, None)])
def test_a_failed_ask_that_used_nothing_leaves_the_debates_cost_known(
    unconfirmed: int | None, tokens: int | None, session: PlantedSession
) -> None:
    session.case("a")
    session.reply("a", "opening/agent/0", 10)
    session.reply("a", "opening/agent/1", 5)
    failed: dict[str, Any] = {"outcome": "failed", "failure": "request", "unconfirmed_attempts": unconfirmed}
    session.reply("a", "round/1/agent/0", None, **failed)
    session.verdict("a")
    record = RunRecord(session.plant(models={"agent": ["m"]}, price_table={"m": {"input": 1, "output": 1}}))
    [cost], [price] = costs_of_finished(record).values(), prices_of_finished(record).values()
    assert (cost.method, cost.openings) == (tokens, 15)
    assert price.method == (None if tokens is None else pytest.approx(tokens / 1e6))
    assert record_summary(record).tokens_per_case == tokens


def test_a_killed_session_leaves_wall_time_unknown_and_says_since_when(session: PlantedSession) -> None:
    began = [f"2026-07-0{day}T12:00:00Z" for day in (1, 2, 3)]
    sessions = [
        {"epoch": day, "started_at": at, "wall_s": wall}
        for day, at, wall in zip((1, 2, 3), began, (2.0, None, 1.0), strict=True)
    ]
    found = summarise(session.plant(sessions=sessions))
    assert (found.wall_s, found.wall_unknown_since) == (None, began[1])
    assert began[1] in dict(summary_rows(found))["wall time"]
    known = summarise(session.plant(sessions=[sessions[0], sessions[2]]))
    assert (known.wall_s, known.wall_unknown_since) == (3.0, None)


def test_a_run_that_asked_no_model_is_not_simulated(session: PlantedSession, printed: Printed) -> None:
    session.case("a")
    session.verdict("a", "Yes", "given")
    bound = {"models": {"agent": ["simulated"]}, "simulated": True}
    folder = session.plant(**bound)
    assert summarise(folder).simulated is False
    assert "simulated models" not in printed(show, folder)
    session.reply("a", "opening/agent/0", 1, outcome="failed", model="simulated")
    assert summarise(session.plant(**bound)).simulated is True


def test_stability_of_a_protocol_that_notes_no_judging(session: PlantedSession) -> None:
    session.case("a")
    for variant, score in enumerate((0.2, 0.6)):
        data = json.dumps({"support": "supported", "score": score})
        session.reply("a", f"mine/judge/0/variant/{variant}/pass/0", 1, data=data)
    session.reply("a", "lone/judge/0/variant/0/pass/0", 1, data=data)
    session.verdict("a")
    assert summarise(session.plant()).judge_stability == pytest.approx(1 - 0.04)


def test_of_a_run_of_both_branches_the_skipped_cases_are_compared(session: PlantedSession) -> None:
    for case_id, branch in (("a", "skip"), ("b", "debate")):
        session.case(case_id)
        data = {"skipped_answer": "Yes", "debated_answer": "No", "verdict_from": branch}
        session.event(case_id, "branches", "branches", data)
        session.verdict(case_id)
    found = not_none(summarise(session.plant()).audit)
    assert (found.n, found.only_first, found.only_second) == (1, 1, 0)


def test_audited_cases_are_compared_in_pairs(session: PlantedSession) -> None:
    answers = [("Yes", "No"), ("No", "Yes"), ("No", "Yes"), ("Yes", "Yes")]
    for i, (skipped, debated) in enumerate(answers):
        session.case(f"c{i}")
        session.reply(f"c{i}", "opening/agent/0", 10)
        session.reply(f"c{i}", "round/1/agent/0", 100)
        session.reply(f"c{i}", "judge/consensus/judge/0/variant/0/pass/0", 20)
        data = {"verdict_from": "skip", "skipped_answer": skipped, "debated_answer": debated}
        session.event(f"c{i}", "audit", "audit", data)
        session.event(f"c{i}", "gate", "gate", GATE)
        session.verdict(f"c{i}", skipped, "skipped")
    found = summarise(session.plant())
    audit = not_none(found.audit)
    assert (audit.only_first, audit.only_second, audit.difference, audit.n) == (1, 2, -0.25, 4)
    assert (found.token_cost_x, found.token_cost_x_without_audits) == (13.0, 3.0)


@pytest.mark.parametrize(
    ("path", "source", "only"),
    [
        ("audit/judge/candidate/0/judge/0/variant/0/pass/0", None, True),
        ("round/1/agent/0", "skip", True),
        ("evidence/paraphrase/0", "skip", True),
        ("judge/consensus/judge/0/variant/0/pass/0", "skip", False),
        ("judge/consensus/judge/0/variant/0/pass/0", "debate", True),
        ("round/1/agent/0", "debate", False),
        ("round/1/agent/0", None, False),
        ("opening/agent/0", "skip", False),
    ],
)
def test_what_serves_only_to_measure(path: str, source: str | None, only: bool) -> None:
    assert measurement_only(path, source) is only


def test_no_run(tmp_path: Path) -> None:
    for name in ("debates", "checks"):
        (tmp_path / "served" / name).mkdir(parents=True)
        (tmp_path / "served" / name / "run.yaml").write_text("")
    with pytest.raises(RecordError, match=r"checks, debates$"):
        summarise(tmp_path / "served")
    with pytest.raises(RecordError, match="no run there"):
        summarise(tmp_path / "nothing")


@pytest.mark.parametrize("text", ["a: [", "- a list", "\x00"])
def test_run_yaml_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(RecordError, match=r"run\.yaml"):
        summarise(tmp_path)
