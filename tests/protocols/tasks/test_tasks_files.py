"""Tasks from files: what is read, and that each bad input names its file, line and field."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from task_files import Write, cases, fails, jsonl, summary

from moot.protocols.errors import ConfigError, TaskFileError
from moot.protocols.tasks import open_task
from moot.protocols.tasks.public_questions import COLUMNS as NEEDED

COLUMNS = (NEEDED[0], "context", *NEEDED[1:])
BOOLQ: dict[str, Any] = {"question": "is it so", "title": "It", "answer": True, "passage": "It is so."}
COSMOS: dict[str, Any] = {
    "id": "c1",
    "context": "A story .",
    "question": "Why ?",
    "answer0": "one",
    "answer1": "two",
    "answer2": "three",
    "answer3": "four",
    "label": 2,
}


def csv_text(*rows: dict[str, Any], columns: tuple[str, ...] = (*COLUMNS, "label")) -> str:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


# --- BoolQ


def test_boolq_reads_as_downloaded(write: Write) -> None:
    path = write(jsonl(BOOLQ, {**BOOLQ, "question": "is\u200b it  not", "answer": False}))
    first, second = cases(f"boolq:{path}")
    assert (first.case.id, first.index, first.gold) == ("boolq-0", 0, "Yes")
    assert (second.case.id, second.index, second.gold) == ("boolq-1", 1, "No")
    assert second.case.question == "is\u200b it  not"
    assert (first.case.title, first.case.passage) == ("It", "It is so.")
    assert (first.case.labels, first.case.choices) == (("Yes", "No"), ())
    found = summary(f"boolq:{path}")
    assert (found.name, found.count, found.gold, found.unlabelled) == ("boolq", 2, {"Yes": 1, "No": 1}, 0)


def test_a_passage_may_be_missing_or_empty(write: Write) -> None:
    row = {key: value for key, value in BOOLQ.items() if key != "passage"}
    assert [item.case.passage for item in cases(f"boolq:{write(jsonl(row, {**row, 'passage': ''}))}")] == ["", ""]
    path = write(csv_text(COSMOS, columns=(*NEEDED, "label")), "c.csv")
    (found,) = cases(f"cosmosqa:{path}")
    assert (found.case.passage, found.gold) == ("", "C")


@pytest.mark.parametrize(
    "line",
    ["{broken", "[1]", '"text"', "null", "[" * 100_000, "1" * 10_000, '{"question": "a"} {"question": "b"}'],
)
def test_not_one_object_per_line(write: Write, line: str) -> None:
    path = write(jsonl(BOOLQ) + line + "\n")
    fails(f"boolq:{path}", 2, "", "expected one JSON object per line")


def test_line_separators_inside_text_are_text(write: Write) -> None:
    passage = "one\u0085two\u2028three\x0cfour\rfive\x00six"
    path = write(json.dumps({**BOOLQ, "passage": passage}, ensure_ascii=False) + "\r\n" + jsonl(BOOLQ))
    assert [item.case.passage for item in cases(f"boolq:{path}")] == [passage, "It is so."]


def test_a_passage_of_a_megabyte_in_the_file_and_a_mark_at_the_start(write: Write) -> None:
    passage = "x\u0001" * 190_000  # JSON writes six characters for the second one
    path = write(b"\xef\xbb\xbf" + jsonl({**BOOLQ, "passage": passage}).encode())
    assert cases(f"boolq:{path}")[0].case.passage == passage


@pytest.mark.parametrize("bad", [b"\xff", b"caf\xe9", b"\xed\xa0\x80"])
def test_not_utf8_names_the_line(write: Write, bad: bytes) -> None:
    path = write(jsonl(BOOLQ).encode() + b'{"question": "' + bad + b'"}\n')
    fails(f"boolq:{path}", 2, "", "expected UTF-8")


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_empty_file(write: Write, content: str) -> None:
    path = write(content)
    fails(f"boolq:{path}", 0, "", "at least one case")
    path = write(csv_text(), "empty.csv")
    fails(f"cosmosqa:{path}", 0, "", "at least one case")


def test_a_line_without_end_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.protocols.tasks.source.MAX_LINE", 200)
    path = write(jsonl(BOOLQ) + "x" * 300)
    fails(f"boolq:{path}", 2, "", "expected lines of at most")


# --- CosmosQA


@pytest.mark.parametrize(
    ("name", "layout"),
    [("c.csv", csv_text), ("c.CSV", csv_text), ("c", csv_text), ("c.jsonl", jsonl), ("c.data", jsonl)],
)
def test_cosmosqa_both_layouts(write: Write, name: str, layout: Callable[..., str]) -> None:
    rows = ({**COSMOS, "context": 'two\nlines, "quoted"'}, {**COSMOS, "id": "c2", "label": "0"})
    path = write(layout(*rows), name)
    first, second = cases(f"cosmosqa:{path}")
    assert (first.case.id, first.gold, second.case.id, second.gold) == ("c1", "C", "c2", "A")
    assert first.case.labels == ("A", "B", "C", "D")
    assert first.case.choices == ("one", "two", "three", "four")
    assert (first.case.passage, first.case.question) == ('two\nlines, "quoted"', "Why ?")
    assert summary(f"cosmosqa:{path}").gold == {"A": 1, "B": 0, "C": 1, "D": 0}


def test_same_content_same_digest(write: Write) -> None:
    as_csv, as_jsonl = write(csv_text(COSMOS), "c.csv"), write(jsonl(COSMOS), "c.jsonl")
    assert summary(f"cosmosqa:{as_csv}").digest == summary(f"cosmosqa:{as_jsonl}").digest
    other = write(jsonl({**COSMOS, "label": 1}), "d.jsonl")
    assert summary(f"cosmosqa:{other}").digest != summary(f"cosmosqa:{as_csv}").digest


def test_cosmosqa_test_set_has_no_labels(write: Write) -> None:
    bare = {key: value for key, value in COSMOS.items() if key != "label"}
    for path in (
        write(csv_text(bare, columns=COLUMNS), "bare.csv"),
        write(csv_text({**bare, "label": ""}), "empty.csv"),
        write(jsonl(bare), "bare.jsonl"),
    ):
        assert [item.gold for item in cases(f"cosmosqa:{path}")] == [None]
        assert summary(f"cosmosqa:{path}").unlabelled == 1


def test_csv_lines_count_line_breaks_inside_cells(write: Write) -> None:
    rows = ({**COSMOS, "context": "a\r\nb\nc"}, {**COSMOS, "id": "c2", "label": 9})
    path = write(csv_text(*rows), "c.csv")
    fails(f"cosmosqa:{path}", 5, "label", "found '9'")


@pytest.mark.parametrize("column", NEEDED)
def test_csv_header_lacks_a_column(write: Write, column: str) -> None:
    path = write(csv_text(COSMOS).replace(column, "other", 1), "c.csv")
    fails(f"cosmosqa:{path}", 1, column, "is missing; expected the columns id, question")


def test_csv_header_repeats_a_column(write: Write) -> None:
    path = write(csv_text(COSMOS, columns=(*COLUMNS, "label", "id")), "c.csv")
    fails(f"cosmosqa:{path}", 1, "id", "is there twice")


@pytest.mark.parametrize(
    ("tail", "line", "expected"),
    [
        ("c2,a,b\r\n", 3, "expected 8 cells as in the header, found 3"),
        ("c2,a,b,c,d,e,f,1,9\r\n", 3, "found 9"),
        ('c2,"never closed\r\n', 3, "expected a CSV record"),
        ('c2,"x"y,b,c,d,e,f,1\r\n', 3, "expected a CSV record"),
    ],
)
def test_csv_broken_record(write: Write, tail: str, line: int, expected: str) -> None:
    path = write(csv_text(COSMOS) + tail, "c.csv")
    fails(f"cosmosqa:{path}", line, "", expected)


def test_csv_long_cells_nul_and_mark(write: Write) -> None:
    context = "word \x00" * 60_000
    path = write("\ufeff" + csv_text({**COSMOS, "context": context}) + "\r\n", "c.csv")
    assert [item.case.passage for item in cases(f"cosmosqa:{path}")] == [context]


# --- the path and the spec


def test_no_such_file(tmp_path: Path) -> None:
    file = str(tmp_path / "absent.jsonl")
    fails(f"boolq:{file}", 0, "", "no such file")
    fails(f"boolq:{tmp_path}", 0, "", "found a folder")
    fails("boolq:a\0b", 0, "", "cannot be read")


def test_spec_is_split_at_the_first_colon(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(jsonl(BOOLQ), "a:b.jsonl")
    monkeypatch.chdir(tmp_path)
    task = open_task("boolq:a:b.jsonl")
    assert (task.spec, task.name, task.path) == ("boolq:a:b.jsonl", "boolq", "a:b.jsonl")
    assert task.replayable
    monkeypatch.chdir("/")
    assert task.validate() is not None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bolq:x", "unknown task 'bolq': did you mean 'boolq'"),
        ("", "unknown task ''"),
        ("cases.jsonl", "no such file or folder, and no task's name"),
        ("boolq", "write `boolq:PATH`"),
        ("sample:x", "takes no path"),
    ],
)
def test_bad_spec(spec: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_task(spec)


# --- sources that cannot be read twice


def piped(path: Path, content: bytes) -> threading.Thread:
    os.mkfifo(path)
    thread = threading.Thread(target=path.write_bytes, args=(content,), daemon=True)
    thread.start()
    return thread


def test_a_pipe_gives_bad_rows_as_invalid_cases(tmp_path: Path) -> None:
    good = {**BOOLQ, "id": "a"}
    content = jsonl(good, {**good, "answer": 3}, good, {**BOOLQ, "id": "boolq-4"}).encode()
    content += b"{broken\n\xff\n" + jsonl(BOOLQ).encode()
    fifo = tmp_path / "pipe"
    thread = piped(fifo, content)
    task = open_task(f"boolq:{fifo}")
    assert not task.replayable
    assert task.validate() is None
    found = list(task.cases())
    thread.join()
    ids = ["a", "boolq-1", "a~2", "boolq-4", "boolq-4~4", "boolq-5", "boolq-6"]
    assert [item.case.id for item in found] == ids
    assert [item.index for item in found] == list(range(7))
    assert [bool(item.invalid) for item in found] == [False, True, True, False, True, True, False]
    assert found[1].invalid == f"{fifo}:2: field `answer`: expected true or false, found 3"
    assert "occurs earlier" in found[2].invalid
    assert all(item.case.question == "" and item.gold is None for item in found if item.invalid)
    with pytest.raises(TaskFileError, match="only once"):
        list(task.cases())


def test_a_pipe_of_csv_continues_after_a_bad_record(tmp_path: Path) -> None:
    lines = csv_text(COSMOS).encode() + b'c2,"x"y,b,c,d,e,f,1\r\nc3,\xff,b,c,d,e,f,1\r\nc4,a,b,c,d,e,f,3\r\n'
    fifo = tmp_path / "pipe"
    thread = piped(fifo, lines)
    found = cases(f"cosmosqa:{fifo}")
    thread.join()
    assert [item.case.id for item in found] == ["c1", "cosmosqa-1", "cosmosqa-2", "c4"]
    assert [item.gold for item in found] == ["C", None, None, "D"]


@pytest.mark.parametrize("content", [csv_text(COSMOS), "\n" + jsonl(COSMOS)])
def test_standard_input(content: str) -> None:
    code = (
        "from moot.protocols.tasks import open_task; t = open_task('cosmosqa:-'); "
        "print(t.replayable, t.validate(), [c.gold for c in t.cases()])"
    )
    done = subprocess.run([sys.executable, "-c", code], input=content.encode(), capture_output=True, check=True)
    assert done.stdout.decode().strip() == "False None ['C']"


# --- memory and laziness


def test_validation_keeps_one_row_in_memory(write: Write) -> None:
    path = write(jsonl(*({**BOOLQ, "passage": f"{n} " + "x" * 20_000} for n in range(500))))
    task = open_task(f"boolq:{path}")
    tracemalloc.start()
    try:
        task.validate()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert Path(path).stat().st_size > 10_000_000
    assert peak < 1_500_000
