"""`cases:FILE`: users' files, and the errors of unreadable ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from task_files import DATA, Write, cases, jsonl, refused, summary

from moot.protocols.case import Image, LabelledCase
from moot.protocols.errors import ConfigError
from moot.protocols.tasks import open_task
from moot.protocols.tasks.registry import absolute_spec


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def _write(content: str | bytes, name: str = "mine.csv") -> str:
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    return _write


def read(spec: str) -> list[LabelledCase]:
    summary(spec)
    return cases(spec)


def unread(picture: Path | bytes) -> Image:
    pytest.fail("loaded")


LETTERED = ("A", "B", "C")
ROWS: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "MMLU": ({"choices": ["x", "y", "z"], "answer": 1}, (LETTERED, ("x", "y", "z"), "B", "label")),
    "ARC": (
        {"choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"},
        (("1", "2"), ("x", "y"), "2", "label"),
    ),
    "ARC's own": (
        {"choices": [{"text": "x", "label": "A"}, {"text": "y", "label": "B"}], "answerKey": "B"},
        (("A", "B"), ("x", "y"), "B", "label"),
    ),
    "MedQA": ({"options": {"A": "x", "B": "y"}, "answer": "y"}, (("A", "B"), ("x", "y"), "B", "label")),
    "the text of a choice": ({"choices": ["x y", "z"], "gold": "X y."}, (("A", "B"), ("x y", "z"), "A", "label")),
    "numbers as choices": ({"choices": [2, 4, 12], "gold": "12"}, (LETTERED, ("2", "4", "12"), "C", "label")),
    "columns": ({"A": "x", "B": "y", "C": "z", "D": "", "answer": "c"}, (LETTERED, ("x", "y", "z"), "C", "label")),
    "named columns": ({"choice_a": "x", "choice_b": "y", "label": "B"}, (("A", "B"), ("x", "y"), "B", "label")),
    "numbered from 1": ({"option1": "x", "option2": "y", "answer": "1"}, (("A", "B"), ("x", "y"), "A", "label")),
    "numbered from 0": ({"answer0": "x", "answer1": "y", "label": 1}, (("A", "B"), ("x", "y"), "B", "label")),
    "labels": ({"labels": ["Yes", "No", "Maybe"], "gold": "maybe"}, (("Yes", "No", "Maybe"), (), "Maybe", "label")),
    "BoolQ": ({"answer": True, "passage": "p"}, (("Yes", "No"), (), "Yes", "label")),
    "yes": ({"answer": "no"}, (("Yes", "No"), (), "No", "label")),
    "SQuAD": ({"answers": {"text": ["a", "b", "a"], "answer_start": [1, 2, 1]}}, (None, (), "a", "short answer")),
    "TriviaQA": ({"answer": {"value": "a", "aliases": ["b"]}}, (None, (), "a", "short answer")),
    "one answer": ({"gold": "Paris"}, (None, (), "Paris", "short answer")),
    "a number": ({"gold": -1}, (None, (), "-1", "number")),
    "thousands": ({"gold": "1,234.5"}, (None, (), "1,234.5", "number")),
    "a share": ({"gold": "5%"}, (None, (), "5%", "number")),
    "an amount": ({"gold": "$12"}, (None, (), "$12", "number")),
    "a decimal comma": ({"gold": "1,5"}, (None, (), "1,5", "number")),
    "a point first": ({"gold": ".5"}, (None, (), ".5", "number")),
    "a minus sign": ({"gold": "\u22125"}, (None, (), "\u22125", "number")),
    "a small float": ({"gold": 0.00001}, (None, (), "1e-05", "number")),
    "a fraction": ({"gold": "1/2"}, (None, (), "1/2", "number")),
    "a power": ({"gold": "1e3"}, (None, (), "1e3", "number")),
    "LaTeX": ({"gold": "\\frac{14}{3}"}, (None, (), "\\frac{14}{3}", "number")),
    "MATH": ({"gold": "Hence $x = \\boxed{\\frac{14}{3}}$."}, (None, (), "\\frac{14}{3}", "number")),
    "a bound": ({"gold": ">5"}, (None, (), ">5", "short answer")),
    "a unit": ({"gold": "5 kg"}, (None, (), "5 kg", "short answer")),
    "a time": ({"gold": "1:30"}, (None, (), "1:30", "short answer")),
    "a name with a number": ({"gold": "Apollo 11"}, (None, (), "Apollo 11", "short answer")),
    "a text before its choice": ({"choices": ["Aa", "aa"], "gold": "aa"}, (("A", "B"), ("Aa", "aa"), "B", "label")),
    "a lettered text": ({"choices": ["x", "y"], "gold": "B) y"}, (("A", "B"), ("x", "y"), "B", "label")),
    "mapped": (
        {"labels": ["True", "False"], "gold": True},
        (("True", "False"), (), "True", "label"),
    ),
    "GSM8K": ({"answer": "2 + 2 = 4\n#### 4"}, (None, (), "4", "number")),
    "hidden": ({"choices": ["x", "y"], "answer": -1}, (("A", "B"), ("x", "y"), None, "label")),
    "no placeholder": ({"choices": ["-1", "1"], "answer": "-1"}, (("A", "B"), ("-1", "1"), "A", "label")),
    "Belebele": (
        {"mc_answer1": "x", "mc_answer2": "y", "correct_answer_num": "2"},
        (("A", "B"), ("x", "y"), "B", "label"),
    ),
    "none": ({}, (None, (), None, "short answer")),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_usual_rows(write: Write, name: str) -> None:
    row, (labels, texts, gold, scoring) = ROWS[name]
    (found,) = read(f"cases:{write(jsonl({'question': 'Which?', **row}), 'mine.jsonl')}")
    assert (found.case.labels, found.case.choices, found.gold) == (labels, texts, gold)
    assert found.reference.scoring == scoring
    assert (found.case.id, found.case.question, found.case.passage) == ("cases-0", "Which?", row.get("passage", ""))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "Question,A,B,Answer\nq,x,y,B\n"),
        ("a.csv", "\ufeffquestion,A,B,answer\r\n\r\nq,x,y,B\r\n,,,\r\n"),
        ("a.csv", "question;A;B;answer\nq;x;y;B\n"),
        ("a.tsv", "question\tA\tB\tanswer\nq\tx\ty\tB\n"),
        ("a.csv", 'question,choices,answer\nq,"[""x"", ""y""]",1\n'),
        ("a.csv", "question,choices,answer\nq,\"['x', 'y']\",1.0\n"),
        ("a.csv", "question,choices,answer\nq,['x' \"y\"],1\n"),
        ("a.csv", "question,choices,answer\nq,x; y,B\n"),
        ("a.json", json.dumps([{"question": "q", "choices": ["x", "y"], "answer": 1}], indent=1)),
        ("a", json.dumps({"question": "q", "choices": ["x", "y"], "answer": 1})),
    ],
)
def test_the_usual_layouts(write: Write, name: str, content: str) -> None:
    (found,) = read(f"cases:{write(content, name)}")
    assert (found.case.question, found.case.labels, found.case.choices, found.gold) == (
        "q",
        ("A", "B"),
        ("x", "y"),
        "B",
    )


def test_every_field(write: Write) -> None:
    row = {"id": 7, "question": "q", "context": "p", "title": "t", "group": 3, "documents": ["d"], "gold": ["a", "b"]}
    (found,) = read(f"cases:{write(jsonl(row), 'mine.jsonl')}")
    case = found.case
    assert (case.id, case.passage, case.title, case.documents) == ("7", "p", "t", ("d",))
    assert (found.gold, found.reference.accepted, found.reference.group) == ("a", ("a", "b"), "3")


def test_a_column_map(write: Write) -> None:
    file = write("ref,ctx,left,right,target,answer\n1,p,x,y,y,z\n")
    spec = f"cases:{file}:id=ref,question=ctx,choices=left+right,gold=target"
    (found,) = read(spec)
    assert (found.case.id, found.case.question, found.case.choices) == ("1", "p", ("x", "y"))
    assert open_task(f"cases:{file}:question=ctx,gold=").validate().unlabelled == 1  # type: ignore[union-attr]
    assert absolute_spec(spec) == spec.replace(file, str(Path(file).absolute()))
    assert "field `wrong`: there is no such column" in refused(spec.replace("right,gold", "wrong,gold"))


@pytest.mark.parametrize(
    ("columns", "golds"),
    [
        (("answer1", "answer2", "answer3"), "ABC"),
        (("mc_answer1", "mc_answer2", "mc_answer3"), "ABC"),
        (("choice_1", "choice_2", "choice_3"), "ABC"),
        (("third3", "second2", "first1"), "CBA"),
        (("answer0", "answer1", "answer2"), "BC"),
        (("one", "two", "three"), "BC"),
        (("one1", "two1", "three1"), "BC"),
    ],
)
def test_a_number_is_the_column_with_that_number_mapped_or_not(
    write: Write, columns: tuple[str, ...], golds: str
) -> None:
    rows = [{"question": "q", **dict.fromkeys(columns, "x"), "n": str(n + 1)} for n in range(len(golds))]
    file = write(jsonl(*({**row, columns[0]: "y"} for row in rows)), "mine.jsonl")
    mapped = read(f"cases:{file}:choices={'+'.join(columns)},gold=n")
    assert [item.gold for item in mapped] == list(golds)
    if columns[0].startswith(("answer", "choice", "mc_answer")):
        assert [item.gold for item in read(f"cases:{file}:gold=n")] == list(golds)


def test_a_map_reaches_into_objects_and_gives_fixed_labels(write: Write) -> None:
    file = write(
        jsonl({"q": {"stem": "why"}, "decision": "maybe"}, {"q": {"stem": "how"}, "decision": "no"}), "m.jsonl"
    )
    first, second = read(f"cases:{file}:question=q.stem,gold=decision,labels=yes/no/maybe")
    assert (first.case.question, first.case.labels, first.gold) == ("why", ("yes", "no", "maybe"), "maybe")
    assert second.gold == "no"


@pytest.mark.parametrize(
    ("content", "spec", "said"),
    [
        ("", "", "mine.csv: expected at least one case, found none"),
        ("question,answer\n", "", "mine.csv: expected at least one case, found none"),
        ("text;gold\na;b\n", "", "mine.csv: field `question`: expected one of the columns question, prompt"),
        ("text,gold\na,b\n", ":question=txt", "field `txt`: there is no such column: did you mean 'text'?"),
        (
            "question,gold\na,b\n",
            ":gold=target",
            "field `target`: there is no such column: the file has question, gold",
        ),
        ("question,gold\na,b\n", ":quest=gold", "unknown field of task 'cases' 'quest': did you mean 'question'?"),
        ("question,gold\na,b\n", ":question=", "`question=` names no column"),
        ("question,gold\na,b\n", ":question=gold,x", "expected FIELD=COLUMN between the commas, found 'x'"),
        ("question,gold\na,b\n", ":split=test", "field `split`: expected a folder with several, found a file"),
        ("question,answer,label\na,b,c\n", "", "field `answer`: both it and `label` could be the gold"),
        ("question,question\na,b\n", "", "field `question`: is there twice"),
        ("question,answer1,answer2\na,b,c\n", "", "field `answer1`: may be a choice or a right answer"),
        ("id,question\n1,a\n1,b\n", "", "mine.csv:3: field `id`: expected a unique id, '1' occurs earlier"),
        ("question,A,B,gold\na,x,y,A\nb,x,y,C\n", "", "mine.csv:3: field `gold`: expected one of A, B, the text of a"),
        ("question,A,B,gold\na,x,y,1\nb,x,y,2\n", "", "mine.csv:3: field `gold`: expected one of A, B, the text of a"),
        ("question,A,B,gold\na,x,x,x\n", "", "field `gold`: expected one choice, 'x' is the text of several"),
        ("question,A,B,gold\na,Aa,AA,aA\n", "", "mine.csv:2: field `gold`: expected one choice, 'aA' is the text of"),
        ("question,A,B,gold\na,x,y,B or A\n", "", "mine.csv:2: field `gold`: expected one of A, B"),
        ("question,labels,gold\na,<5;>5,5\n", "", "mine.csv:2: field `gold`: expected one of <5, >5"),
        ("question,A,B,gold\na,1,0,1\nb,1,0,0\n", "", "mine.csv:2: field `gold`: may be the place of a choice (B) or"),
        ("question,choices\na,[1]\n", "", "field `choices`: expected 2 to 200 choices or labels, found 1"),
        ("question,choices\na,x\n", "", "field `choices`: expected a list of texts, in CSV as JSON"),
        ("question,labels\na,x; X.\n", "", "field `labels`: expected distinct labels"),
        ("question\n\xff\n", "", "mine.csv:2: expected UTF-8 text"),
        ("question,gold\na\n", "", "mine.csv:2: expected 2 cells as in the header, found 1"),
        ("question,images\na,../x.png\n", "", "field `images`: expected a picture in the folder"),
        ("question,images\na,x.png\n", "", "field `images`: expected a picture in the folder of the file, there is no"),
    ],
)
def test_what_is_wrong_is_named(write: Write, content: str, spec: str, said: str) -> None:
    file = write(content.encode("latin-1"))
    assert said in refused(f"cases:{file}{spec}", unread)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"text": "a"}, "mine.jsonl:2: field `question`: expected one of the columns question"),
        (
            {"question": "q", "gold": {"a": 1}},
            "mine.jsonl:2: field `gold`: expected text, a number, a list, or an object",
        ),
        ({"question": "q", "documents": "a"}, "mine.jsonl:2: field `documents`: expected a list of texts"),
        ({"question": "q", "images": [3]}, "mine.jsonl:2: field `images`: expected names of pictures or their bytes"),
        ({"question": "\ud800"}, "mine.jsonl:2: field `question`: expected whole characters"),
    ],
)
def test_a_bad_row_of_json_is_named(write: Write, row: dict[str, Any], said: str) -> None:
    file = write(jsonl({"question": "q"}, row), "mine.jsonl")
    assert said in refused(f"cases:{file}", unread)


def test_a_long_cell_of_quotes_is_read_in_no_time(write: Write) -> None:
    cell = "['" + "\\'" * 200_000 + "]"
    file = write(f"question,gold\nq,{cell}\n")
    (found,) = read(f"cases:{file}")
    assert found.gold == cell


def test_moving_gold_answers_about_changes_no_case(write: Write) -> None:
    golds: list[Any] = ["B", None, "A", "C"]
    rows = [{"question": f"q{n}", "choices": ["x", "y", "z"]} for n in range(4)]
    seen = set()
    for turn in range(4):
        moved = golds[turn:] + golds[:turn]
        content = jsonl(*({**row, "answer": gold} for row, gold in zip(rows, moved, strict=True)))
        seen.add(tuple(item.case.content_hash() for item in read(f"cases:{write(content, 'm.jsonl')}")))
    assert len(seen) == 1
    free = [
        jsonl(*({"question": f"q{n}", "answer": gold} for n, gold in enumerate(g)))
        for g in ([True, None], [None, True])
    ]
    one, other = ([item.case for item in read(f"cases:{write(content, 'm.jsonl')}")] for content in free)
    assert one == other
    assert {case.labels for case in one} == {("Yes", "No")}


def test_fixed_labels_may_be_numbered(write: Write) -> None:
    file = write("text,label\ngood,1\nbad,0\n", "sentiment.csv")
    found = read(f"cases:{file}:question=text,labels=negative/positive")
    assert [item.gold for item in found] == ["positive", "negative"]


def test_pictures_lie_beside_the_file(write: Write) -> None:
    write(b"picture", "a.png")
    file = write("question,image\nq,a.png\n")
    seen: list[Path | bytes] = []

    def load(picture: Path | bytes) -> Image:
        seen.append(picture)
        return Image("image/png", b"x")

    open_task(f"cases:{file}", load).validate()
    assert seen == [Path("a.png").absolute()]


# --- a bare file


@pytest.mark.parametrize(
    ("name", "content", "task"),
    [
        ("mc.csv", "question,A,B,answer\nq,x,y,B\n", "cases"),
        ("mc.csv", "question;A;B;answer\nq;x;y;B\n", "cases"),
        ("a.jsonl", jsonl({"question": "q", "answer": "so\n#### 4"}), "gsm8k"),
        ("a.csv", "claim,label\nc,true\n", "claims"),
        ("a.csv", "reply\nr\n", "replies"),
        ("a.csv", "text,label\nt,One\nu,Two\n", "labels"),
        ("a.jsonl", jsonl({"subject": "s"}), "subjects"),
        ("a.jsonl", jsonl({"subject": "s", "question": "q"}), "cases"),
        ("a.txt", "a subject\n", "subjects"),
    ],
)
def test_a_bare_file_gets_the_task_that_fits(write: Write, name: str, content: str, task: str) -> None:
    found = open_task(write(content, name))
    assert (found.name, found.spec) == (task, f"{task}:{name}")
    assert found.validate() is not None


def test_a_bare_file_that_fits_nothing_reports_what_each_task_misses(write: Write) -> None:
    said = refused(write("text,target\nt,One\n"))
    for part in ("the columns text, target", "cases needs question", "claims needs claim", "labels needs label"):
        assert part in said
    assert "cases:mine.csv:question=COLUMN,gold=COLUMN" in said
    assert "no such file or folder" in refused("other.csv")
    with pytest.raises(ConfigError, match="did you mean 'boolq'"):
        open_task("bolq")


# --- public files


@pytest.mark.needs("data/mcq_logprobs")
@pytest.mark.parametrize("model", ["gpt4o", "llama3.1-8B"])
def test_mmlu_as_pandas_writes_it(model: str) -> None:
    found = read(f"cases:{DATA}/mcq_logprobs/{model}/college_medicine_LogProbs_Direct.csv")
    assert (len(found), {item.case.labels for item in found}) == (86, {("A", "B", "C", "D")})
    assert (found[0].case.choices[3], found[0].gold) == ("WG George", "D")


@pytest.mark.needs("data/boolq", "data/cosmosqa", "data/gsm8k", "data/nq_open")
@pytest.mark.parametrize(
    "own",
    ["boolq:boolq/dev.jsonl", "cosmosqa:cosmosqa/valid.csv", "gsm8k:gsm8k/test.jsonl", "nq:nq_open/NQ-open.dev.jsonl"],
)
def test_public_files_read_as_by_their_own_tasks(own: str) -> None:
    task, _, path = own.partition(":")
    for mine, theirs in zip(read(f"cases:{DATA}/{path}"), read(f"{task}:{DATA}/{path}"), strict=True):
        assert mine.gold == theirs.gold
        assert mine.reference.scoring == theirs.reference.scoring
        for field in ("question", "labels", "choices", "passage"):
            assert getattr(mine.case, field) == getattr(theirs.case, field)


@pytest.mark.needs("data/vlm_blind", "data/ciar")
def test_public_files_with_a_map() -> None:
    pictured = open_task(f"cases:{DATA}/vlm_blind/index.jsonl:images=file", lambda picture: Image("image/png", b"x"))
    assert pictured.validate().pictured == 8  # type: ignore[union-attr]
    assert read(f"cases:{DATA}/ciar/CIAR.json")[0].reference.accepted == ("0.75", "75%", "3/4")
