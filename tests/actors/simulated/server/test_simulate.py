"""The simulated server, driven by the official SDK over real HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import quote

import aiohttp
import numpy as np
import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion
from typer.testing import CliRunner

from moot.actors.encoders.hashed_ngrams import HashedNgramEncoder
from moot.actors.models.compatible import CompatibleModel
from moot.actors.simulated.answer_key import AnswerKey
from moot.actors.simulated.model import SimulatedModel, SimulatedSettings
from moot.actors.simulated.server.options import SimulateOptions
from moot.actors.simulated.server.server import SimulatedServer, serve
from moot.deploy.cli.main import app
from moot.protocols.case import Case, LabelledCase
from moot.protocols.errors import ConfigError, MissingKey
from moot.protocols.messages import Decoding, Message
from moot.protocols.replies import Position
from moot.protocols.reply_parsing import InvalidReply, parse_reply
from moot.protocols.templates import Templates

LABELS = ("Yes", "No")
QUESTION = "can penguins fly in the air"
SLOTS = {"question": QUESTION, "labels": LABELS, "choices": (), "passage": "Penguins swim.", "title": ""}
OPENING = Templates().render("selene/opening", SLOTS)
KEY = AnswerKey.from_cases([LabelledCase(Case(id="1", question=QUESTION, labels=LABELS), 0, "No")])
STEP = "X-Client-Request-Id"


def picture(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


@asynccontextmanager
async def serving(key: AnswerKey | None = KEY, **options: Any) -> AsyncIterator[str]:
    """A server in this loop; gives its address."""
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(
        serve(SimulatedServer(SimulateOptions(**options), key), "127.0.0.1", 0, port.set_result)
    )
    task.add_done_callback(lambda _: port.cancel())
    try:
        yield f"http://127.0.0.1:{await port}"
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def client(address: str, api_key: str = "unused") -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{address}/v1", api_key=api_key, max_retries=0) as made:
        yield made


def wire(messages: Sequence[Message]) -> list[Any]:
    return [{"role": message.role, "content": message.content} for message in messages]


async def ask(made: AsyncOpenAI, step_key: str, **parameters: Any) -> ChatCompletion:
    parameters = {"messages": wire(OPENING), "temperature": 0.3, "max_tokens": 400, **parameters}
    reply = await made.chat.completions.create(model="any", extra_headers={STEP: step_key}, **parameters)
    assert isinstance(reply, ChatCompletion)
    return reply


async def status(made: AsyncOpenAI, step_key: str) -> int:
    try:
        await ask(made, step_key)
    except openai.APIStatusError as error:
        return error.status_code
    return 200


async def get(address: str, path: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(address + path) as response:
        assert response.status == 200
        return await response.json()


async def post(address: str, body: bytes, **headers: str) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{address}/v1/chat/completions", data=body, headers=headers) as response,
    ):
        return response.status, await response.json()


class TestReplies:
    @pytest.mark.parametrize("step_key", ["é/0/100%/opening", "x" * 600 + "/0/opening", "ü" * 200])
    async def test_same_as_embedded_through_our_own_client(self, step_key: str) -> None:
        embedded = SimulatedModel(SimulateOptions().settings, 5, KEY)
        async with serving(seed=5) as address:
            made = CompatibleModel(f"{address}/v1", "simulated")
            try:
                await made.check()
                for alternatives in (None, 3):
                    decoding = Decoding(top_logprobs=alternatives)
                    here = await embedded.complete(OPENING, decoding, step_key=step_key)
                    there = await made.complete(OPENING, decoding, step_key=step_key)
                    assert (there.text, there.usage) == (here.text, here.usage)
                    if here.tokens is not None:
                        assert there.tokens is not None
                        assert there.tokens.alt_tokens == here.tokens.alt_tokens
                        assert np.array_equal(there.tokens.alt_logprob, here.tokens.alt_logprob)
            finally:
                await made.close()

    async def test_stream(self) -> None:
        async with serving() as address, client(address) as made:
            whole = await ask(made, "a", logprobs=True, top_logprobs=2)
            stream = await made.chat.completions.create(
                model="any",
                messages=wire(OPENING),
                temperature=0.3,
                logprobs=True,
                top_logprobs=2,
                stream=True,
                stream_options={"include_usage": True},
                extra_headers={STEP: "a"},
            )
            chunks = [chunk async for chunk in stream]
        assert chunks[0].choices[0].delta.role == "assistant"
        assert [chunk.choices[0].finish_reason for chunk in chunks[-2:-1]] == ["stop"]
        assert chunks[-1].choices == []
        assert chunks[-1].usage == whole.usage
        pieces = [chunk.choices[0] for chunk in chunks[1:-2]]
        assert len(pieces) > 5
        assert "".join(piece.delta.content or "" for piece in pieces) == whole.choices[0].message.content
        streamed = [token for piece in pieces if piece.logprobs for token in piece.logprobs.content or []]
        assert whole.choices[0].logprobs is not None
        assert [token.model_dump() for token in streamed] == [
            token.model_dump() for token in whole.choices[0].logprobs.content or []
        ]

    async def test_content_parts_and_length(self) -> None:
        parts = [{"role": m.role, "content": [{"type": "text", "text": m.content}]} for m in OPENING]
        async with serving() as address, client(address) as made:
            plain = await ask(made, "a")
            assert (await ask(made, "a", messages=parts)).choices[0].message == plain.choices[0].message
            assert plain.choices[0].logprobs is None
            bare = await ask(made, "a", logprobs=True)
            assert bare.choices[0].logprobs is not None
            assert all(token.top_logprobs == [] for token in bare.choices[0].logprobs.content or [])
            cut = await ask(made, "a", max_completion_tokens=7, max_tokens=openai.NOT_GIVEN)
            assert cut.choices[0].finish_reason == "length"
            assert cut.usage is not None
            assert cut.usage.completion_tokens == 7


class TestBadRequests:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"n": 2}, "`n` must be 1"),
            ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "1"}]}, "tool"),
            ({"messages": [{"role": "user", "content": [picture("http://h/cat.png")]}]}, "data:image/"),
            ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "response_format"),
            ({"logprobs": True, "top_logprobs": 21}, "`top_logprobs` must be in"),
            ({"top_logprobs": 2}, "needs `logprobs: true`"),
        ],
    )
    async def test_get_400(self, parameters: dict[str, Any], message: str) -> None:
        async with serving() as address, client(address) as made:
            with pytest.raises(openai.BadRequestError) as caught:
                await ask(made, "a", **parameters)
            assert caught.value.type == "invalid_request_error"
            assert message in str(caught.value)
            assert (await get(address, "/stats"))["calls"] == 0

    async def test_not_json_and_unknown_path(self) -> None:
        async with serving() as address, client(address) as made:
            for body in (b"", b"{", b"[]", b"\xff", b'{"messages": []}', b"[" * 100_000):
                status, error = await post(address, body)
                assert status == 400
                assert error["error"]["type"] == "invalid_request_error"
            with pytest.raises(openai.NotFoundError):
                await made.moderations.create(model="any", input="x")

    async def test_token(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MOOT_TEST_TOKEN", "s3cret")
        async with serving(token_env="MOOT_TEST_TOKEN") as address:
            async with client(address) as made:
                with pytest.raises(openai.AuthenticationError) as caught:
                    await ask(made, "a")
                assert "s3cret" not in str(caught.value)
            async with client(address, "s3cret") as made:
                assert (await ask(made, "a")).choices
            assert (await get(address, "/health"))["status"] == "ok"

    def test_open_host_needs_a_token(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(ConfigError, match="--token-env"):
            SimulateOptions(host="0.0.0.0")
        monkeypatch.delenv("MOOT_TEST_TOKEN", raising=False)
        with pytest.raises(MissingKey, match="MOOT_TEST_TOKEN"):
            SimulatedServer(SimulateOptions(host="0.0.0.0", token_env="MOOT_TEST_TOKEN"), None)

    async def test_port_taken(self) -> None:
        async with serving() as address:
            port = int(address.rsplit(":", 1)[1])
            with pytest.raises(ConfigError, match=str(port)):
                await serve(SimulatedServer(SimulateOptions(), None), "127.0.0.1", port)


class TestFaults:
    async def test_rate_limit(self) -> None:
        async with serving(rate_limit=30) as address, client(address) as made:
            await ask(made, "a")
            with pytest.raises(openai.RateLimitError) as caught:
                await ask(made, "b")
            headers = caught.value.response.headers
            assert headers["Retry-After"] == "2"
            assert headers["x-ratelimit-remaining-requests"] == "0"
            assert 0 < int(headers["x-ratelimit-reset-requests"].removesuffix("ms")) <= 2000
            assert caught.value.code == "rate_limit_exceeded"
            stats = await get(address, "/stats")
            assert (stats["calls"], stats["limited"]) == (1, 1)

    async def test_failures_are_drawn_by_step_and_attempt(self) -> None:
        async def outcomes() -> list[int]:
            async with serving(fail_rate=0.5, seed=3) as address, client(address) as made:
                found = [await status(made, step_key) for step_key in "abcdefgh" for _ in range(6)]
                stats = await get(address, "/stats")
            assert (stats["calls"], stats["failed"]) == (found.count(200), found.count(500))
            return found

        first = await outcomes()
        assert first.count(200) + first.count(500) == 48
        assert first.count(500) == pytest.approx(24, abs=14)  # four standard deviations
        assert await outcomes() == first

    async def test_garbled_replies_do_not_parse_and_reasks_are_drawn_independently(self) -> None:
        reask = Templates().render("reask", {"error": "the reply holds no JSON object"})
        again = [*wire(OPENING), {"role": "assistant", "content": "{"}, *wire(reask)]
        unusable = broken = broken_again = 0
        async with serving(garble_rate=0.5) as address, client(address) as made:
            for number in range(40):
                reply = await ask(made, str(number), logprobs=True, top_logprobs=1)
                text = reply.choices[0].message.content or ""
                assert reply.choices[0].logprobs is not None
                content = reply.choices[0].logprobs.content or []
                assert "".join(token.token for token in content) == text
                assert reply.usage is not None
                assert reply.usage.completion_tokens == len(content)
                assert text == (await ask(made, str(number))).choices[0].message.content
                if not is_json(text):
                    broken += 1
                    unusable += not is_usable(text)
                    second = await ask(made, str(number), messages=again)
                    broken_again += not is_json(second.choices[0].message.content or "")
            stats = await get(address, "/stats")
        assert 10 < broken < 30
        assert unusable > broken // 2
        assert 0.2 * broken < broken_again < 0.8 * broken
        assert stats["garbled"] == 2 * broken + broken_again
        assert stats["calls"] == 80 + broken


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def is_usable(text: str) -> bool:
    try:
        parse_reply(text, Position, LABELS)
    except InvalidReply:
        return False
    return True


class TestStats:
    async def test_counts_by_step(self) -> None:
        async with serving() as address, client(address) as made:
            replies = [await ask(made, step_key) for step_key in ("a", "b", "a")]
            replies.append(await ask(made, quote("é/100%")))
            stats = await get(address, "/stats")
        usages = [reply.usage for reply in replies if reply.usage]
        assert stats["calls"] == 4
        assert stats["prompt_tokens"] == sum(usage.prompt_tokens for usage in usages)
        assert stats["completion_tokens"] == sum(usage.completion_tokens for usage in usages)
        assert list(stats["by_step"]) == ["a", "b", "é/100%"]
        assert stats["by_step"]["a"] == {
            "calls": 2,
            "prompt_tokens": usages[0].prompt_tokens + usages[2].prompt_tokens,
            "completion_tokens": usages[0].completion_tokens + usages[2].completion_tokens,
        }
        assert [stats[name] for name in ("in_flight", "failed", "limited", "garbled")] == [0, 0, 0, 0]

    async def test_without_a_step_key_the_body_is_the_key(self) -> None:
        body = json.dumps({"model": "m", "messages": wire(OPENING)}).encode()
        async with serving() as address:
            first, second = await post(address, body), await post(address, body)
            stats = await get(address, "/stats")
        assert first[1]["choices"] == second[1]["choices"]
        assert [step["calls"] for step in stats["by_step"].values()] == [2]


def test_blocking_server_ends_on_a_signal() -> None:
    program = (
        "from moot.actors.simulated.server.options import SimulateOptions\n"
        "from moot.actors.simulated.server.server import run_server\n"
        "run_server(SimulateOptions(), None, lambda port: print(port, flush=True))\n"
        "print('done')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert int(process.stdout.readline()) > 0
        process.terminate()
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, err) == (0, "done\n", "")


def test_every_setting_of_the_model_has_a_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[SimulateOptions] = []
    monkeypatch.setattr(
        "moot.actors.simulated.server.server.run_server", lambda options, key, ready: given.append(options)
    )
    wanted = {name: 3 if name == "reasoning_words" else 0.25 for name in SimulatedSettings.model_fields}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in wanted.items()]
    done = CliRunner().invoke(app, ["simulate", *flags])
    assert done.exit_code == 0, done.output
    (options,) = given
    assert options.latency_ms == wanted.pop("latency_ms"), "the server waits, not its model"
    assert options.settings == SimulatedSettings.model_validate(wanted)


class TestEmbeddings:
    TEXTS = ("Can penguins fly?", "No, they swim.", "été 東京")

    @pytest.mark.parametrize("form", ["float", "base64", None])
    async def test_the_official_client_reads_the_hashed_vectors(self, form: Any) -> None:
        asked = {} if form is None else {"encoding_format": form}
        async with serving() as address, client(address) as made:
            reply = await made.embeddings.create(model="any", input=list(self.TEXTS), **asked)
            served = await get(address, "/stats")
        assert [item.index for item in reply.data] == [0, 1, 2]
        vectors = [_floats(item.embedding) for item in reply.data]
        np.testing.assert_allclose(vectors, HashedNgramEncoder().rows(self.TEXTS), atol=1e-7)
        assert reply.model == "any"
        assert reply.usage.total_tokens == reply.usage.prompt_tokens == 5 + 4 + 2
        assert (served["embedding_calls"], served["embedded_texts"], served["calls"]) == (1, 3, 0)

    @pytest.mark.parametrize(
        "asked", [{"input": ["a", ""]}, {"input": ["a"] * 2049}, {"input": "a", "dimensions": 10**6}]
    )
    async def test_what_is_not_offered_is_a_bad_request(self, asked: Any) -> None:
        async with serving() as address, client(address) as made:
            with pytest.raises(openai.BadRequestError):
                await made.embeddings.create(model="any", **asked)


def _floats(vector: list[float] | str) -> list[float]:
    """What the client gives: numbers, or the base64 that was asked for by name."""
    return vector if isinstance(vector, list) else np.frombuffer(b64decode(vector), "<f4").tolist()
