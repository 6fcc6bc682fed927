"""The retry policy on a fake clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from moot.actors.models.interface import ModelError, ModelReply
from moot.actors.models.retry import RETRIED_KINDS, RetryPolicy, call_with_retries
from moot.protocols.messages import Usage

REPLY = ModelReply("ok", "stop", Usage())
Outcome = ModelReply | ModelError


class World:
    """A clock that moves only when somebody sleeps, and a model with scripted outcomes."""

    def __init__(self, *outcomes: Outcome, call_s: float = 0.0) -> None:
        self.now = 100.0
        self.waits: list[float] = []
        self.calls = 0
        self._call_s = call_s
        self._outcomes: Iterator[Outcome] = iter(outcomes)

    async def attempt(self) -> ModelReply:
        self.calls += 1
        self.now += self._call_s
        outcome = next(self._outcomes)
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    async def run(self, policy: RetryPolicy) -> ModelReply:
        return await call_with_retries(
            policy, self.attempt, sleep=self.sleep, uniform=lambda low, high: high, clock=lambda: self.now
        )


def failed(kind: str, retry_after_s: float | None = None) -> ModelError:
    return ModelError(kind, "no", retry_after_s)


@pytest.mark.parametrize("kind", sorted(RETRIED_KINDS))
async def test_passing_failures_are_retried(kind: str) -> None:
    world = World(failed(kind), failed(kind), REPLY)
    reply = await world.run(RetryPolicy())
    assert reply.http_attempts == world.calls == 3
    assert world.waits == [0.5, 1.0]


@pytest.mark.parametrize(
    "kind", ["refused", "request", "context_length", "content_filter", "unparsable", "something new"]
)
async def test_other_failures_are_not(kind: str) -> None:
    world = World(failed(kind), REPLY)
    with pytest.raises(ModelError, match=kind):
        await world.run(RetryPolicy())
    assert (world.calls, world.waits) == (1, [])


@pytest.mark.parametrize(
    ("policy", "failures", "waits"),
    [
        (RetryPolicy(), [failed("server")] * 6, [0.5, 1, 2, 4, 8]),
        (RetryPolicy(cap_s=3), [failed("server")] * 6, [0.5, 1, 2, 3, 3]),
        (RetryPolicy(max_attempts=1), [failed("server")], []),
        (RetryPolicy(max_attempts=2, base_s=0), [failed("server", 7)] * 2, [7]),
        (RetryPolicy(max_attempts=2), [failed("server", 7)] * 2, [7.5]),
        (RetryPolicy(max_attempts=2), [failed("server", 0)] * 2, [0.5]),
        (RetryPolicy(max_attempts=2, retry_after_cap_s=5), [failed("server", 3600)] * 2, [5.5]),
        (RetryPolicy(max_attempts=1), [failed("rate_limited", 7)] * 5, [7.5] * 4),
        (RetryPolicy(max_attempts=2), [failed("rate_limited", 0)] * 5 + [failed("server")], [0.5] * 5),
        (RetryPolicy(total_s=3.4), [failed("server")] * 6, [0.5, 1]),
        (RetryPolicy(total_s=3.5), [failed("server")] * 6, [0.5, 1, 2]),
        (RetryPolicy(total_s=5), [failed("rate_limited", 10)] * 6, []),
    ],
)
async def test_waits_and_when_it_gives_up(policy: RetryPolicy, failures: list[ModelError], waits: list[float]) -> None:
    world = World(*failures)
    with pytest.raises(ModelError) as caught:
        await world.run(policy)
    assert world.waits == waits
    assert world.calls == len(waits) + 1
    assert caught.value is failures[len(waits)]
    assert world.now - 100 <= policy.total_s


async def test_jitter_is_full() -> None:
    drawn: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        drawn.append((low, high))
        return low

    world = World(failed("server"), failed("rate_limited", 2.0), REPLY)
    await call_with_retries(RetryPolicy(), world.attempt, sleep=world.sleep, uniform=uniform)
    assert drawn == [(0.0, 0.5), (0.0, 0.5)]
    assert world.waits == [0.0, 2.0]


@pytest.mark.parametrize("error", [ValueError("bug"), asyncio.CancelledError()])
async def test_everything_else_passes_through(error: BaseException) -> None:
    calls = 0

    async def attempt() -> ModelReply:
        nonlocal calls
        calls += 1
        raise error

    with pytest.raises(type(error)):
        await call_with_retries(RetryPolicy(), attempt)
    assert calls == 1
