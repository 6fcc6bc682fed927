"""What is asked of the models before a run, and what is refused there."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from openai_server import ScriptedServer
from PIL import Image as Pillow

import moot
from moot.actors.models.interface import Capabilities, Model
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.probe import ProbeResult
from moot.actors.models.probe_calls import STEP_KEY, ProbeRequest, declared_profile
from moot.actors.simulated.model import SimulatedModel
from moot.deploy.runs.checks import check_models
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.run import arun
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import CapabilityMissing, UserError

QUESTION = {"question": "Is it a cat?", "labels": ["Yes", "No"], "passage": "It purrs."}


@pytest.fixture
def cat(tmp_path: Path) -> Path:
    written = io.BytesIO()
    Pillow.new("RGB", (30, 20), "orange").save(written, "PNG")
    (tmp_path / "cat.png").write_bytes(written.getvalue())
    return tmp_path / "cat.png"


async def run_checks(out: Path, **options: Any) -> list[dict[str, Any]]:
    """The turns of a run of one case by one agent."""
    settings = {"engine": "inline", "protocol": "single-agent", "out": out}
    done = await arun(**{**settings, **options})
    turns: list[dict[str, Any]] = done.table("turns").to_pylist()
    return turns


@pytest.mark.parametrize("structured", [True, False, None])
async def test_the_probe_sends_what_the_run_sends(
    tmp_path: Path, server: ScriptedServer, structured: bool | None
) -> None:
    agent = {"model": server.model, "structured": structured}
    turns = await run_checks(tmp_path / "run", task=[QUESTION], roles={"agent": agent})
    asked = server.bodies.pop(STEP_KEY)
    assert turns
    assert server.bodies
    for body in [asked, *server.bodies.values()]:
        assert ("response_format" in json.loads(body)) == (structured is not False)


async def test_roles_with_a_schema_and_without_are_both_tried(tmp_path: Path, server: ScriptedServer) -> None:
    roles: dict[str, Any] = {"agent": {"model": server.model, "structured": True}, "judge": {"model": server.model}}
    await arun(task=[QUESTION], engine="inline", out=tmp_path / "run", roles=roles)
    assert server.calls[STEP_KEY] == 2


async def test_a_schema_from_a_model_that_knows_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CapabilityMissing, match="`structured: true`") as refused:
        await run_checks(tmp_path / "run", task=[QUESTION], roles={"agent": {"structured": True}})
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("task", "opening"), [("sample-symptoms", "LabelledOpening"), ("sample-subjects", "Opening")])
async def test_only_the_replies_that_the_cases_need_are_tried(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, task: str, opening: str
) -> None:
    tried: set[str] = set()

    async def probed(model: Model, trial: ProbeRequest) -> ProbeResult:
        tried.update(each.model.__name__ for each in trial.replies)
        return ProbeResult(declared_profile(model, model.capabilities.dialect), gives_logprobs=False)

    monkeypatch.setattr("moot.deploy.runs.model_trials.probe", probed)
    given = {"task": task, "protocol": "socrasynth", "model": server.model, "out": str(tmp_path / "run")}
    await check_models(prepare(RunConfig.build(given)))
    assert tried & {"LabelledOpening", "Opening"} == {opening}
    assert ("Agenda" in tried) == (opening == "Opening")


async def test_pictures_by_file_address_and_bytes(tmp_path: Path, cat: Path) -> None:
    """All give the same run; and a picture more or less gives another."""
    given: list[list[object]] = [[str(cat)], [cat], [cat.read_bytes()], [moot.load_image(cat)], []]
    turns = [
        await run_checks(tmp_path / f"run{n}", task=[{**QUESTION, "images": images}]) for n, images in enumerate(given)
    ]
    found = [[(turn["fingerprint"], turn["text"], turn["image_hashes"]) for turn in run] for run in turns]
    assert found[0] == found[1] == found[2] == found[3]
    assert found[0][0][2]
    assert found[4][0][0] != found[0][0][0]
    assert found[4][0][2] == []


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (["nowhere.png"], "nowhere.png: the picture cannot be read"),
        ([b"GIF89a"], "the given picture: expected a PNG, JPEG or WebP"),
        (["http://127.0.0.1:1/cat.png"], "http://127.0.0.1:1/cat.png: the picture cannot be fetched"),
        ([7], "expected a list of moot.Image"),
        ("cat.png", "expected a list of moot.Image"),
    ],
)
async def test_what_is_no_picture_is_found_before_the_run(tmp_path: Path, images: object, said: str) -> None:
    with pytest.raises(UserError) as refused:
        await run_checks(tmp_path / "run", task=[{**QUESTION, "images": images}])
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


async def test_pictures_for_a_model_that_takes_none(tmp_path: Path, cat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedModel, "capabilities", Capabilities(max_alternatives=20, simulated=True))
    with pytest.raises(CapabilityMissing, match="takes no pictures"):
        await run_checks(tmp_path / "run", task=[{**QUESTION, "images": [cat]}])
    assert await run_checks(tmp_path / "run", task=[QUESTION])


async def test_judges_who_are_shown_what_speakers_were_sent_must_take_pictures(
    tmp_path: Path, cat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind, seeing = Capabilities(max_alternatives=20, simulated=True), SimulatedModel.capabilities
    monkeypatch.setattr(
        SimulatedModel, "capabilities", property(lambda self: blind if self._settings.latency_ms else seeing)
    )
    task, judge = [{**QUESTION, "images": [cat]}], {"judge": "simulated?latency_ms=1"}
    with pytest.raises(CapabilityMissing, match="takes no pictures"):
        await run_checks(tmp_path / "run", task=task, protocol="constructor-auditor", roles=judge)
    assert await run_checks(tmp_path / "none", task=[QUESTION], protocol="constructor-auditor", roles=judge)


async def test_a_server_without_log_probabilities_is_refused_with_both_ways_out(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no(*_: object) -> ProbeResult:
        return ProbeResult(ModelProfile(schemas="free"), gives_logprobs=False)

    monkeypatch.setattr("moot.deploy.runs.model_trials.probe", no)
    options: dict[str, Any] = {"task": [QUESTION], "protocol": "selene", "model": server.model}
    with pytest.raises(CapabilityMissing, match=r"intrinsic=none.*intrinsic=resampled"):
        await run_checks(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()
    assert await run_checks(tmp_path / "run", **options, set={"gate.intrinsic": "none"})
