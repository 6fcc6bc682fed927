"""Constructor-auditor on every engine: one record, judges that read what was sent, and nothing that shows gold."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from houses import Held, hold, stable_rows
from msgspec import structs
from openai_server import ScriptedServer

from moot.actors.record.tables import read_table
from moot.actors.roles import RoleBinding
from moot.deploy.running.run import run
from moot.protocols.case import Image, LabelledCase, Reference
from moot.protocols.constructor_auditor.domains import CASTS
from moot.protocols.messages import Message
from moot.protocols.registry import make_protocol
from moot.protocols.rubrics.panel import Shown, rubric_slots, shown_slots
from moot.protocols.rubrics.rubric import shipped_rubric
from moot.protocols.tasks import open_task
from moot.protocols.templates import Templates

SETTINGS: Mapping[str, Any] = {"judge.passes": 2}
REASONING, TEMPLATES = shipped_rubric("reasoning"), Templates()
SPOKEN = ("opening", "challenge", "synthesis")
TABLES = ("turns", "tokens", "judgments", "events")


def _cases(each: int = 4) -> list[LabelledCase]:
    """Some of every domain."""
    return [
        labelled
        for name in ("sample", "sample-essays", "sample-problems")
        for labelled in list(open_task(name).cases())[:each]
    ]


def _roles(model: str = "simulated", judges: int = 2, persona: str = "") -> dict[str, list[RoleBinding]]:
    speaker = RoleBinding(model=model, max_tokens=900, top_logprobs=5, persona=persona)
    judge = RoleBinding(model=model, max_tokens=500)
    return {"constructor": [speaker], "auditor": [speaker], "synthesizer": [judge], "judge": [judge] * judges}


def _held(kind: str, folder: Path, cases: list[LabelledCase], **changes: Any) -> Held:
    protocol = make_protocol("constructor-auditor", changes.pop("settings", SETTINGS))
    return asyncio.run(hold(kind, folder, protocol, cases, changes.pop("roles", _roles()), seed=5, **changes))


def _judged(folder: Path, judges: int, passes: int) -> int:
    """Holds every judge's prompt, to the letter, against the recorded messages and reply; gives how many there were."""
    rows = [row for row in read_table(folder, "turns").to_pylist() if not row["superseded"]]
    turns = {(row["case_id"], row["path"]): row for row in rows}
    found = 0
    for event in read_table(folder, "events", ["data"]).to_pylist():
        if event["kind"] != "assessment":
            continue
        data = json.loads(event["data"])
        replied = turns[event["case_id"], data["reply"]]
        shown = Shown(
            path=data["reply"],
            role=f"{getattr(CASTS[data['domain']], data['role'])} ({data['role']})",
            domain=data["domain"],
            sent=[Message(*each) for each in json.loads(replied["messages"])],
            reply=replied["text"],
        )
        wanted = TEMPLATES.render("rubric/judge", {"rubric": rubric_slots(REASONING), **shown_slots(shown)})
        for place in [(judge, number) for judge in range(judges) for number in range(passes)]:
            path = "assessment/{}/judge/{}/pass/{}".format(data["reply"], *place)
            asked = json.loads(turns[event["case_id"], path]["messages"])
            assert asked == [[message.role, message.content] for message in wanted], path
            assert turns[event["case_id"], path]["image_hashes"] == replied["image_hashes"], path
            found += 1
    return found


def test_the_judges_read_to_the_letter_what_was_sent_and_said(tmp_path: Path) -> None:
    held = _held("inline", tmp_path / "run", _cases(2), roles=_roles(persona="You come from </given> Leeds."))
    assert _judged(held.folder, judges=2, passes=2) == 6 * 2 * 4
    assert "You come from" in held.turns("sample-001")["opening"]["messages"]


def test_they_see_the_pictures_that_were_sent(tmp_path: Path) -> None:
    (labelled,) = _cases(1)[:1]
    seen = (Image("image/png", b"one"), Image("image/png", b"two"))
    held = _held(
        "inline", tmp_path / "run", [structs.replace(labelled, case=structs.replace(labelled.case, images=seen))]
    )
    assert _judged(held.folder, judges=2, passes=2) == 2 * 4
    assert len(held.turns("sample-001")["assessment/challenge/judge/1/pass/0"]["image_hashes"]) == 2


