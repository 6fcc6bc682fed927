"""Texts of many debates in one batch: what leaves together, what fails alone, what is cancelled."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import pytest

from moot.actors.encoders.batching import BatchedEncoder
from moot.actors.encoders.hashed_ngrams import HashedNgramEncoder
from moot.actors.encoders.interface import Rows
from moot.actors.models.interface import ModelError
from moot.actors.models.retry import RetryPolicy
from moot.protocols.errors import EncoderFailed, ModelUnavailable

HASHED = HashedNgramEncoder(16)
QUICK = RetryPolicy(max_attempts=3, base_s=0.0, cap_s=0.0)


class Backend:
    """Encodes what it is given, after `before`; keeps every batch and how many were under way at once."""

    name = "test"

    def __init__(
        self,
        before: Callable[[Sequence[str]], Awaitable[None]] | None = None,
        *,
        most_under_way: int = 1,
        deadline_s: float | None = None,
    ) -> None:
        self.dimension: int | None = None
        self.most_under_way, self.deadline_s = most_under_way, deadline_s
        self.batches: list[list[str]] = []
        self.cancelled: list[list[str]] = []
        self.under_way = self.most_seen = 0
        self._before = before

    async def encode_batch(self, texts: Sequence[str]) -> Rows:
        self.batches.append(list(texts))
        self.under_way += 1
        self.most_seen = max(self.most_seen, self.under_way)
        try:
            if self._before is not None:
                await self._before(texts)
            self.dimension = 16
            return HASHED.rows(texts)
        except asyncio.CancelledError:
            self.cancelled.append(list(texts))
            raise
        finally:
            self.under_way -= 1

    async def check(self) -> None:
        pass

    async def close(self) -> None:
        pass


def encoder(backend: Backend, most_texts: int = 64) -> BatchedEncoder:
    return BatchedEncoder(backend, QUICK, most_texts=most_texts)


def until(gate: asyncio.Event, word: str = "") -> Callable[[Sequence[str]], Awaitable[None]]:
    """Every batch waits until the gate is open, or each that has this text."""

    async def wait(texts: Sequence[str]) -> None:
        if not word or word in texts:
            await gate.wait()

    return wait


def failing(error: Exception, word: str = "") -> Callable[[Sequence[str]], Awaitable[None]]:
    """Every batch fails, or each that has this text."""

    async def fail(texts: Sequence[str]) -> None:
        if not word or word in texts:
            raise error

    return fail


async def turns(number: int = 5) -> None:
    """Let everything that is ready run."""
    for _ in range(number):
        await asyncio.sleep(0)


async def test_calls_of_one_moment_leave_together_and_each_gets_its_own() -> None:
    backend = Backend()
    made = encoder(backend)
    asked = [["a", "b"], ["c"], ["b", "a", "a"], []]
    found = await asyncio.gather(*(made.encode(texts) for texts in asked))
    assert backend.batches == [["a", "b", "c"]]
    for texts, rows in zip(asked[:3], found, strict=False):
        np.testing.assert_array_equal(rows, HASHED.rows(texts))
        assert rows.dtype == np.float32
    assert found[3].shape == (0, 0)
    assert (await made.encode([])).shape == (0, 16)
    assert made.dimension == 16


async def test_a_text_under_way_is_not_sent_again() -> None:
    gate = asyncio.Event()
    backend = Backend(until(gate), most_under_way=2)
    made = encoder(backend)
    first = asyncio.create_task(made.encode(["a", "b"]))
    await turns()
    second = asyncio.create_task(made.encode(["b", "c"]))
    await turns()
    gate.set()
    await asyncio.gather(first, second)
    assert backend.batches == [["a", "b"], ["c"]]
    await made.encode(["a"])
    assert backend.batches[2:] == [["a"]], "vectors are kept by the record, not by the encoder"


async def test_a_batch_that_nobody_waits_for_is_cancelled_and_its_place_is_free() -> None:
    backend = Backend(until(asyncio.Event(), "a"))
    made = encoder(backend)
    call = asyncio.create_task(made.encode(["a", "b"]))
    await turns()
    queued = asyncio.create_task(made.encode(["c"]))
    dropped = asyncio.create_task(made.encode(["d"]))
    await turns()
    dropped.cancel()
    call.cancel()
    np.testing.assert_array_equal(await queued, HASHED.rows(["c"]))
    assert backend.cancelled == [["a", "b"]]
    assert backend.batches == [["a", "b"], ["c"]]


async def test_what_may_pass_is_tried_again_and_then_fails_with_its_kind() -> None:
    failures = iter([ModelError("server", "one"), ModelError("connection", "two")])

    async def fail_twice(texts: Sequence[str]) -> None:
        for failure in failures:
            raise failure

    backend = Backend(fail_twice)
    await encoder(backend).encode(["a", "b"])
    assert backend.batches == [["a", "b"]] * 3

    backend = Backend(failing(ModelError("rate_limited", "too many")))
    made = encoder(backend)
    calls = [made.encode(["a"]), made.encode(["b"])]
    failed = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(error) for error in failed] == ["encoder test: rate_limited: too many"] * 2
    assert all(isinstance(error, EncoderFailed) for error in failed)
    assert failed[0] is not failed[1]
    assert len(backend.batches) == 15
    with pytest.raises(ModelUnavailable, match="encoder test: too many"):
        await made.check()


@pytest.mark.parametrize("kind", ["request", "context_length", "content_filter"])
async def test_a_text_that_is_refused_fails_alone(kind: str) -> None:
    backend = Backend(failing(ModelError(kind, "not this one"), "bad"))
    made = encoder(backend)
    good = [made.encode([f"{i}", f"{i}'"]) for i in range(15)]
    found = await asyncio.gather(*good[:7], made.encode(["fine", "bad"]), *good[7:], return_exceptions=True)
    failed = found.pop(7)
    assert isinstance(failed, EncoderFailed)
    assert failed.kind == kind
    for i, rows in enumerate(found):
        assert isinstance(rows, np.ndarray)
        np.testing.assert_array_equal(rows, HASHED.rows([f"{i}", f"{i}'"]))
    assert len(backend.batches) <= 1 + 2 * 5, "halves, not one request per text"


async def test_a_refused_key_is_not_tried_text_by_text() -> None:
    backend = Backend(failing(ModelError("refused", "HTTP 401")))
    with pytest.raises(EncoderFailed, match="refused: HTTP 401"):
        await encoder(backend).encode([str(i) for i in range(50)])
    assert len(backend.batches) == 1


async def test_a_deadline_is_a_failure_for_those_under_way_and_those_who_queue() -> None:
    backend = Backend(until(asyncio.Event()), deadline_s=0.05)
    made = encoder(backend)
    call = asyncio.create_task(made.encode(["a"]))
    await turns()
    failed = await asyncio.gather(call, made.encode(["queued"]), return_exceptions=True)
    assert [str(error) for error in failed] == ["encoder test: timeout: no vectors within 0.05 s"] * 2
    async with asyncio.timeout(5):
        while backend.under_way:  # noqa: ASYNC110 - the batch is being cancelled
            await asyncio.sleep(0.001)


async def test_a_bug_of_a_backend_is_a_failure_not_a_hang() -> None:
    with pytest.raises(EncoderFailed, match="bug: ZeroDivisionError: oh"):
        await encoder(Backend(failing(ZeroDivisionError("oh")))).encode(["a"])

    class TooFew(Backend):
        async def encode_batch(self, texts: Sequence[str]) -> Rows:
            return HASHED.rows(texts[:1])

    with pytest.raises(EncoderFailed, match="1 vectors for 2"):
        await encoder(TooFew()).encode(["a", "b"])


async def test_closing_ends_what_is_under_way_with_a_failure() -> None:
    backend = Backend(until(asyncio.Event()))
    made = encoder(backend)
    calls = [asyncio.create_task(made.encode(["a"]))]
    await turns()
    calls.append(asyncio.create_task(made.encode(["queued"])))
    await turns()
    await made.close()
    for call in calls:
        with pytest.raises(EncoderFailed, match="the encoder was closed"):
            await call
    await turns()
    assert backend.batches == backend.cancelled == [["a"]]


@pytest.mark.parametrize("seed", range(20))
async def test_any_mix_of_calls_and_cancellations_gives_everyone_his_own(seed: int) -> None:
    draw = random.Random(seed)

    async def sometimes(texts: Sequence[str]) -> None:
        for _ in range(draw.randrange(4)):
            await asyncio.sleep(0)
        if draw.random() < 0.1:
            raise ModelError("server", "for a while")

    backend = Backend(sometimes, most_under_way=draw.randrange(1, 4))
    made = BatchedEncoder(backend, RetryPolicy(max_attempts=30, base_s=0.0, cap_s=0.0), most_texts=3)
    calls: list[tuple[list[str], asyncio.Task[Rows]]] = []
    for _ in range(80):
        texts = [str(draw.randrange(12)) for _ in range(draw.randrange(1, 5))]
        calls.append((texts, asyncio.create_task(made.encode(texts))))
        await turns(draw.randrange(3))
        if draw.random() < 0.3:
            draw.choice(calls)[1].cancel()
    async with asyncio.timeout(20):
        await asyncio.wait([task for _, task in calls])
    for texts, task in calls:
        if not task.cancelled():
            np.testing.assert_array_equal(task.result(), HASHED.rows(texts))
    assert max(map(len, backend.batches)) <= 3
    assert backend.most_seen <= backend.most_under_way
    assert backend.under_way == 0
