"""Runs on `local/PATH`: the same replies wherever the weights live, and how many processes hold them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from short_protocols import TEMPLATES
from small_runs import FinishedRun, run_debates, same_model_roles
from tiny_model import tiny_folder

from moot.actors.models.local.model import LocalModel
from moot.actors.models.model_profile import ModelProfile
from moot.deploy.runs.run import arun
from moot.protocols.errors import CapabilityMissing
from moot.protocols.registry import make_protocol
from moot.protocols.tasks import Task

pytestmark = pytest.mark.extras

CASES = [{"id": f"c{number}", "question": "x" * number + "?", "labels": ["Yes", "No"]} for number in range(12)]


def run_local(kind: str, out: Path, model: Path) -> FinishedRun:
    roles = same_model_roles(f"local/{model}", max_tokens=12, temperature=0.9)
    cases = Task.from_cases(CASES).cases()
    return asyncio.run(
        run_debates(kind, out, make_protocol("short_protocols:TinyDebate"), cases, roles, templates=TEMPLATES)
    )


def turns(run: FinishedRun) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["case_id"], row["path"]): row for row in run.rows("turns")}


@pytest.mark.ray
@pytest.mark.timeout(280)
def test_the_same_replies_wherever_the_weights_live(local_ray: None, tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "model")
    runs = {kind: run_local(kind, tmp_path / kind, folder) for kind in ("inline", "actors", "packed")}
    inline = turns(runs["inline"])
    assert len(inline) == 2 * len(CASES)
    assert {row["outcome"] for row in inline.values()} == {"ok"}
    for run in runs.values():
        found = turns(run)
        assert found.keys() == inline.keys()
        for key, row in inline.items():
            assert found[key]["text"] == row["text"]
            assert found[key]["completion_tokens"] == row["completion_tokens"]
        for one, other in zip(run.rows("tokens"), runs["inline"].rows("tokens"), strict=True):
            assert one["token"] == other["token"]
            np.testing.assert_allclose(one["logprob"], other["logprob"], atol=1e-4)
    homes = {kind: _processes(run) for kind, run in runs.items()}
    agents, judges = homes["actors"]
    assert not agents & judges, "agent and judge are actors of their own, each with a copy of the weights"
    assert homes["inline"][0] == homes["inline"][1]
    assert homes["packed"][0] == homes["packed"][1], "a moderator holds one copy for all roles of its debates"


def _processes(run: FinishedRun) -> tuple[set[int], set[int]]:
    rows = turns(run).values()
    agents, judges = ({row["process_id"] for row in rows if row["role"] == role} for role in ("agent/0", "judge/0"))
    return agents, judges


async def _answered(out: Path, model: Path, limit: int, **options: Any) -> tuple[Any, list[dict[str, Any]]]:
    """What the record says of the model, and the asks' rows in order."""
    done = await arun(
        task=CASES, limit=limit, protocol="single-agent", model=f"local/{model}", engine="inline", out=out,
        max_reply_tokens=60, **options,
    )  # fmt: skip
    (member,) = yaml.safe_load((out / "run.yaml").read_text())["bindings"]["agent"]
    return member["profile"], done.table("turns").sort_by([("case_id", "ascending"), ("path", "ascending")]).to_pylist()


def _before_schemas(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(LocalModel, "capabilities", replace(LocalModel.capabilities, structured_output="no"))


async def test_a_new_run_is_constrained_without_a_trial(tmp_path: Path) -> None:
    model = tiny_folder(tmp_path / "model", context=8192)
    profile, rows = await _answered(tmp_path / "run", model, 2)
    assert ModelProfile.model_validate(profile) == ModelProfile(schemas="llguidance", server="llguidance")
    # a random model fills its tokens, of which each holds one byte
    assert all(row["text"].startswith(('{"answer": "Yes", ', '{"answer": "No", ')) for row in rows)
    assert len({row["case_id"] for row in rows}) == 2


async def test_a_run_from_before_schemas_resumes_unconstrained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_folder(tmp_path / "model", context=8192)
    with monkeypatch.context() as patched:
        _before_schemas(patched)
        _, before = await _answered(tmp_path / "run", model, 1)
        with pytest.raises(CapabilityMissing):
            await _answered(tmp_path / "insisting", model, 1, structured="on")
    profile, rows = await _answered(tmp_path / "run", model, 2)
    assert profile is None
    assert rows[: len(before)] == before, "what is on record is not asked again"
    assert len(rows) > len(before)
    assert not any(row["text"].startswith("{") for row in rows)