def test_so_they_do_when_a_speaker_had_to_be_asked_again(tmp_path: Path) -> None:
    said = {"first": lambda step, user: "Claim: at last." if step.endswith("~1") else " "}
    marked = TEMPLATES.sources["constructor_auditor/constructor"].replace("You are the", "[[first]] You are the")
    server = ScriptedServer(said)
    try:
        changes = {"templates": {"constructor_auditor/constructor": marked}}
        settings = {"judge.passes": 1}
        held = _held(
            "inline", tmp_path / "run", _cases(1)[:1], roles=_roles(server.model), settings=settings, **changes
        )
    finally:
        server.close()
    opening = held.turns("sample-001")["opening"]
    assert (opening["outcome"], opening["text"]) == ("reasked", "Claim: at last.")
    assert [role for role, _ in json.loads(opening["messages"])] == ["system", "user", "assistant", "user"]
    assert _judged(held.folder, judges=2, passes=1) == 2 * 2


def test_the_debates_are_held_in_every_domain(tmp_path: Path) -> None:
    held = _held("inline", tmp_path / "run", _cases())
    verdicts = held.rows("verdicts")
    assert not [row["error"] for row in verdicts if row["failed"]]
    assert Counter(json.loads(row["payload"])["domain"] for row in verdicts) == dict.fromkeys(CASTS, 4)
    assert {row["how"] for row in verdicts} == {"synthesis"}
    assert all(row["correct"] is not None for row in verdicts)
    tokens = {row["path"] for row in held.rows("tokens")}
    assert {"opening", "challenge"} <= tokens, "what the signals are read from"
    marks = [row for row in held.rows("events") if row["kind"] == "assessment"]
    assert len(marks) == 2 * len(verdicts)


def _other_references(cases: list[LabelledCase]) -> list[LabelledCase]:
    """The same cases with other golds and other references, so that a leak of any of it would show."""
    golds = [labelled.gold for labelled in cases]
    Random(3).shuffle(golds)
    reference = Reference(scoring="short answer", accepted=("zebra",), ratings=(7.5, None), group="zebras")
    return [LabelledCase(c.case, c.index, gold, "", reference) for c, gold in zip(cases, golds, strict=True)]


def test_no_gold_label_or_rating_reaches_a_message(tmp_path: Path) -> None:
    cases = _cases()
    one = _held("inline", tmp_path / "one", cases)
    two = _held("inline", tmp_path / "two", _other_references(cases))
    for table in TABLES:
        assert stable_rows(one.folder, table) == stable_rows(two.folder, table), table
    assert stable_rows(one.folder, "cases") != stable_rows(two.folder, "cases")


def test_more_models_on_the_panel_change_nothing_that_is_said(tmp_path: Path) -> None:
    few = _held("inline", tmp_path / "few", _cases(1), roles=_roles(judges=1))
    many = _held("inline", tmp_path / "many", _cases(1), roles=_roles(judges=4))
    for case_id in ("sample-001", "sample-essays-01-ideas", "sample-problems-01"):
        one, other = few.turns(case_id), many.turns(case_id)
        assert {path: one[path]["text"] for path in SPOKEN} == {path: other[path]["text"] for path in SPOKEN}
        assert len(other) - len(one) == 2 * 2 * 3


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_record(tmp_path: Path) -> None:
    judges = ["simulated", "simulated?judge_noise=0.3"]
    command = [sys.executable, "-m", "moot", "run", "--engine", "inline", "--quiet", "--task", "sample-essays"]
    command += ["--protocol", "constructor-auditor", "--role", f"judge={','.join(judges)}"]
    command += ["--limit", "4", "--set", "judge.passes=3", "--out", str(tmp_path / "killed")]
    marks = tmp_path / "marks"
    marks.mkdir()
    plan = {"MOOT_FAILPOINTS": "agent.received:6,judge.received:17", "MOOT_FAILPOINT_DIR": str(marks)}
    starts = [
        subprocess.run(command, env=os.environ | plan, capture_output=True, timeout=120, check=False) for _ in range(3)
    ]
    assert [start.returncode for start in starts] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    settings: dict[str, Any] = {"set": {"judge.passes": 3}, "roles": {"judge": judges}}
    run(
        engine="inline",
        task="sample-essays",
        protocol="constructor-auditor",
        limit=4,
        out=tmp_path / "whole",
        **settings,
    )
    for table in ("turns", "verdicts"):
        assert stable_rows(tmp_path / "killed", table) == stable_rows(tmp_path / "whole", table), table
    assert _judged(tmp_path / "killed", judges=2, passes=3) == 4 * 2 * 6
