"""Judges of constructor-auditor read to the letter what was sent and said, whatever it was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from houses import Held, hold
from msgspec import structs
from openai_server import ScriptedServer

from moot.actors.record.tables import read_table
from moot.actors.roles import RoleBinding
from moot.protocols.case import Image, LabelledCase
from moot.protocols.constructor_auditor.domains import CASTS
from moot.protocols.messages import Message
from moot.protocols.registry import make_protocol
from moot.protocols.rubrics.panel import Shown, rubric_slots, shown_slots
from moot.protocols.rubrics.rubric import shipped_rubric
from moot.protocols.tasks import open_task
from moot.protocols.templates import Templates

SETTINGS: Mapping[str, Any] = {"judge.passes": 2}
REASONING, TEMPLATES = shipped_rubric("reasoning"), Templates()


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
