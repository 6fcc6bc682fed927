"""`replies:FILE`: replies that were given elsewhere, with what they answer, and what a judge may read of them."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from moot.protocols.case import Case, JudgedReply
from moot.protocols.errors import TaskFileError
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


def written(path: Path, *rows: object) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"replies:{path}"


def test_json_lines_csv_and_memory_give_the_same_cases(tmp_path: Path) -> None:
    table = tmp_path / "r.csv"
    table.write_text(",".join(ROW) + "\n" + ",".join(ROW.values()) + "\n")
    tasks = [open_task(written(tmp_path / "r.jsonl", ROW)), open_task(f"replies:{table}"), replies_in_memory([ROW])]
    for task in tasks:
        (found,) = task.cases()
        assert found.case == CASE
        assert (found.gold, found.reference.group) == (None, "g")
    assert len({summary.digest for task in tasks if (summary := task.validate())}) == 1


def test_a_reply_alone_is_enough_and_a_conversation_is_kept(tmp_path: Path) -> None:
    turns = [["user", "One?"], ["assistant", "Two."], ["user", "Three?"]]
    prompt = [{"role": who, "content": text} for who, text in turns]
    bare, talk = open_task(written(tmp_path / "r.jsonl", {"reply": "A"}, {"reply": "B", "prompt": prompt})).cases()
    assert bare.case == Case(id="replies-0", question="", judged=JudgedReply(reply="A"))
    assert talk.case.question == "Three?"
    assert talk.case.judged is not None
    assert [list(message) for message in talk.case.judged.sent] == turns


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"prompt": "x"}, "`reply`: is missing"),
        ({"reply": "x", "prompt": ["y"]}, "a list of messages with role and content, found 'y'"),
        ({"reply": "x", "prompt": [{"role": "usr", "content": "y"}]}, "system, user or assistant, found 'usr'"),
    ],
)
def test_a_bad_row_is_told_in_one_line(tmp_path: Path, row: dict[str, object], complaint: str) -> None:
    with pytest.raises(TaskFileError) as refused:
        open_task(written(tmp_path / "r.jsonl", {"reply": "fine"}, row)).validate()
    assert complaint in str(refused.value)
    assert "r.jsonl:2:" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_a_judge_reads_is_part_of_the_content() -> None:
    assert CASE.judged is not None
    for change in ({"reply": "No."}, {"sent": ()}, {"role": "critic"}, {"domain": ""}):
        judged = msgspec.structs.replace(CASE.judged, **change)
        assert msgspec.structs.replace(CASE, judged=judged).content_hash() != CASE.content_hash()


def test_the_bundled_replies_are_twelve_in_six_pairs() -> None:
    items = list(open_task("sample-replies").cases())
    assert len(items) == 12
    assert len({item.reference.group for item in items}) == 6
    assert all(item.case.judged and item.case.judged.sent and item.case.passage for item in items)
