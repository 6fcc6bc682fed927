"""CEDA with documents, pictures and a classifier: one record on all engines, reused, replayed, and free of gold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ceda_material import make_classifier, write_claims, write_documents
from houses import assert_equal_records, assert_same_but_unpaid, sorted_rows, stable_rows
from openai_server import simulated_server, stats_of

from moot.actors.models.trial import STEP_KEY as PROBE
from moot.deploy.running.outcome import Run
from moot.deploy.running.run import run

CLAIMS = 9
REPLAYED = ("model", "fingerprint", "case_id")
"""Columns that name the model: in a replay that is the run it comes from; the id of what is shared hangs on it, too."""


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
    found = inline.summary.detection
    assert found is not None
    assert found.whole is not None
    assert [each.by for each in found.whole.detectors][:2] == ["verdict", "judges' bare verdict"]
    assert {each.source for each in found.calibration} == {"classifier", "judges"}


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


def test_other_gold_labels_groups_and_tags_leave_every_request_alone(
    inline: Run, material: dict[str, Any], port: int, tmp_path: Path
) -> None:
    turned = write_claims(tmp_path / "turned", CLAIMS, lambda number: int(number % 3 == 0))
    done = check({**material, "task": turned}, tmp_path / "run", roles=served_roles(port))
    golds = [[row["gold"] for row in sorted_rows(each.path, "verdicts")] for each in (inline, done)]
    assert sum(one != other for one, other in zip(*golds, strict=True)) >= CLAIMS // 3
    for table in ("turns", "tokens", "events", "embeddings"):
        assert stable_rows(inline.path, table) == stable_rows(done.path, table), table
    without = ("gold", "correct")
    assert stable_rows(inline.path, "verdicts", without) == stable_rows(done.path, "verdicts", without)


def test_a_run_that_reuses_another_asks_nothing(
    inline: Run, material: dict[str, Any], port: int, tmp_path: Path
) -> None:
    before = stats_of(port)
    done = check(material, tmp_path / "again", roles=served_roles(port), reuse=inline.path)
    after = stats_of(port)
    assert after["by_step"] | {PROBE: None} == before["by_step"] | {PROBE: None}
    assert after["picture_bytes"] == before["picture_bytes"] > 0
    assert (done.summary.tokens_paid, done.summary.calls) == (0, 0)
    assert done.summary.replies_reused == inline.summary.calls
    assert_same_but_unpaid(inline.path, done.path)


def test_a_run_with_another_judge_reuses_the_debates(inline: Run, port: int, material: Any, tmp_path: Path) -> None:
    roles = served_roles(port)
    roles["judge"] = [{**member, "max_tokens": 450} for member in roles["judge"]]
    done = check(material, tmp_path / "again", roles=roles, reuse=inline.path)
    paid = {row["role"].partition("/")[0] for row in done.table("turns").to_pylist() if not row["reused_from"]}
    assert paid == {"judge"}


def test_a_replay_gives_the_run_again(inline: Run, material: dict[str, Any], tmp_path: Path) -> None:
    again = f"replay/{inline.path}"
    roles = {"debater": [again, again], "judge": [again, again], "vision": [again]}
    done = check(material, tmp_path / "again", model=again, roles=roles)
    assert_equal_records(inline.path, done.path, without=REPLAYED)
    assert (done.summary.tokens_paid, done.summary.calls) == (0, 0)
