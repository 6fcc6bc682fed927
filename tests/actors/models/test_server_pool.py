"""Several servers behind one model's name."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import pytest
from aiohttp import web
from aiohttp.test_utils import unused_port
from openai_server import DECODING, MESSAGES, completion, serving
from pool_servers import key_at

from moot.actors.agent.backend_factory import make_model
from moot.actors.models.interface import Model, ModelError, ModelReply
from moot.actors.models.resolve import ModelBinding, ModelSpec, canonical_model
from moot.actors.models.server_pool import FULL_S, HUNG_S, LEFT_OUT_S, ServerPool
from moot.deploy.runs.flag_parsers import parse_roles
from moot.protocols.errors import ConfigError, ModelUnavailable


class Servers:
    """Two servers; what each was asked, and whether it fails."""

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()
        self.failing: set[int] = set()
        self.status = 500
        self.headers: dict[str, str] = {}
        self.arrived = asyncio.Event()
        self.lists_models = True
        self.gate = asyncio.Event()
        self.gate.set()
        self.awaited = -1
        self.now = 100.0

    async def handle(self, number: int, request: web.Request) -> web.Response:
        if request.method == "GET":
            await (self.gate.wait() if not self.lists_models else asyncio.sleep(0))
            return web.json_response({"data": [{"id": "m"}]})
        self.calls[number] += 1
        self.arrived.set()
        if self.calls.total() == self.awaited:
            self.gate.set()
        await self.gate.wait()
        if number in self.failing:
            return web.json_response({"error": {"message": "out of order"}}, status=self.status, headers=self.headers)
        return web.json_response(completion())


@asynccontextmanager
async def pool(servers: Servers, count: int = 2) -> AsyncIterator[ServerPool]:
    async with AsyncExitStack() as stack:
        handlers = [partial(servers.handle, number) for number in range(count)]
        urls = [await stack.enter_async_context(serving(handler)) for handler in handlers]
        model = ServerPool(urls, "m", clock=lambda: servers.now)
        stack.push_async_callback(model.close)
        yield model


async def ask(model: Model, place: int = 0) -> ModelReply:
    """A reply in a debate whose first server is that at a place."""
    step_key = key_at(model, place) if isinstance(model, ServerPool) else "c"
    return await model.complete(MESSAGES, DECODING, step_key=step_key)


@pytest.fixture
def servers() -> Servers:
    return Servers()


async def test_the_calls_of_a_debate_go_to_one_server(servers: Servers) -> None:
    async with pool(servers) as model:
        for debate in range(20):
            step_keys = [f"case-{debate}/0/round/{number}" for number in range(3)]
            replies = [await model.complete(MESSAGES, DECODING, step_key=step_key) for step_key in step_keys]
            assert len({reply.server for reply in replies}) == 1
    assert servers.calls.total() == 60
    assert min(servers.calls[0], servers.calls[1]) > 0


@pytest.mark.parametrize("debates", [1, 40])
async def test_a_server_without_room_leaves_calls_to_the_others(servers: Servers, debates: int) -> None:
    """None has more than 1.25 of the mean, rounded up, whatever the debates' first servers are."""
    servers.gate.clear()
    servers.awaited = 40
    async with pool(servers) as model:
        step_keys = [f"case-{call % debates}/0/{call}" for call in range(40)]
        await asyncio.gather(*(model.complete(MESSAGES, DECODING, step_key=step_key) for step_key in step_keys))
    assert max(servers.calls.values()) <= 25


async def test_parallel_calls_of_a_debate_share_an_idle_server(servers: Servers) -> None:
    servers.gate.clear()
    servers.awaited = 4
    async with pool(servers) as model:
        await asyncio.gather(*(ask(model) for _ in range(4)))
    assert servers.calls == {0: 4}


@pytest.mark.parametrize(("headers", "full_s"), [({}, FULL_S), ({"Retry-After": "30"}, 30.0)])
async def test_a_server_that_refuses_a_call_for_its_rate_has_no_room_for_a_while(
    servers: Servers, headers: dict[str, str], full_s: float
) -> None:
    servers.failing, servers.status, servers.headers = {0}, 429, headers
    async with pool(servers) as model:
        with pytest.raises(ModelError) as refused:
            await ask(model)
        assert refused.value.retry_after_s is None, "the other server takes the next call at once"
        servers.gate.clear()
        servers.awaited = 41
        await asyncio.gather(*(ask(model, place) for place in range(40)))
        assert servers.calls == {0: 1, 1: 40}, "the other one has room for all"
        servers.failing, servers.now = set(), servers.now + full_s
        await ask(model)
    assert servers.calls == {0: 2, 1: 40}


