"""Python API of runs: `run`, `arun` and `stream`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from moot.actors.agent.roles import RoleBinding
from moot.actors.record.progress import StreamedEvent
from moot.actors.record.signals import Signals
from moot.actors.telemetry.log import configure_unless_done
from moot.deploy.runs.interruption import run_in_thread
from moot.deploy.runs.listener import Listener
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.prepare import Prepared, prepare
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.session import Session
from moot.protocols.errors import ConfigError

__all__ = ["Role", "Run", "arun", "run", "stream"]

Base = RunConfig | Mapping[str, Any] | str | Path
"""Source of fields not among the options: a configuration, its fields, or a YAML file's path."""

Role = str | RoleBinding | Mapping[str, Any]
"""Binding of a role: a model's name, a binding, or its fields that differ from the defaults."""


async def arun(config: Base | None = None, **options: Any) -> Run:
    """Run debates, or resume an interrupted run.

    `options` are fields of `RunConfig` that override `config`. `task` may also be a `Task` or a list of cases, and
    `protocol` an object with `async def run(self, case, floor)`.

    >>> import asyncio, tempfile
    >>> out = tempfile.mkdtemp() + "/run"
    >>> done = asyncio.run(arun(task="sample", limit=2, engine="inline", out=out))
    >>> done.status, done.exit_code, done.table("verdicts").num_rows
    ('finished', 0, 2)

    After a cancellation the same call resumes the run.

    Raises:
        UserError: the configuration is invalid, or a model cannot be used; nothing was written.
    """
    prepared = await asyncio.to_thread(prepare_from, config, options)
    return await Session(prepared).run()


def run(config: Base | None = None, **options: Any) -> Run:
    """Run debates like `arun`, but synchronously; also inside a running event loop, as in a notebook.

    Ctrl-C drains the run, then raises `KeyboardInterrupt`; the same call resumes it.

    Raises:
        UserError: the configuration is invalid, or a model cannot be used; nothing was written.
    """
    return run_in_thread(Session(prepare_from(config, options)))


Streamed = StreamedEvent | Signals | Run
"""Items of a stream."""


async def stream(config: Base | None = None, **options: Any) -> AsyncIterator[Streamed]:
    """Run debates like `arun`, but yield every event while the run is in progress, and the `Run` at the end.

    A run with judged replies also yields `Signals` of all of them: about once a second while they change, and once
    right before the end.

    Leaving the loop early drains the run.

    Raises:
        UserError: the configuration is invalid, or a model cannot be used; nothing was written.
    """
    prepared = await asyncio.to_thread(prepare_from, config, options)
    queue: asyncio.Queue[StreamedEvent | Signals | None] = asyncio.Queue()
    session = Session(prepared, _QueueListener(queue))
    running = asyncio.create_task(session.run())
    running.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        yield await running
    finally:
        if not running.done():
            session.stop()
            await asyncio.wait([running])


def build_configuration(config: Base | None, options: Mapping[str, Any]) -> tuple[RunConfig, dict[str, Any]]:
    """Configuration from a base and options, and the `task` and `protocol` objects among the options.

    Raises:
        UserError: the configuration is invalid.
    """
    configure_unless_done()
    objects = {key: options[key] for key in ("task", "protocol") if not isinstance(options.get(key), str | None)}
    if isinstance(objects.get("task"), Mapping) or isinstance(objects.get("protocol"), type):
        raise ConfigError("expected a list of cases as `task`, and an object, not a class, as `protocol`")
    return RunConfig.build(config, {key: value for key, value in options.items() if key not in objects}), objects


def prepare_from(config: Base | None, options: Mapping[str, Any]) -> Prepared:
    """Prepared run from a base and options.

    Raises:
        UserError: the configuration is invalid.
    """
    built, objects = build_configuration(config, options)
    return prepare(built, **objects)


class _QueueListener(Listener):
    """Listener that puts events and signals into a queue."""

    wants_events = True

    def __init__(self, queue: asyncio.Queue[StreamedEvent | Signals | None]) -> None:
        self._queue = queue

    def events(self, events: Sequence[StreamedEvent]) -> None:
        """See `Listener.events`."""
        for event in events:
            self._queue.put_nowait(event)

    def signals(self, signals: Signals) -> None:
        """See `Listener.signals`."""
        self._queue.put_nowait(signals)
