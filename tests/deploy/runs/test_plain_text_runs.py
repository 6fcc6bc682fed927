"""Runs on a server that ignores every schema and writes prose: what is asked in plain text, what is refused before it
is paid for, and when a run stops by itself."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from openai_server import completion, serving, token

from moot.actors.dispatch.case_router import DebateCancelled
from moot.actors.models.openai_wire import REQUEST_ID_HEADER
from moot.actors.models.probe_calls import STEP_KEY
from moot.actors.models.resolve import ModelBinding
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.gate import run_warnings
from moot.deploy.results.figures.replies import by_role, model_replies
from moot.deploy.results.figures.summary import summarise, summary_rows
from moot.deploy.runs.doctor import examine
from moot.deploy.runs.doctor_protocol import try_protocol
from moot.deploy.runs.flag_parsers import parse_settings
from moot.deploy.runs.nested_settings import nested
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.outcome import EXIT_STOPPED, Run
from moot.deploy.runs.run import arun
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import CapabilityMissing
from moot.protocols.plain_replies import PLAIN, has_plain_form
from moot.protocols.registry import make_protocol

CASES = [{"id": f"c{n}", "question": f"Is it {n}?", "labels": ["Yes", "No"], "passage": "It is."} for n in range(4)]
CLAIMS = [{"id": f"c{n}", "question": f"It is {n}.", "labels": ["supported", "hallucinated"]} for n in range(2)]
PROSE = "Answer: Yes\n\nThe passage says so."
NONSENSE = "I would rather not say what I think."
OBJECT = '{"answer": "Yes", "reasoning": "The passage says so.", "confidence": 0.9}'
FORMS = {
    "Check a candidate": "It says so.\nSupport: supported\nScore: 0.9",
    "Judge a debate": "It holds.\nVerdict: 1\nConfidence: 0.8",
    "Debate in turn": "Says: AGREE\nIt holds.\nStance: supports",
}


class ProseServer:
    """Ignores every schema.

    Attributes:
        says: its replies, unless the prompt is one of `FORMS`.
        tokens: whether it gives log-probabilities of each reply's tokens.
        calls: number of calls beside those of the trial.
        openings: number of the trial's calls with a prompt that asks for JSON.
    """

    url: str

    def __init__(self) -> None:
        self.says, self.tokens, self.calls, self.openings = PROSE, False, 0, 0

    async def answer(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        trial = request.headers[REQUEST_ID_HEADER] == STEP_KEY
        prompt = "\n".join(message["content"] for message in body["messages"])
        self.calls += not trial
        self.openings += trial and "JSON object" in prompt
        text = next((said for start, said in FORMS.items() if start in prompt), self.says)
        given = None
        if self.tokens and body.get("logprobs"):
            words = text.replace(" ", "| ").replace("\n", "|\n").split("|")
            given = {"content": [token(word, -0.1, (word, -0.1), (" No", -2.5)) for word in words]}
        return web.json_response(completion(text, logprobs=given))


@pytest.fixture
async def prose() -> AsyncIterator[ProseServer]:
    server = ProseServer()
    async with serving(server.answer, "POST") as url:
        server.url = f"{url}#m"
        yield server


async def run_prose(out: Path, model: str, protocol: str = "single-agent", **options: Any) -> Run:
    fields: dict[str, Any] = {"task": CASES, "protocol": protocol, "engine": "inline", "limit": 2, **options}
    return await arun(model=model, out=out, **fields)


PROTOCOLS: dict[str, dict[str, Any]] = {
    "selene": {"set": {"gate.intrinsic": "none", "gate.when": "always", "debate.max_rounds": 1, "judging.k": 1}},
    "constructor-auditor": {"set": {"logprobs": False, "judge.when": "never"}},
    "ceda": {"task": CLAIMS, "set": {"max_turns": 2}},
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_every_ask_is_usable_in_plain_text(tmp_path: Path, prose: ProseServer, protocol: str) -> None:
    options = PROTOCOLS[protocol]
    done = await run_prose(tmp_path / "run", prose.url, protocol, **options)
    assert (done.done, done.failed) == (2, 0)
    for counts in by_role(model_replies(done.path)):
        free = counts.role in ("constructor", "auditor")
        assert (counts.usable, counts.plain_text) == (counts.asks, 0 if free else counts.asks)
    turns = done.table("turns").to_pylist()
    assert all(row["template"].endswith("_plain") for row in turns if PLAIN in (row["reading"] or ""))


async def test_plain_replies_are_replayed_and_reused(tmp_path: Path, prose: ProseServer) -> None:
    done = await run_prose(tmp_path / "run", prose.url, limit=1)
    calls = prose.calls
    again = await run_prose(tmp_path / "again", f"replay/{done.path}", limit=1)
    assert (again.done, again.failed, prose.calls) == (1, 0, calls)
    await run_prose(tmp_path / "reused", prose.url, reuse=str(done.path), limit=1)
    assert prose.calls == calls


async def test_the_answer_is_found_among_the_tokens_and_an_unstated_confidence_is_unknown(
    tmp_path: Path, prose: ProseServer
) -> None:
    prose.tokens = True
    done = await run_prose(tmp_path / "run", prose.url, "selene")
    assert done.failed == 0
    turns = [row for row in done.table("turns").to_pylist() if row["role"].startswith("agent")]
    assert {round(row["p_raw"], 3) for row in turns} == {0.905}
    gates = [json.loads(row["data"]) for row in done.table("events").to_pylist() if row["kind"] == "gate"]
    assert [(gate["c"], gate["m"]) for gate in gates] == [(None, None)] * 2
    assert all(gate["p"] is not None for gate in gates)


PARAPHRASE = {"judging.variants": "paraphrase", "gate.intrinsic": "none"}
CA = {"logprobs": False}


@pytest.mark.parametrize(
    ("protocol", "settings", "lacks", "hint"),
    [
        ("evince", {}, "agent.*Estimate", {}),
        ("socrasynth", {}, "agent", {}),
        ("constructor-auditor", CA, "judge.*MarkSheet", {"judge.when": "never"}),
        ("selene", PARAPHRASE, "judge.*Paraphrase", {"judging.variants": "subset"}),
    ],
)
async def test_a_protocol_that_needs_more_is_refused_before_it_is_paid_for(
    tmp_path: Path, prose: ProseServer, protocol: str, settings: dict[str, Any], lacks: str, hint: dict[str, str]
) -> None:
    with pytest.raises(CapabilityMissing, match=lacks) as caught:
        await run_prose(tmp_path / "run", prose.url, protocol, set=settings)
    words = shlex.split(re.findall("`(moot doctor.*?)`", said := str(caught.value))[0])
    assert words[2:6] == ["--model", prose.url, "--protocol", protocol]
    assert parse_settings(words[7::2]) == settings
    assert parse_settings(re.findall("`--set (.*?)`", said)) == hint
    assert (prose.calls, prose.openings, (tmp_path / "run").exists()) == (0, 2, False)
    with pytest.raises(CapabilityMissing, match=lacks) as caught:
        await try_protocol(ModelBinding(model=prose.url), RunConfig(protocol=protocol, set=settings), 1)
    assert "moot doctor" not in str(caught.value), "that command is running"
    assert "single-agent" in str(caught.value)
    if hint:
        made = make_protocol(protocol, nested({**settings, **hint}))
        assert all(has_plain_form(reply) for family in made.roles for reply in made.replies.get(family, ()))


async def test_a_server_that_ignores_schemas_is_refused_where_they_are_required(
    tmp_path: Path, prose: ProseServer
) -> None:
    with pytest.raises(CapabilityMissing, match="--structured off"):
        await run_prose(tmp_path / "run", prose.url, structured="on")
    assert (prose.calls, (tmp_path / "run").exists()) == (0, False)


async def test_a_model_that_writes_json_is_asked_for_it(tmp_path: Path, prose: ProseServer) -> None:
    prose.says = f"Here it is: {OBJECT}"
    done = await run_prose(tmp_path / "run", prose.url)
    assert {row["template"] for row in done.table("turns").to_pylist()} == {"selene/opening"}
    prose.says = PROSE
    done = await run_prose(tmp_path / "off", prose.url, structured="off")
    assert {row["template"] for row in done.table("turns").to_pylist()} == {"selene/opening_plain"}


async def test_the_doctor_says_how_such_a_model_is_asked(prose: ProseServer) -> None:
    found = {each.subject: each for each in await examine(ModelBinding(model=prose.url))}
    assert "plain text" in found["a run adapts"].detail
    assert (found["an opening, free"].state, found["an opening as plain text"].state) == ("note", "ok")
    tried = await try_protocol(ModelBinding(model=prose.url), RunConfig.build({"protocol": "single-agent"}), 1)
    assert (tried.finished, tried.modes) == (1, (("agent", "Position", "plain text"),))


async def test_a_run_whose_first_asks_are_in_vain_stops_and_goes_on_when_the_model_is_mended(
    tmp_path: Path, prose: ProseServer
) -> None:
    prose.says = NONSENSE
    options: dict[str, Any] = {"protocol": "majority-vote", "limit": 4, "max_unusable": 5}
    out = tmp_path / "run"
    for session in (1, 2):
        stopped = await run_prose(out, prose.url, **options)
        assert (stopped.status, stopped.exit_code) == ("stopped", EXIT_STOPPED)
        assert f"moot doctor --model '{prose.url}'" in stopped.stopped_by
        assert prose.calls == session * 2 * 5, "each ask is repeated once"
    assert "'agent'" in read_run_yaml(RunFolder(out))["sessions"][-1]["stopped_by"]
    assert run_warnings(out) == [], "the reason of the stop says it, with the names filled in"
    assert max(len(line) for _, text in summary_rows(summarise(out)) for line in text.splitlines()) <= 100
    prose.says = PROSE
    done = await run_prose(out, prose.url, retry_failed=True, **options)
    assert (done.status, done.done, done.failed) == ("finished", 4, 0)
    prose.says = NONSENSE
    worse = await run_prose(tmp_path / "on", prose.url, limit=3, max_unusable=0)
    assert (worse.status, worse.done, worse.failed) == ("finished", 3, 3)


async def test_a_role_that_has_had_a_usable_reply_stops_no_later_session(tmp_path: Path, prose: ProseServer) -> None:
    await run_prose(tmp_path / "run", prose.url, max_unusable=1, limit=1)
    prose.says = NONSENSE
    done = await run_prose(tmp_path / "run", prose.url, max_unusable=1, limit=4)
    assert (done.status, done.done, done.failed) == ("finished", 4, 3)


async def test_an_open_run_refuses_further_cases_with_the_reason(tmp_path: Path, prose: ProseServer) -> None:
    prose.says = NONSENSE
    config = RunConfig(
        protocol="single-agent", model=prose.url, engine="inline", out=str(tmp_path / "run"), max_unusable=1
    )
    run = OpenRun(config)
    await run.open()
    try:
        failed = await run.run_case(CASES[0])
        assert failed.failure == "quorum_failed"
        for case in CASES[1:3]:
            with pytest.raises(DebateCancelled, match="moot doctor"):
                await run.run_case(case)
        assert (run.can_reopen, prose.calls) == (False, 2)
    finally:
        await run.close()
    assert len(read_table(tmp_path / "run", "verdicts", [])) == 1
