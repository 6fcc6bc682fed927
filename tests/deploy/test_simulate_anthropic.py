"""The simulated server's Anthropic wire, driven by the official SDK and by our own backend over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import anthropic
import pytest
from anthropic import AsyncAnthropic

from moot.actors.models.answer_key import AnswerKey
from moot.actors.models.anthropic_sdk import AnthropicModel
from moot.actors.models.interface import ModelError
from moot.actors.models.json_schema import json_schema
from moot.actors.models.reply_schema import ReplySchema, reply_schema
from moot.actors.models.simulated.model import SimulatedModel
from moot.deploy.simulation.server import SimulateOptions, serve
from moot.protocols.case import Case, LabelledCase
from moot.protocols.messages import Decoding, Message
from moot.protocols.replies import Position
from moot.protocols.templates import Templates

LABELS = ("Yes", "No")
QUESTION = "can penguins fly in the air"
SLOTS = {"question": QUESTION, "labels": LABELS, "choices": (), "passage": "Penguins swim.", "title": ""}
OPENING = Templates().render("selene/opening", SLOTS)
KEY = AnswerKey.from_cases([LabelledCase(Case(id="1", question=QUESTION, labels=LABELS), 0, "No")])
STEP = "X-Client-Request-Id"
OLDER = {"anthropic-version": "2023-06-01"}
FORMAT = {"format": {"type": "json_schema", "schema": json_schema(Position)}}
TOOL = {"name": "reply", "input_schema": json_schema(Position)}
FORCED: list[dict[str, Any]] = [
    {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "reply"}},
    {"tools": [TOOL], "tool_choice": {"type": "any"}},
]


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[str]:
    """A server in this loop; gives its address."""
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(serve(SimulateOptions(**options), KEY, port.set_result))
    task.add_done_callback(lambda _: port.cancel())
    try:
        yield f"http://127.0.0.1:{await port}"
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def client(address: str, api_key: str = "unused", max_retries: int = 0) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(base_url=address, api_key=api_key, max_retries=max_retries) as made:
        yield made


@asynccontextmanager
async def backend(
    address: str, monkeypatch: pytest.MonkeyPatch, model: str = "simulated"
) -> AsyncIterator[AnthropicModel]:
    monkeypatch.setenv("MOOT_TEST_KEY", "unused-but-long-enough")
    made = AnthropicModel(model, api_key_env="MOOT_TEST_KEY", base_url=address)
    try:
        yield made
    finally:
        await made.close()


def parameters(messages: Sequence[Message] = OPENING, **more: Any) -> dict[str, Any]:
    said = [{"role": message.role, "content": message.content} for message in messages if message.role != "system"]
    system = [message.content for message in messages if message.role == "system"]
    return {"model": "any", "max_tokens": 400, "messages": said, "system": system[0], **more}


async def ask(made: AsyncAnthropic, step_key: str, headers: dict[str, str] | None = None, **more: Any) -> Any:
    return await made.messages.create(**parameters(**more), extra_headers={STEP: step_key, **(headers or {})})


def embedded(seed: int = 0) -> SimulatedModel:
    return SimulatedModel(SimulateOptions().settings, seed, KEY)


async def stats_of(address: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(f"{address}/stats") as response:
        return await response.json()


class TestReplies:
    async def test_same_as_embedded(self) -> None:
        async with serving(seed=5) as address, client(address) as made:
            for number in range(20):
                step_key = f"case-{number}/0/opening"
                here = await embedded(5).complete(OPENING, Decoding(), step_key=step_key)
                there = await ask(made, step_key)
                assert [block.text for block in there.content] == [here.text]
                assert (there.type, there.role, there.model, there.stop_reason) == (
                    "message",
                    "assistant",
                    "any",
                    "end_turn",
                )
                assert there.usage.input_tokens == here.usage.prompt_tokens
                assert there.usage.output_tokens == here.usage.completion_tokens

    async def test_passes_of_one_prompt_differ_and_repeat(self) -> None:
        async with serving() as address, client(address) as made:
            texts = [(await ask(made, f"c/0/judge/0/{number}")).content[0].text for number in range(8)]
            again = [(await ask(made, f"c/0/judge/0/{number}")).content[0].text for number in range(8)]
        assert texts == again
        assert len(set(texts)) > 4

    async def test_content_blocks_system_blocks_and_length(self) -> None:
        blocks = [{"role": "user", "content": [{"type": "text", "text": OPENING[1].content}]}]
        system = [{"type": "text", "text": OPENING[0].content}]
        async with serving() as address, client(address) as made:
            plain = await ask(made, "a")
            listed = parameters() | {"messages": blocks, "system": system}
            same = await made.messages.create(**listed, extra_headers={STEP: "a"})
            assert same.content == plain.content
            cut = await made.messages.create(**(parameters() | {"max_tokens": 7}), extra_headers={STEP: "a"})
        assert (cut.stop_reason, cut.usage.output_tokens) == ("max_tokens", 7)
        assert plain.content[0].text.startswith(cut.content[0].text)

    async def test_an_output_schema_gets_the_json_as_text(self) -> None:
        async with serving() as address, client(address) as made:
            plain = await ask(made, "a")
            held = await ask(made, "a", output_config=FORMAT)
            parsed = await made.messages.parse(**parameters(), output_format=Position, extra_headers={STEP: "a"})
        assert held.content == plain.content
        assert parsed.parsed_output == Position.model_validate_json(plain.content[0].text)

    @pytest.mark.parametrize("forced", FORCED)
    async def test_a_forced_tool_gets_the_json_as_input(self, forced: dict[str, Any]) -> None:
        async with serving() as address, client(address) as made:
            plain = await ask(made, "a")
            called = await ask(made, "a", **forced)
            cut = await made.messages.create(**(parameters(**forced) | {"max_tokens": 7}), extra_headers={STEP: "a"})
        (block,) = called.content
        assert (block.type, block.name, called.stop_reason) == ("tool_use", "reply", "tool_use")
        assert block.input == json.loads(plain.content[0].text)
        assert (cut.content[0].input, cut.stop_reason) == ({}, "max_tokens")

    async def test_a_tool_that_need_not_be_called_is_not(self) -> None:
        async with serving() as address, client(address) as made:
            plain = await ask(made, "a")
            free = await ask(made, "a", tools=[TOOL], tool_choice={"type": "auto"})
        assert free.content == plain.content

    async def test_older_models_are_greedy_at_temperature_0(self) -> None:
        async with serving(seed=5) as address, client(address) as made:
            there = await ask(made, "a", OLDER, extra_body={"temperature": 0})
        here = await embedded(5).complete(OPENING, Decoding(temperature=0.0), step_key="a")
        assert there.content[0].text == here.text

    async def test_models_health_and_tokens_by_either_header(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MOOT_TEST_TOKEN", "s3cret")
        async with serving(token_env="MOOT_TEST_TOKEN") as address:
            async with client(address) as made:
                with pytest.raises(anthropic.AuthenticationError) as caught:
                    await ask(made, "a")
                assert caught.value.type == "authentication_error"
                assert "s3cret" not in str(caught.value)
            async with client(address, "s3cret") as made:
                assert (await ask(made, "a")).content
                assert [model.id async for model in made.models.list()] == ["simulated"]
            headers = {"x-api-key": "s3cret"}
            body = json.dumps(parameters())
            async with aiohttp.ClientSession(headers=headers) as session:
                async with session.post(f"{address}/v1/messages", data=body) as response:
                    assert response.status == 200
                async with session.post(f"{address}/v1/messages", data=body, headers={"x-api-key": "x"}) as response:
                    assert response.status == 401


class TestStreams:
    async def test_the_order_of_events(self) -> None:
        async with serving() as address, client(address) as made:
            whole = await ask(made, "a")
            events = [event async for event in await ask(made, "a", stream=True)]
        kinds = [event.type for event in events]
        pieces = kinds.count("content_block_delta")
        assert pieces > 5
        assert kinds == [
            "message_start",
            "content_block_start",
            *["content_block_delta"] * pieces,
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
        begun, ended = events[0].message, events[-2]
        assert (begun.content, begun.stop_reason, begun.usage.input_tokens) == ([], None, whole.usage.input_tokens)
        assert (ended.delta.stop_reason, ended.usage.output_tokens) == ("end_turn", whole.usage.output_tokens)
        assert "".join(event.delta.text for event in events[2:-3]) == whole.content[0].text

    async def test_lines_as_the_service_writes_them(self) -> None:
        async with serving() as address, aiohttp.ClientSession() as session:
            body = json.dumps(parameters(stream=True))
            async with session.post(f"{address}/v1/messages", data=body) as response:
                assert response.content_type == "text/event-stream"
                raw = (await response.read()).decode()
        assert raw.endswith("\n\n")
        for event in raw.strip().split("\n\n"):
            named, data = event.split("\n")
            assert named == f"event: {json.loads(data.removeprefix('data: '))['type']}"
        assert "event: ping\n" in raw

    @pytest.mark.parametrize("forced", [{}, {"output_config": FORMAT}, *FORCED])
    async def test_the_sdk_puts_the_same_message_together(self, forced: dict[str, Any]) -> None:
        async with serving() as address, client(address) as made:
            whole = await ask(made, "a", **forced)
            async with made.messages.stream(**parameters(**forced), extra_headers={STEP: "a"}) as stream:
                streamed = await stream.get_final_message()
        left_out = {"id"}  # counts the attempts at a step
        assert [block.model_dump(exclude=left_out) for block in streamed.content] == [
            block.model_dump(exclude=left_out) for block in whole.content
        ]
        assert streamed.stop_reason == whole.stop_reason
        assert (streamed.usage.input_tokens, streamed.usage.output_tokens) == (
            whole.usage.input_tokens,
            whole.usage.output_tokens,
        )


class TestBadRequests:
    @pytest.mark.parametrize(
        ("changed", "headers", "message"),
        [
            ({"messages": []}, {}, "at least one message"),
            ({"messages": [{"role": "user", "content": " "}]}, {}, "must not be empty"),
            ({"messages": [{"role": "system", "content": "x"}]}, {}, "role"),
            ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, {}, "'image'"),
            ({"max_tokens": 0}, {}, "max_tokens"),
            ({"extra_body": {"temperature": 0.3}}, {}, "temperature"),
            ({"extra_body": {"top_p": 1.0}}, {}, "top_p"),
            ({"extra_body": {"temperature": 1.1}}, OLDER, "[0, 1]"),
            ({"extra_body": {"top_p": 0.0}}, OLDER, "top_p"),
            ({"extra_body": {"temperature": 0.3, "top_p": 0.9}}, OLDER, "cannot both be specified"),
            ({"tool_choice": {"type": "any"}}, {}, "providing tools"),
            ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "other"}}, {}, "'other' is not in tools"),
        ],
    )
    async def test_get_400(self, changed: dict[str, Any], headers: dict[str, str], message: str) -> None:
        async with serving() as address, client(address) as made:
            with pytest.raises(anthropic.BadRequestError) as caught:
                await made.messages.create(**(parameters() | changed), extra_headers=headers)
            assert caught.value.type == "invalid_request_error"
            assert message in str(caught.value.api_message)
            assert (await stats_of(address))["calls"] == 0

    async def test_not_json_and_unknown_path(self) -> None:
        async with serving() as address, client(address) as made:
            async with aiohttp.ClientSession() as session:
                for body in (b"", b"{", b"[]", b"\xff", b'{"messages": []}', b"[" * 100_000):
                    async with session.post(f"{address}/v1/messages", data=body) as response:
                        assert response.status == 400
                        error = await response.json()
                    assert (error["type"], error["error"]["type"]) == ("error", "invalid_request_error")
            with pytest.raises(anthropic.NotFoundError) as caught:
                await made.messages.count_tokens(model="any", messages=[{"role": "user", "content": "x"}])
        assert caught.value.type == "not_found_error"


class TestFaults:
    async def test_rate_limit_and_the_wait_it_names(self) -> None:
        async with serving(rate_limit=240) as address:
            async with client(address) as made:
                with pytest.raises(anthropic.RateLimitError) as caught:
                    await asyncio.gather(*(ask(made, str(number)) for number in range(20)))
                assert caught.value.type == "rate_limit_error"
                assert int(caught.value.response.headers["Retry-After"]) >= 1
            async with client(address, max_retries=5) as made:
                await asyncio.gather(*(ask(made, str(number)) for number in range(3)))

    async def test_failures_are_drawn_as_on_the_other_wire(self) -> None:
        async with serving(fail_rate=0.5, seed=3) as address, client(address) as made:
            found = await asyncio.gather(*(ask(made, f"{n}") for n in range(40)), return_exceptions=True)
            stats = await stats_of(address)
        failed = [error for error in found if isinstance(error, anthropic.InternalServerError)]
        assert {error.type for error in failed} == {"api_error"}
        assert (stats["failed"], stats["calls"]) == (len(failed), 40 - len(failed))
        assert 5 < len(failed) < 35

    async def test_garbled_replies(self) -> None:
        async with serving(garble_rate=1.0) as address, client(address) as made:
            whole = await ask(made, "a")
            with pytest.raises(ValueError, match=r".+"):
                json.loads(whole.content[0].text)
            called = await ask(made, "a", **FORCED[0])
            assert called.content[0].input == {}
            pieces = [event async for event in await ask(made, "a", stream=True)]
            stats = await stats_of(address)
        text = "".join(event.delta.text for event in pieces if event.type == "content_block_delta")
        assert text == whole.content[0].text
        assert stats["garbled"] == 3

    async def test_stats_count_both_wires_together(self) -> None:
        async with serving() as address, client(address) as made:
            replies = [await ask(made, step_key) for step_key in ("a", "b", "a")]
            body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{address}/v1/chat/completions", json=body, headers={STEP: "b"}) as response,
            ):
                assert response.status == 200
            stats = await stats_of(address)
        assert stats["calls"] == 4
        assert {step: served["calls"] for step, served in stats["by_step"].items()} == {"a": 2, "b": 2}
        served = stats["by_step"]["a"]
        assert served["prompt_tokens"] == replies[0].usage.input_tokens + replies[2].usage.input_tokens
        assert served["completion_tokens"] == replies[0].usage.output_tokens + replies[2].usage.output_tokens


class TestOurBackend:
    @pytest.mark.parametrize("step_key", ["c/0/opening", "é/0/100%/opening", "x" * 600 + "/0/opening"])
    @pytest.mark.parametrize("schema", [None, reply_schema(Position, "anthropic")])
    async def test_same_as_embedded(
        self, monkeypatch: pytest.MonkeyPatch, step_key: str, schema: ReplySchema | None
    ) -> None:
        async with serving(seed=5) as address, backend(address, monkeypatch) as made:
            await made.check()
            here = await embedded(5).complete(OPENING, Decoding(), step_key=step_key)
            there = await made.complete(OPENING, Decoding(), step_key=step_key, schema=schema)
        assert (there.text, there.usage, there.finish_reason) == (here.text, here.usage, here.finish_reason)
        assert there.tokens is None

    async def test_an_older_model_is_sent_a_temperature_that_the_server_takes(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with serving(seed=5) as address, backend(address, monkeypatch, "claude-haiku-4-5") as made:
            for temperature in (0.0, 0.3):
                decoding = Decoding(temperature=temperature)
                here = await embedded(5).complete(OPENING, decoding, step_key="a")
                assert (await made.complete(OPENING, decoding, step_key="a")).text == here.text

    async def test_re_asks_say_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        again = (*OPENING, Message("assistant", "{"), *Templates().render("reask", {"error": "no JSON"}))
        async with serving(seed=5) as address, backend(address, monkeypatch) as made:
            there = await made.complete(again, Decoding(), step_key="a~1")
        assert there.text == (await embedded(5).complete(again, Decoding(), step_key="a~1")).text

    @pytest.mark.parametrize(
        ("fault", "kind"), [({"fail_rate": 1.0}, "server"), ({"rate_limit": 0.001}, "rate_limited")]
    )
    async def test_faults_are_typed(self, monkeypatch: pytest.MonkeyPatch, fault: dict[str, float], kind: str) -> None:
        async with serving(**fault) as address, backend(address, monkeypatch) as made:
            with suppress(ModelError):
                await made.complete(OPENING, Decoding(), step_key="first")
            with pytest.raises(ModelError) as caught:
                await made.complete(OPENING, Decoding(), step_key="second")
        assert caught.value.kind == kind
        assert (caught.value.retry_after_s is not None) == (kind == "rate_limited")

    async def test_stats_name_the_step(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with serving() as address, backend(address, monkeypatch) as made:
            await made.complete(OPENING, Decoding(), step_key="é/100%")
            assert list((await stats_of(address))["by_step"]) == ["é/100%"]
