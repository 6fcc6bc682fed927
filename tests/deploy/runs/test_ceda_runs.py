"""CEDA with documents, pictures and a classifier: one record on all engines, reused, and whole
after kills that make nothing be paid for twice; and claims left open."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from ceda_material import make_classifier, write_claims, write_documents
from not_none import not_none
from openai_server import simulated_server, stats_of
from planted_records import Printed
from small_runs import assert_equal_records, assert_same_but_unpaid, stable_rows

from moot.actors.models.probe_calls import STEP_KEY as PROBE
from moot.actors.record.tables import read_table
from moot.deploy.results.show import show
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.run import run
from moot.protocols.claims import HALLUCINATED, SUPPORTED

CLAIMS = 9


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Task, documents and classifier."""
    folder = tmp_path_factory.mktemp("material")
    return {
        "task": write_claims(folder / "claims", CLAIMS),
        "docs": (write_documents(folder / "docs", CLAIMS),),
        "classifier": make_classifier(folder),
    }


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with simulated_server(None, seed=5) as port:
        yield port


def check(material: dict[str, Any], out: Path, **options: Any) -> Run:
    given = {"protocol": "ceda", "engine": "inline", "seed": 3, "set": {"vision.prompt": "fixed"}}
    done = run(**{**given, **material, "out": out, **options})
    assert (done.done, done.failed) == (CLAIMS, 0)
    return done


def served_roles(port: int) -> dict[str, list[dict[str, Any]]]:
    """Two debaters, two judges and one to look at pictures; without a key, which a cluster that runs would not know."""
    member = {"model": f"http://127.0.0.1:{port}/v1#simulated"}
    return {"debater": [member, member], "judge": [member, member], "vision": [member]}


@pytest.fixture(scope="module")
def inline(material: dict[str, Any], port: int, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run that the others are compared with."""
    return check(material, tmp_path_factory.mktemp("inline") / "run", roles=served_roles(port))


def events(done: Run, kind: str) -> list[dict[str, Any]]:
    return [json.loads(row["data"]) for row in done.table("events").to_pylist() if row["kind"] == kind]


def test_the_run_had_it_all(inline: Run, port: int) -> None:
    """Evidence of every kind, from three sources; the classifier's label; and each picture paid for once."""
    items = [item for data in events(inline, "evidence") for item in data["items"]]
    assert {item["kind"] for item in items} == {"passage", "document", "picture"}
    assert {item["document"] for item in items if item["kind"] == "document"} == {"notes.txt", "handbook.md"}
    assert any(data["conflicts"] for data in events(inline, "evidence"))
    assert all(data["classifier"] for data in events(inline, "ruling"))
    assert {json.loads(row["payload"])["source"] for row in inline.table("verdicts").to_pylist()} == {"classifier"}
    looked = [row for row in inline.table("turns").to_pylist() if row["image_hashes"]]
    assert len(looked) == 2


def test_the_figures_are_those_of_the_verdicts(inline: Run) -> None:
    found, rows = not_none(inline.summary.detection), inline.table("verdicts").to_pylist()
    verdict, bare = not_none(found.whole).detectors[:2]
    assert (verdict.by, bare.by) == ("verdict", "judges' bare verdict")
    assert verdict.accuracy.value == pytest.approx(fmean(row["answer"] == row["gold"] for row in rows))
    alone = [{1: SUPPORTED, 0: HALLUCINATED}.get(json.loads(row["payload"])["verdict"]) for row in rows]
    hits = [label == row["gold"] for label, row in zip(alone, rows, strict=True)]
    assert bare.accuracy.value == pytest.approx(fmean(hits))
    assert {each.source for each in found.calibration} == {"classifier", "judges"}
    assert (not_none(found.debaters).n, not_none(found.seconds).n) == (CLAIMS, CLAIMS)
    assert [each.category for each in found.by_category] == ["new", "old"]
    tokens = sum(not_none(each.tokens) * each.n for each in found.by_category)
    assert tokens / CLAIMS == pytest.approx(not_none(inline.summary.tokens_per_case), rel=0.05)
    assert found.hallusionbench is None


@pytest.mark.slow
@pytest.mark.ray
def test_the_record_is_the_same_on_every_engine(
    inline: Run, material: dict[str, Any], port: int, local_ray: None, tmp_path: Path
) -> None:
    done = check(material, tmp_path / "run", roles=served_roles(port), engine="ray", placement="actors")
    assert_equal_records(inline.path, done.path)
    libraries = [sorted(path.name for path in (run.path / "library").iterdir()) for run in (inline, done)]
    assert libraries[0] == libraries[1]
    for name in libraries[0]:
        assert (inline.path / "library" / name).read_bytes() == (done.path / "library" / name).read_bytes(), name


def test_a_run_that_reuses_another_asks_nothing(inline: Run, material: Any, port: int, tmp_path: Path) -> None:
    before = stats_of(port)
    done = check(material, tmp_path / "again", roles=served_roles(port), reuse=inline.path)
    after = stats_of(port)
    assert after["by_step"] | {PROBE: None} == before["by_step"] | {PROBE: None}
    assert after["picture_bytes"] == before["picture_bytes"] > 0
    assert (done.summary.tokens_paid, done.summary.calls) == (0, 0)
    assert done.summary.replies_reused == inline.summary.calls
    assert_same_but_unpaid(inline.path, done.path)


def test_a_claim_without_evidence_and_without_a_stance_stays_undecided(tmp_path: Path, printed: Printed) -> None:
    claims = [{"id": f"c{n}", "claim": f"Bridge {n} opened in 1932.", "label": bool(n % 2)} for n in range(12)]
    unclear = {"debater": ["simulated?unclear_rate=1"] * 2}
    done = run(task=claims, protocol="ceda", engine="inline", roles=unclear, out=tmp_path / "run")
    for verdict in done.table("verdicts").to_pylist():
        payload = json.loads(verdict["payload"])
        assert set(verdict["flags"]) == {"no-evidence", "undecided", "stance-unknown"}
        assert (verdict["answer"], payload["verdict"], payload["p_hallucinated"]) == (None, None, None)
    found = not_none(done.summary.detection)
    assert (not_none(not_none(found.whole).by("verdict")).abstained, found.calibration) == (12, [])
    assert "claims left open 12 of 12" in " ".join(printed(show, done.path).split())
    assert "answer none" in " ".join(printed(show, done.path, "c0").split())


OPEN = 4
BATCH = 256
"""Texts that a library is built by at a time."""

KILLS = ["library.appended:1", "library.appended:2", "moderator.committed:4", "writer.flushed:2", "agent.received:45"]


@pytest.fixture
def slow_port() -> Iterator[int]:
    with simulated_server(None, seed=5, latency_ms=30.0) as port:
        yield port


def start(folder: Path, material: Path, port: int, **env: str) -> int:
    """Start the command, the same each time, and give its exit code."""
    command = [
        sys.executable,
        "-m",
        "moot",
        *["run", "--protocol", "ceda", "--engine", "inline", "--quiet", "--seed", "3"],
    ]
    command += ["--task", f"claims:{material / 'claims' / 'claims.jsonl'}", "--docs", str(material / "docs")]
    command += ["--model", f"http://127.0.0.1:{port}/v1#sim", "--encoder", f"http://127.0.0.1:{port}/v1#enc"]
    command += ["--set", "vision.prompt=fixed", "--max-open", str(OPEN), "--out", str(folder)]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-2000:]
    return done.returncode