async def test_where_all_servers_refuse_calls_their_wait_is_kept_and_each_gets_some(servers: Servers) -> None:
    servers.failing, servers.status, servers.headers = {0, 1}, 429, {"Retry-After": "30"}
    async with pool(servers) as model:
        refusals = [await asyncio.gather(ask(model, place), return_exceptions=True) for place in (0, 0, 1, 0)]
    waits = [each.retry_after_s for (each,) in refusals if isinstance(each, ModelError)]
    assert waits == [None, 30.0, 30.0, 30.0]
    assert servers.calls == {0: 2, 1: 2}


async def test_a_server_that_fails_is_left_out_and_tried_again(servers: Servers) -> None:
    servers.failing = {0}
    async with pool(servers) as model:
        with pytest.raises(ModelError):
            await ask(model)
        for _ in range(4):
            await ask(model)
        assert servers.calls == {0: 1, 1: 4}
        servers.failing, servers.now = set(), servers.now + LEFT_OUT_S
        await ask(model)
        assert servers.calls == {0: 2, 1: 4}


async def test_a_server_that_was_left_out_is_tried_with_one_call_while_others_work(servers: Servers) -> None:
    servers.failing = {0}
    async with pool(servers) as model:
        with pytest.raises(ModelError):
            await ask(model)
        servers.now += LEFT_OUT_S
        calls = (ask(model) for number in range(8))
        ended = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in ended].count(ModelError) == 1
    assert servers.calls == {0: 2, 1: 7}


@pytest.mark.parametrize(("waited_s", "out"), [(HUNG_S - 1, False), (HUNG_S, True)])
async def test_a_server_from_which_nothing_comes_is_left_out(servers: Servers, waited_s: float, out: bool) -> None:
    servers.gate.clear()
    async with pool(servers) as model:
        hung = asyncio.create_task(ask(model))
        await servers.arrived.wait()
        servers.now += waited_s
        hung.cancel()
        await asyncio.gather(hung, return_exceptions=True)
        servers.gate.set()
        (number,) = servers.calls
        for place in range(4):
            await ask(model, place)
    assert servers.calls[number] == (1 if out else 3)


@pytest.mark.parametrize("hung", [True, False])
async def test_a_call_to_a_hung_server_is_given_up_and_a_long_one_is_waited_for(
    servers: Servers, hung: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.actors.models.server_pool.HUNG_S", 0.05)
    monkeypatch.setattr("moot.actors.models.server_pool._CHECK_S", 0.05)
    servers.gate.clear()
    servers.lists_models = not hung
    async with pool(servers) as model:
        call = asyncio.create_task(ask(model))
        await asyncio.wait({call}, timeout=0.5)
        assert call.done() == hung
        servers.gate.set()
        if hung:
            with pytest.raises(ModelError, match="nothing comes from"):
                await call
            (first,) = servers.calls
            await ask(model)
            assert servers.calls == {first: 1, 1 - first: 1}
        else:
            assert (await call).text


async def test_with_all_of_them_down_one_is_asked_all_the_same(servers: Servers) -> None:
    servers.failing = {0, 1}
    async with pool(servers) as model:
        for _ in range(3):
            with pytest.raises(ModelError):
                await ask(model)
        servers.failing = set()
        await ask(model)


async def test_one_that_answers_is_enough_to_begin(servers: Servers) -> None:
    async with pool(servers, count=1) as alive:
        url = alive.name.removeprefix("http://").partition("/")[0]
        found = make_model(ModelBinding(model=f"http://127.0.0.1:{unused_port()},{url}/v1#m"), seed=0, answer_key=None)
        await found.check()
        await ask(found)
        await found.close()
    with pytest.raises(ModelUnavailable):
        await found.check()
    await found.close()


def test_the_name_of_several_servers() -> None:
    name = "http://a:8000,b:9000/v1/#m"
    assert canonical_model(name) == "http://a:8000,b:9000/v1#m"
    spec = ModelSpec.parse(name)
    assert (spec.base_url, spec.more_urls, spec.model) == ("http://a:8000/v1", ("http://b:9000/v1",), "m")
    assert canonical_model("http://a:8000/v1#m") == "http://a:8000/v1#m"
    with pytest.raises(ConfigError):
        ModelSpec.parse("http://a:8000,,b/v1#m")
    with pytest.raises(ConfigError, match="several servers share one path"):
        ModelSpec.parse("http://a:8000/v1,http://b:8000/v1#m")
    members = parse_roles([f"agent=simulated,{name}"])["agent"]
    assert [member["model"] for member in members] == ["simulated", name]
