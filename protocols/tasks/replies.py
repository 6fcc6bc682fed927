"""Existing replies, only to be judged: CSV or JSON Lines, or rows in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Literal, get_args

from moot.protocols.case import Case, JudgedReply, Reference
from moot.protocols.tasks.formats import csv_or_jsonl_rows
from moot.protocols.tasks.in_memory import memory_rows
from moot.protocols.tasks.row import ParsedCase, Row, shown
from moot.protocols.tasks.task import FileLayout, Task

COLUMNS = ("reply",)
"""Fields of every row; `id`, `prompt`, `system`, `evidence`, `role`, `domain` and `group` are optional."""

_FIELDS = (*COLUMNS, "id", "prompt", "system", "evidence", "role", "domain", "group")

_Speaker = Literal["system", "user", "assistant"]


def _parse(row: Row) -> Iterator[ParsedCase]:
    """Case with the reply, its prompt and the evidence, and no gold label.

    The question is the last user message of the prompt, for lists and transcripts; judges get the messages.
    """
    row.require(COLUMNS)
    sent = _sent(row)
    case = Case(
        id=row.identity(),
        question=next((text for speaker, text in reversed(sent) if speaker == "user"), ""),
        passage=row.text("evidence", default=""),
        judged=JudgedReply(
            reply=row.text("reply"),
            sent=sent,
            role=row.text("role", default="").strip(),
            domain=row.text("domain", default="").strip(),
        ),
    )
    yield ParsedCase(case, reference=Reference(group=row.text("group", default="").strip()))


REPLIES = FileLayout(partial(csv_or_jsonl_rows, columns=COLUMNS), _parse, fields=_FIELDS)
"""Cases for judges, one per reply."""


def replies_in_memory(rows: Iterable[Mapping[str, object]]) -> Task:
    """Task over replies given as mappings with the columns of a file. Raises nothing."""
    spec = "memory:replies"
    read = partial(memory_rows, tuple(rows), spec)
    return Task(spec=spec, name="replies", path=spec, labels=None, replayable=True, read=read, parse=_parse)


def _sent(row: Row) -> tuple[tuple[_Speaker, str], ...]:
    system = row.text("system", default="")
    before: tuple[tuple[_Speaker, str], ...] = (("system", system),) if system.strip() else ()
    prompt = row.values.get("prompt")
    if prompt is None or prompt == "":
        return before
    if not isinstance(prompt, list | tuple):
        return (*before, ("user", row.text("prompt")))
    return (*before, *(_message(row, message) for message in prompt))


def _message(row: Row, message: object) -> tuple[_Speaker, str]:
    if not isinstance(message, Mapping):
        raise row.error("prompt", f"expected text, or a list of messages with role and content, found {shown(message)}")
    speaker = message.get("role")
    for known in get_args(_Speaker):
        if speaker == known:
            return known, row.checked("prompt", message.get("content"))
    raise row.error("prompt", f"expected messages with the role {_SPEAKERS}, found {shown(speaker)}")


_SPEAKERS = "system, user or assistant"
