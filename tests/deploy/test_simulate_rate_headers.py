"""What the simulated server's responses say of its rate limit is true, and our own readers read it back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from openai_server import simulated_server

from moot.actors.models import anthropic_limits
from moot.actors.models.anthropic_sdk import AnthropicModel
from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.interface import Model, ModelError, RateHeaders
from moot.actors.models.rate_headers import rate_headers
from moot.deploy.simulation.rate_limit import Allowance, RateLimit, anthropic_rate_headers, openai_rate_headers
from moot.protocols.messages import Decoding, Message

NOON = datetime(2026, 3, 1, 12, 0, 0, 987_654, tzinfo=timezone(timedelta(hours=2)))
ALLOWANCES = st.integers(1, 10**6).flatmap(
    lambda limit: st.builds(Allowance, st.just(limit), st.integers(0, limit), st.integers(0, 10**8))
)
HOUR_S = 3600.0
ONCE_AN_HOUR = 1 / 60.0
ASKED = (Message("user", "why is the sky blue"),)


class TestBucket:
    @given(st.floats(0.01, 1e6), st.lists(st.floats(0.0, 5.0), max_size=20))
    def test_what_is_left_is_what_it_lets_through(self, per_minute: float, waits: list[float]) -> None:
        now = [0.0]
        limit = RateLimit(per_minute, lambda: now[0])
        for wait in waits:
            now[0] += wait
            limit.wait_s()
        said = limit.allowance()
        assert 0 <= said.left <= said.limit
        passed = 0
        while passed <= said.limit and limit.wait_s() == 0.0:
            passed += 1
        assert passed == said.left

    @given(st.floats(0.01, 1e6), st.integers(1, 30))
    def test_it_is_full_when_it_says(self, per_minute: float, taken: int) -> None:
        now = [0.0]
        limit = RateLimit(per_minute, lambda: now[0])
        full = limit.allowance()
        assert (full.left, full.full_in_ms) == (full.limit, 0)
        for _ in range(taken):
            limit.wait_s()
        said = limit.allowance()
        assert said.full_in_ms > 0
        now[0] += (said.full_in_ms + 0.001) / 1000.0
        assert limit.allowance() == full

    def test_it_is_not_full_before(self) -> None:
        now = [0.0]
        limit = RateLimit(120.0, lambda: now[0])
        limit.wait_s()
        limit.wait_s()
        assert limit.allowance() == Allowance(limit=2, left=0, full_in_ms=1000)
        now[0] = 0.75
        assert limit.allowance() == Allowance(limit=2, left=1, full_in_ms=250)
        now[0] = 0.9996
        assert limit.allowance() == Allowance(limit=2, left=1, full_in_ms=1)


class TestReadBack:
    """The writers here, the readers in `moot.actors.models`."""

    @given(ALLOWANCES)
    def test_as_openai_says_it(self, allowance: Allowance) -> None:
        written = openai_rate_headers(allowance, NOON)
        check(rate_headers((name.encode(), value.encode()) for name, value in written.items()), allowance)

    @given(ALLOWANCES, st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))
    def test_as_anthropic_says_it(self, allowance: Allowance, now: datetime) -> None:
        written = anthropic_rate_headers(allowance, now)
        check(anthropic_limits.rate_headers(CIMultiDict(written), now=0.0), allowance)

    def test_spelling(self) -> None:
        said = {
            milliseconds: openai_rate_headers(Allowance(9, 1, milliseconds), NOON)["x-ratelimit-reset-requests"]
            for milliseconds in (0, 7, 999, 1000, 1500, 60_000, 361_020)
        }
        assert list(said.values()) == ["0s", "7ms", "999ms", "1s", "1.5s", "1m0s", "6m1.02s"]
        written = anthropic_rate_headers(Allowance(9, 1, 1500), NOON)
        assert written["Date"] == "Sun, 01 Mar 2026 10:00:00 GMT"
        assert written["anthropic-ratelimit-requests-reset"] == "2026-03-01T10:00:01.500Z"


def check(found: RateHeaders | None, allowance: Allowance) -> None:
    assert found is not None
    assert (found.requests_left, found.requests_limit) == (allowance.left, allowance.limit)
    assert found.reset_s == pytest.approx(allowance.full_in_ms / 1000.0, abs=1e-6)
    assert (found.tokens_left, found.tokens_limit) == (None, None)


@pytest.fixture(params=["openai", "anthropic"])
def wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The wire that is spoken."""
    monkeypatch.setenv("MOOT_TEST_KEY", "unused-but-long-enough")
    name: str = request.param
    return name


def client(wire: str, port: int) -> Model:
    if wire == "openai":
        return CompatibleModel(f"http://127.0.0.1:{port}/v1", "simulated")
    return AnthropicModel("simulated", api_key_env="MOOT_TEST_KEY", base_url=f"http://127.0.0.1:{port}")


async def limits_of_calls(wire: str, count: int, **options: Any) -> list[RateHeaders | None]:
    """What is said by each of several responses, whether they are replies or failures."""
    found = []
    with simulated_server(None, **options) as port:
        made = client(wire, port)
        try:
            for number in range(count):
                try:
                    reply = await made.complete(ASKED, Decoding(), step_key=str(number))
                    found.append(reply.limits)
                except ModelError as error:
                    found.append(error.limits)
        finally:
            await made.close()
    return found


async def test_replies_and_refusals_say_what_is_left(wire: str) -> None:
    for said in await limits_of_calls(wire, 2, rate_limit=ONCE_AN_HOUR):
        assert said is not None
        assert (said.requests_left, said.requests_limit) == (0, 1)
        assert said.reset_s is not None
        assert HOUR_S - 60.0 < said.reset_s <= HOUR_S


async def test_a_larger_bucket_is_as_large_as_a_second(wire: str) -> None:
    (said,) = await limits_of_calls(wire, 1, rate_limit=6000)
    assert said is not None
    assert said.requests_limit == 100
    assert said.requests_left is not None
    assert 99 <= said.requests_left <= 100


async def test_failures_on_purpose_say_it_too(wire: str) -> None:
    for faults in ({"fail_rate": 1.0}, {"busy_rate": 1.0}):
        (said,) = await limits_of_calls(wire, 1, rate_limit=ONCE_AN_HOUR, **faults)
        assert said is not None
        assert said.requests_left == 0


async def test_nothing_is_said_without_a_limit(wire: str) -> None:
    assert await limits_of_calls(wire, 1) == [None]


async def test_streams_and_embeddings_say_it_and_what_takes_nothing_does_not() -> None:
    chat = {"model": "m", "messages": [{"role": "user", "content": "why"}]}
    posts: list[tuple[str, dict[str, Any], str | None]] = [
        ("/v1/chat/completions", chat | {"stream": True}, "x-ratelimit-remaining-requests"),
        ("/v1/embeddings", {"model": "m", "input": "why"}, "x-ratelimit-remaining-requests"),
        ("/v1/messages", chat | {"stream": True, "max_tokens": 9}, "anthropic-ratelimit-requests-remaining"),
        ("/v1/chat/completions", {"model": "m", "messages": []}, None),
    ]
    for path, body, wanted in posts:
        with simulated_server(None, rate_limit=ONCE_AN_HOUR) as port:
            async with (
                aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
                session.post(path, json=body) as response,
                session.get("/v1/models") as free,
            ):
                said = {name.lower(): value for name, value in response.headers.items() if "ratelimit" in name.lower()}
                assert {name: said[name] for name in said if "remaining" in name} == ({wanted: "0"} if wanted else {})
                assert not [name for name in free.headers if "ratelimit" in name.lower()]
