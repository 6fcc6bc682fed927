"""The bundled sample: 72 questions, half of them Yes, whole and in mixed order."""

from __future__ import annotations

from itertools import groupby

from moot.protocols.tasks import open_task


def test_sample_validates_and_is_balanced() -> None:
    task = open_task("sample")
    found = task.validate()
    assert found is not None
    assert (task.spec, task.name, task.path) == ("sample", "sample", "sample")
    assert (found.count, found.gold, found.unlabelled) == (72, {"Yes": 36, "No": 36}, 0)


def test_sample_ids_run_on_and_texts_differ() -> None:
    items = list(open_task("sample").cases())
    assert [item.case.id for item in items] == [f"sample-{n:03d}" for n in range(1, 73)]
    assert len({item.case.question for item in items}) == 72
    assert len({item.case.passage for item in items}) == 72


def test_sample_questions_look_like_questions_with_evidence() -> None:
    for item in open_task("sample").cases():
        assert item.case.question.endswith("?")
        assert item.case.title
        assert 2 <= item.case.passage.count(". ") + 1 <= 5, item.case.id


def test_sample_order_tells_nothing() -> None:
    gold = [item.gold for item in open_task("sample").cases()]
    assert max(len(list(run)) for _, run in groupby(gold)) <= 4
    assert gold[:12].count("Yes") == 6
