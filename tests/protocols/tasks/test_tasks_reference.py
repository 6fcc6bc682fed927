"""What cases of the user's own say of their right answers; specs with options; and digests that stay what they were."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pytest
from task_files import summary

from moot.protocols.case import Criterion, LabelledCase, Reference
from moot.protocols.errors import ConfigError, TaskFileError
from moot.protocols.tasks import Task, open_task
from moot.protocols.tasks.registry import absolute_spec

CRITERION = {"trait": "Style", "lowest": 1, "highest": 4, "guide": "4: good\n1: bad"}
SCORED: dict[str, Any] = {
    "question": "Which score?",
    "passage": "Text.",
    "domain": "rubric scoring",
    "scoring": "score",
    "criterion": CRITERION,
    "ratings": [None, 3, 2.5],
    "group": "essay-1",
}


def only(case: dict[str, Any]) -> LabelledCase:
    (found,) = Task.from_cases([case]).cases()
    return found


def test_a_text_that_raters_scored() -> None:
    found = only(SCORED)
    assert (found.case.labels, found.case.domain, found.gold) == (("1", "2", "3", "4"), "rubric scoring", "3")
    assert found.case.criterion == Criterion(trait="Style", lowest=1, highest=4, guide="4: good\n1: bad")
    expected = Reference(scoring="score", accepted=("3",), ratings=(None, 3.0, 2.5), group="essay-1")
    assert found.reference == expected
    assert list(Task.from_cases([found]).cases()) == [found]


def test_labels_gold_and_accepted_answers_may_be_given() -> None:
    found = only({**SCORED, "labels": ["4", "3", "2"], "gold": "2", "accepted": ["2", "3"]})
    assert (found.case.labels, found.gold, found.reference.accepted) == (("4", "3", "2"), "2", ("2", "3"))
    plain = only({"question": "Who?", "scoring": "short answer", "accepted": "One"})
    assert (plain.gold, plain.reference.accepted) == ("One", ("One",))
    short = only({"question": "Who?", "scoring": "short answer", "accepted": ["One", "Two"], "domain": "factual QA"})
    assert (short.gold, short.reference) == ("One", Reference(scoring="short answer", accepted=("One", "Two")))
    number = only({"question": "How many?", "scoring": "number", "gold": "1,200"})
    assert (number.gold, number.reference) == ("1,200", Reference(scoring="number"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scoring": "points"}, "`scoring`: expected one of label, number, short answer, score, found 'points'"),
        ({"scoring": ["score"]}, "`scoring`: expected one of"),
        ({"domain": "cooking"}, "`domain`: expected one of"),
        ({"criterion": None}, "`criterion`: is missing"),
        ({"criterion": 3}, "`criterion`: expected a mapping"),
        ({"criterion": {**CRITERION, "highest": "4"}}, "`criterion`: expected trait, lowest, highest and guide: .*int"),
        ({"criterion": {**CRITERION, "highest": 1}}, "`criterion`: expected lowest < highest"),
        ({"ratings": [5]}, "`ratings`: expected numbers from 1 to 4, None for a missing rater, found 5"),
        ({"ratings": [True]}, "`ratings`: expected numbers"),
        ({"ratings": [float("nan")]}, "`ratings`: expected numbers"),
        ({"ratings": 3}, "`ratings`: expected a list"),
        ({"scoring": "label"}, "`ratings`: go with the scoring 'score', found 'label'"),
        ({"gold": "5"}, "`gold`: expected one of 1, 2, 3, 4"),
        ({"accepted": ["9"]}, "expected one of 1, 2, 3, 4, found '9'"),
        ({"accepted": 3}, "`accepted`: expected a list of texts"),
        ({"group": 3}, "`group`: expected text"),
        (
            {"scoring": "number", "ratings": None, "gold": "many"},
            "`gold`: expected a number, as it is compared by value",
        ),
    ],
)
def test_bad_values_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskFileError, match=message) as caught:
        Task.from_cases([{**SCORED, **changes}]).validate()
    assert "\n" not in str(caught.value)


def digest(*cases: dict[str, Any]) -> str:
    return summary(Task.from_cases(cases)).digest


def test_the_digest_is_the_old_one_where_a_case_has_no_reference() -> None:
    task, expected = open_task("sample"), blake2b(digest_size=16)
    for item in task.cases():
        expected.update(msgspec.msgpack.encode((item.case.id, item.case.content_hash(), item.gold)))
    assert summary(task).digest == expected.hexdigest()


def test_the_digest_distinguishes_references() -> None:
    changes: list[dict[str, Any]] = [{}, {"ratings": [None, 3, 2]}, {"group": "essay-2"}, {"accepted": ["3", "2"]}]
    assert len({digest({**SCORED, **change}) for change in changes}) == 4
    assert digest({"question": "q", "gold": "a"}) != digest({"question": "q", "gold": "a", "scoring": "short answer"})


def test_specs_with_options_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_spec("asap:a:b.tsv:set=7") == f"asap:{tmp_path}/a:b.tsv:set=7"
    assert absolute_spec("boolq:x:set=7") == f"boolq:{tmp_path}/x:set=7", "a task without options has paths only"
    assert [absolute_spec(spec) for spec in ("sample", "memory:mine")] == ["sample", "memory:mine"]


def test_a_path_may_contain_colons(tmp_path: Path) -> None:
    place = tmp_path / "a:b" / "es:says.tsv"
    place.parent.mkdir()
    place.write_text("nothing")
    for spec in (f"asap:{place}", f"asap:{place}:set=7"):
        assert open_task(spec).path == str(place)
    with pytest.raises(ConfigError, match="needs a path"):
        open_task("asap::set=7")
