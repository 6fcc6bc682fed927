"""`replies:FILE`: replies that were given elsewhere, with what they answer, and what a judge may read of them."""

from __future__ import annotations

from task_files import Write, cases, summary

from moot.protocols.case import Case, JudgedReply
from moot.protocols.tasks import open_task
from moot.protocols.tasks.replies import replies_in_memory

ROW = {
    "id": "r1",
    "system": "Be brief.",
    "prompt": "Is it wet?",
    "reply": "Yes.",
    "evidence": "It rained.",
    "role": "assistant",
    "domain": "weather",
    "group": "g",
}
CASE = Case(
    id="r1",
    question="Is it wet?",
    passage="It rained.",
    judged=JudgedReply(
        reply="Yes.", sent=(("system", "Be brief."), ("user", "Is it wet?")), role="assistant", domain="weather"
    ),
)


def test_json_lines_csv_and_memory_give_the_same_cases(write: Write, rows: Write) -> None:
    table = write(",".join(ROW) + "\n" + ",".join(ROW.values()) + "\n", "r.csv")
    tasks = [open_task(f"replies:{rows(ROW)}"), open_task(f"replies:{table}"), replies_in_memory([ROW])]
    for task in tasks:
        (found,) = task.cases()
        assert found.case == CASE
        assert (found.gold, found.reference.group) == (None, "g")
    assert len({summary(task).digest for task in tasks}) == 1


def test_a_reply_alone_is_enough_and_a_conversation_is_kept(rows: Write) -> None:
    turns = [["user", "One?"], ["assistant", "Two."], ["user", "Three?"]]
    prompt = [{"role": who, "content": text} for who, text in turns]
    bare, turn_loop = cases(f"replies:{rows({'reply': 'A'}, {'reply': 'B', 'prompt': prompt})}")
    assert bare.case == Case(id="replies-0", question="", judged=JudgedReply(reply="A"))
    assert turn_loop.case.question == "Three?"
    assert turn_loop.case.judged is not None
    assert [list(message) for message in turn_loop.case.judged.sent] == turns


def test_the_bundled_replies_are_twelve_in_six_pairs() -> None:
    items = cases("sample-replies")
    assert len(items) == 12
    assert len({item.reference.group for item in items}) == 6
    assert all(item.case.judged and item.case.judged.sent and item.case.passage for item in items)
