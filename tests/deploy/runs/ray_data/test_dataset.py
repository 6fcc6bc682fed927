"""Ray Data pipelines with a debate stage: the same verdicts as a run, rows that failed, columns, and nothing left."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
import ray.data
import yaml
from ray.exceptions import RayTaskError
from waiting import processes_titled, wait_until

import moot
from moot.actors.record.tables import read_table
from moot.protocols.errors import ConfigError

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.filterwarnings("ignore:::ray.data.context")]

CASES: list[dict[str, Any]] = [
    {"id": f"q{i}", "question": f"is number {i} blue", "labels": ["Yes", "No"], "passage": f"Number {i} is blue."}
    for i in range(24)
]
SLOW = "simulated?latency_ms=600000"
SMALL: dict[str, Any] = {"placement": "packed", "cluster": {"moderators": 1}}
"""The fewest processes that there are."""


@pytest.fixture(autouse=True)
def _quiet(local_ray: None) -> Iterator[None]:
    context = ray.data.DataContext.get_current()
    before = context.enable_progress_bars, context.execution_options.preserve_order
    logger = logging.getLogger("ray.data")
    level = logger.level
    logger.setLevel(logging.ERROR)
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    yield
    context.enable_progress_bars, context.execution_options.preserve_order = before
    logger.setLevel(level)


def actors() -> set[int]:
    """Our actor processes under this one, the idle ones of other kinds aside."""
    return {process.pid for process in processes_titled("ray::StageActor", "ray::ModeratorActor", "ray::MetricsActor")}


def gone_within(seconds: float, before: Collection[int]) -> bool:
    """Whether no actor is left but those that were there before: of a stage that a test before has not closed."""
    return wait_until(lambda: not actors() - set(before), seconds)


def verdicts(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["case_id"]: row for row in read_table(folder, "verdicts").to_pylist()}


def test_verdicts_are_those_of_a_run_over_the_same_cases_and_nothing_is_left(tmp_path: Path) -> None:
    before = actors()
    whole = verdicts(moot.run(task=CASES, seed=3, engine="inline", out=tmp_path / "whole").path)
    ds = ray.data.from_items([{**case, "n": i} for i, case in enumerate(CASES)], override_num_blocks=4)
    with moot.DebateStage(protocol="selene", model="simulated", seed=3, out=tmp_path / "run", id_column="id") as stage:
        rows = ds.map_batches(stage, batch_size=5).take_all()
        small = ds.repartition(len(CASES))
        mapped = moot.debate_dataset(small, stage, batch_size=8).materialize()
        again = mapped.take_all()
        assert actors() - before
    assert mapped.num_blocks() == 3  # small blocks travel together
    assert gone_within(30, before), actors()
    assert [row["n"] for row in rows] == list(range(len(CASES)))
    assert [row["case_id"] for row in rows] == [case["id"] for case in CASES]
    for row in rows:
        for name in ("answer", "how", "confidence", "rounds", "calls", "prompt_tokens", "completion_tokens"):
            assert row[name] == whole[row["case_id"]][name], name
        assert row["distribution"] == whole[row["case_id"]]["distribution"]
        assert (row["cost_usd"], row["error"], row["failure"]) == (0.0, None, None)
    assert {row["reused"] for row in rows} == {False}
    assert {row["reused"] for row in again} == {True}
    told = [name for name in rows[0] if name not in ("labels", "reused")]
    assert [[row[name] for name in told] for row in again] == [[row[name] for name in told] for row in rows]
    assert len(verdicts(tmp_path / "run")) == len(CASES)
    with pytest.raises(Exception, match="the stage is closed"):
        ds.map_batches(stage, batch_size=5).take(1)


def test_a_row_that_fails_is_a_row_with_its_error_and_types_stay(tmp_path: Path) -> None:
    rows = [{"query": "is water wet", "k": "a"}, {"query": None, "k": "b"}, {"query": " ", "k": "a"}]
    columns: dict[str, Any] = {"columns": {"question": "query"}, "id_column": "k", "prefix": "moot_"}
    with moot.DebateStage(**SMALL, **columns, labels=("Yes", "No"), out=tmp_path / "run") as stage:
        good = stage(pa.Table.from_pylist(rows[:1]))
        failed = stage({"query": [None, " "], "k": ["b", "a"]})
        clash = stage({"query": ["is water dry"], "k": ["a"]})
        moot.debate_dataset(ray.data.from_items(rows), stage, batch_size=1).write_parquet(str(tmp_path / "out"))
        with pytest.raises(ConfigError, match="`moot_answer`"):
            stage(good)
    assert good.schema.field("moot_rounds").type == failed.schema.field("moot_rounds").type
    assert [row["moot_failure"] for row in failed.to_pylist()] == ["invalid_case", "invalid_case"]
    assert "`question`" in failed.to_pylist()[0]["moot_error"]
    assert failed.column("moot_answer").null_count == 2
    assert "case 'a'" in clash.to_pylist()[0]["moot_error"]
    written = {row["query"]: row for row in pq.read_table(tmp_path / "out").to_pylist()}
    assert written["is water wet"]["moot_answer"] in ("Yes", "No")
    assert written["is water wet"]["moot_reused"]
    assert written[None]["moot_answer"] is None
    assert len(verdicts(tmp_path / "run")) == 1


def test_columns_are_refused_before_anything_is_paid_for(tmp_path: Path) -> None:
    ds = ray.data.from_arrow(pa.table({"question": ["a"], "answer": ["b"]}))
    with pytest.raises(ConfigError, match=r"`answer`.*prefix"):
        moot.debate_dataset(ds, out=tmp_path / "run")
    with pytest.raises(ConfigError, match="`question`"):
        moot.debate_dataset(ray.data.from_arrow(pa.table({"prompt": ["a"]})), out=tmp_path / "run")
    with pytest.raises(ConfigError, match="options"):
        moot.debate_dataset(ds, moot.DebateStage(out=tmp_path / "run"), seed=3)
    with moot.DebateStage(out=tmp_path / "run") as stage, pytest.raises(Exception, match="`answer`"):
        ds.map_batches(stage).take_all()
    assert not (tmp_path / "run").exists()


def test_cancelled_and_unfinished_rows_of_a_closed_stage_have_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the batches that wait for a place it opens none when it is closed."""
    monkeypatch.setattr("moot.deploy.runs.ray_data.stage_engine.MAX_BATCHES", 2)
    before = actors()
    options: dict[str, Any] = {"protocol": "single-agent", "labels": ("Yes", "No"), **SMALL}
    with moot.DebateStage(out=tmp_path / "run", model=SLOW, **options) as stage:
        caller: Any = stage.__reduce__()[1][0]
        actor = ray.get_actor(caller.actor)

        def wait_for(count: int) -> None:
            wait_until(lambda: ray.get(actor.pending.remote()) == count)

        rows = [{"question": f"is {i} even"} for i in range(4)]
        call = ray.remote(num_cpus=0)(lambda batch: caller(batch)).remote(pa.Table.from_pylist(rows))
        wait_for(len(rows))
        ray.cancel(call)
        with pytest.raises((RayTaskError, ray.exceptions.TaskCancelledError)):
            ray.get(call)
        wait_for(0)

        batches = [[{"question": f"is {n} odd", "labels": ["Yes", "No"]}] for n in range(5)]
        calls = [actor.debate.remote(("run", "task", n), msgspec.msgpack.encode(b)) for n, b in enumerate(batches)]
        wait_for(2)
        ray.get(actor.close.remote(0.0), timeout=60)
        put_aside = refused = 0
        for call in calls:
            try:
                (row,) = msgspec.msgpack.decode(ray.get(call, timeout=60))
                put_aside += row["failure"] == "not_held"
            except ConfigError as error:
                refused += "the stage was closed" in str(error)
        assert (put_aside, refused) == (2, 3)
    said = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())
    assert said["sessions"][-1]["status"] == "interrupted"
    assert gone_within(30, before), actors()


