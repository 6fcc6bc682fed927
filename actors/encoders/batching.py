"""Request batching for encoders: texts that wait at the same time are encoded together, and each text once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Protocol

import numpy as np
import numpy.typing as npt
import structlog

from moot.actors.encoders.interface import Rows, unit_rows
from moot.actors.models.interface import ModelError
from moot.actors.models.openai_errors import plain
from moot.actors.models.retry import RetryPolicy, call_with_retries
from moot.protocols.errors import ConfigError, EncoderFailed, ModelUnavailable

Forward = Callable[[list[str]], npt.NDArray[np.floating]]
"""Encoding function: one row per text, not yet of unit length."""

log = structlog.get_logger(__name__)

MOST_TEXTS = 64
"""Most texts of one batch."""

_SAMPLE = "Can penguins fly?"
_OF_ONE_TEXT = frozenset({"request", "context_length", "content_filter"})
"""Kinds of failure that one text, or too many of them, can cause: the batch is then split and retried."""


class BatchBackend(Protocol):
    """Interface of a backend that encodes one batch at a time.

    Attributes:
        name: as `Encoder.name`.
        dimension: as `Encoder.dimension`.
        most_under_way: most batches in flight.
        deadline_s: seconds that a batch may take and a text may wait; None for local work, which has no deadline.
    """

    name: str
    dimension: int | None
    most_under_way: int
    deadline_s: float | None

    async def encode_batch(self, texts: Sequence[str]) -> Rows:
        """Encode a batch: unit vectors, one per text; without retries. Raises `ModelError`."""
        ...

    async def check(self) -> None:
        """Raise a `UserError` for what is missing; encodes nothing."""
        ...

    async def close(self) -> None:
        """Release connections and threads."""
        ...


class ThreadedBackend:
    """Base class of a backend that computes in its own thread, loaded on first use, one batch at a time.

    Args:
        name: what embeddings are stored under.
        thread: name of the thread.
    """

    most_under_way = 1
    deadline_s: float | None = None

    def __init__(self, name: str, thread: str) -> None:
        self.name = name
        self.dimension: int | None = None
        self._forward: Forward | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=thread)

    def load(self) -> Forward:
        """Load the model and return its encoding function; called in the thread. May raise any error."""
        raise NotImplementedError

    async def encode_batch(self, texts: Sequence[str]) -> Rows:
        """See `BatchBackend.encode_batch`.

        Raises:
            ModelError: `refused` when the model cannot be loaded, `request` when it cannot encode these texts,
                `unparsable` when a vector is zero or not finite.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._encoded, list(texts))

    async def close(self) -> None:
        """Release the model, once the batch in flight is done."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._forward = None

    def _encoded(self, texts: list[str]) -> Rows:
        if self._forward is None:
            try:
                self._forward = self.load()
            except ConfigError as error:
                raise ModelError("refused", plain(f"the model cannot be loaded: {error}")) from None
            except Exception as error:
                message = f"the model cannot be loaded: {type(error).__name__}: {error}"
                raise ModelError("refused", plain(message)) from error
        try:
            rows = self._forward(texts)
        except Exception as error:
            raise ModelError("request", plain(f"the forward pass failed: {type(error).__name__}: {error}")) from error
        try:
            found = unit_rows(rows)
        except ValueError as error:
            raise ModelError("unparsable", str(error)) from None
        self.dimension = found.shape[1]
        return found


class _PendingText:
    """Text that calls wait for.

    Attributes:
        row: future of its vector or of the error; an error is a value here, so that nobody has to retrieve it.
        waiting: number of calls that wait for it.
        batch: the task that encodes it; None while it is queued.
    """

    __slots__ = ("batch", "row", "text", "waiting")

    def __init__(self, text: str) -> None:
        self.text = text
        self.row: asyncio.Future[npt.NDArray[np.float32] | ModelError] = asyncio.get_running_loop().create_future()
        self.waiting = 0
        self.batch: asyncio.Task[None] | None = None


class BatchedEncoder:
    """Batched encoder: calls of all debates of its event loop are sent together.

    A batch is sent as soon as the backend has a free slot; until then texts are queued for the next batch. A text that
    several debates need is encoded once. A cancelled call removes its texts, and cancels a batch only when no other
    call waits for it. A text that the backend refuses fails its own callers, not the rest of its batch.

    Args:
        backend: encodes a batch.
        retry: policy for failed batches.
        most_texts: most texts of one batch, at least 1.
    """

    def __init__(self, backend: BatchBackend, retry: RetryPolicy, *, most_texts: int = MOST_TEXTS) -> None:
        self.name = backend.name
        self._backend, self._retry, self._most_texts = backend, retry, most_texts
        self._pending: dict[str, _PendingText] = {}
        self._queued: dict[str, _PendingText] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._scheduled = False

    @property
    def dimension(self) -> int | None:
        """Length of a vector; None until the first vectors arrive."""
        return self._backend.dimension

    async def encode(self, texts: Sequence[str]) -> Rows:
        """See `Encoder.encode`. Waits at most the backend's deadline.

        Raises:
            EncoderFailed: with the kind of the failure, after retries.
        """
        if not texts:
            return np.empty((0, self.dimension or 0), np.float32)
        mine = {text: self._enqueue(text) for text in dict.fromkeys(texts)}
        try:
            async with asyncio.timeout(self._backend.deadline_s):
                await asyncio.wait([pending.row for pending in mine.values()])
        except TimeoutError:
            raise self._failed(self._timed_out()) from None
        finally:
            for pending in mine.values():
                self._release(pending)
        rows = {text: self._row(pending) for text, pending in mine.items()}
        return np.stack([rows[text] for text in texts])

    async def check(self) -> None:
        """See `Encoder.check`.

        Raises:
            UserError: one line about what is missing, or `ModelUnavailable` with the backend's message.
        """
        await self._backend.check()
        try:
            await self.encode([_SAMPLE])
        except EncoderFailed as error:
            raise ModelUnavailable(f"encoder {self.name}: {error.message}") from None

    async def close(self) -> None:
        """Fail what is in flight or queued, and release the backend."""
        self._finish(list(self._queued.values()))
        under_way = list(self._under_way)
        for batch in under_way:
            batch.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self._backend.close()

    def _enqueue(self, text: str) -> _PendingText:
        pending = self._pending.get(text)
        if pending is None:
            pending = self._pending[text] = self._queued[text] = _PendingText(text)
            self._schedule_sending()
        pending.waiting += 1
        return pending

    def _release(self, pending: _PendingText) -> None:
        pending.waiting -= 1
        if pending.waiting or pending.row.done():
            return
        self._remove(pending)
        batch = pending.batch
        if batch is not None and not any(other.batch is batch for other in self._pending.values()):
            batch.cancel()

    def _remove(self, pending: _PendingText) -> None:
        for known in (self._pending, self._queued):
            if known.get(pending.text) is pending:
                del known[pending.text]

    def _row(self, pending: _PendingText) -> npt.NDArray[np.float32]:
        row = pending.row.result()
        if isinstance(row, ModelError):
            raise self._failed(row)
        return row

    def _failed(self, error: ModelError) -> EncoderFailed:
        return EncoderFailed(self.name, error.kind, error.message)

    def _timed_out(self) -> ModelError:
        return ModelError("timeout", f"no vectors within {self._backend.deadline_s:g} s")

    def _schedule_sending(self) -> None:
        """Schedule sending for the loop's next iteration, so that texts of this iteration share a batch."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._send_queued)

    def _send_queued(self) -> None:
        self._scheduled = False
        while self._queued and len(self._under_way) < self._backend.most_under_way:
            batch = list(islice(self._queued.values(), self._most_texts))
            task = asyncio.create_task(self._encode(batch), name=f"embeddings of {len(batch)} texts")
            task.add_done_callback(partial(self._batch_done, batch))
            self._under_way.add(task)
            for pending in batch:
                del self._queued[pending.text]
                pending.batch = task

    async def _encode(self, batch: Sequence[_PendingText]) -> None:
        rows = await self._within_deadline([pending.text for pending in batch])
        for pending, row in zip(batch, rows, strict=True):
            pending.row.set_result(row)

    def _batch_done(self, batch: Sequence[_PendingText], task: asyncio.Task[None]) -> None:
        """Callback of a batch that finished, or that was cancelled, perhaps before it began."""
        self._under_way.discard(task)
        self._finish(batch)
        if self._queued:
            self._schedule_sending()

    def _finish(self, texts: Sequence[_PendingText]) -> None:
        """Remove texts from the queue; those without a vector fail."""
        for pending in texts:
            self._remove(pending)
            if not pending.row.done():
                pending.row.set_result(ModelError("connection", "the encoder was closed"))

    async def _within_deadline(self, texts: Sequence[str]) -> Sequence[npt.NDArray[np.float32] | ModelError]:
        try:
            async with asyncio.timeout(self._backend.deadline_s):
                rows = list(await self._rows(texts))
                if len(rows) != len(texts):
                    raise ValueError(f"{len(rows)} vectors for {len(texts)} texts")
                return rows
        except TimeoutError:
            return [self._timed_out()] * len(texts)
        except Exception as bug:
            log.exception("the encoder raised")
            return [ModelError("bug", plain(f"{type(bug).__name__}: {bug}"))] * len(texts)

    async def _rows(self, texts: Sequence[str]) -> Iterable[npt.NDArray[np.float32] | ModelError]:
        """Encode with bisection on failure: a vector, or an error, per text."""
        try:
            rows = await call_with_retries(self._retry, lambda: self._backend.encode_batch(texts))
        except ModelError as error:
            if error.kind not in _OF_ONE_TEXT or len(texts) == 1:
                return [error] * len(texts)
            middle = len(texts) // 2
            return [*await self._rows(texts[:middle]), *await self._rows(texts[middle:])]
        return rows
