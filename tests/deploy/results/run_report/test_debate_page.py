"""A debate on its page: replies in columns with what changed, what judges gave, what was sent, and tokens."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from planted_records import EVIL, InlineRun, PlantedSession

import moot
from moot.actors.record.tables import read_table
from moot.deploy.results.run_report.debates import SentReplies, debate_page, pack
from moot.deploy.results.transcript import DebateTables, build_transcript, build_transcripts
from moot.protocols.messages import Form


def page_of(folder: Path, case_id: str) -> dict[str, Any]:
    """The page of a case, as a script reads it."""
    page = debate_page(
        build_transcript(folder, case_id), SentReplies(DebateTables(folder, [case_id], with_requests=True), [case_id])
    )
    found: dict[str, Any] = json.loads(gzip.decompress(b64decode(pack(page))))
    return found


def replies_of(page: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every reply on a page, judges' ones included."""

    def below(turns: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for turn in turns:
            yield turn
            yield from below(turn.get("judging", {}).get("turns", ()))

    for stage in page["stages"]:
        yield from below(stage["turns"])


@pytest.fixture(scope="module")
def selene(inline_run: InlineRun) -> Path:
    return inline_run("selene")


def debated(folder: Path) -> str:
    """A case with several rounds."""
    rounds = read_table(folder, "verdicts", ["rounds"]).to_pylist()
    return str(max(rounds, key=lambda row: row["rounds"])["case_id"])


def test_several_debates_are_read_as_each_by_itself(selene: Path) -> None:
    ids = read_table(selene, "cases", [])["case_id"].to_pylist()[:5]
    wanted = [*ids, "none of these"]
    found = list(build_transcripts(DebateTables(selene, wanted), wanted))
    assert found == [build_transcript(selene, each) for each in ids]


def test_messages_are_exactly_those_that_were_sent(selene: Path) -> None:
    case = debated(selene)
    page = page_of(selene, case)
    rows = [row for row in read_table(selene, "turns").to_pylist() if row["case_id"] == case]
    sent = [[[role, page["texts"][place]] for role, place in turn["sent"]["messages"]] for turn in replies_of(page)]
    assert sorted(sent) == sorted(json.loads(row["messages"]) for row in rows)
    assert len(page["texts"]) == len(set(page["texts"]))


def test_tokens_spell_the_reply_and_have_the_probabilities_of_the_record(selene: Path) -> None:
    case = debated(selene)
    rows = [row for row in read_table(selene, "tokens").to_pylist() if row["case_id"] == case]
    shown = [turn["tokens"] for turn in replies_of(page_of(selene, case)) if "tokens" in turn]
    recorded = sorted(rows, key=lambda row: ("".join(row["token"]), row["logprob"]))
    shown.sort(key=lambda tokens: ("".join(tokens["token"]), tokens["p"]))
    for tokens, row in zip(shown, recorded, strict=True):
        assert "".join(tokens["token"]) == "".join(row["token"])
        assert tokens["p"] == pytest.approx([1000 * 2.718281828**value for value in row["logprob"]], abs=0.51)
        assert all(token not in others for token, others in zip(tokens["token"], tokens["other"], strict=True))
        assert [len(q) for q in tokens["q"]] == [len(others) for others in tokens["other"]]
        assert {len(others) for others in tokens["other"]} == {row["alternatives"] - 1}


def test_a_token_of_unknown_probability_and_short_alternatives(session: PlantedSession) -> None:
    session.case("a")
    listed: dict[str, Any] = {
        "alternatives": 2,
        "alt_token": ["Yes", "", "so", "or"],
        "alt_logprob": [0.0, float("nan"), -0.1, -3.0],
    }
    session.reply("a", "opening/agent/0", 5, text="Yes so", token=["Yes", " so"], logprob=[0.0, None], **listed)
    session.verdict("a")
    [turn] = replies_of(page_of(session.plant(), "a"))
    assert turn["tokens"]["p"] == [1000, None]
    assert turn["tokens"]["other"] == [[], ["so", "or"]]
    assert turn["tokens"]["q"] == [[], [905, 50]]
    assert turn["tokens"]["stage"] == "unknown"
    assert turn["sent"] == {"why": "The record has no messages for this reply."}


def test_what_changed_since_the_last_round_is_marked(session: PlantedSession) -> None:
    session.case("a", question=EVIL)
    for path, answer, confidence in (
        ("opening/agent/0", "Yes", 0.7),
        ("opening/agent/1", "No", 0.6),
        ("round/1/agent/0", "No", 0.9),
        ("round/1/agent/1", "No", 0.6),
        ("round/2/agent/0", "No", 0.5),
    ):
        session.said("a", path, answer, confidence, EVIL)
    session.reply("a", "round/2/agent/1", None, outcome="failed", failure="timeout", error=EVIL)
    session.verdict("a", "No")
    page = page_of(session.plant(), "a")
    assert page["columns"] == ["agent/0", "agent/1"]
    assert (page["question"], page["gold"], page["answer"], page["correct"]) == (EVIL, "Yes", "No", False)
    stages = {stage["title"]: stage["turns"] for stage in page["stages"]}
    assert [turn["changes"] for turn in stages["Independent answers"]] == [[], []]
    assert [turn["changes"] for turn in stages["Round 1"]] == [
        [["≠", "answer changed: Yes to No"]],
        [["=", "same answer, as sure"]],
    ]
    assert [turn["changes"] for turn in stages["Round 2"]] == [[["▼", "less sure: 0.9 to 0.5"]], []]
    assert [turn["failed"] for turn in stages["Round 2"]] == [False, True]


def test_judges_are_shown_beside_their_reply(inline_run: InlineRun) -> None:
    page = page_of(inline_run("constructor-auditor"), "sample-001")
    turns = {turn["role"]: turn for stage in page["stages"] for turn in stage["turns"]}
    assert set(turns) == {"constructor/0", "auditor/0", "synthesizer/0"}
    assert page["columns"] == []
    for role in ("constructor/0", "auditor/0"):
        assert [turn["role"] for turn in turns[role]["judging"]["turns"]] == ["judge/0"]
        [score] = turns[role]["judging"]["scores"]
        assert score.startswith("Q ")
    assert "judging" not in turns["synthesizer/0"]


def test_a_distribution_is_an_agents_position(session: PlantedSession) -> None:
    session.case("a", labels=("HBV", "HCV"))
    for number, cleaned in enumerate(({"HBV": 0.6, "HCV": 0.4}, {"HCV": 0.9, "HBV": 0.1})):
        for agent in ("agent/0", "agent/1"):
            path = f"round/{number}/{agent}"
            session.reply("a", path, 5, data=json.dumps({"arguments": [EVIL]}))
            session.event("a", "distribution", path, {"given": [], "cleaned": cleaned, "changes": []})
            session.event("a", "crit", f"crit/{path}", {"score": 0.75, "by_judge": {"judge/0": 0.75}})
    session.verdict("a", "HCV")
    page = page_of(session.plant(), "a")
    assert [stage["title"] for stage in page["stages"]] == ["Round 0", "Round 1"]
    for turn in page["stages"][1]["turns"]:
        assert turn["changes"] == [["≠", "answer changed: HBV to HCV"]]
        assert turn["judging"]["scores"] == ["CRIT 7.5/10"]


def test_a_person_was_shown_a_form(session: PlantedSession) -> None:
    session.case("a")
    form = json.dumps({"title": "Topics", "actions": ["go on", "edit"]})
    session.reply("a", "moderation/topics", None, role="person", messages=form, data=json.dumps({"action": "go on"}))
    session.verdict("a")
    page = page_of(session.plant(), "a")
    [turn] = replies_of(page)
    shown = [(name, page["texts"][place]) for name, place in turn["sent"]["messages"]]
    assert shown == [("title", "Topics"), ("actions", '["go on","edit"]')]


def test_a_form_that_waits_is_shown_in_words(session: PlantedSession) -> None:
    session.case("waits")
    form = Form("Topics", "Which topics?", ("go on", "edit"), drafts={"edit": "the topics"})
    session.event("waits", "parked", "moderation/topics", msgspec.to_builtins(form))
    [stage] = page_of(session.plant(), "waits")["stages"]
    assert [next(iter(block.items())) for block in stage["notes"]] == [
        ("note", "a person is asked: Topics"),
        ("quote", "Which topics?"),
        ("pairs", [["choices", "go on; edit, with a text"]]),
    ]


def test_a_long_stage_of_titles_alone_is_folded(tmp_path: Path) -> None:
    run = moot.run(task="sample-claims", protocol="ceda", limit=1, engine="inline", out=tmp_path / "ceda")
    case_id = read_table(run.path, "cases", [])["case_id"][0].as_py()
    *others, state = page_of(run.path, case_id)["stages"]
    [items] = state["notes"]
    assert (state["title"], state["folded"]) == ("State, version by version", f"{len(items['items'])} entries")
    assert not any("folded" in stage for stage in others)