def test_claims_are_checked_and_replies_are_judged(tmp_path: Path) -> None:
    claims = [{"claim": "Water is wet.", "passage": "Water wets."}, {"claim": "Fish fly.", "passage": "Fish swim."}]
    with moot.DebateStage(protocol="ceda", **SMALL, out=tmp_path / "claims", seed=1) as stage:
        checked = stage(pa.Table.from_pylist(claims)).to_pylist()
    assert {row["answer"] for row in checked} <= {"supported", "hallucinated"}
    assert [row["error"] for row in checked] == [None, None]
    replies: list[dict[str, Any]] = [
        {"id": "a", "reply": "It rained.", "prompt": "why wet?", "evidence": "Rain."},
        {"id": "b", "reply": None, "prompt": "why dry?", "evidence": ""},
    ]
    judges = ["simulated", "simulated?judge_noise=0.5"]
    with moot.JudgeStage(judges=judges, passes=2, id_column="id", **SMALL, out=tmp_path / "j") as judging:
        judged = judging(pa.Table.from_pylist(replies)).to_pylist()
    found = moot.judge(replies[:1], rubric="reasoning", judges=judges, passes=2, engine="inline").verdicts[0]
    assert judged[0]["quality"] == found.quality
    assert (judged[0]["marks"], judged[0]["missing"]) == (found.marks, 0)
    for name, mean in found.means.items():
        assert judged[0][f"score_{name}"] == mean
        assert judged[0][f"spread_{name}"] >= 0
    assert judged[1]["failure"] == "invalid_case"
    assert judged[1]["quality"] is None
