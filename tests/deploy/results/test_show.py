"""Summaries and transcripts as they are shown: complete, and with nothing that a model wrote taken for a command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from not_none import not_none
from planted_records import CONTROL, InlineRun, PlantedSession, Printed

from moot.deploy.results.figures.summary import Summary, summarise, summary_blocks
from moot.deploy.results.figures.worth import baseline_blocks, worth
from moot.deploy.results.record import RunRecord
from moot.deploy.results.recorded_data import EventView, Transcript
from moot.deploy.results.report.blocks import Table
from moot.deploy.results.report.render import SIMULATED, report_markdown
from moot.deploy.results.show import show
from moot.deploy.results.text import (
    markdown_block,
    markdown_inline,
    markdown_table,
    percent,
    visible,
    visible_line,
)
from moot.deploy.results.transcript import build_transcript
from moot.deploy.results.transcript_blocks import known_event, transcript_blocks
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Event

EVIL = "[bold red]x[/] \x1b[2J\x1b]0;title\x07 \r\x08 \x9b31m \u202egnp.exe\u202c \u2066a\u2069\n```\n# out | <script>"
GATE = {
    "skip": False, "reasons": ["disagreement"], "untested": ["misalignment"], "d": 0.5, "tau_d": 0.35, "m": None,
    "tau_m": 0.25, "p": 0.7, "tau_p": 0.6, "unanimous": True, "require_unanimity": False,
}  # fmt: skip


def judging(score: float | None, missing: str = "") -> dict[str, Any]:
    judgment = {
        "path": "judge/candidate/0/judge/0/variant/1/pass/0", "judge": "judge/0", "variant": 1, "pass": 0,
        "score": score, "support": None if missing else "contradicted", "missing": missing,
    }  # fmt: skip
    return {"candidates": [{"answer": "Yes", "score": score, "judgments": [judgment]}], "answer": "Yes", "branch": "x"}


@pytest.fixture
def debate(session: PlantedSession) -> Path:
    """One debate with everything that can be odd about a reply."""
    session.case("c1", question="Is it?", passage="It is.", title="A title")
    session.reply("c1", "opening/agent/0~1", 5, outcome="invalid", text="no json " + EVIL, error="no JSON object")
    session.said("c1", "opening/agent/0", "Yes", 0.9, EVIL)
    session.said("c1", "round/10/agent/0", "No", 0.4, "tenth")
    session.said("c1", "round/2/agent/0", "Yes", 0.5, "second")
    failed: dict[str, Any] = {"outcome": "failed", "failure": "timeout", "error": "within 120 s"}
    session.reply("c1", "round/2/agent/1", None, **failed, unconfirmed_attempts=1)
    data = json.dumps({"support": "contradicted", "score": 0.2, "rationale": "because"})
    session.reply("c1", "judge/candidate/0/judge/0/variant/1/pass/0", 7, data=data)
    for _ in range(2):
        session.event("c1", "asked", "round/2/agent/0")
    session.event("c1", "gate", "gate", GATE)
    session.event("c1", "judging", "judge", judging(0.2))
    session.event("c1", "audit", "audit", {"skipped_answer": "Yes", "debated_answer": "No", "verdict_from": "debate"})
    session.verdict("c1", "Yes", "t_max", rounds=10, flags=("revision-failed",), confidence=None, payload={"k": EVIL})
    return session.plant(simulated=True)


def test_a_transcript_has_it_all(debate: Path) -> None:
    found = build_transcript(debate, "c1")
    assert (found.state, found.attempt, found.attempts, found.gold) == ("finished", 0, [0], "Yes")
    titles = [section.title for section in found.sections]
    assert titles == ["Independent answers", "Gate", "Round 2", "Round 10", "Judging", "Audit"]
    first = found.sections[0].turns
    assert [turn.outcome for turn in first] == ["invalid", "ok"]
    assert found.sections[2].turns[0].asked == 2
    assert (not_none(found.verdict).correct, not_none(found.verdict).confidence) == (True, None)
    assert (found.cost.calls, found.cost.tokens, found.cost.calls_without_usage) == (6, 42, 1)


def test_text_shows_it_all(debate: Path, printed: Printed) -> None:
    text = " ".join(printed(show, debate, "c1", width=200).split())
    for expected in (
        "simulated models",
        "could not be read: no JSON object",
        "FAILED (timeout): within 120 s",
        "asked 2 times",
        "D (disagreement) 0.5 < 0.35 fail",
        "M (misalignment) unknown < 0.25 not tested",
        "Yes 1 judge/0 0 contradicted 0.2",
        "answer Yes (right)",
        "at least 42 tokens in 6 calls, 1 of them with unknown usage",
    ):
        assert expected in text, expected
    assert text.index("second") < text.index("tenth")


@pytest.mark.parametrize("form", ["text", "json", "md"])
def test_no_reply_reaches_the_terminal_as_a_command(debate: Path, printed: Printed, form: str) -> None:
    shown = printed(show, debate, "c1", form=form)
    assert not CONTROL.search(shown)
    assert ("[bold red]x[/]" in shown) or form == "md"


def test_json_reads_back_unchanged(debate: Path, printed: Printed) -> None:
    read = Transcript.model_validate_json(printed(show, debate, "c1", form="json"))
    assert read == build_transcript(debate, "c1")
    assert read.sections[0].turns[1].data == {"answer": "Yes", "reasoning": EVIL, "confidence": 0.9}


def test_a_failed_case_and_its_second_attempt(session: PlantedSession, printed: Printed) -> None:
    later = session.new()
    for each in (session, later):
        each.case("c1")
    session.reply("c1", "opening/agent/0", 3, outcome="failed", failure="server", error="500")
    session.verdict("c1", None, "failed", failure="quorum_failed", error="0 of 2 openings")
    later.reply("c1", "opening/agent/0", 3, attempt=1)
    later.verdict("c1", "No", "single", attempt=1)
    run = session.plant(later)
    assert build_transcript(run, "c1").state == "finished"
    assert build_transcript(run, "c1", 0).state == "failed"
    text = printed(show, run, "c1", attempt=0)
    assert "quorum_failed" in text
    assert "0 of 2 openings" in text
    assert "No (wrong)" in printed(show, run, "c1")


def test_a_refused_call_is_none_of_unknown_usage(session: PlantedSession) -> None:
    session.case("c1")
    session.reply("c1", "opening/agent/0", None, outcome="failed", failure="request")
    found = build_transcript(session.plant(), "c1").cost
    assert (found.calls, found.calls_without_usage) == (1, 0)


def test_a_retry_without_a_verdict_is_read_where_it_is_named_or_under_way(session: PlantedSession) -> None:
    """Without a number it is the attempt that counts in every figure of the run."""
    session.case("c1")
    session.reply("c1", "opening/agent/0", 3)
    assert build_transcript(session.plant(), "c1").state == "open"
    session.verdict("c1", None, "failed", failure="quorum_failed")
    retry = session.new()
    retry.reply("c1", "opening/agent/0", 3, attempt=1)
    run = session.plant(retry)
    counted = build_transcript(run, "c1")
    assert (counted.attempt, counted.attempts, counted.state) == (0, [0, 1], "failed")
    for found in (build_transcript(run, "c1", 1), build_transcript(run, "c1", under_way=True)):
        assert (found.attempt, found.state) == (1, "open")
    with pytest.raises(ConfigError, match="has no attempt 7: it has 0, 1"):
        build_transcript(run, "c1", 7)


def test_another_protocol_is_shown_in_order_of_path(session: PlantedSession, printed: Printed) -> None:
    session.case("c1", labels=None)
    session.reply("c1", "plan/10", 1, data=json.dumps({"steps": ["a", "b"], "deep": {"x": None}}), role="planner")
    session.reply("c1", "plan/9", 1, data=json.dumps({"text": "free words"}), role="planner")
    session.event("c1", "gate", "gate", {"open": True})
    session.event("c1", "judging", "judge", {"candidates": "none"})
    session.event("c1", "wink", "plan/9", {"at": ["x"], "n": 2})
    session.verdict("c1", None, "mine")
    run = session.plant()
    found = build_transcript(run, "c1")
    assert [turn.path for section in found.sections for turn in section.turns] == ["plan/9", "plan/10"]
    text = printed(show, run, "c1")
    for expected in ("wink, plan 9", "free words", "steps: a, b", "deep.x: unknown", "open", "none (wrong)"):
        assert expected in text, expected
    assert "wink, plan 9" in report_markdown(transcript_blocks(found))
    assert "at plan/9" in report_markdown(transcript_blocks(found, verbose=True))


def test_unknown_case_names_the_nearest(session: PlantedSession) -> None:
    session.case("boolq-1")
    run = session.plant()
    with pytest.raises(ConfigError, match=r"'bolq-1'.* 1 case, nearest 'boolq-1'"):
        build_transcript(run, "bolq-1")
    for i in range(2, 60):
        session.case(f"boolq-{i}")
    many = session.plant()
    with pytest.raises(ConfigError, match="59 cases, nearest 'boolq-1'") as error:
        build_transcript(many, "bolq-1")
    assert len(str(error.value)) < 200
    with pytest.raises(ConfigError) as error:
        build_transcript(many, "\x1b[2J")
    assert "\x1b" not in str(error.value)
    with pytest.raises(ConfigError, match=r"0 cases$"):
        build_transcript(session.new().plant(), "x")


def test_another_protocols_turns_come_in_the_order_they_were_asked(session: PlantedSession, printed: Printed) -> None:
    session.case("c1")
    order = ["opening", "judge/0", "attack", "reply/pro", "reply/con", "attack/again"]
    for i, path in enumerate(sorted(order)):
        session.reply("c1", path, 1, data=json.dumps({"text": path}), role="agent/0", at=200.0 - i)
    for i, path in enumerate(order):
        session.events.append(("c1", 0, Event("asked", path, {}), 100.0 + i))
    session.reply("c1", "attack~1", 1, outcome="invalid", role="agent/0", at=150.0)
    session.events.append(("c1", 0, Event("asked", "opening", {}), 190.0))
    session.verdict("c1")
    found = build_transcript(session.plant(), "c1").sections
    assert [(section.title, [turn.path for turn in section.turns]) for section in found] == [
        ("Opening", ["opening"]),
        ("Judging", ["judge/0"]),
        ("attack", ["attack~1", "attack"]),
        ("reply", ["reply/pro", "reply/con"]),
        ("attack", ["attack/again"]),
    ]


def test_the_summary_in_all_formats(inline_run: InlineRun, printed: Printed) -> None:
    run = inline_run("selene")
    found = summarise(run)
    text = printed(show, run, width=200)
    assert text.startswith(SIMULATED)
    assert text.rstrip().endswith(f"record: {run}")
    assert f"{found.tokens_paid:,} in {found.calls:,} calls" in text
    assert Summary.model_validate_json(printed(show, run, form="json")) == found
    markdown = printed(show, run, form="md")
    data = RunRecord(run)
    assert markdown.strip() == report_markdown(summary_blocks(found, list(baseline_blocks(data)))).strip()
    (first_answer,) = (line for line in markdown.splitlines() if line.startswith("| agent 0's first answer |"))
    assert first_answer in report_markdown(worth(data))
    assert f"**{SIMULATED}**" in markdown
    assert percent(found.skip_rate) in markdown


def test_possible_use_of_killed_sessions_is_reported_in_all_formats(session: PlantedSession, printed: Printed) -> None:
    killed = [{"status": "killed", "unsettled": lost} for lost in ({"tokens": 8000.0, "usd": 0.25}, {"tokens": 512.0})]
    run = session.plant(schema_version=1, sessions=[*killed, {"status": "finished"}])
    assert summarise(run).unsettled == {"tokens": 8512.0, "usd": 0.25}
    said = "at most 8,512 tokens and 0.2500 USD of killed sessions, not in the record"
    assert said in printed(show, run)
    assert f"| counted as spent | {said} |" in printed(show, run, form="md", width=200)
    assert json.loads(printed(show, run, form="json"))["unsettled"] == {"tokens": 8512.0, "usd": 0.25}
    without = session.plant(schema_version=1, sessions=[{"status": "finished"}])
    assert summarise(without).unsettled == {}
    assert "counted as spent" not in printed(show, without)


def test_visible() -> None:
    assert visible("a\tb\nc") == "a\tb\nc"
    assert visible("\x00\x1b\x7f\x85\u2028") == "\u2400\u241b\u2421<U+0085><U+2028>"
    assert visible("\U000e0041\ufeff") == "<U+E0041><U+FEFF>"
    assert visible("a\u200db \u0627\u0644") == "a\u200db \u0627\u0644", "joiners and right-to-left letters are text"
    assert visible_line("a\r\nb\rc") == "a b\u240dc"


def test_markdown_pieces() -> None:
    assert markdown_inline("# a_b *c* [d](e) |\n`f`") == r"\# a\_b \*c\* \[d\](e) \| \`f\`"
    assert markdown_inline("see https://x, www.x or :x: & &lt; 1. a") == r"see https\://x, www\.x or \:x: & \&lt; 1. a"
    assert [markdown_inline(text) for text in ("-", "-2", "1. a", "1.5", ">", ":-")] == [
        r"\-", "-2", r"1\. a", "1.5", r"\>", r"\:-"
    ]  # fmt: skip
    assert markdown_block("a\n````\nb").splitlines() == ["`````text", "a", "````", "b", "`````"]
    assert markdown_table(("x", "y"), [("1|2", "a\nb")]) == "| x | y |\n|---|---|\n| 1\\|2 | a b |"


def signals(**changes: Any) -> list[Any]:
    shown = known_event(EventView(kind="gate", path="gate", data=GATE | changes)) or []
    return [row for block in shown if isinstance(block, Table) for row in block.rows]


def test_only_selene_gates_are_read_as_such() -> None:
    for other in (GATE | {"d": "high"}, {"skip": True}):
        assert known_event(EventView(kind="gate", path="gate", data=other)) is None
    assert known_event(EventView(kind="judging", path="judge", data={"candidates": [{"answer": "Yes"}]})) is None
    found = signals(d=None, tau_m=None, p=0.6, require_unanimity=True)
    assert [signal.outcome for signal in found] == ["not tested", "off", "pass", "pass"]
    assert found[0].value == "unknown"


def test_a_failed_opening_is_not_shown_as_agreement() -> None:
    of_two = {"unanimous": False, "equal": True, "complete": False, "require_unanimity": True}
    last = signals(**of_two, require_complete=True)[3:]
    assert last == [("unanimous", "incomplete", "yes", "not tested"), ("every opening valid", "no", "yes", "fail")]
    assert signals(**of_two, require_complete=False)[4] == ("every opening valid", "no", "off", "off")


def test_a_missing_judgment_is_no_zero(session: PlantedSession, printed: Printed) -> None:
    session.case("c1")
    session.event("c1", "judging", "judge", judging(None, "timeout: late"))
    session.verdict("c1")
    shown = printed(show, session.plant(), "c1")
    assert re.search(r"missing: timeout: late +-", shown)
    assert "S = unknown" in shown
