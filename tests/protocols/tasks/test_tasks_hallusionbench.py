"""HallusionBench from its folder: claims, tags, and pictures that are there, missing or nowhere to be."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from task_files import DATA, Write, cases, fails, summary

from moot.protocols.case import Image
from moot.protocols.claims import is_claim
from moot.protocols.errors import ConfigError, TaskFileError
from moot.protocols.tasks import open_task

REAL = DATA / "hallusionbench"
FILE = "HallusionBench.json"
ROW: dict[str, Any] = {
    "category": "VD",
    "subcategory": "video",
    "visual_input": "1",
    "set_id": "3",
    "figure_id": "2",
    "question_id": "0",
    "question": "Is the cat asleep?",
    "gt_answer": "1",
    "filename": "./VD/video/3_2.png",
}
WITHOUT = {**ROW, "category": "VS", "visual_input": "0", "figure_id": "0", "gt_answer": "0", "filename": None}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(*rows: object, below: str = "", pictures: tuple[str, ...] = ()) -> str:
        (tmp_path / FILE).write_text(json.dumps(rows))
        for name in pictures:
            file = tmp_path / below / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(name.encode())
        return f"hallusionbench:{tmp_path}"

    return _write


def load(file: Path | bytes) -> Image:
    assert isinstance(file, Path)
    return Image("image/png", file.read_bytes())


@pytest.mark.parametrize("below", ["", "hallusion_bench"])
def test_a_question_is_the_claim_that_the_answer_is_yes(write: Write, below: str) -> None:
    spec = write(ROW, WITHOUT, below=below, pictures=("VD/video/3_2.png",))
    one, two = cases(spec, load)
    assert is_claim(one.case)
    assert (one.case.question, one.gold) == ("Question: Is the cat asleep?\nAnswer: Yes", "supported")
    assert one.case.images == (Image("image/png", b"VD/video/3_2.png"),)
    assert (one.reference.group, two.reference.group) == ("VD/video/3", "VS/video/3")
    assert one.reference.tags == {
        "category": "VD",
        "subcategory": "video",
        "set": "3",
        "figure": "2",
        "question": "0",
        "visual_input": "1",
        "figure_questions": "1",
        "easy_questions": "0",
        "hard_questions": "1",
    }
    assert (two.gold, two.case.images, two.reference.tags["visual_input"]) == ("hallucinated", (), "0")


def test_a_missing_picture_says_what_to_do(write: Write) -> None:
    spec = write(WITHOUT, ROW)
    fails(spec, 2, "filename", "'./VD/video/3_2.png'", load=load)
    fails(spec, 2, "filename", "unpack the authors' zip of pictures there, or add :pictures=present", load=load)
    assert [len(item.case.images) for item in cases(spec)] == [0, 0], "no reader, no pictures"


def test_without_pictures_every_question_is_taken_and_none_is_shown(write: Write) -> None:
    spec = f"{write(ROW, WITHOUT)}:pictures=none"
    items = cases(spec, load)
    assert [(item.case.id, item.case.images) for item in items] == [("hallusionbench-0", ()), ("hallusionbench-1", ())]
    found = summary(spec, load)
    assert (found.count, found.pictured) == (2, 0)


def test_the_sizes_of_figure_and_pair_are_those_of_the_whole_file(write: Write) -> None:
    """A set of an original and two edited figures, one question asked of all, one of the original alone."""
    rows = [
        {**WITHOUT, "question_id": "0"},
        {**WITHOUT, "question_id": "1"},
        {**ROW, "category": "VS", "figure_id": "1", "filename": "./gone.png"},
        {**ROW, "category": "VS", "figure_id": "2", "filename": "./a.png"},
        {**ROW, "category": "VS", "figure_id": "2", "set_id": "4", "filename": "./gone.png"},
    ]
    spec = f"{write(*rows, pictures=('a.png',))}:pictures=present"
    sizes = ("figure_questions", "easy_questions", "hard_questions")
    found = [[item.reference.tags[size] for size in sizes] for item in cases(spec, load)]
    assert found == [["2", "1", "2"], ["2", "1", "0"], ["1", "1", "2"]]


@pytest.mark.parametrize("option", ["", ":pictures=present"])
@pytest.mark.parametrize("name", ["../x.png", "/etc/hostname", "a/../../x.png"])
def test_a_picture_outside_the_folder_is_refused(write: Write, name: str, option: str) -> None:
    fails(f"{write(WITHOUT, {**ROW, 'filename': name})}{option}", 2, "filename", "is outside", load=load)


@pytest.mark.parametrize(
    ("change", "field", "expected"),
    [
        ({"gt_answer": "2"}, "gt_answer", "expected '0' or '1', found '2'"),
        ({"filename": None}, "filename", "expected a picture, as `visual_input` is not 0, found null"),
    ],
)
def test_bad_rows_are_named(write: Write, change: dict[str, object], field: str, expected: str) -> None:
    fails(write(WITHOUT, {**ROW, **change}), 2, field, expected, load=load)


@pytest.mark.parametrize(
    ("content", "line", "expected"),
    [
        (b"", 1, "expected one JSON list of objects"),
        (b"[3]", 1, "found 3 in it"),
        (b'["\xff"]', 0, "expected UTF-8 text"),
        (b"[]", 0, "at least one case"),
        (b"[" * 100_000, 0, "expected one JSON list of objects"),
    ],
)
def test_a_file_that_is_no_list_of_objects(tmp_path: Path, content: bytes, line: int, expected: str) -> None:
    (tmp_path / FILE).write_bytes(content)
    fails(f"hallusionbench:{tmp_path}", line, "", expected, load=load)


def test_the_folder_and_the_option_are_checked(tmp_path: Path) -> None:
    with pytest.raises(TaskFileError, match=f"expected a folder with {FILE}"):
        open_task(f"hallusionbench:{tmp_path}")
    with pytest.raises(TaskFileError, match="no such folder"):
        open_task(f"hallusionbench:{tmp_path}/none")
    (tmp_path / FILE).write_text("[]")
    with pytest.raises(ConfigError, match="`pictures`"):
        open_task(f"hallusionbench:{tmp_path}:pictures=all")


@pytest.mark.needs("data/hallusionbench")
def test_the_real_slice() -> None:
    found = summary(f"hallusionbench:{REAL}")
    assert (found.count, found.gold) == (180, {"supported": 78, "hallucinated": 102})
    items = cases(f"hallusionbench:{REAL}")
    assert Counter(item.reference.tags["visual_input"] for item in items) == {"0": 25, "1": 66, "2": 89}
    fails(f"hallusionbench:{REAL}", 5, "filename", "'./VS/chart/3_1.png'", load=load)
    present = summary(f"hallusionbench:{REAL}:pictures=present", load)
    assert (present.count, present.pictured) == (29, 4)
