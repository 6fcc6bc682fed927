"""`moot judge` and `moot.judge`: what they print and return, resuming, judges that fail, and users' mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from openai_server import ScriptedServer
from planted_records import Command, Printed

import moot
from moot.actors.record.files import encode_file
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.judges import show_judging, summarise_judging
from moot.deploy.results.show import show

FOLDER = "runs/judge-sample-replies-reasoning-s0"
QUICK = ("judge", "sample-replies", "--engine", "inline", "--quiet")
MINE = """
instructions: Judge the tone.
dimensions:
  tone: {question: 'Is it civil?', levels: {0: rude, 1: curt, 2: civil, 3: kind}}
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_main_job_and_what_is_shown_of_it(command: Command) -> None:
    code, out, _ = command(*QUICK, "--passes", "3", "--role", "judge=simulated,simulated?judge_noise=0.3")
    assert code == 0
    assert "simulated models" in out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert any(line.startswith("judge/1 2 ") for line in lines), "a row for each judge and pass"
    assert "agreement of 2 judges with each other, n = 36 (replies x passes)" in lines
    assert "agreement of judge/1 with itself, n = 12 replies" in lines
    assert any(line.startswith("ferry-invented 3 ") for line in lines)
    assert f"moot show {FOLDER}" in out
    told = yaml.safe_load(Path(FOLDER, "run.yaml").read_text())
    assert told["settings"]["passes"] == 3
    assert list(told["settings"]["rubric"]["dimensions"]) == [
        "instruction_following",
        "justification_quality",
        "evidence_grounding",
    ]
    assert command(*QUICK, "--passes", "3", "--role", "judge=simulated,simulated?judge_noise=0.3") == (0, out, "")


def test_show_has_the_same_tables_and_a_case_each_judges_reply(command: Command) -> None:
    tables = command(*QUICK, "--passes", "2")[1].partition("\n\n")[2].partition("\n\nnext:")[0]
    code, out, _ = command("show", FOLDER)
    assert code == 0
    assert tables in out
    assert "accuracy" not in out
    case = command("show", FOLDER, "ferry-invented")[1]
    assert "from assistant kind of task questions about a passage reply Claim: Yes, the ferry" in " ".join(case.split())
    assert case.count("Labelled sections: 4") == 2, "the reasoning of both passes"
    assert "FLAGGED" in case
    assert "Quotes what was not given" in case
    found = json.loads(command("show", FOLDER, "--format", "json")[1])
    assert found["judging"] == json.loads(command(*QUICK, "--passes", "2", "--format", "json")[1])
    assert "| judge/0 | 0 |" in command("show", FOLDER, "--format", "md")[1]
    assert "# Judges" in command(*QUICK, "--passes", "2", "--format", "md")[1]


def test_a_rubric_of_ones_own_and_its_default_folder(command: Command) -> None:
    Path("tone.yaml").write_text(MINE)
    Path("mine.csv").write_text("id,reply\na,Thank you.\nb,Go away.\n")
    code, out, _ = command("judge", "mine.csv", "--rubric", "tone.yaml", "--engine", "inline", "-q", "--format", "json")
    found = json.loads(out)
    assert (code, found["rubrics"], found["scales"], found["replies"]) == (0, ["tone"], {"tone": [0, 3]}, 2)
    assert [row["flag"] for row in found["verdicts"]] == [None, None]
    assert Path("runs/judge-mine-tone-s0/run.yaml").exists()


def test_verdicts_without_an_assessment_are_no_success(command: Command) -> None:
    assert command(*QUICK)[0] == 0
    (events,) = Path(FOLDER, "events").glob("*.parquet")
    table = pq.read_table(events)
    others = pa.array(["note"] * table.num_rows, table.schema.field("kind").type)
    pq.write_table(table.set_column(table.schema.get_field_index("kind"), table.schema.field("kind"), others), events)
    for file in Path(FOLDER, "parts").glob("*.json"):  # as they were before they had checksums
        part = json.loads(file.read_bytes().splitlines()[0])
        file.write_bytes(encode_file({"tables": part["tables"], "covers": part["covers"]}))
    code, out, err = command(*QUICK)
    assert (code, out) == (3, "")
    assert "12 verdicts" in err


def test_another_rubric_in_the_same_folder_is_refused(command: Command) -> None:
    assert command(*QUICK, "--out", "one")[0] == 0
    code, _, err = command(*QUICK, "--out", "one", "--rubric", "factual")
    assert (code, "rubric.dimensions" in err) == (2, True)


def test_a_task_without_replies_is_refused_by_the_protocol(command: Command) -> None:
    code, _, err = command("run", "--protocol", "judge-panel", "--engine", "inline", "--task", "sample")
    assert code == 2
    assert "use --task replies:PATH" in err


