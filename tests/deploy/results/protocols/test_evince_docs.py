"""`--docs` with EVINCE: a run's documents are counted beforehand, and shown where a debate is uncertain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import moot
from moot.actors.record.tables import read_table
from moot.deploy.cli.main import app

LABELS = ["flu", "cold", "mumps", "zika"]


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "fevers.txt").write_text("Zika comes with a rash.\n\nMumps comes with swollen cheeks.\n")
    return folder


def test_a_dry_run_counts_the_second_debate(documents: Path, tmp_path: Path) -> None:
    task = tmp_path / "complaints.jsonl"
    task.write_text(json.dumps({"text": "a rash", "label": "zika"}) + "\n" + json.dumps({"text": "x", "label": "flu"}))
    given = ["run", "--task", f"labels:{task}", "--protocol", "evince", "--engine", "inline", "--dry-run", "--quiet"]
    said = [CliRunner().invoke(app, [*given, *docs]).stdout for docs in ([], ["--docs", str(documents)])]
    assert "8 to 18 a case" in said[0]
    assert "8 to 28 a case" in said[1]


async def test_an_uncertain_debate_runs_again_with_passages(documents: Path, tmp_path: Path) -> None:
    cases = [{"question": f"What is complaint {i}, with a rash?", "labels": LABELS} for i in range(2)]
    await moot.arun(
        task=cases,
        protocol="evince",
        engine="inline",
        docs=[str(documents)],
        out=tmp_path / "run",
        set={"retrieve_from": 0.01, "follow_ups": "never"},
    )
    events = read_table(tmp_path / "run", "events").to_pylist()
    found = [json.loads(event["data"]) for event in events if event["kind"] == "retrieved"]
    assert len(found) == 2
    assert all(each["passages"][0]["document"].endswith("fevers.txt") for each in found)
    assert {event["path"] for event in events if event["kind"] == "stop"} == {"stop", "stop/again"}
