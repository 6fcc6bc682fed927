"""Claims in runs: a protocol that needs them gets them or says where they are, and pictures of files are sent."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

import moot
from moot import Case, Floor, RunConfig, Verdict
from moot.actors.models.interface import Capabilities
from moot.actors.simulated.model import SimulatedModel
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.run import arun
from moot.protocols.errors import CapabilityMissing, ConfigError

QUESTION = {"question": "who wrote it", "answer": ["Ann"]}

Write = Callable[..., str]


class Checker:
    """Asks nobody; only claims can be given to it."""

    name = "checker"
    needs_claims = True

    async def run(self, case: Case, floor: Floor) -> Verdict:
        return Verdict(answer=None, how="checked")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(*rows: object) -> str:
        (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return str(tmp_path / "rows.jsonl")

    return _write


@pytest.fixture
def cat(tmp_path: Path) -> Path:
    written = io.BytesIO()
    Pillow.new("RGB", (30, 20), "orange").save(written, "PNG")
    (tmp_path / "cat.png").write_bytes(written.getvalue())
    return tmp_path / "cat.png"


async def turns(out: Path, task: Any) -> list[dict[str, Any]]:
    done = await arun(task=task, engine="inline", protocol="single-agent", out=out)
    found: list[dict[str, Any]] = done.table("turns").to_pylist()
    return found


async def test_open_questions_become_claims_for_a_protocol_that_needs_them(write: Write, tmp_path: Path) -> None:
    spec = f"nq:{write(QUESTION)}"
    assert prepare(RunConfig(task=spec, protocol="single-agent", out=str(tmp_path / "a"))).task.labels is None
    done = await arun(task=spec, protocol=Checker(), engine="inline", out=tmp_path / "run")
    (case,) = done.table("cases").to_pylist()
    assert case["question"] == "Question: who wrote it\nAnswer: Ann"
    assert (case["labels"], case["gold"]) == (["supported", "hallucinated"], "supported")
    assert f"{spec}:as=claims" in (tmp_path / "run" / "run.yaml").read_text()


def test_what_is_no_claim_is_refused_with_the_tasks_that_are(write: Write, tmp_path: Path) -> None:
    for brought in (None, [{"question": "Is it?", "labels": ["Yes", "No"]}]):
        with pytest.raises(ConfigError, match="'checker'") as refused:
            prepare(RunConfig(out=str(tmp_path / "run")), task=brought, protocol=Checker())
        assert "sample-claims, claims:PATH, fever:PATH, hallusionbench:DIR" in str(refused.value)
        assert "nq:PATH:as=claims" in str(refused.value)
        assert "\n" not in str(refused.value)
    assert prepare(RunConfig(task="sample-claims", out=str(tmp_path / "run")), protocol=Checker()).total == 40
    prepare(RunConfig(out=str(tmp_path / "run")), task=[{"claim": "So.", "label": "true"}], protocol=Checker())


async def test_the_pictures_of_a_file_are_sent_however_its_task_is_opened(
    write: Write, tmp_path: Path, cat: Path
) -> None:
    spec = f"claims:{write({'claim': 'It is a cat.', 'images': [cat.name], 'label': 1})}"
    tasks = [spec, moot.open_task(spec), moot.open_task(spec, moot.load_image)]
    given = [await turns(tmp_path / f"run{n}", task) for n, task in enumerate(tasks)]
    (case,) = moot.Task.from_cases([{"claim": "It is a cat.", "images": [moot.load_image(cat)]}]).cases()
    brought = await turns(tmp_path / "brought", [case])
    hashes = [run[0]["image_hashes"] for run in (*given, brought)]
    assert hashes[0]
    assert hashes == [hashes[0]] * 4


async def test_a_file_with_pictures_is_refused_to_a_model_that_takes_none(
    write: Write, tmp_path: Path, cat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedModel, "capabilities", Capabilities(max_alternatives=20, simulated=True))
    file = write({"claim": "So."}, {"claim": "It is a cat.", "images": [cat.name]})
    with pytest.raises(CapabilityMissing, match="pictures"):
        await turns(tmp_path / "run", f"claims:{file}")
    done = await arun(task=f"claims:{file}", limit=1, engine="inline", protocol="single-agent", out=tmp_path / "one")
    assert done.table("cases").num_rows == 1
