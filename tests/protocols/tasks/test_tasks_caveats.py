"""Warnings about a file that can be read, but may not be meant so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from task_files import summary

from moot.protocols.case import Image
from moot.protocols.tasks import Task

Remarks = Callable[..., tuple[str, ...]]


def picture(file: Path | bytes) -> Image:
    return Image("image/png", str(file).encode())


@pytest.fixture
def remarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Remarks:
    monkeypatch.chdir(tmp_path)

    def _remarks(*rows: str, header: str = "question,answer", spec: str = "cases:f.csv") -> tuple[str, ...]:
        Path("f.csv").write_text("\n".join((header, *rows)) + "\n")
        return summary(spec, picture).remarks

    return _remarks


NUMBERS = [f"q{n},{n}" for n in range(20)]
YES = [f"q{n},{'yes' if n % 2 else 'no'}" for n in range(20)]
TEXTS = [f"q{n},a{n}" for n in range(20)]


@pytest.mark.parametrize("rows", [NUMBERS, YES, TEXTS, YES[:1]])
def test_a_regular_file_has_no_caveats(remarks: Remarks, rows: list[str]) -> None:
    distinct = [f"{place} {row}" for place, row in enumerate(rows)]
    assert remarks(*distinct) == ()


@pytest.mark.parametrize("rows", [NUMBERS, YES, TEXTS])
def test_a_few_gold_answers_of_another_kind_are_named(remarks: Remarks, rows: list[str]) -> None:
    (said,) = remarks("x,tbd", *rows, "y,unknown")
    for part in ("2 of 22", "2 'tbd'", "23 'unknown'"):
        assert part in said
    copies = [f"{copy} {row}" for copy in range(4) for row in rows]
    (said,) = remarks(*copies, *(f"x{n},missing" for n in range(9)), header="question,gold")
    assert "9 of 89" in said
    assert "and 4 more" in said


@pytest.mark.parametrize(
    ("header", "rows", "spec", "parts"),
    [
        (
            "question,answer",
            [*NUMBERS, *(f"x{row}" for row in TEXTS)],
            "",
            ("20 of 40", "compared by value", "22 'a0'"),
        ),
        ("question,answer", ["a,5 kg", "b,5"], "", ("1 of 2", "2 '5 kg'")),
        ("question,answer", ["a,1", "b,0"], ":labels=Yes/No", ("0 is read as Yes and 1 as No",)),
        ("question,A,B,answer", ["a,True,False,1", "b,True,False,0"], "", ("0 is read as True",)),
        ("question,A,B,answer", [f"{n},x{n},y,{n % 2 - 1}" for n in range(4)], "", ("2 gold answers are -1",)),
        ("question,A,B,answer", [f"{n},x{n},y,1" for n in range(6)], "", ("no gold answer is 0", "count from 0")),
        ("question,A,B,answer", ["a,x,y,B) y", "b,x,y,A"], "", ("1 gold answers say more", "2 'B) y'")),
    ],
)
def test_golds_that_may_mean_something_else_are_named(
    remarks: Remarks, header: str, rows: list[str], spec: str, parts: tuple[str, ...]
) -> None:
    said = remarks(*rows, header=header, spec=f"cases:f.csv{spec}")
    assert all(part in said[0] for part in parts), said


@pytest.mark.parametrize(
    ("header", "rows", "spec"),
    [
        ("question,answer", ["a,1", "b,0"], ":labels=No/Yes"),
        ("question,A,B,answer", ["a,True,False,A", "b,True,False,B"], ""),
        ("question,A,B,answer", [f"{n},x{n},y,{n % 2}" for n in range(9)], ""),
        ("question,A1,B2,answer", [f"{n},x{n},y,1" for n in range(9)], ":choices=A1+B2"),
    ],
)
def test_golds_that_mean_one_thing_are_not(remarks: Remarks, header: str, rows: list[str], spec: str) -> None:
    assert remarks(*rows, header=header, spec=f"cases:f.csv{spec}") == ()


def test_a_file_without_a_gold_column_says_so_once(remarks: Remarks) -> None:
    (said,) = remarks("q,1,x", header="question,verdict,note")
    for part in ("no gold column", "cases:f.csv:gold=COLUMN", "question, verdict, note"):
        assert part in said
    assert remarks("q,1,x", header="question,verdict,note", spec="cases:f.csv:gold=verdict") == ()
    assert remarks("q,1", spec="cases:f.csv:gold=") == ()


def test_rows_that_contradict_each_other_are_named(remarks: Remarks) -> None:
    header = "question,passage,answer"
    *_, said = remarks("q,p,one", "q,other,two", "q,p,three", "r,p,one", "q,p,", "q,p,four", header=header)
    assert "2 and 4 and 7" in said
    assert len(remarks("q,p,one", "q,p,One.", "q,p,one", header=header)) == 1, "repeated, in agreement"
    accepted = "q,p,\"['one', 'two']\""
    assert len(remarks("q,p,two", accepted, header=header)) == 1


def test_cases_in_memory_are_looked_at_too() -> None:
    rows = [{"question": "q", "labels": ["Yes", "No"], "gold": gold} for gold in ("Yes", "No")]
    assert "1 and 2" in summary(Task.from_cases(rows)).remarks[-1]


def test_equal_cases_are_counted(remarks: Remarks) -> None:
    header = "question,passage,answer,group,images"
    a, b, c = (f"{name},p,yes,{{}},{{}}" for name in "abc")
    twice = [a.format("", ""), b.format("", ""), a.format("", ""), c.format("", ""), a.format("", "")]
    (said,) = remarks(*twice, *twice, header=header)
    for part in ("3 questions occur", "10 cases", "rows 4, 6, 7, 8, 9, and 2 more"):
        assert part in said
    (said,) = remarks(a.format("x", ""), a.format("x", ""), a.format("y", ""), header=header)
    assert "2 cases" in said, "those that the file puts into one group are no news"


@pytest.mark.parametrize(
    "rows",
    [
        ("a,p,yes,x,", "a,p,yes,x,"),
        ("a,p,yes,,one.png", "a,p,yes,,two.png"),
        ("a,p,yes,,", "a,q,yes,,"),
        ("a,p,yes,,", "A,p,yes,,"),
    ],
    ids=["one group", "pictures", "passages", "questions"],
)
def test_cases_that_differ_are_not_equal(remarks: Remarks, rows: tuple[str, str]) -> None:
    for name in ("one.png", "two.png"):
        Path(name).write_bytes(name.encode())
    assert remarks(*rows, header="question,passage,answer,group,images") == ()
