"""`labels:FILE`: the closed set that a file names itself, and every way in which it is none."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from task_files import Write, cases, fails, summary

from moot.protocols.errors import TaskFileError
from moot.protocols.tasks import open_task
from moot.protocols.tasks.labelled_texts import MAX_LABELS, QUESTION
from moot.protocols.text.labels import canonical_label

SPORT: dict[str, Any] = {"text": "The team won.", "label": "Sport"}
MONEY: dict[str, Any] = {"text": "Shares fell.", "label": "Business"}


@pytest.fixture
def labels(rows: Write) -> Write:
    return lambda *each: f"labels:{rows(*each)}"


def test_labels_come_in_the_order_of_the_alphabet(labels: Write) -> None:
    spec = labels(SPORT, MONEY, {**SPORT, "id": "x", "question": "What is it about?"}, {"text": "Rain."})
    task = open_task(spec)
    assert (task.name, task.labels, task.replayable) == ("labels", None, True)
    found = summary(task)
    assert (found.count, found.gold, found.unlabelled) == (4, {"Sport": 2, "Business": 1}, 1)
    first, second, third, fourth = task.cases()
    assert [item.case.id for item in (first, second, third, fourth)] == ["labels-0", "labels-1", "x", "labels-3"]
    assert [item.gold for item in (first, second, third, fourth)] == ["Sport", "Business", "Sport", None]
    assert first.case.labels == ("Business", "Sport")
    assert first.case.labels is second.case.labels, "cases share what is theirs together"
    assert first.case.question == f"{QUESTION}\n\nThe team won."
    assert third.case.question == "What is it about?\n\nThe team won."
    assert (first.case.aliases, first.case.documents, first.case.passage) == ((), (), "")


def test_a_row_without_text_declares_a_label_and_is_no_case(labels: Write) -> None:
    declared = {"label": "Weather", "aliases": ["the weather", "climate"], "documents": ["Weather: rain and sun."]}
    spec = labels({"text": None, **declared}, SPORT, {**MONEY, "documents": ["Shares are parts of firms."]})
    first, second = cases(spec)
    assert (first.index, first.case.id, second.index, second.case.id) == (0, "labels-0", 1, "labels-1")
    assert first.case.labels == ("Weather", "Business", "Sport")
    assert first.case.aliases == (("the weather", "climate"), (), ())
    assert first.case.documents == ("Weather: rain and sun.",)
    assert second.case.documents == ("Weather: rain and sun.", "Shares are parts of firms.")
    known, aliases = first.case.labels or (), first.case.aliases
    assert canonical_label("Climate.", known, (), aliases) == "Weather"


@pytest.mark.parametrize("declared", [(), ("tides",), ("tides", "Sport"), ("Art", "tides", "sea", "Sport", "Business")])
def test_permuted_gold_leaves_the_cases_alone(labels: Write, declared: tuple[str, ...]) -> None:
    gold = ["tides", "Sport", "sea", "Art", "Sport", "Business", "Art"]
    found = []
    for permuted in (gold, gold[::-1], gold[3:] + gold[:3]):
        rows = [{"text": f"Text {i}.", "label": label} for i, label in enumerate(permuted)]
        found.append(cases(labels(*({"label": label} for label in declared), *rows)))
    assert [item.case for item in found[0]] == [item.case for item in found[1]] == [item.case for item in found[2]]
    assert [item.gold for item in found[0]] != [item.gold for item in found[1]]
    others = [label for label in ("Art", "Business", "sea", "Sport", "tides") if label not in declared]
    assert found[0][0].case.labels == (*declared, *others)


def test_labels_and_aliases_may_be_declared_in_any_row(labels: Write) -> None:
    spec = labels({**SPORT, "aliases": ["Sports"]}, {"label": "Sport", "aliases": ["games", "SPORTS"]}, MONEY)
    first, second = cases(spec)
    assert first.case.aliases == second.case.aliases == (("Sports", "games"), ())


def test_csv_with_a_mark_crlf_and_line_breaks_in_cells(write: Write) -> None:
    lines = ["\ufeffaliases,text,label", "sports; athletics ;,,Sport ", ",The team won.,Sport"]
    table = "\r\n".join([*lines, ',"Shares\nfell, ""again"".", Business', ""])
    first, second = cases(f"labels:{write(table, 'texts.csv')}")
    assert first.case.labels == ("Sport", "Business"), "outer space is no part of a label"
    assert first.case.aliases == (("sports", "athletics"), ())
    assert (first.gold, second.gold) == ("Sport", "Business")
    assert second.case.question == f'{QUESTION}\n\nShares\nfell, "again".'


@pytest.mark.parametrize(
    ("row", "field", "expected"),
    [
        ({**SPORT, "label": "..."}, "label", "expected words, '...' is only marks"),
        ({**SPORT, "label": "SPORT!"}, "label", "expected distinct labels, 'SPORT!' reads like 'Sport' in line 1"),
        ({**SPORT, "label": "Finance"}, "label", "reads like 'finance', an alias of 'Business' in line 2"),
        ({**SPORT, "label": "(other)"}, "label", "another name, '(other)' stands for what is outside the labels"),
        ({"label": " (other) "}, "label", "`other` may be one"),
        ({**SPORT, "label": "Art, music"}, "label", "without `, ` and line breaks, found 'Art, music'"),
        ({**SPORT, "label": "Art\nmusic"}, "label", "line breaks"),
        ({**SPORT, "aliases": ["business"]}, "aliases", "of 'Sport' alone, 'business' reads like 'Business' in line 2"),
        ({**SPORT, "aliases": ["FINANCE"]}, "aliases", "reads like 'finance', an alias of 'Business' in line 2"),
        ({**SPORT, "aliases": "games; finance"}, "aliases", "'finance' reads like 'finance', an alias of 'Business'"),
        ({"text": "Rain.", "aliases": ["wet"]}, "aliases", "expected a label that they are spellings of, found none"),
        ({"text": " ", "label": None}, "text", "expected a text, a label or both, found neither"),
        ({"label": "Business", "aliases": ["trade"]}, "label", "one row without text per label, 'Business' has line 2"),
        ({**SPORT, "text": "\ud800"}, "text", "surrogate"),
    ],
)
def test_a_bad_row_is_named(labels: Write, row: object, field: str, expected: str) -> None:
    declared = {"label": "Business", "aliases": ["finance"]}
    fails(labels(SPORT, declared, MONEY, row), 4, field, expected)


def test_two_hundred_labels_and_not_one_more(labels: Write) -> None:
    assert MAX_LABELS == 200
    rows = [{"text": f"Text {n}.", "label": f"Label {n}", "aliases": [f"L{n}", f"no. {n}"]} for n in range(200)]
    spec = labels(*rows)
    found = cases(spec)
    assert len(found) == len(found[-1].case.labels or ()) == 200
    known, aliases = found[0].case.labels or (), found[0].case.aliases
    for item, number in zip(found, range(200), strict=True):
        assert canonical_label(f"l{number}", known, (), aliases) == item.gold == f"Label {number}"
    summary(spec)
    more = {"text": "Text.", "label": "Label 200"}
    fails(labels(*rows, more), 201, "label", "expected at most 200 labels, as every prompt lists them all")


def test_only_a_file_can_be_read_twice() -> None:
    with pytest.raises(TaskFileError, match="-: expected a file"):
        open_task("labels:-")
    done = subprocess.run(
        [sys.executable, "-m", "moot", "run", "--task", "labels:-", "--dry-run"], input=b"", capture_output=True
    )
    assert done.returncode == 2
    assert b"it is read twice" in done.stderr


def test_a_label_that_came_after_the_check_is_refused(labels: Write) -> None:
    task = open_task(labels(SPORT, MONEY))
    summary(task)
    labels(SPORT, MONEY, {"text": "Rain.", "label": "Weather"})
    with pytest.raises(TaskFileError, match="found 'Weather"):
        list(task.cases())
