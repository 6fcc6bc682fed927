"""CRIT in whole runs: the same record everywhere, over HTTP and in a replay; bad marks are asked for again, once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from five_protocols import template
from houses import Held, hold
from many_settings import key_of, made_cases
from openai_server import ScriptedServer, simulated_server

from moot.actors.models.answer_key import AnswerKey
from moot.actors.roles import RoleBinding
from moot.protocols.registry import make_protocol

SEED, CASES = 11, made_cases(12, "any")
WITHOUT = ("model", "fingerprint")
"""Columns that name the model."""


def panel(*judges: str) -> dict[str, list[RoleBinding]]:
    """Agents on the first judge's model."""
    return {"agent": [RoleBinding(model=judges[0])], "judge": [RoleBinding(model=model) for model in judges]}


def held(folder: Path, roles: dict[str, list[RoleBinding]], kind: str = "inline", **changes: Any) -> Held:
    return asyncio.run(hold(kind, folder, make_protocol("weighing:Weighing"), CASES, roles, seed=SEED, **changes))


def crits(run: Held) -> list[dict[str, Any]]:
    """The data of every event `crit`, in the order of cases and paths."""
    return [json.loads(row["data"]) for row in run.rows("events") if row["kind"] == "crit"]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Held:
    folder = tmp_path_factory.mktemp("embedded") / "first"
    return held(folder, panel("simulated", "simulated"), key=key_of(CASES))


def test_every_argument_is_read_by_every_judge(embedded: Held) -> None:
    found = crits(embedded)
    assert len(found) == 2 * len(CASES)
    assert all(set(data["by_judge"]) == {"judge/0", "judge/1"} and not data["missing"] for data in found)
    assert all(0.0 <= data["score"] <= 1.0 for data in found)
    assert max(data["depth"] for data in found) == 2, "claims within claims are read, too"
    assert {judge["calls"] for data in found for judge in data["judges"].values()} == {1, 2, 3, 4}
    asked = [row["path"] for row in embedded.rows("turns") if row["path"].startswith("crit/")]
    assert len(asked) == sum(data["calls"] for data in found)
    assert {row["outcome"] for row in embedded.rows("turns")} == {"ok"}


def test_a_source_is_read_for_a_claim(embedded: Held) -> None:
    judges = [judge for data in crits(embedded) for judge in data["judges"].values()]
    read = [reason["deeper"]["source"] for judge in judges for reason in judge["reasons"] if reason["deeper"]]
    assert set(read) <= {0, 1, 2}
    assert len(set(read)) > 1


def test_a_server_gives_the_same_record(embedded: Held, tmp_path: Path) -> None:
    with simulated_server(AnswerKey.from_cases(CASES), seed=SEED) as port:
        served = held(tmp_path / "served", panel(*[f"http://127.0.0.1:{port}/v1#simulated"] * 2))
    assert crits(served) == crits(embedded)


def test_a_replay_gives_the_same_record(embedded: Held, tmp_path: Path) -> None:
    again = held(tmp_path / "again", panel(*[f"replay/{embedded.folder}"] * 2))
    assert crits(again) == crits(embedded)
    assert again.counts.replies == 0


def reading(mark: Any) -> dict[str, Any]:
    reason = {"text": "It was said so.", "validity": mark, "credibility": 5}
    return {"claim": "So.", "reasons": [reason], "rivals": [], "justification": "Said.", "reflection": "-"}


SAID: dict[str, list[Any]] = {
    "judge/0": [reading(11), reading("11/10")],
    "judge/1": [json.dumps(reading(8)).replace("8", "NaN"), reading(True)],
    "judge/2": [reading("high"), "I would rather not."],
    "judge/3": [reading("very high"), reading("60%")],
    "judge/4": [reading(8)],
}
"""What each judge says, first and when it is asked again."""


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    def judge(step: str, user: str) -> Any:
        replies = next(said for name, said in SAID.items() if name in step)
        return replies[step.endswith("~1")]

    server = ScriptedServer({"judge": judge})
    yield server
    server.close()


def test_bad_marks_are_asked_for_again_once_and_then_missing(scripted: ScriptedServer, tmp_path: Path) -> None:
    marked = {"crit/reading": template("judge", "Judge as JSON.", "{{ text }}")}
    run = held(tmp_path / "run", panel(*[scripted.model] * len(SAID)), templates=marked)
    for data in crits(run):
        assert data["by_judge"] == {f"judge/{n}": score for n, score in enumerate([None, None, None, 0.6, 0.8])}
        assert data["score"] == pytest.approx(0.7)
        assert set(data["missing"]) == {"judge/0", "judge/1", "judge/2"}
        assert all(why.startswith("unparsable: ") for why in data["missing"].values())
        assert "reasons.0.validity" in data["missing"]["judge/0"]
        assert data["notes"] == ["marks-repaired"]
        assert data["judges"]["judge/3"]["reasons"][0]["repairs"] == ["validity: 60%"]
    asked = [row["path"] for row in run.rows("turns") if row["path"].startswith("crit/")]
    assert len(asked) == len(CASES) * 2 * (1 + 4 + len(SAID) - 1), "four judges are asked twice"
