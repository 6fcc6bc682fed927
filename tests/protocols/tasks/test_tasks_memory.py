"""Cases of the user's own: checked like a file's, with `memory:NAME` and index + 1 for file and line."""

from __future__ import annotations

import pickle
from typing import Any

import msgspec
import pytest
from task_files import fails, summary

from moot.protocols.case import Case, Criterion, Image, JudgedReply, LabelledCase, Reference
from moot.protocols.tasks import Task, open_task

GOOD: dict[str, Any] = {"question": "Is it?", "passage": "It is.", "labels": ["Yes", "No"], "gold": "Yes"}


def test_mappings_become_cases() -> None:
    chosen = {**GOOD, "id": "x", "choices": ["it is", "it is not"]}
    task = Task.from_cases([GOOD, {"question": "Why?"}, chosen])
    assert (task.spec, task.name, task.path, task.replayable) == ("memory:mine", "mine", "memory:mine", True)
    first, second, third = task.cases()
    case = Case(id="mine-0", question="Is it?", labels=("Yes", "No"), passage="It is.")
    assert first == LabelledCase(case, 0, "Yes")
    assert second == LabelledCase(Case(id="mine-1", question="Why?"), 1)
    assert (third.case.id, third.case.choices) == ("x", ("it is", "it is not"))
    found = summary(task)
    assert (found.spec, found.count, found.unlabelled) == ("memory:mine", 3, 1)
    assert found.gold == {"Yes": 2, "No": 0}


@pytest.mark.parametrize(
    "aliases", [{"No": ["nope", " Nay "]}, [[], ["nope", " Nay "]], (("yes.",), ("nope", "No", " Nay ", "NOPE"))]
)
def test_aliases_by_label_or_one_list_per_label(aliases: Any) -> None:
    (found,) = Task.from_cases([{**GOOD, "aliases": aliases, "documents": ["One.", "Two."]}]).cases()
    assert found.case.aliases == ((), ("nope", " Nay "))
    assert found.case.documents == ("One.", "Two.")
    assert list(Task.from_cases([found]).cases()) == [found]


WHOLE = Case(
    id="whole",
    question="q",
    labels=("A", "B"),
    choices=("x", "y"),
    passage="p",
    title="t",
    images=(Image("image/png", b"1"),),
    aliases=(("first",), ()),
    documents=("d",),
    domain="rubric scoring",
    criterion=Criterion(trait="Style", lowest=1, highest=4, guide="g", assignment="a"),
    judged=JudgedReply(reply="r", sent=(("system", "s"), ("user", "u")), role="who", domain="what"),
)
SCORED = Reference(scoring="score", accepted=("1", "2"), ratings=(1.0, None), group="g", part="p")


def test_every_field_of_a_case_survives() -> None:
    bare = msgspec.structs.asdict(Case(id="", question=""))
    assert [name for name, value in msgspec.structs.asdict(WHOLE).items() if value == bare[name]] == ["scoring"]
    scored = msgspec.structs.replace(WHOLE, labels=("1", "2", "3", "4"), choices=(), aliases=(), scoring="score")
    for each in (LabelledCase(WHOLE, 0, "A"), LabelledCase(scored, 0, "1", "", SCORED)):
        assert list(Task.from_cases([each]).cases()) == [each]


def test_replies_to_judge_survive_though_nobody_asked_a_question() -> None:
    cases = list(open_task("sample-replies").cases())
    assert list(Task.from_cases(cases).cases()) == cases
    (found,) = Task.from_cases([{"judged": {"reply": "Yes.", "sent": [["user", "Is it?"]]}}]).cases()
    assert found.case.judged == JudgedReply(reply="Yes.", sent=(("user", "Is it?"),))


