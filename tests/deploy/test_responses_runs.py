"""A run with a model that OpenAI offers over its Responses API only, which no list of models says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from aiohttp import web
from openai_server import serving

from moot.actors.models.resolve import ModelBinding
from moot.actors.models.trial import STEP_KEY
from moot.deploy.running.doctor import examine
from moot.deploy.running.run import arun

CASES = [{"id": f"c{n}", "question": f"Is it {n}?", "labels": ["Yes", "No"], "passage": "It is."} for n in range(2)]
ANSWER = json.dumps({"answer": "Yes", "reasoning": "It is.", "confidence": 0.9})


class OnlyResponses:
    """A server as OpenAI's is for such a model; `asked` counts by path and by whether it was the trial."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, bool]] = Counter()

    async def answer(self, request: web.Request) -> web.Response:
        path, step = request.path.removeprefix("/v1"), request.headers["X-Client-Request-Id"]
        self.asked[path, step == STEP_KEY] += 1
        if path != "/responses":
            said = "This model is only supported in v1/responses and not in v1/chat/completions."
            return web.json_response({"error": {"message": said, "param": "model"}}, status=404)
        message = {"type": "message", "content": [{"type": "output_text", "text": ANSWER}]}
        usage = {"input_tokens": 40, "output_tokens": 30}
        return web.json_response({"status": "completed", "output": [message], "usage": usage})


@pytest.fixture(autouse=True, scope="module")
def _certificates_read_once() -> Iterator[None]:
    """Each client of the SDK reads all authorities of the machine, which takes longer than a test with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx2, "create_ssl_context", cache(httpx2.create_ssl_context))
        yield


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[OnlyResponses, str]]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    handler = OnlyResponses()
    async with serving(handler.answer) as url:
        yield handler, url


async def hold(out: Path, url: str, limit: int = 2, **role: Any) -> Any:
    agent = {"model": "openai/new-model", "base_url": url, **role}
    return await arun(
        task=CASES, limit=limit, protocol="single-agent", engine="inline", out=out, roles={"agent": agent}
    )


async def test_it_is_found_recorded_and_asked_so_by_agents_and_when_resumed(
    tmp_path: Path, served: tuple[OnlyResponses, str]
) -> None:
    server, url = served
    await hold(tmp_path / "run", url, 1)
    (member,) = yaml.safe_load((tmp_path / "run/run.yaml").read_text())["bindings"]["agent"]
    assert member["profile"]["api"] == "responses"
    assert server.asked == {("/chat/completions", True): 1, ("/responses", True): 1, ("/responses", False): 1}
    done = await hold(tmp_path / "run", url, 2)
    assert done.status == "finished"
    assert [turn["answer"] for turn in done.table("turns").to_pylist()] == ["Yes", "Yes"]
    assert server.asked == {("/chat/completions", True): 1, ("/responses", True): 1, ("/responses", False): 2}


async def test_doctor_asks_it_so(served: tuple[OnlyResponses, str]) -> None:
    found = {each.what: each for each in await examine(ModelBinding(model="openai/new-model", base_url=served[1]))}
    assert found["a call"].state == "ok"
    assert found["an opening, held to a schema"].state == "ok"
    assert "streaming: no" in found["declares"].said
