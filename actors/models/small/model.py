"""Small model (`small`): a real language model of 135 million parameters, on this machine's processor."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from moot.actors.models.api_key import GivenKey
from moot.actors.models.compatible import MAX_ALTERNATIVES, CompatibleModel
from moot.actors.models.interface import Capabilities, ModelError, ModelReply, ReplySchema, StreamPiece
from moot.actors.models.small.shared_server import (
    START_TIMEOUT_S,
    ServerLease,
    acquire_server,
    is_served,
    runtime_folder,
)
from moot.actors.models.small.spec import SmallModelSpec
from moot.actors.models.small.weights import engine_version, find_weights, with_weights
from moot.actors.telemetry.log import warn_when_slow
from moot.protocols.errors import ModelUnavailable
from moot.protocols.messages import Decoding, Message

_STARTING = "waiting for the start of the small model's server: it reads its weights, slowly on a busy machine"


class SmallModel:
    """Small model behind a server that all processes of the user share on this machine (see `sharing`).

    Log-probabilities are the model's own, before temperature, `top_p` and schema. Each request has a seed derived from
    the run's seed, the messages and the step key. With one slot, equal calls give equal replies; with several,
    concurrent calls and the cache of earlier prompts change them by rounding.

    Args:
        name: one of the forms of `SmallModelSpec`.
        seed: the run's seed.

    Raises:
        ConfigError: the engine or the weights are not installed, or the weights differ from the name's.
    """

    capabilities = Capabilities(
        max_alternatives=MAX_ALTERNATIVES,
        logprob_stage="before",
        structured_output="yes",
        dialect="llama.cpp",
        streaming=True,
        settings=frozenset({"seed", "stop", "repetition_penalty", "extra"}),
        seeds=True,
        in_process=True,
    )

    def __init__(self, name: str, *, seed: int) -> None:
        self._name = with_weights(SmallModelSpec.parse(name))
        self.name = str(self._name)
        self._seed = seed
        self._connected: tuple[CompatibleModel, ServerLease] | None = None
        self._connecting = threading.Lock()

    async def complete(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> ModelReply:
        """Complete one conversation; starts the server if none runs, also after its death.

        Raises:
            ModelError: `server`, when no server starts; else see `CompatibleModel.complete`.
        """
        async with self._served() as served:
            return await served.complete(messages, decoding, step_key=step_key, schema=schema)

    async def stream(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> AsyncGenerator[StreamPiece, None]:
        """Stream one reply in pieces.

        Raises:
            ModelError: see `complete`; raised while iterating.
        """
        async with (
            self._served() as served,
            aclosing(served.stream(messages, decoding, step_key=step_key, schema=schema)) as pieces,
        ):
            async for piece in pieces:
                yield piece

    async def check(self) -> None:
        """Start the server if none runs, and check its health.

        Raises:
            ModelUnavailable: the server does not start.
        """
        served, _ = await self._started()
        await served.check()

    async def close(self) -> None:
        """Close the connections of the running event loop and release the server; a later call connects again."""
        connected = await asyncio.to_thread(self._disconnect)
        if connected is not None:
            served, use = connected
            await served.close()
            use.release()

    @asynccontextmanager
    async def _served(self) -> AsyncIterator[CompatibleModel]:
        """Context of one call to the server; a dead server is dropped, and the next call starts or finds another."""
        try:
            served, use = self._connected or await self._started()
        except ModelUnavailable as error:
            raise ModelError("server", str(error)) from None
        try:
            yield served
        except ModelError as error:
            dead = error.kind == "connection" and not await asyncio.to_thread(is_served, self._folder())
            if dead and await asyncio.to_thread(self._disconnect, served) is not None:
                await served.close()
                use.release()
            raise

    async def _started(self) -> tuple[CompatibleModel, ServerLease]:
        with warn_when_slow(_STARTING, model=self.name, at_most_s=START_TIMEOUT_S):
            return await asyncio.to_thread(self._connect)

    def _connect(self) -> tuple[CompatibleModel, ServerLease]:
        with self._connecting:
            if self._connected is None:
                use = acquire_server(self._folder(), find_weights(), self._name.slots)
                key = GivenKey(use.address.key)
                self._connected = CompatibleModel(use.address.url, "small", key=key, seed=self._seed), use
            return self._connected

    def _folder(self) -> Path:
        """The server's folder: another engine, other weights or another number of slots mean another server."""
        return runtime_folder(f"{self._name.weights}-{self._name.slots}-{engine_version()}")

    def _disconnect(self, served: CompatibleModel | None = None) -> tuple[CompatibleModel, ServerLease] | None:
        """Remove and return the connected client, for the caller to close; None when it is another one, or none."""
        with self._connecting:
            if self._connected is None or (served is not None and self._connected[0] is not served):
                return None
            connected, self._connected = self._connected, None
            return connected
