"""CEDA with documents, pictures and a classifier: one record on all engines, and reused; and claims left open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from ceda_material import make_classifier, write_claims, write_documents
from houses import assert_equal_records, assert_same_but_unpaid
from known import known
from openai_server import simulated_server, stats_of
from planted_records import Printed

from moot.actors.models.trial import STEP_KEY as PROBE
from moot.deploy.reading.show import show
from moot.deploy.running.outcome import Run
from moot.deploy.running.run import run
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
    """The run that the others are held against."""
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
    found, rows = known(inline.summary.detection), inline.table("verdicts").to_pylist()
    verdict, bare = known(found.whole).detectors[:2]
    assert (verdict.by, bare.by) == ("verdict", "judges' bare verdict")
    assert verdict.accuracy.value == pytest.approx(fmean(row["answer"] == row["gold"] for row in rows))
    alone = [{1: SUPPORTED, 0: HALLUCINATED}.get(json.loads(row["payload"])["verdict"]) for row in rows]
    hits = [label == row["gold"] for label, row in zip(alone, rows, strict=True)]
    assert bare.accuracy.value == pytest.approx(fmean(hits))
    assert {each.source for each in found.calibration} == {"classifier", "judges"}
    assert (known(found.debaters).n, known(found.seconds).n) == (CLAIMS, CLAIMS)
    assert [each.category for each in found.by_category] == ["new", "old"]
    tokens = sum(known(each.tokens) * each.n for each in found.by_category)
    assert tokens / CLAIMS == pytest.approx(known(inline.summary.tokens_per_case), rel=0.05)
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
    found = known(done.summary.detection)
    assert (known(known(found.whole).by("verdict")).abstained, found.calibration) == (12, [])
    assert "claims left open 12 of 12" in " ".join(printed(show, done.path).split())
    assert "answer none" in " ".join(printed(show, done.path, "c0").split())
