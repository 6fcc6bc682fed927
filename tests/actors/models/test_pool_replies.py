"""The replies of a pool during a run: a server that lacks what the others give is noticed, and gets no such calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from openai_server import DECODING, MESSAGES, WITH_LOGPROBS
from pool_servers import PoolServer, key_at, pool_of
from structlog.testing import capture_logs

from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.interface import ModelError, ModelReply, StreamPiece
from moot.actors.models.reply_bounds import CUT_OFF
from moot.actors.models.retry import RETRIED_KINDS
from moot.actors.models.server_pool import LACKING_S, LEFT_OUT_S, ServerPool
from moot.actors.models.token_logprobs import WireToken, token_logprobs
from moot.protocols.messages import Decoding


async def ask(pool: ServerPool, place: int = 0, decoding: Decoding = WITH_LOGPROBS) -> ModelReply:
    """A reply in a debate whose first server is that at a place, counted around."""
    return await pool.complete(MESSAGES, decoding, step_key=key_at(pool, place))


def calls(*servers: PoolServer) -> list[int]:
    return [len(server.bodies) for server in servers]


async def test_a_reply_names_its_server_and_the_model_that_it_reports() -> None:
    async with pool_of(PoolServer(fingerprint="b1"), PoolServer(name="n")) as (pool, urls):
        replies = [await ask(pool, place) for place in range(2)]
    assert {(reply.server, reply.served_model) for reply in replies} == {(urls[0], "m b1"), (urls[1], "n")}


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_server_that_stops_giving_log_probabilities_gets_no_calls_that_need_them(streamed: bool) -> None:
    now, changed, other = [100.0], PoolServer(), PoolServer()

    async def asked(place: int) -> None:
        if not streamed:
            await ask(pool, place)
            return
        async with aclosing(pool.stream(MESSAGES, WITH_LOGPROBS, step_key=key_at(pool, place))) as pieces:
            _ = [piece async for piece in pieces]

    async with pool_of(changed, other, now=now) as (pool, _):
        for place in range(4):
            await asked(place)
        assert calls(changed, other) == [2, 2]
        changed.logprobs = False
        with capture_logs() as logs:
            for place in range(6):
                await asked(place)
        assert calls(changed, other) == [3, 7], "its first reply without them shows it"
        assert len(logs) == 1
        for place in range(8):
            await ask(pool, place, DECODING)
        assert min(calls(changed, other)) > 4, "calls that need none still go to it"
        before = calls(changed, other)
        changed.logprobs, now[0] = True, now[0] + LACKING_S
        await asyncio.gather(*(ask(pool, place) for place in range(6)))
        assert len(changed.bodies) - before[0] == 1, "one call tries it again"
        await asyncio.gather(*(ask(pool, place) for place in range(6)))
        assert len(changed.bodies) - before[0] == 4


async def test_a_stream_that_is_cut_as_overlong_shows_nothing_of_log_probabilities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def stream(server: CompatibleModel, *_: Any, **__: Any) -> AsyncIterator[StreamPiece]:
        asked.append(server.base_url)
        yield StreamPiece("It rains", tokens=token_logprobs([WireToken("It rains", -0.1)], 2))
        yield replace(CUT_OFF, text=" and")

    monkeypatch.setattr(CompatibleModel, "stream", stream)
    async with pool_of(PoolServer(), PoolServer()) as (pool, urls):
        with capture_logs() as logs:
            for place in range(4):
                async with aclosing(pool.stream(MESSAGES, WITH_LOGPROBS, step_key=key_at(pool, place))) as pieces:
                    assert [piece.overlong async for piece in pieces] == [False, True]
    assert (asked, logs) == (urls * 2, [])


async def test_replies_without_log_probabilities_are_used_where_no_server_gives_them() -> None:
    one, other = PoolServer(logprobs=False), PoolServer(logprobs=False)
    async with pool_of(one, other) as (pool, _):
        replies = [await ask(pool, place) for place in range(6)]
    assert calls(one, other) == [3, 3]
    assert {reply.tokens for reply in replies} == {None}


async def test_a_server_that_now_refuses_log_probabilities_costs_a_retry_and_no_ask() -> None:
    one, other = PoolServer(), PoolServer()
    async with pool_of(one, other) as (pool, urls):
        await ask(pool, 0)
        await ask(pool, 1)
        one.refuses = {"logprobs": "logprobs are not supported"}
        with pytest.raises(ModelError, match="not supported") as failed:
            await ask(pool)
        assert (failed.value.kind, urls[0] in failed.value.message) == ("server", True)
        for _ in range(3):
            await ask(pool)
        other.refuses = one.refuses
        with pytest.raises(ModelError) as refused:
            await ask(pool)
    assert refused.value.kind == "request", "with none left that gives them the failure is final"


@pytest.mark.parametrize("refuses", [{}, {"model": "no such model"}])
async def test_a_server_that_was_not_tried_gets_one_call_until_it_has_replied(refuses: dict[str, str]) -> None:
    now, late, tried = [100.0], PoolServer(refuses=refuses), PoolServer()
    async with pool_of(tried, late, untried=[1], now=now) as (pool, _):
        ended = await asyncio.gather(*(ask(pool, place) for place in range(6)), return_exceptions=True)
        kinds = [each.kind for each in ended if isinstance(each, ModelError)]
        assert (calls(tried, late), kinds) == ([5, 1], ["server"] if refuses else [])
        await asyncio.gather(*(ask(pool, place) for place in range(6)))
        assert len(late.bodies) == (1 if refuses else 4)
        now[0] += LEFT_OUT_S
        await asyncio.gather(*(ask(pool, place) for place in range(6)), return_exceptions=True)
        assert len(late.bodies) == (2 if refuses else 7)


@pytest.mark.parametrize("kind", ["request", "refused", "unparsable", "content_filter", "context_length"])
async def test_any_failure_of_a_server_that_was_not_tried_is_retried_at_another(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = CompatibleModel.complete

    async def complete(server: CompatibleModel, *args: Any, **named: Any) -> ModelReply:
        if server.base_url == urls[0]:
            raise ModelError(kind, "no")
        return await whole(server, *args, **named)

    monkeypatch.setattr(CompatibleModel, "complete", complete)
    async with pool_of(PoolServer(), PoolServer(), untried=[0], now=[100.0]) as (pool, urls):
        with pytest.raises(ModelError) as failed:
            await ask(pool)
        assert failed.value.kind in RETRIED_KINDS
        assert (await ask(pool)).server == urls[1]
    async with pool_of(PoolServer(), PoolServer(), untried=[0, 1], now=[100.0]) as (pool, urls):
        with pytest.raises(ModelError) as failed:
            await ask(pool)
        assert failed.value.kind == kind, "no other is known to work"


async def test_a_server_that_replies_as_another_model_is_said() -> None:
    server = PoolServer(fingerprint="b1")
    async with pool_of(server, PoolServer()) as (pool, _):
        with capture_logs() as logs:
            for server.fingerprint in ("b1", "b1", "b2", "b2"):
                await ask(pool)
                await ask(pool)
    assert [(line["before"], line["now"]) for line in logs] == [("m b1", "m b2")]
