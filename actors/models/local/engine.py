"""Generation engine: one copy of a model's weights in this process, and the thread that generates with it."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from pathlib import Path

import torch

from moot.actors.models.interface import ModelError
from moot.actors.models.local.generation import Generation
from moot.actors.models.local.sequence import GenerationRequest
from moot.actors.models.local.token_mask import TokenMasks
from moot.actors.models.local.weights import load_weights
from moot.actors.models.openai_errors import plain


class GenerationEngine:
    """Generation engine: generates submitted requests in batches as large as fit; starts to load on construction.

    Waiting calls join the batch between two steps, in FIFO order, and leave it when their reply ends or their future is
    cancelled. All of it runs in a dedicated thread.

    Attributes:
        folder: of the model.
        loaded: future of the masks of constrained replies; resolved once the weights are in memory.

    Args:
        folder: of the model.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loaded: Future[TokenMasks] = Future()
        self._waiting: deque[GenerationRequest] = deque()
        self._changed = threading.Condition()
        self._stopped = ""
        self._thread = threading.Thread(target=self._run, name=f"local-{folder.name}", daemon=True)
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Whether the weights could not be loaded."""
        return self.loaded.done() and self.loaded.exception() is not None

    def submit(self, call: GenerationRequest) -> None:
        """Submit a generation request; returns at once."""
        with self._changed:
            if not self._stopped:
                self._waiting.append(call)
                self._changed.notify()
                return
        call.fail(ModelError("request", self._stopped))

    def stop(self) -> None:
        """Cancel what is in flight and free the weights; returns when that is done."""
        with self._changed:
            self._stopped = self._stopped or f"the model of {self.folder} was closed"
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        try:
            weights = load_weights(self.folder)
            generation = Generation(weights)
        except Exception as error:
            self._end(plain(str(error)))
            self.loaded.set_exception(error)
            return
        self.loaded.set_result(TokenMasks(weights.tokenizer, weights.vocabulary, sorted(weights.ends)))
        with torch.inference_mode():
            while self._work_to_do(generation):
                generation.admit(self._next_call)
                generation.step()
        generation.close(self._stopped)
        self._end(self._stopped)
        del generation, weights
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _work_to_do(self, generation: Generation) -> bool:
        """Wait until there is work; False once the engine is stopped."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._stopped or self._waiting or generation.busy))
            return not self._stopped

    def _next_call(self) -> GenerationRequest | None:
        with self._changed:
            return self._waiting.popleft() if self._waiting else None

    def _end(self, why: str) -> None:
        with self._changed:
            self._stopped = why
            left, self._waiting = self._waiting, deque()
        for call in left:
            call.fail(ModelError("request", why))


_shared: dict[Path, tuple[GenerationEngine, int]] = {}
_sharing = threading.Lock()


def acquire_engine(folder: Path) -> GenerationEngine:
    """Acquires the process's shared engine of a folder, created on first use; release it with `release_engine`."""
    with _sharing:
        engine, users = _shared.get(folder.resolve(), (None, 0))
        if engine is None or engine.failed:
            engine, users = GenerationEngine(folder), 0
        _shared[folder.resolve()] = (engine, users + 1)
    return engine


def release_engine(engine: GenerationEngine) -> None:
    """Releases an engine; the last release stops it, and waits until the weights are freed."""
    key = engine.folder.resolve()
    with _sharing:
        shared, users = _shared.get(key, (None, 0))
        if shared is not engine:
            return
        if users > 1:
            _shared[key] = (engine, users - 1)
            return
        del _shared[key]
    engine.stop()