def test_a_judge_that_abstains_is_missing_and_never_0(
    command: Command, server: ScriptedServer, printed: Printed
) -> None:
    def judge(step: str, user: str) -> Any:
        """It refuses the second reply always, and each reply's second pass."""
        if "second" in user or "/pass/1" in step:
            return "I would rather not judge this."
        return {"tone": 2, "reasoning": "Civil."}

    server.scripts["judge"] = judge
    Path("tone.yaml").write_text(MINE.replace("Judge the tone.", "'[[judge]] Judge the tone.'"))
    Path("two.jsonl").write_text('{"id": "a", "reply": "the first"}\n{"id": "b", "reply": "the second"}\n')
    model = server.model
    arguments = ("judge", "two.jsonl", "--rubric", "tone.yaml", "--model", model, "--passes", "2", "--out", "two")
    code, out, err = command(*arguments, "--engine", "inline", "-q", "--format", "json")
    assert code == 3, "nobody judged the second reply: that case failed"
    assert "unparsable 2" in err
    first, second = json.loads(out)["verdicts"]
    assert (first["marks"], first["missing"], first["quality"]) == (1, {"unparsable": 1}, 2.0)
    assert (second["marks"], second["missing"], second["quality"]) == (0, {"unparsable": 2}, None)
    found = summarise_judging("two")
    assert found is not None
    shown = printed(show_judging, found)
    assert "missing marks of judge/0: unparsable 3" in shown
    assert "1 of 2" in shown
    transcript = printed(show, "two", "b")
    assert "judge/0, pass 1, is missing: unparsable" in transcript
    verdicts = {row["case_id"]: row for row in read_table(Path("two"), "verdicts").to_pylist()}
    assert [verdicts[case]["failed"] for case in "ab"] == [False, True]


def test_from_python_with_rows_a_rubric_as_data_and_nothing_kept() -> None:
    rows = [{"id": "a", "prompt": "Hello?", "reply": "Hello."}, {"id": "b", "reply": "What?"}]
    rubric = {"name": "tone", **yaml.safe_load(MINE)}
    found = moot.judge(rows, rubric=rubric, judges=["simulated", "simulated?judge_noise=0.4"], passes=2)
    assert [row.case_id for row in found.verdicts] == ["a", "b"]
    assert {row.marks for row in found.verdicts} == {4}
    assert [(row.judge, row.pass_index) for row in found.passes] == [
        (judge, number) for judge in ("judge/0", "judge/1") for number in range(2)
    ]
    assert not Path("runs").exists()


def test_from_python_with_a_file_and_a_record_that_is_resumed() -> None:
    Path("mine.jsonl").write_text('{"reply": "Thus."}\n')
    first = moot.judge("mine.jsonl", rubric="factual", out="kept")
    assert moot.judge(Path("mine.jsonl"), rubric="factual", out="kept") == first
    with pytest.raises(moot.UserError, match="passes"):
        moot.judge("mine.jsonl", passes=0)
    with pytest.raises(moot.UserError, match="dimensons"):
        moot.judge("mine.jsonl", rubric={"name": "x", "instructions": "y", "dimensons": {}})


def test_only_the_latest_attempt_counts(planted: Callable[..., Path], session: Any) -> None:
    later = type(session)()
    mark = {"judge": "judge/0", "model": "m", "pass": 0, "total": 2, "flag": None, "scores": {"tone": 2}}
    gone = {**mark, "scores": None, "total": None, "missing": "timeout: nothing came"}
    told = {"reply": "reply", "role": "reply", "domain": "", "rubric": "tone", "scales": [["tone", 0, 3]]}
    for each in (session, later):
        each.case("c0", gold=None)
    empty = {"scores": {"tone": None}, "flag": None, "quality": None, "missing": 1}
    session.event("c0", "assessment", "assessment/reply", told | empty | {"judges": [gone]})
    session.verdict("c0", None, "failed", failure="quorum")
    full = {"scores": {"tone": 2.0}, "flag": None, "quality": 2.0, "missing": 0}
    later.event("c0", "assessment", "assessment/reply", told | full | {"judges": [mark]}, attempt=1)
    later.verdict("c0", None, "judged", attempt=1)
    found = summarise_judging(planted(session, later))
    assert found is not None
    assert [(row.marks, row.quality) for row in found.verdicts] == [(1, 2.0)]
    assert summarise_judging(planted(type(session)())) is None


def test_a_list_that_leaves_verdicts_out_says_how_to_see_them(session: Any, printed: Printed) -> None:
    mark = {"judge": "judge/0", "model": "m", "pass": 0, "total": 2, "flag": None, "scores": {"tone": 2}}
    told = {"reply": "reply", "role": "reply", "domain": "", "rubric": "tone", "scales": [["tone", 0, 3]]}
    full = {"scores": {"tone": 2.0}, "flag": None, "quality": 2.0, "missing": 0, "judges": [mark]}
    for number in range(21):
        session.case(f"c{number}", gold=None)
        session.event(f"c{number}", "assessment", "assessment/reply", told | full)
        session.verdict(f"c{number}", None, "judged")
    found = summarise_judging(session.plant())
    assert found is not None
    assert "20 of 21 (`--format json` lists all)" in " ".join(printed(show_judging, found).split())
    assert len(found.verdicts) == 21
