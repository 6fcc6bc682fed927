"""Replies that are longer than the requested tokens can be: cut in every later prompt, marked, counted, and said."""

from __future__ import annotations

import json
from pathlib import Path

from aiohttp import web
from openai_server import completion, serving, serving_in_thread

import moot
from moot.actors.models.reply_bounds import most_characters
from moot.actors.models.resolve import ModelBinding
from moot.actors.record.rows import OVERLONG, has_reading_mark
from moot.deploy.results.case_table import case_list
from moot.deploy.results.figures.replies import model_replies, warnings_of
from moot.deploy.results.record import read_replies
from moot.deploy.results.transcript import build_transcript
from moot.deploy.results.transcript_blocks import turn_marks
from moot.deploy.runs.doctor import examine

MOST = most_characters(400)


async def answer(request: web.Request) -> web.Response:
    """Ignores the limit: 4 MB, which would be readable as a whole."""
    await request.read()
    reply = {"answer": "Yes", "confidence": 0.5, "reasoning": "The boat left. " * 2**18}
    return web.json_response(completion(json.dumps(reply)))


def test_an_overlong_reply_is_cut_in_later_prompts_and_counted(tmp_path: Path) -> None:
    with serving_in_thread(answer) as port:
        done = moot.run(model=f"http://127.0.0.1:{port}/v1#m", protocol="single-agent", task="sample", limit=1,
                        engine="inline", out=tmp_path / "run")  # fmt: skip
    rows = done.table("turns").to_pylist()
    assert [len(row["text"]) for row in rows] == [MOST] * len(rows)
    assert all(has_reading_mark(row["reading"], OVERLONG) and row["finish_reason"] == "length" for row in rows)
    assert max(len(row["messages"]) for row in rows) < 2 * MOST, "the second ask repeats the cut reply"
    (counts,) = model_replies(done.path)
    assert (counts.overlong, counts.truncated) == (len(rows), 0)
    assert any("max_tokens" in line for line in warnings_of([counts]))
    assert not any(reply.truncated for reply in read_replies(done.path))
    assert len(case_list(done.path).only("truncated")) == 0
    (section,) = build_transcript(done.path, rows[0]["case_id"]).sections
    assert all("longer than the requested tokens can be, and cut" in turn_marks(turn) for turn in section.turns)
    assert not any(turn.truncated for turn in section.turns)


async def test_the_doctor_says_that_a_server_ignores_the_limit() -> None:
    async with serving(answer) as url:
        found = {each.subject: each for each in await examine(ModelBinding(model=f"{url}#m"))}
    assert "longer than 64 tokens can be" in found["reply length"].detail
    assert "max_tokens" in found["an opening, free"].detail