@pytest.mark.parametrize(
    ("gold", "labels", "expected", "scoring"),
    [
        ("yes.", ["Yes", "No"], "Yes", "label"),
        (True, ["True", "False"], "True", "label"),
        (0.5, [".50", ".25"], ".50", "label"),
        (0.5, None, "0.5", "number"),
        ("\u22125", None, "\u22125", "number"),
        ("1901-05-05", None, "1901-05-05", "label"),
    ],
)
def test_a_gold_is_read_as_in_a_file(gold: object, labels: list[str] | None, expected: str, scoring: str) -> None:
    (found,) = Task.from_cases([{"question": "Which?", "labels": labels, "gold": gold}]).cases()
    assert (found.gold, found.reference.scoring) == (expected, scoring)


@pytest.mark.parametrize(
    ("bad", "field", "expected"),
    [
        ({"question": ""}, "question", "found none"),
        ({"passage": "p"}, "question", "is missing"),
        ({**GOOD, "id": "mine-0"}, "id", "'mine-0' occurs earlier"),
        ({**GOOD, "gold": "perhaps"}, "gold", "expected one of Yes, No, found 'perhaps'"),
        ({**GOOD, "gold": ["Yes"]}, "gold", "expected text, found a list"),
        ({**GOOD, "labels": ["Yes"]}, "labels", "at least two"),
        ({**GOOD, "labels": ["Yes", 3]}, "labels", "expected text, found 3"),
        ({**GOOD, "labels": ["Yes", "?"]}, "labels", "only marks"),
        ({**GOOD, "labels": ["Yes", "No", "(other)"]}, "labels", "'(other)' stands for what is outside the labels"),
        ({**GOOD, "choices": ["a"]}, "choices", "one text per label (2), found 1"),
        ({"question": "q", "choices": ["a"]}, "choices", "one text per label (0), found 1"),
        ({**GOOD, "answer": "Yes"}, "answer", "is unknown; expected id, question"),
        ({**GOOD, "images": [b"1"]}, "images", "Image"),
        ({**GOOD, "labels": ["Yes", "Yes"]}, "labels", "'Yes' is there twice"),
        ({**GOOD, "aliases": "nope"}, "aliases", "a list of texts for each of the 2 labels, or a mapping"),
        ({**GOOD, "aliases": [["nope"]]}, "aliases", "for each of the 2 labels"),
        ({**GOOD, "aliases": ["nope", "yep"]}, "aliases", "expected a list of texts, found 'nope'"),
        ({**GOOD, "aliases": {"Nope": ["No"]}}, "aliases", "expected labels as keys (Yes, No), found 'Nope'"),
        ({**GOOD, "aliases": {"No": ["YES"]}}, "aliases", "spellings of 'No' alone, 'YES' reads like 'Yes'"),
        ({**GOOD, "aliases": [["aye"], ["Aye!"]]}, "aliases", "'Aye!' reads like 'aye', an alias of 'Yes'"),
        (
            {**GOOD, "choices": ["it is", "it is not"], "aliases": {"No": ["It is."]}},
            "aliases",
            "'It is.' is another choice",
        ),
        ({"question": "q", "aliases": {"No": ["nope"]}}, "aliases", "expected labels that they are spellings of"),
        ({**GOOD, "documents": "one"}, "documents", "expected a list of texts, found 'one'"),
        ({"judged": "Yes."}, "judged", "expected the reply and"),
        ({"judged": {"reply": "r", "sent": [["nobody", "x"]]}}, "judged", "expected the reply and"),
        ({"judged": {"reply": " "}}, "judged", "expected text, found none"),
        (LabelledCase(Case(id="z", question="q"), 0, None, "no case"), "", "no case"),
        ("text", "", "expected a LabelledCase or a mapping, found 'text'"),
    ],
)
def test_bad_case(bad: Any, field: str, expected: str) -> None:
    fails(Task.from_cases([GOOD, bad]), 2, field, expected)


@pytest.mark.parametrize(
    "task",
    [Task.from_cases([GOOD]), *map(open_task, ("sample", "sample-subjects", "sample-symptoms"))],
    ids=lambda task: task.name,
)
def test_tasks_can_be_pickled(task: Task) -> None:
    assert pickle.loads(pickle.dumps(task)).validate() == task.validate()
