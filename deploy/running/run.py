"""Runs from Python: `run`, `arun` and `stream`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from moot.actors.log import configure_unless_done
from moot.actors.placement import Placing
from moot.actors.record.progress import StreamedEvent
from moot.actors.record.signals import Signals
from moot.actors.roles import RoleBinding
from moot.actors.spec import Engine, Placement
from moot.deploy.running.config import RunConfig
from moot.deploy.running.interrupt import hold_in_thread
from moot.deploy.running.listener import Listener
from moot.deploy.running.outcome import Run
from moot.deploy.running.prepare import Prepared, prepare
from moot.deploy.running.session import Session
from moot.deploy.running.task import Cases
from moot.protocols.errors import ConfigError

__all__ = ["Role", "Run", "RunOptions", "arun", "run", "stream"]

Base = RunConfig | Mapping[str, Any] | str | Path
"""Where the fields come from that the options do not give: a configuration, its fields, or a YAML file's path."""

Role = str | RoleBinding | Mapping[str, Any]
"""What binds a role: a model's name, or a binding, or the fields of one that differ from the defaults."""


_PATHS = ("out", "prompts", "prices", "reuse", "classifier")


class OpenOptions(TypedDict, total=False):
    """The fields of `RunConfig` that also go for cases which come one by one; `protocol` may also be an object.

    `protocol` takes a name, or an object with `async def run(self, case, floor)`; `roles` one member or a list of them
    per family.
    """

    protocol: str | object
    preset: str | None
    model: str
    roles: Mapping[str, Role | Sequence[Role]]
    agents: int | None
    seed: int
    encoder: str
    encoder_key_env: str | None
    classifier: str | Path | None
    docs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
    out: str | Path
    placement: Placement
    cluster: Placing | Mapping[str, Any]
    set: Mapping[str, Any]
    prompts: str | Path | None
    save_tokens: Literal["none", "chosen", "all"]
    save_reasoning: bool
    reuse: str | Path | None
    max_open: int
    retry_failed: bool
    structured: bool | Literal["on", "off", "auto"] | None
    temperature: float | None
    max_reply_tokens: int | None
    requests_per_min: int | None
    tokens_per_min: int | None
    concurrency: int | None
    limits: Mapping[str, Mapping[str, int]]
    max_cost_usd: float | None
    max_tokens: int | None
    prices: str | Path | None
    debate_timeout_s: float | None


class RunOptions(OpenOptions, total=False):
    """The fields of `RunConfig`; `task` may also be an object: a `Task`, or a list of cases."""

    task: str | Cases
    limit: int | None
    engine: Engine
    address: str | None
    attended: bool
    max_minutes: float | None


async def arun(config: Base | None = None, **options: Unpack[RunOptions]) -> Run:
    """Hold a run's debates, or go on with a run that was interrupted; options win over `config`.

    >>> import asyncio, tempfile
    >>> out = tempfile.mkdtemp() + "/run"
    >>> done = asyncio.run(arun(task="sample", limit=2, engine="inline", out=out))
    >>> done.status, done.exit_code, done.table("verdicts").num_rows
    ('finished', 0, 2)

    Cancelling it leaves a record that the same call goes on with.

    Raises:
        UserError: one line about what is wrong; nothing was written.
    """
    prepared = await asyncio.to_thread(prepared_from, config, options)
    return await Session(prepared).hold()


def run(config: Base | None = None, **options: Unpack[RunOptions]) -> Run:
    """As `arun`, waiting for the end; also inside a running event loop, as in a notebook.

    Ctrl-C drains the run, then raises `KeyboardInterrupt`; the same call goes on with it.

    Raises:
        UserError: one line about what is wrong; nothing was written.
    """
    return hold_in_thread(Session(prepared_from(config, options)))


Streamed = StreamedEvent | Signals | Run
"""What a stream gives."""


async def stream(config: Base | None = None, **options: Unpack[RunOptions]) -> AsyncIterator[Streamed]:
    """As `arun`, giving every event while the run goes on, and the `Run` at the end.

    A run whose replies are judged also gives `Signals` of all of them: about once a second while they change, and once
    right before the end.

    Leaving the loop early drains the run first.

    Raises:
        UserError: one line about what is wrong; nothing was written.
    """
    prepared = await asyncio.to_thread(prepared_from, config, options)
    queue: asyncio.Queue[StreamedEvent | Signals | None] = asyncio.Queue()
    session = Session(prepared, _IntoQueue(queue))
    holding = asyncio.create_task(session.hold())
    holding.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        yield await holding
    finally:
        if not holding.done():
            session.stop()
            await asyncio.wait([holding])


def prepared_from(config: Base | None, options: RunOptions) -> Prepared:
    """A checked run from a base and options.

    Raises:
        UserError: one line about what is wrong.
    """
    configure_unless_done()
    flags: dict[str, Any] = dict(options)
    task, protocol = flags.get("task"), flags.get("protocol")
    if not isinstance(task, str | None):
        flags.pop("task")
    if not isinstance(protocol, str | None):
        flags.pop("protocol")
    if isinstance(task, Mapping) or isinstance(protocol, type):
        raise ConfigError("expected a list of cases as `task`, and an object, not a class, as `protocol`")
    built = RunConfig.build(config, paths_as_texts(flags))
    return prepare(
        built,
        task=None if isinstance(task, str | None) else task,
        protocol=None if isinstance(protocol, str | None) else protocol,
    )


def paths_as_texts(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Options as `RunConfig` takes them. Raises nothing."""
    texts = {key: str(flags[key]) for key in _PATHS if isinstance(flags.get(key), Path)}
    return {**flags, **texts}


class _IntoQueue(Listener):
    """A listener that hands events and signals on."""

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
