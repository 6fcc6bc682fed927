"""Loopback servers with different capabilities, and the profiles that trial calls detect."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web
from openai_server import Handler, completion, served_model
from structlog.testing import capture_logs

from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.probe import probe
from moot.actors.models.probe_calls import ExpectedReply, ProbeRequest
from moot.protocols.messages import Decoding
from moot.protocols.replies import Position, Score

DECODING = Decoding(temperature=0.3, top_p=0.9, max_tokens=300)
REPLIES = (ExpectedReply(Position, ("Yes", "No"), 300), ExpectedReply(Score, None, 300))
LOGPROBS = {"content": [{"token": "{", "logprob": -1, "top_logprobs": [{"token": "{", "logprob": -1}]}]}

Body = Mapping[str, Any]
Answer = Callable[[Body], tuple[int, Any]]


def schema_of(body: Body) -> dict[str, Any] | None:
    wanted = body.get("response_format")
    return wanted["json_schema"]["schema"] if wanted else None


def refusal(message: str) -> tuple[int, Any]:
    return 400, {"error": {"message": message}}


def refusing(when: Callable[[Body], object], message: str, status: int = 400) -> Answer:
    """A server that refuses some calls, and enforces the schema of all others."""
    return lambda body: (status, refusal(message)[1]) if when(body) else enforce_schema(body)


def server(answer: Answer, seen: list[Body], owner: str = "somebody") -> Handler:
    """A server whose list of models names its owner, and that answers every call by a function of its body."""

    async def handle(request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.json_response({"data": [{"id": "m", "owned_by": owner}]})
        body = json.loads(await request.read())
        seen.append(body)
        status, said = answer(body)
        return web.json_response(said, status=status)

    return handle


async def run_trial(
    answer: Answer, trial: ProbeRequest, owner: str = "somebody"
) -> tuple[ModelProfile, bool, list[Body], list[str]]:
    """Run a trial; returns the profile, whether log-probabilities were given, the sent bodies, and the log lines."""
    seen: list[Body] = []
    async with served_model(lambda url: CompatibleModel(url, "m"), server(answer, seen, owner)) as model:
        await model.check()
        with capture_logs() as logs:
            profile, given, _ = await probe(model, trial)
    return profile, given, seen, [str(line) for line in logs]


def enforce_schema(body: Body) -> tuple[int, Any]:
    """A reply truncated within its schema, as by llama.cpp, vLLM and others; `Yes` without a schema."""
    schema = schema_of(body)
    if schema is None:
        return 200, completion("Yes")
    first = next(iter(schema["properties"]))
    return 200, completion(f'{{"{first}": "Yes"', finish_reason="length")
