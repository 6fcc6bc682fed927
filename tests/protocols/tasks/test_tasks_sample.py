"""What is bundled: whole, balanced, in mixed order, and written so that its labels are not given away."""

from __future__ import annotations

from itertools import groupby

from task_files import summary

from moot.protocols.tasks import open_task


def test_sample_validates_and_is_balanced() -> None:
    task = open_task("sample")
    found = summary(task)
    assert (task.spec, task.name, task.path) == ("sample", "sample", "sample")
    assert (found.count, found.gold, found.unlabelled) == (72, {"Yes": 36, "No": 36}, 0)


def test_symptoms_are_balanced_at_every_ten() -> None:
    task = open_task("sample-symptoms")
    found = summary(task)
    assert (found.count, len(found.gold), set(found.gold.values()), found.unlabelled) == (40, 10, {4}, 0)
    items = list(task.cases())
    assert [item.case.id for item in items] == [f"complaint-{n:02d}" for n in range(1, 41)]
    for start in range(0, 40, 10):
        tenth = [item.gold for item in items[start : start + 10]]
        assert set(tenth) == set(found.gold)
        assert tenth != list(found.gold), "their order is not that of the labels"


def test_claims_are_pairs_about_passages_and_their_order_reveals_nothing() -> None:
    task = open_task("sample-claims")
    found = summary(task)
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
