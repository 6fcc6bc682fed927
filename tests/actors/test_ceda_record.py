"""CEDA on a real floor: its record, state by state, and pictures that are paid once."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from houses import Held, hold
from openai_server import ScriptedServer

from moot.actors.record import recorder
from moot.actors.record.folder import RunFolder
from moot.actors.record.memory import Memory
from moot.actors.record.recovery import History, histories
from moot.actors.roles import RoleBinding
from moot.protocols.case import Case, Image, LabelledCase, Reference
from moot.protocols.ceda.state import rebuild
from moot.protocols.claims import CLAIM_ALIASES, CLAIM_LABELS
from moot.protocols.registry import make_protocol
from moot.protocols.templates import Templates

MARKS = {"debater": "debater", "judge": "judge", "image": "image", "image_prompt": "prompt"}
PICTURE, OTHER = Image("image/png", b"\x89PNG one"), Image("image/png", b"\x89PNG two")
PASSAGE = "The bridge opened in 1932.\n\nThe bridge opened in 1934.\n\nIt crosses the river."


def _marked() -> dict[str, str]:
    sources = Templates().sources
    return {
        f"ceda/{name}": sources[f"ceda/{name}"].replace("{% block system %}", f"{{% block system %}}[[{mark}]]", 1)
        for name, mark in MARKS.items()
    }


def _case(number: int, **more: Any) -> LabelledCase:
    case = Case(
        id=f"c{number}",
        question=f"Bridge {number} opened in 1932.",
        labels=CLAIM_LABELS,
        aliases=CLAIM_ALIASES,
        passage=PASSAGE,
        **more,
    )
    return LabelledCase(case, number, CLAIM_LABELS[number % 2], reference=Reference(group=f"g{number // 2}"))


def _cases() -> list[LabelledCase]:
    return [_case(0, images=(PICTURE,)), _case(1, images=(PICTURE, OTHER)), _case(2), _case(3)]


def _message(step: str, user: str) -> str:
    return "DENY: E1 says otherwise." if "/turn/1" in step or "/turn/2" in step else "AGREE: so it is."


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    judged = {"consensus": True, "summary": "E1 settles it.", "verdict": 0, "confidence": 0.9}
    scripts = {
        "debater": _message,
        "judge": lambda step, user: judged,
        "image": lambda step, user: "A bridge.",
        "prompt": lambda step, user: "Look for a date.",
    }
    server = ScriptedServer(scripts)
    yield server
    server.close()


def _held(server: ScriptedServer, folder: Path, cases: list[LabelledCase], **settings: Any) -> Held:
    binding = RoleBinding(model=server.model)
    roles: Mapping[str, Any] = {"debater": [binding, binding], "judge": [binding] * 2, "vision": [binding]}
    protocol = make_protocol("ceda", settings)
    return asyncio.run(hold("inline", folder, protocol, cases, roles, seed=5, templates=_marked()))


def _event(held: Held, case_id: str, kind: str) -> list[dict[str, Any]]:
    return [json.loads(row["data"]) for row in held.events(case_id, kind)]


def test_the_record_has_every_version_of_the_state(server: ScriptedServer, tmp_path: Path) -> None:
    held = _held(server, tmp_path / "run", _cases())
    assert not [row["error"] for row in held.rows("verdicts") if row["failed"]]
    for labelled in _cases():
        case, states = labelled.case, rebuild(_event(held, labelled.case.id, "state"))
        last = states[-1].content
        assert (states[0].stage, states[-1].stage, last.claim) == ("initial", "output", case.question)
        turns = held.turns(case.id)
        assert [said.text for said in last.debate] == [turns[f"turn/{said.turn}"]["text"] for said in last.debate]
        (evidence,) = _event(held, case.id, "evidence")
        assert [item["id"] for item in evidence["items"]] == [item.id for item in last.evidence]
        assert sum(item.kind == "picture" for item in last.evidence) == len(case.images)
        verdict = held.verdict(case.id)
        assert (verdict["answer"], verdict["how"]) == ("hallucinated", "consensus")
        assert verdict["confidence"] == pytest.approx(0.9)
        assert verdict["payload"]["stances"] == {"debater/0": "supports", "debater/1": "supports"}


def test_equal_pictures_under_an_equal_prompt_are_paid_once(server: ScriptedServer, tmp_path: Path) -> None:
    _held(server, tmp_path / "run", _cases())
    seen = [json.loads(body) for body in server.bodies.values() if b"[[image]]" in body]
    sent = [part["image_url"]["url"] for body in seen for part in body["messages"][1]["content"] if "image_url" in part]
    urls = [f"data:image/png;base64,{base64.b64encode(image.data).decode()}" for image in (PICTURE, OTHER)]
    assert sorted(sent) == sorted(urls)
    paid = [count for step, count in server.calls.items() if b"[[image]]" in server.bodies[step]]
    assert paid == [1, 1]


def test_pictures_are_shared_without_reading_the_journal_back(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reading goes through all that the run has written, and there may be as many pictures as cases."""
    read: list[Any] = []

    def noted(folder: RunFolder, keys: Sequence[tuple[str, int]], memory: Memory) -> list[History]:
        read.append(keys)
        return histories(folder, keys, memory)

    monkeypatch.setattr(recorder, "histories", noted)
    cases = [_case(n, images=(Image("image/png", b"\x89PNG %d" % n),)) for n in range(12)]
    held = _held(server, tmp_path / "run", cases)
    assert sum(row["path"] == "shared" for row in held.rows("turns")) == 12
    assert read == []
