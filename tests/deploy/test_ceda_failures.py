"""What goes wrong in `moot run --protocol ceda`: nobody says AGREE, judges without a verdict, pictures nobody reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml
from ceda_material import write_claims
from openai_server import ScriptedServer
from typer.testing import CliRunner

from moot.actors.record.tables import read_table
from moot.deploy.cli.main import app
from moot.deploy.reading.summaries.summary import summarise
from moot.protocols.templates import Templates

CLAIMS = 12
UNCLEAR = "debater=simulated?unclear_rate=1,simulated?unclear_rate=1"


@dataclass(frozen=True)
class Ran:
    """What a command did, and the verdicts on record."""

    code: int
    said: str
    folder: Path

    @property
    def verdicts(self) -> dict[str, dict[str, Any]]:
        rows = read_table(self.folder, "verdicts").to_pylist()
        return {row["case_id"]: row | {"payload": json.loads(row["payload"] or "null")} for row in rows}

    def show(self, case: str) -> str:
        """What `moot show` says of a case, in one line."""
        return " ".join(invoke("show", self.folder, case).output.split())


def invoke(*arguments: object) -> Any:
    return CliRunner(env={"COLUMNS": "150"}).invoke(app, [str(each) for each in arguments])


def moot_run(folder: Path, *arguments: object) -> Ran:
    done = invoke("run", "--protocol", "ceda", "--engine", "inline", "--quiet", "--out", folder, *arguments)
    return Ran(done.exit_code, " ".join(done.output.split()), folder)


@pytest.fixture
def bare_claims(tmp_path: Path) -> str:
    """Claims with nothing to check them by."""
    rows = [{"id": f"c{n}", "claim": f"Bridge {n} opened in 1932.", "label": n % 2} for n in range(CLAIMS)]
    (tmp_path / "bare.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return f"claims:{tmp_path / 'bare.jsonl'}"


def test_debaters_who_never_say_agree_or_deny_are_heard_to_the_end(tmp_path: Path) -> None:
    """Every stance is unknown, each is asked about the claim itself, and the judges go by the evidence."""
    ran = moot_run(tmp_path / "run", "--task", "sample-claims", "--limit", CLAIMS, "--role", UNCLEAR)
    assert ran.code == 0
    assert len(ran.verdicts) == CLAIMS
    for verdict in ran.verdicts.values():
        assert (verdict["how"], verdict["rounds"]) == ("max turns", 5)
        assert "stance-unknown" in verdict["flags"]
        assert set(verdict["payload"]["stances"].values()) == {None}
    turns = [row for row in read_table(ran.folder, "turns").to_pylist() if row["path"].startswith("turn/")]
    later = [json.loads(row["messages"]) for row in turns if row["path"] != "turn/1"]
    assert len(later) == 4 * CLAIMS
    assert not [sent for sent in later if "<last_message>" in sent[1][1]]
    assert {verdict["answer"] for verdict in ran.verdicts.values()} >= {"supported", "hallucinated"}
    found = summarise(ran.folder).detection
    assert found is not None
    assert found.debaters is None, "of their first stances none is known"
    assert "says neither AGREE nor DENY to the claim" in ran.show("claim-01")


def test_a_claim_without_evidence_and_without_a_stance_stays_undecided(bare_claims: str, tmp_path: Path) -> None:
    ran = moot_run(tmp_path / "run", "--task", bare_claims, "--role", UNCLEAR)
    assert ran.code == 0
    for verdict in ran.verdicts.values():
        assert (verdict["answer"], verdict["confidence"], verdict["distribution"]) == (None, None, None)
        assert set(verdict["flags"]) == {"no-evidence", "undecided", "stance-unknown"}
        assert (verdict["payload"]["verdict"], verdict["payload"]["p_hallucinated"]) == (None, None)
    found = summarise(ran.folder).detection
    assert found is not None
    assert found.whole is not None
    whole, bare = found.whole.by("verdict"), found.whole.by("judges' bare verdict")
    assert whole is not None
    assert bare is not None
    assert (whole.abstained, bare.abstained) == (CLAIMS, CLAIMS)
    assert (whole.accuracy.value, found.calibration) == (0.0, [])
    assert f"claims left open {CLAIMS} of {CLAIMS}" in ran.said
    assert "answer none" in ran.show("c0")


def test_a_claim_without_evidence_is_judged_by_the_debate_and_says_so(bare_claims: str, tmp_path: Path) -> None:
    ran = moot_run(tmp_path / "run", "--task", bare_claims)
    assert ran.code == 0
    assert all("no-evidence" in verdict["flags"] for verdict in ran.verdicts.values())
    answered = [verdict for verdict in ran.verdicts.values() if verdict["answer"]]
    assert len(answered) > CLAIMS // 2
    assert all(0.5 <= verdict["confidence"] <= 1.0 for verdict in answered)
    sent = [row["messages"] for row in read_table(ran.folder, "turns").to_pylist()]
    assert all("No evidence was given" in text for text in sent)


SAID = {"consensus": False, "agreed": [], "disputed": ["All of it."], "summary": "Nothing tells.", "confidence": 0.5}


def judged(folder: Path, replies: Sequence[object], *also: str) -> Ran:
    """Six claims that are ruled on by a judge who says one of these after the other, and by others."""
    name = "ceda/judge"
    (folder / "prompts" / "ceda").mkdir(parents=True)
    marked = Templates().sources[name].replace("{% block system %}", "{% block system %}[[judge]]", 1)
    (folder / "prompts" / f"{name}.j2").write_text(marked)
    turns = cycle(replies)
    server = ScriptedServer({"judge": lambda step, user: next(turns)})
    try:
        panel = ",".join([server.model, *also])
        prompts = ("--prompts", folder / "prompts")
        return moot_run(folder / "run", "--task", "sample-claims", "--limit", 6, "--role", f"judge={panel}", *prompts)
    finally:
        server.close()


def test_a_judge_whose_reply_is_no_ruling_is_missing_and_without_any_the_case_fails(tmp_path: Path) -> None:
    no_rulings = ["I would rather not say.", SAID, {**SAID, "verdict": 7}]
    both, alone = judged(tmp_path / "both", no_rulings, "simulated"), judged(tmp_path / "alone", no_rulings)
    assert both.code == 0
    assert all("judges-missing" in verdict["flags"] for verdict in both.verdicts.values())
    assert any(verdict["answer"] for verdict in both.verdicts.values())
    assert alone.code == 3
    assert all(verdict["failed"] and verdict["answer"] is None for verdict in alone.verdicts.values())
    assert all(verdict["error"].startswith("no judge replied; judge/0: ") for verdict in alone.verdicts.values())
    found = summarise(alone.folder).detection
    assert found is not None
    assert (found.finished, found.failed, found.whole) == (0, 6, None)


def test_a_judge_who_abstains_leaves_the_verdict_to_the_others_and_alone_leaves_it_open(tmp_path: Path) -> None:
    null = {**SAID, "verdict": None}
    both, alone = judged(tmp_path / "both", [null], "simulated"), judged(tmp_path / "alone", [null])
    assert (both.code, alone.code) == (0, 0)
    assert any(verdict["answer"] for verdict in both.verdicts.values())
    assert not [flag for verdict in both.verdicts.values() for flag in verdict["flags"] if flag == "judges-missing"]
    for verdict in alone.verdicts.values():
        assert (verdict["answer"], verdict["confidence"], verdict["payload"]["p_hallucinated"]) == (None, None, None)
        assert "undecided" in verdict["flags"]
        assert verdict["payload"]["summary"] == "Nothing tells."


@pytest.fixture
def blind() -> Iterator[ScriptedServer]:
    """Answers everything but requests with a picture."""
    server = ScriptedServer({}, failing="^shared-")
    yield server
    server.close()


def test_a_picture_that_nobody_can_read_is_missing_evidence_and_fails_who_has_nothing_else(
    blind: ScriptedServer, tmp_path: Path
) -> None:
    task = write_claims(tmp_path / "claims", CLAIMS)
    roles = {"vision": {"model": blind.model, "timeout_s": 0.5}}
    (tmp_path / "ceda.yaml").write_text(yaml.safe_dump({"roles": roles, "set": {"vision.prompt": "fixed"}}))
    ran = moot_run(tmp_path / "run", tmp_path / "ceda.yaml", "--task", task)
    assert ran.code == 3
    cases = {row["case_id"]: row for row in read_table(ran.folder, "cases").to_pylist()}
    pictured = {case for case in cases if int(case.removeprefix("bridge-")) % 3}
    passages = {case for case, row in cases.items() if row["passage"]}
    failed = {case for case, verdict in ran.verdicts.items() if verdict["failed"]}
    assert failed == pictured - passages != set()
    for case in pictured & passages:
        events = read_table(ran.folder, "events").to_pylist()
        sent = [r["messages"] for r in read_table(ran.folder, "turns").to_pylist() if r["case_id"] == case]
        assert all("There is no description of picture 1" in text for text in sent)
        states = [json.loads(r["data"]) for r in events if (r["case_id"], r["kind"]) == (case, "state")]
        (missing,) = [state["added"]["missing_pictures"] for state in states if "missing_pictures" in state["added"]]
        assert missing[0]["picture"] == 0
        assert missing[0]["reason"]
    assert f"{len(failed)} failed" in ran.said
