"""Rows of a pipeline as cases: columns, values, ids and what is refused, without Ray."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

import moot
from moot.deploy.runs.ray_data.column_mapping import ColumnMapping, plain
from moot.deploy.runs.ray_data.row_ids import MAX_EXECUTIONS, RowIds
from moot.deploy.runs.ray_data.row_kinds import DebateRows, JudgmentRows
from moot.deploy.runs.ray_data.stage_client import as_table, cells, with_columns
from moot.protocols.errors import ConfigError, TaskFileError, UserError
from moot.protocols.long_texts import MOST_CHARACTERS

# Ray Data warns of settings of its own when its context is made.
pytestmark = pytest.mark.filterwarnings("ignore:::ray.data.context")

KNOWN = ("id", "question", "passage", "labels", "images", "choices")


def fields(**given: Any) -> ColumnMapping:
    return ColumnMapping(**{"known": KNOWN, "by_name": KNOWN[1:], "needed": ("question",), **given})


ARROW = pa.table({"question": ["a", None], "labels": [["Yes", "No"], None], "n": [1.5, float("nan")]})
PANDAS = pd.DataFrame({"question": ["a", None], "labels": [["Yes", "No"], None], "n": [1.5, float("nan")]})
NUMPY = {
    "question": np.array(["a", None], object),
    "labels": np.array([["Yes", "No"], None], object),
    "n": np.array([1.5, np.nan]),
}


@pytest.mark.parametrize("batch", [ARROW, PANDAS, NUMPY], ids=["pyarrow", "pandas", "numpy"])
def test_every_format_of_a_batch_gives_the_same_rows_and_keeps_its_columns(batch: Any) -> None:
    table = as_table(batch)
    columns = fields(constant={"passage": "p"}).found(table.column_names, ())
    assert columns == {"question": "question", "labels": "labels"}
    rows = [fields(constant={"passage": "p"}).row(row) for row in cells(table, columns)]
    assert rows == [{"question": "a", "labels": ["Yes", "No"], "passage": "p"}, {"passage": "p"}]
    schema = pa.schema([("answer", pa.string()), ("rounds", pa.int64())])
    out = with_columns(table, [{"answer": "Yes", "rounds": 2}, {}], schema, "x_")
    assert out.column_names == ["question", "labels", "n", "x_answer", "x_rounds"]
    assert out.select(["x_answer", "x_rounds"]).to_pylist() == [
        {"x_answer": "Yes", "x_rounds": 2},
        {"x_answer": None, "x_rounds": None},
    ]
    empty = with_columns(table, [{}, {}], schema, "x_")
    assert empty.schema.field("x_rounds").type == out.schema.field("x_rounds").type == pa.int64()


def test_cells_become_plain_data() -> None:
    assert plain(np.array([[1, 2]])) == [[1, 2]]
    assert plain(pd.NaT) is plain(pd.NA) is plain(np.float64("nan")) is None
    assert plain(pd.Timestamp("2026-01-02")) == "2026-01-02 00:00:00"
    assert plain(memoryview(b"png")) == b"png"
    assert fields().row({"question": "q", "images": b"png", "labels": "Yes"})["images"] == [b"png"]


def test_columns_are_named_left_alone_and_looked_for() -> None:
    names = ["prompt", "labels", "key"]
    found = fields(columns={"question": "prompt", "labels": None}, id_column="key").found(names, ())
    assert found == {"question": "prompt", "id": "key"}
    assert fields(id_column="key").row({"id": None, "question": None}) == {"id": None}
    with pytest.raises(ConfigError, match=r"`question`.*'prompt', 'labels', 'key'"):
        fields().found(names, ())
    with pytest.raises(ConfigError, match=r"promt.*prompt"):
        fields(columns={"question": "promt"}).found(names, ())
    with pytest.raises(ConfigError, match=r"`key`.*prefix"):
        fields(columns={"question": "prompt"}).found(names, ["key", "answer"])
    with pytest.raises(ConfigError, match=r"pasage.*passage"):
        fields(columns={"pasage": "x"}).check()
    with pytest.raises(ConfigError, match="given twice"):
        fields(columns={"labels": "x"}, constant={"labels": ["a", "b"]}).check()


def test_copies_are_numbered_over_batches_and_a_batch_that_comes_again_keeps_its_numbers() -> None:
    numbering = RowIds()
    batches = {("run", "task1", 0): ["a", "a", "b"], ("run", "task2", 0): ["b", "a"], ("run", "task2", 1): ["b", "a"]}
    first = {key: numbering.assign(key, hashes) for key, hashes in batches.items()}
    ids = [each for found in first.values() for each in found]
    assert sorted(ids) == ["a", "a~1", "a~2", "a~3", "b", "b~1", "b~2"]
    assert {key: numbering.assign(key, hashes) for key, hashes in reversed(batches.items())} == first
    other = RowIds()  # another order, another grouping: the same ids
    hashes = [each for found in batches.values() for each in found]
    assert sorted([*other.assign(("x", "t", 0), hashes[4:]), *other.assign(("x", "u", 0), hashes[:4])]) == sorted(ids)
    assert numbering.assign(("again", "task1", 0), ["a"]) == ["a"]


def test_finished_executions_are_dropped_and_a_running_one_is_kept() -> None:
    numbering = RowIds()
    for n in range(5 * MAX_EXECUTIONS):
        assert numbering.assign((f"short {n}", "task", 0), ["a", "a"]) == ["a", "a~1"]
        assert numbering.assign(("long", f"task{n}", 0), ["a"]) == [f"a~{n}" if n else "a"]
    assert len(numbering._executions) == MAX_EXECUTIONS
    assert numbering.assign(("long", "task7", 0), ["a"]) == ["a~7"]


def test_what_is_no_case_is_refused() -> None:
    with pytest.raises(TaskFileError, match="question"):
        DebateRows().case({"passage": "p"})
    with pytest.raises(TaskFileError, match="`id`"):
        DebateRows().case({"id": None, "question": "q"})
    with pytest.raises(UserError, match="reply"):
        JudgmentRows(("depth",)).case({"prompt": "p"})
    assert DebateRows().case({"id": 7, "question": "q"}).case.id == "7"
    case = JudgmentRows(("depth",)).case({"reply": "r", "prompt": "p", "evidence": "e"}).case
    assert case.judged is not None
    assert (case.judged.reply, case.question, case.passage) == ("r", "p", "e")


def test_a_stage_is_checked_when_it_is_made(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for options, said in (
        ({"protocol": "selen"}, "selen"),
        ({"task": "sample"}, "`task` is not for a stage"),
        ({"engine": "inline"}, "`engine` is not for a stage"),
        ({"max_minutes": 1.0}, "`max_minutes` is not for a stage"),
        ({"columns": {"query": "x"}}, "unknown field 'query'"),
        ({"set": {"nothing": 1}}, "nothing"),
    ):
        with pytest.raises(ConfigError, match=said):
            moot.DebateStage(**options)
    with pytest.raises(ConfigError, match="JudgeStage"):
        moot.JudgeStage(protocol="selene")
    with pytest.raises(ConfigError, match="rubric"):
        moot.JudgeStage(rubric="no such rubric")
    stage = moot.JudgeStage(rubric="reasoning", prefix="j_")
    assert stage.path == tmp_path / "runs" / "judge-rows-reasoning-s0"
    assert stage.schema.names[:3] == ["j_case_id", "j_score_instruction_following", "j_spread_instruction_following"]
    assert not stage.path.exists()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "moot.deploy.runs.ray_data.stage_client", raising=False)
    monkeypatch.delattr("moot.deploy.runs.ray_data.stage_client", raising=False)
    monkeypatch.setitem(__import__("sys").modules, "ray.data.block", None)
    with pytest.raises(ConfigError, match=r"moot\[data\]"):
        moot.DebateStage()


@pytest.mark.parametrize(("kind", "field"), [(DebateRows(), "question"), (JudgmentRows(("a",)), "reply")])
def test_a_row_whose_texts_are_too_long_is_no_case(kind: DebateRows | JudgmentRows, field: str) -> None:
    assert kind.case({"id": "a", field: "x" * (MOST_CHARACTERS - 1)}).case.id == "a"
    with pytest.raises(TaskFileError, match=f"{MOST_CHARACTERS:,}"):
        kind.case({"id": "a", field: "x" * MOST_CHARACTERS})
