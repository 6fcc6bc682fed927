"""Cut prompts in a record: counted, warned of, marked in the list of cases; also those that only equal counts show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from openai_server import completion, serving, serving_in_thread
from planted_records import PlantedSession

import moot
from moot.actors.models.resolve import ModelBinding
from moot.actors.record.rows import PROMPT_CUT
from moot.deploy.results.case_table import case_list
from moot.deploy.results.figures.replies import cut_cases, model_replies, warnings_of
from moot.deploy.results.record import RunRecord
from moot.deploy.results.transcript import build_transcript
from moot.deploy.runs.doctor import Finding, examine

CONTEXT = 4096


def of_length(session: PlantedSession, case: str, characters: int, counted: int, **columns: Any) -> None:
    session.case(case)
    session.reply(case, "opening/agent/0", counted + 1, text="{}", messages=json.dumps([["user", "x" * characters]]),
                  **columns)  # fmt: skip
    session.verdict(case)


@pytest.mark.parametrize(
    ("prompts", "cut"),
    [
        ([(20_000, 4096), (23_000, 4096), (3_000, 700)], {"c0", "c1"}),
        ([(20_000, 4096), (20_001, 4096)], set()),  # equally long
        ([(20_000, 4096), (23_000, 4097)], set()),
        ([(20_000, 4096), (23_000, 4096), (29_000, 6000)], set()),  # a longer one is whole
        ([(20_000, 4000), (23_000, 4000)], set()),  # may be a coincidence
        ([(20_000, 4000), (23_000, 4000), (28_000, 4000), (31_000, 4000)], {"c0", "c1", "c2", "c3"}),
        ([(200, 0), (9_000, 0)], set()),
    ],
)
def test_equal_counts_of_prompts_of_different_lengths_are_a_context(
    session: PlantedSession, prompts: list[tuple[int, int]], cut: set[str]
) -> None:
    for number, (characters, counted) in enumerate(prompts):
        of_length(session, f"c{number}", characters, counted)
    run = session.plant()
    assert set(cut_cases(RunRecord(run)).to_pylist()) == cut
    assert sum(each.prompt_cut for each in model_replies(run)) == len(cut)
    assert bool(warnings_of(model_replies(run))) is bool(cut)


def test_a_mark_counts_in_the_attempt_that_counts(session: PlantedSession) -> None:
    of_length(session, "marked", 9_000, 300, reading=f"prefix,{PROMPT_CUT}")
    of_length(session, "whole", 9_000, 2_000)
    run = session.plant()
    assert {row.case_id: row.prompt_cut for row in case_list(run)} == {"marked": True, "whole": False}


async def answer(request: web.Request) -> web.Response:
    """As Ollama does: reads and counts the last 4,096 tokens."""
    body = json.loads(await request.read() or b"{}")
    characters = sum(len(message["content"]) for message in body.get("messages", ()))
    reply = completion('{"answer": "Yes", "reasoning": "r", "confidence": 0.5}')
    usage = {"prompt_tokens": min(CONTEXT, characters // 4), "completion_tokens": 20}
    return web.json_response({**reply, "usage": usage})


def column(run: moot.Run, table: str, name: str) -> dict[str, object]:
    return {row["case_id"]: row[name] for row in run.table(table).to_pylist()}


def test_a_run_on_a_server_that_cuts_marks_the_cases(tmp_path: Path) -> None:
    passages = ["Some filler sentence about weather and boats. " * times for times in (2000, 1)]
    cases = [{"id": f"c{n}", "question": "Is it?", "labels": ["Yes", "No"], "answer": "Yes", "passage": text}
             for n, text in enumerate(passages)]  # fmt: skip
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    task = {"task": str(tmp_path / "cases.jsonl"), "engine": "inline"}
    with serving_in_thread(answer) as port:
        done = moot.run(model=f"http://127.0.0.1:{port}/v1#m", protocol="single-agent", out=tmp_path / "run", **task)
    assert column(done, "verdicts", "flags") == {"c0": ["prompt-cut"], "c1": []}
    assert column(done, "turns", "reading") == {"c0": PROMPT_CUT, "c1": None}
    assert (len(done.summary.warnings), done.cases["c0"].prompt_cut, done.cases["c1"].prompt_cut) == (1, True, False)
    (section,) = build_transcript(done.path, "c0").sections
    assert section.turns[0].reading == PROMPT_CUT
    again = moot.run(model=f"replay/{done.path}", protocol="single-agent", out=tmp_path / "again", **task)
    assert column(again, "verdicts", "flags") == {"c0": ["prompt-cut"], "c1": []}


async def long_prompt(said: str, counted: int | None, status: int = 200) -> Finding:
    async def handler(request: web.Request) -> web.Response:
        body = json.loads(await request.read() or b"{}")
        if sum(len(message["content"]) for message in body.get("messages", ())) < 20_000:
            return await answer(request)
        if status != 200:
            error = {"message": said, "code": "context_length_exceeded"}
            return web.json_response({"error": error}, status=status)
        return web.json_response({**completion(said), "usage": {"prompt_tokens": counted, "completion_tokens": 1}})

    async with serving(handler) as url:
        found = await examine(ModelBinding(model=f"{url}#m"))
    return next(each for each in found if each.subject == "a long prompt")


@pytest.mark.parametrize(
    ("said", "counted", "status", "state", "word"),
    [
        ("I do not know", 4096, 200, "note", "4,096"),
        ("Marigold", 8192, 200, "note", "8,192"),
        ("Marigold.", 10_900, 200, "ok", "read from its start"),
        ("Boat", 10_900, 200, "ok", "counted whole"),
        ("Boat", None, 200, "note", "not counted"),
        ("at most 4096 tokens", None, 400, "ok", "refused"),
    ],
)
async def test_the_doctor_tries_a_long_prompt(
    said: str, counted: int | None, status: int, state: str, word: str
) -> None:
    found = await long_prompt(said, counted, status)
    assert found.state == state
    assert word in found.detail
