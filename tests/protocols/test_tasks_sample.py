"""What is bundled: whole, balanced, in mixed order, and written so that its labels are not given away."""

from __future__ import annotations

from itertools import groupby

from moot.protocols.labels import fold
from moot.protocols.tasks import open_task


def test_sample_validates_and_is_balanced() -> None:
    task = open_task("sample")
    found = task.validate()
    assert found is not None
    assert (task.spec, task.name, task.path) == ("sample", "sample", "sample")
    assert (found.count, found.gold, found.unlabelled) == (72, {"Yes": 36, "No": 36}, 0)


def test_subjects_have_no_labels_and_some_have_facts() -> None:
    task = open_task("sample-subjects")
    found = task.validate()
    assert found is not None
    assert (task.spec, task.path, found.count, found.gold, found.unlabelled) == (*("sample-subjects",) * 2, 8, {}, 8)
    cases = [item.case for item in task.cases()]
    assert all(case.question.endswith("?") and case.labels is None for case in cases)
    assert 3 <= sum(bool(case.passage) for case in cases) < 8


def test_symptoms_are_balanced_at_every_ten() -> None:
    task = open_task("sample-symptoms")
    found = task.validate()
    assert found is not None
    assert (found.count, len(found.gold), set(found.gold.values()), found.unlabelled) == (40, 10, {4}, 0)
    items = list(task.cases())
    assert [item.case.id for item in items] == [f"complaint-{n:02d}" for n in range(1, 41)]
    for start in range(0, 40, 10):
        tenth = [item.gold for item in items[start : start + 10]]
        assert set(tenth) == set(found.gold)
        assert tenth != list(found.gold), "their order is not that of the labels"


def test_symptoms_come_with_aliases_and_documents() -> None:
    for item in open_task("sample-symptoms").cases():
        case = item.case
        assert len(case.labels or ()) == len(case.aliases) == len(case.documents) == 10
        assert all(case.aliases)
        text = fold(case.question)
        names = [name for label, own in zip(case.labels or (), case.aliases, strict=True) for name in (label, *own)]
        assert not any(f" {fold(name)} " in f" {text} " for name in names), (case.id, "gives its label away")


def test_essays_have_two_traits_and_two_raters_who_differ_now_and_then() -> None:
    task = open_task("sample-essays")
    found = task.validate()
    assert found is not None
    assert (task.spec, task.path, found.count, found.unlabelled) == (*("sample-essays",) * 2, 16, 0)
    items = list(task.cases())
    assert len({item.reference.group for item in items}) == len({item.case.passage for item in items}) == 8
    assert set(found.gold.values()) & {0} == set(), "every score occurs"
    pairs = [item.reference.ratings for item in items]
    assert all(None not in pair and len(pair) == 2 for pair in pairs)
    assert 8 < sum(one == other for one, other in pairs) < 16


def test_problems_hold_numbers_that_must_be_read_with_care() -> None:
    task = open_task("sample-problems")
    found = task.validate()
    assert found is not None
    assert (task.spec, task.name, found.count, found.unlabelled) == (*("sample-problems",) * 2, 24, 0)
    gold = [item.gold or "" for item in task.cases()]
    assert sum("," in each for each in gold) >= 3
    assert sum("." in each for each in gold) >= 3
    assert sum(each.startswith("-") for each in gold) == 2
    assert len({item.case.question for item in task.cases()}) == 24


def test_claims_are_pairs_about_passages_and_their_order_tells_nothing() -> None:
    task = open_task("sample-claims")
    found = task.validate()
    assert found is not None
    assert (task.spec, task.name, found.count, found.unlabelled) == (*("sample-claims",) * 2, 40, 0)
    assert found.gold == {"supported": 20, "hallucinated": 20}
    items = list(task.cases())
    assert [item.case.id for item in items] == [f"claim-{n:02d}" for n in range(1, 41)]
    assert len({item.case.question for item in items}) == 40
    of_group: dict[str, set[tuple[str, str | None]]] = {}
    for item in items:
        of_group.setdefault(item.reference.group, set()).add((item.case.passage, item.gold))
    assert all(len({passage for passage, _ in pair}) == 1 and len(pair) == 2 for pair in of_group.values())
    gold = [item.gold for item in items]
    assert max(len(list(run)) for _, run in groupby(gold)) <= 3
    assert gold[:20].count("supported") == 10
    categories = [item.reference.tags["category"] for item in items]
    assert categories.count("conflicting sources") == 8
    assert len(set(categories)) > 10
