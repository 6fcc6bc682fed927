"""Stage engine: the driver's handle of a stage actor, created on first use and closed explicitly, by garbage collection
or at exit."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary, finalize

import ray
import structlog
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from moot.actors.remote.scheduling import FOREVER
from moot.deploy.runs.ray_data.row_kinds import RowKind
from moot.deploy.runs.ray_data.stage_actor import CONTROL, StageActor
from moot.protocols.errors import ConfigError

_log = structlog.get_logger(__name__)
MAX_BATCHES = 1000
"""Maximum number of concurrent batches; further ones are queued by the actor."""

_CLOSE_TIMEOUT_S = 90.0
"""Timeout in seconds, after the drain, for flushing the record and shutting the engine down."""


class EngineHandle:
    """Handle of a running or starting actor.

    Args:
        args: arguments of `StageActor`.
    """

    def __init__(self, *args: Any) -> None:
        context = ray.get_runtime_context()
        self.name, self.namespace, self.node = f"moot-stage-{uuid4().hex[:8]}", context.namespace, context.get_node_id()
        # The record's folder is on this node.
        on_this_node = NodeAffinitySchedulingStrategy(self.node, soft=False)
        self._handle = (
            ray.remote(concurrency_groups={CONTROL: 4})(StageActor)
            .options(
                name=self.name,
                num_cpus=0,
                max_restarts=FOREVER,
                # Calls may be retried: a repeated batch gets finished results from the record, and closing
                # is idempotent.
                max_task_retries=FOREVER,
                max_concurrency=MAX_BATCHES,
                scheduling_strategy=on_this_node,
            )
            .remote(*args)
        )

    def close(self, drain_s: float) -> None:
        """Close the run, then end the actor. No-op after Ray's shutdown."""
        if not ray.is_initialized() or ray.get_runtime_context().get_node_id() != self.node:
            return
        try:
            ray.get(self._handle.close.remote(drain_s), timeout=drain_s + _CLOSE_TIMEOUT_S)
        except Exception as error:  # the journal is durable
            _log.warning("a stage was not closed in order; its next run resumes from the record", error=str(error))
        finally:
            with suppress(Exception):
                ray.kill(self._handle)


class StageEngine:
    """Engine of a run, shared by all stages of this process with the same record and configuration.

    Args:
        config: the run's configuration as JSON.
        protocol: a user's own protocol object instead of the configured one.
        kind: the kind of rows.
    """

    def __init__(self, config: str, protocol: object | None, kind: RowKind) -> None:
        self._args = (config, protocol, kind, os.getcwd())
        self._lock = threading.Lock()
        self._box: dict[str, EngineHandle] = {}
        self._closed = False
        _OPEN[id(self)] = self._box
        finalize(self, _close_unreferenced, id(self), self._box).atexit = False

    def start(self) -> EngineHandle:
        """Handle of the actor, created on first use.

        Raises:
            ConfigError: the stage is closed.
        """
        with self._lock:
            if self._closed:
                raise ConfigError("the stage is closed: use its dataset before closing it, or create another stage")
            started = self._box.get("actor")
            if started is None or ray.get_runtime_context().get_node_id() != started.node:
                started = self._box["actor"] = _start_in_thread(self._args)
            return started

    def close(self, drain_s: float) -> None:
        """Close the run and end its actor. Idempotent."""
        with self._lock:
            self._closed = True
            started = self._box.pop("actor", None)
        if started is not None:
            started.close(drain_s)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed


_OPEN: dict[int, dict[str, EngineHandle]] = {}
_SHARED: WeakValueDictionary[tuple[str, RowKind], StageEngine] = WeakValueDictionary()


def engine_for(config: str, protocol: object | None, kind: RowKind) -> StageEngine:
    """Engine of a configuration, which includes its record's folder: the existing one, or a new one.

    A protocol object always gets a new engine.
    """
    if protocol is not None:
        return StageEngine(config, protocol, kind)
    engine = _SHARED.get((config, kind))
    if engine is None or engine.closed:
        engine = _SHARED[config, kind] = StageEngine(config, None, kind)
    return engine


def _start_in_thread(args: tuple[Any, ...]) -> EngineHandle:
    """New actor, started in a separate thread: the caller may be Ray pickling a pipeline, which is not reentrant."""
    handles: list[EngineHandle] = []
    errors: list[BaseException] = []

    def start() -> None:
        try:
            handles.append(EngineHandle(*args))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=start, name="moot-stage")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return handles[0]


def _close_unreferenced(key: int, box: Mapping[str, EngineHandle]) -> None:
    """Finalizer of a stage engine. Garbage collection may run in any thread, so closing has a thread of its own."""
    _OPEN.pop(key, None)
    for started in box.values():
        threading.Thread(target=started.close, args=(0.0,), name="moot-stage-closing").start()


@atexit.register
def _close_all() -> None:
    """Exit hook: close the records while Ray is still running."""
    while _OPEN:
        _, box = _OPEN.popitem()
        for started in box.values():
            started.close(0.0)
