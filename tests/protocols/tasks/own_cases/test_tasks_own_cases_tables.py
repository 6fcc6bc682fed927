"""`cases:` over Parquet and Arrow: files as pandas, the hub and `datasets.save_to_disk` leave them, and broken ones."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from task_files import cases, refused, summary

from moot.protocols.case import Image, LabelledCase
from moot.protocols.errors import UserError
from moot.protocols.tasks import open_task

ROWS: list[dict[str, Any]] = [
    {"question": f"q{n}", "subject": "s", "choices": ["w", "x", "y", "z"], "answer": n % 4} for n in range(5)
]
ARC: list[dict[str, Any]] = [
    {"id": "a", "question": "q", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"},
    {"id": "b", "question": "r", "choices": {"text": ["x", "y", "z"], "label": ["A", "B", "C"]}, "answerKey": "A"},
]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def parquet(path: str, rows: list[dict[str, Any]], features: dict[str, Any] | None = None) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(with_features(pa.Table.from_pylist(rows), features), path)


def with_features(table: Any, features: dict[str, Any] | None) -> Any:
    if features is None:
        return table
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def saved(folder: str, rows: list[dict[str, Any]], files: int = 1, features: dict[str, Any] | None = None) -> None:
    """A folder as `datasets.save_to_disk` writes it: Arrow streams, and a state that lists them."""
    Path(folder).mkdir(parents=True)
    table, names = with_features(pa.Table.from_pylist(rows), features), []
    for number in range(files):
        names.append(f"data-{number:05}-of-{files:05}.arrow")
        part = table.slice(number * len(rows) // files, len(rows) // files)
        with pa.OSFile(f"{folder}/{names[-1]}", "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(part)
    state = {"_data_files": [{"filename": name} for name in names], "_split": None}
    Path(folder, "state.json").write_text(json.dumps(state))
    Path(folder, "dataset_info.json").write_text("{}")


def read(spec: str) -> list[LabelledCase]:
    summary(spec)
    return cases(spec)


def test_mmlu_in_parquet() -> None:
    parquet("mmlu.parquet", ROWS)
    found = read("mmlu.parquet")
    assert [item.gold for item in found] == ["A", "B", "C", "D", "A"]
    assert (found[1].case.choices, found[1].case.id) == (("w", "x", "y", "z"), "cases-1")


def test_arc_with_nested_choices() -> None:
    parquet("arc.parquet", ARC)
    first, second = read("cases:arc.parquet")
    assert (first.case.id, first.case.labels, first.case.choices, first.gold) == ("a", ("1", "2"), ("x", "y"), "2")
    assert (second.case.labels, second.gold) == (("A", "B", "C"), "A")


def test_class_labels_are_the_labels() -> None:
    features = {"label": {"names": ["entailment", "neutral", "contradiction"], "_type": "ClassLabel"}}
    rows = [{"premise": f"p{n}", "label": n} for n in (0, 2, -1)]
    parquet("nli.parquet", rows, features)
    found = read("cases:nli.parquet:question=premise")
    assert {item.case.labels for item in found} == {("entailment", "neutral", "contradiction")}
    assert [item.gold for item in found] == ["entailment", "contradiction", None]
    parquet("bad.parquet", [{"question": "q", "label": 3}], features)
    assert "bad.parquet:1: field `label`: expected -1 to 2, found 3" in refused("cases:bad.parquet")


def test_categories_and_nulls_of_pandas() -> None:
    table = pa.table(
        {
            "question": ["q", "r"],
            "context": [None, "p"],
            "answer": pa.array(["No", "Yes"]).dictionary_encode(),
            "__index_level_0__": [4, 9],
        }
    )
    pq.write_table(table, "pandas.parquet")
    first, second = read("cases:pandas.parquet")
    assert (first.case.labels, first.gold, first.case.passage, second.case.passage) == (("Yes", "No"), "No", "", "p")


def test_a_folder_that_was_saved_to_disk() -> None:
    saved("mine", ROWS[:4], files=2)
    assert [item.case.question for item in read("mine")] == ["q0", "q1", "q2", "q3"]
    assert "expected no split" in refused("cases:mine:split=test")


def test_a_folder_of_text_files_as_on_the_hub() -> None:
    Path("text").mkdir()
    Path("text/dataset_infos.json").write_text("{}")
    Path("text/test.jsonl").write_text('{"question": "q0"}\n')
    Path("text/train.csv").write_text("question\nq1\n")
    assert "text: has the splits test, train" in refused("text")
    assert [item.case.question for item in read("cases:text:split=test")] == ["q0"]
    assert [item.case.question for item in read("cases:text:split=train")] == ["q1"]
    Path("text/train-00001-of-00002.csv").write_text("question\nq2\n")
    assert "in several text files" in refused("cases:text:split=train")


def test_a_folder_of_splits_that_was_saved_to_disk() -> None:
    for name in ("train", "test"):
        saved(f"both/{name}", [{**ROWS[0], "question": name}])
    Path("both/dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert "both: has the splits test, train: name one, as in cases:both:split=test" in refused("both")
    assert "field `split`: expected one of test, train, found 'dev'" in refused("cases:both:split=dev")
    assert [item.case.question for item in read("both:split=train")] == ["train"]
    assert [item.case.question for item in read("both/test")] == ["test"]


def test_parquet_files_as_on_the_hub() -> None:
    for number in range(2):
        parquet(f"hub/data/test-{number:05}-of-00002.parquet", [ROWS[number]])
    parquet("hub/data/validation-00000-of-00001.parquet", [ROWS[3]])
    Path("hub/README.md").write_text("# A data set")
    assert "hub: has the splits test, validation" in refused("hub")
    assert [item.case.question for item in read("cases:hub:split=test")] == ["q0", "q1"]
    parquet("converted/easy/test/0000.parquet", [ROWS[2]])
    parquet("converted/hard/test/0000.parquet", [ROWS[3]])
    assert "converted: holds several data sets (easy, hard): name the folder of one" in refused("converted")
    assert [item.case.question for item in read("cases:converted/easy:split=test")] == ["q2"]


def test_pictures_within_the_rows() -> None:
    rows: list[dict[str, Any]] = [
        {"question": "q", "image": {"bytes": b"one", "path": "a.png"}},
        {"question": "r", "image": None},
    ]
    parquet("pictured.parquet", rows)
    seen: list[object] = []

    def load(picture: Path | bytes) -> Image:
        seen.append(picture)
        return Image("image/png", b"x")

    assert (summary("cases:pictured.parquet", load).pictured, seen) == (1, [b"one"])


def test_folders_and_files_that_are_none() -> None:
    Path("empty").mkdir()
    assert refused("empty").startswith(
        "empty: expected a file, a folder that `datasets.save_to_disk` wrote, or one with"
    )
    saved("led", ROWS)
    Path("led/state.json").write_text(json.dumps({"_data_files": [{"filename": "../outside.arrow"}]}))
    assert "led/state.json: field `_data_files`: expected a file's name, found '../outside.arrow'" in refused(
        "cases:led"
    )
    Path("led/state.json").write_text("{")
    assert "led/state.json: expected one JSON object" in refused("cases:led")
    Path("torn.parquet").write_bytes(b"PAR1 and no more")
    assert refused("torn.parquet").startswith("torn.parquet: cannot be read as Parquet or Arrow")
    Path("torn.arrow").write_bytes(os.urandom(64))
    assert refused("cases:torn.arrow").startswith("torn.arrow: cannot be read as Parquet or Arrow")


def test_a_parquet_whose_footer_is_broken_is_refused_or_read() -> None:
    parquet("whole.parquet", ARC)
    whole = Path("whole.parquet").read_bytes()
    for place in range(len(whole) - 400, len(whole) - 8, 7):
        Path("torn.parquet").write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        with suppress(UserError):
            open_task("cases:torn.parquet").validate()


def test_wrong_rows_and_columns_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    parquet("a.parquet", [*ROWS, {**ROWS[0], "answer": 4}])
    assert "a.parquet:6: field `answer`: expected one of A, B, C, D" in refused("cases:a.parquet")
    parquet("b.parquet", [{"text": "t", "target": "x"}])
    assert "no task fits the columns text, target: cases needs question" in refused("b.parquet")
    parquet("hub/test-00000-of-00002.parquet", ROWS)
    parquet("hub/test-00001-of-00002.parquet", [{"question": "q"}])
    assert "hub/test-00001-of-00002.parquet: field `choices`: is missing in this file" in refused("hub")
    pq.write_table(pa.table({"question": pa.array([{"a": "b"}], pa.map_(pa.string(), pa.string()))}), "map.parquet")
    assert "map.parquet: field `question`: expected texts, numbers, lists or objects" in refused("cases:map.parquet")
    for module in ("arrow_tables", "arrow_values"):
        monkeypatch.setattr(f"moot.protocols.tasks.own_cases.{module}.MAX_LINE", 1 << 20)
    parquet("large.parquet", [{"question": "q"}, {"question": "x" * (1 << 21)}])
    assert "large.parquet:2: expected at most 1 MiB in a row" in refused("cases:large.parquet")
    monkeypatch.setattr("moot.protocols.tasks.own_cases.arrow_tables._LARGEST_PAGES", 1 << 4)
    assert "a.parquet: expected pages of at most" in refused("cases:a.parquet")


def test_only_the_columns_that_a_case_has_are_read() -> None:
    table = pa.Table.from_pylist(ROWS).append_column(
        "odd", pa.array([[("a", 1)]] * 5, pa.map_(pa.string(), pa.int64()))
    )
    pq.write_table(table, "odd.parquet")
    assert len(read("cases:odd.parquet")) == 5
