"""The judge panel in whole runs: the same record on every runtime, over HTTP and in a replay; what judges were sent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from houses import Held, hold
from openai_server import simulated_server

from moot.actors.models.answer_key import AnswerKey
from moot.actors.roles import RoleBinding
from moot.protocols.registry import make_protocol
from moot.protocols.tasks import open_task

SEED, CASES = 11, list(open_task("sample-replies").cases())


def panel(*judges: str) -> dict[str, list[RoleBinding]]:
    return {"judge": [RoleBinding(model=model) for model in judges]}


def held(folder: Path, roles: dict[str, list[RoleBinding]], kind: str = "inline") -> Held:
    protocol = make_protocol("judge-panel", {"passes": 2})
    return asyncio.run(hold(kind, folder, protocol, CASES, roles, seed=SEED))


def assessments(run: Held) -> list[dict[str, Any]]:
    """The data of every event `assessment` without the judges' models, in the order of cases."""
    found = [json.loads(row["data"]) for row in run.rows("events") if row["kind"] == "assessment"]
    for data in found:
        for mark in data["judges"]:
            del mark["model"]
    return found


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Held:
    return held(tmp_path_factory.mktemp("embedded") / "first", panel("simulated", "simulated"))


def test_every_reply_has_a_mark_of_each_judge_and_pass(embedded: Held) -> None:
    found = assessments(embedded)
    assert len(found) == len(CASES)
    assert {len(data["judges"]) for data in found} == {4}
    assert not any(data["missing"] for data in found)
    assert any(len({json.dumps(mark["scores"]) for mark in data["judges"]}) > 1 for data in found), "judges differ"
    qualities = {data["quality"] for data in found}
    assert len(qualities) > 5, "good replies and bad ones"


def test_judges_are_sent_the_prompt_the_evidence_and_the_reply(embedded: Held) -> None:
    for labelled in CASES:
        case = labelled.case
        assert case.judged is not None
        for turn in embedded.turns(case.id).values():
            ((_, system), (_, user)) = json.loads(turn["messages"])
            assert "instruction_following: " in system
            for text in (*(text for _, text in case.judged.sent), case.passage, case.judged.reply):
                assert f">\n{text}\n</" in user


def test_the_record_holds_the_reply_and_its_group(embedded: Held) -> None:
    rows = {row["case_id"]: row for row in embedded.rows("cases")}
    for labelled in CASES:
        judged = json.loads(rows[labelled.case.id]["judged"])
        assert labelled.case.judged is not None
        assert judged["reply"] == labelled.case.judged.reply
        assert rows[labelled.case.id]["group"] == labelled.reference.group


def test_a_server_gives_the_same_marks(embedded: Held, tmp_path: Path) -> None:
    with simulated_server(AnswerKey.from_cases([]), seed=SEED) as port:
        served = held(tmp_path / "served", panel(*[f"http://127.0.0.1:{port}/v1#simulated"] * 2))
    assert assessments(served) == assessments(embedded)


def test_a_replay_gives_the_same_marks(embedded: Held, tmp_path: Path) -> None:
    again = held(tmp_path / "again", panel(*[f"replay/{embedded.folder}"] * 2))
    assert assessments(again) == assessments(embedded)
    assert again.counts.replies == 0