def calls(port: int) -> dict[str, int]:
    """Calls served, by step."""
    return {step: told["calls"] for step, told in stats_of(port)["by_step"].items() if step != PROBE}


def durable(folder: Path) -> set[str]:
    """The steps that are on disk."""
    rows: list[dict[str, Any]] = read_table(folder, "turns", ["outcome"]).to_pylist()
    return {f"{row['case_id']}/{row['attempt']}/{row['path']}" for row in rows}


@pytest.mark.slow
def test_what_is_on_disk_is_never_paid_for_again(slow_port: int, tmp_path: Path) -> None:
    """The server counts what it served, and the record that a killed process leaves says what was durable then."""
    port = slow_port
    write_claims(tmp_path / "claims", 30)
    write_documents(tmp_path / "docs", 420)
    marks, folder = tmp_path / "marks", tmp_path / "run"
    marks.mkdir()
    plan = {"MOOT_FAILPOINTS": ",".join(KILLS), "MOOT_FAILPOINT_DIR": str(marks)}
    known: dict[str, int] = {}
    embedded: list[int] = []
    while start(folder, tmp_path, port, **plan) != 0:
        served = calls(port)
        assert {step: served[step] for step in known} == known
        known = {step: served[step] for step in durable(folder)}
        embedded.append(stats_of(port)["embedded_texts"])
        assert len(embedded) <= len(KILLS)
    served = calls(port)
    assert {step: served[step] for step in known} == known
    assert sorted(path.name for path in marks.iterdir()) == sorted(entry.replace(":", "-") for entry in KILLS)
    probes = embedded[0] - BATCH
    assert embedded[1] - embedded[0] == 2 * BATCH + probes, "the second start began after the first batch"
    assert 0 <= probes <= 2
    assert durable(folder) == served.keys()
    assert len({step for step in known if step.startswith("shared-")}) == 2, "the pictures were described before a kill"
    assert len(served) > len(known) > 2 * OPEN

    whole = tmp_path / "whole"
    assert start(whole, tmp_path, port) == 0
    for table in ("verdicts", "cases"):
        assert stable_rows(folder, table) == stable_rows(whole, table), table
    library = [[(f.name, f.read_bytes()) for f in sorted((run / "library").iterdir())] for run in (folder, whole)]
    assert library[0] == library[1]
