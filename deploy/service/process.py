"""Process of `moot serve`: listens, joins Ray where needed, and drains at a signal."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from moot.actors.debate.placement import cluster_address
from moot.deploy.runs.checks import check_models
from moot.deploy.runs.interruption import run_in_thread
from moot.deploy.runs.model_trials import TrialResults
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.outcome import EXIT_INTERRUPTED, EXIT_OK
from moot.deploy.runs.prepare import Bindings
from moot.deploy.runs.resume import check_resumable
from moot.deploy.service.settings import Kind, ServeConfig, is_loopback
from moot.protocols.errors import ConfigError

if TYPE_CHECKING:
    from moot.deploy.service.services import Services

_LET_GO_S = 15.0
"""Seconds until the actors of a killed server are gone."""

_TICK_S = 0.1


def run_server(config: ServeConfig, host: str = "127.0.0.1", port: int = 8000, address: str | None = None) -> int:
    """Serve until SIGINT or SIGTERM, drain, and return the exit code: 130 when debates were interrupted, else 0.

    The second signal ends the process at once.

    Args:
        host, port: listening address; port 0 picks a free one.
        address: the Ray cluster to join; None starts a local one, unless `RAY_ADDRESS` names one. Not needed where
            everything runs inline.

    Raises:
        UserError: one line about what is wrong; nothing was written.
        ActorGone: an engine failed for good; the same command resumes what was open.
    """
    tried = _check(config, host, port, address)
    from moot.deploy.service.listener import listening_socket

    with listening_socket(host, port) as listening:
        left = run_in_thread(Server(config, listening, address, tried), on_signals=_report_stopping)
    if left:
        print(f"stopped; {left:,} interrupted: run the same command to resume them", file=sys.stderr)
        return EXIT_INTERRUPTED
    print("stopped", file=sys.stderr)
    return EXIT_OK


def _report_stopping() -> None:
    # Not a print: one may just have been interrupted.
    os.write(2, b"stopping: waiting for open debates (press again to stop immediately)\n")


def _check(config: ServeConfig, host: str, port: int, address: str | None) -> dict[Kind, Bindings]:
    """Check the configuration and try the models before anything starts; returns the tried bindings by kind."""
    if not 0 <= port <= 65535:
        raise ConfigError(f"--port {port} is not in [0, 65535]")
    token = config.read_token()
    if token is None and not is_loopback(host):
        raise ConfigError(f"--host {host} is reachable by others: it needs --token-env")
    cluster_address(address)
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ConfigError("`moot serve` needs an extra: pip install 'moot[serve]'") from None
    tried: dict[Kind, Bindings] = {}
    trials = TrialResults()
    for kind, run in config.runs().items():
        prepared = OpenRun(run).prepared
        check_resumable(prepared, reuses=False)
        tried[kind] = asyncio.run(check_models(prepared, trials=trials)).bindings
    return tried


class Server:
    """Running server: services, HTTP listener and Ray session.

    Args:
        config: the server's configuration.
        listening: the listening socket.
        address: the Ray cluster to join.
        tried: see `Services`.
    """

    def __init__(
        self, config: ServeConfig, listening: socket.socket, address: str | None, tried: Mapping[Kind, Bindings]
    ) -> None:
        self._config, self._socket, self._address, self._tried = config, listening, address, tried
        self._asked = False

    def stop(self) -> None:
        """Start draining. Thread-safe."""
        self._asked = True

    async def run(self) -> int:
        """Serve until stopped; returns the number of interrupted debates."""
        from moot.actors.remote.run_actor import tune_garbage_collection
        from moot.deploy.service.api import make_api
        from moot.deploy.service.listener import serve_on_socket
        from moot.deploy.service.services import Services

        async with AsyncExitStack() as stack:
            print("starting the server ...", file=sys.stderr, flush=True)
            services = Services(self._config, self._tried, await self._join(stack))
            await services.open(busy_s=_LET_GO_S)
            stack.push_async_callback(services.close)
            tune_garbage_collection()
            await stack.enter_async_context(serve_on_socket(make_api(services), self._socket))
            if not self._asked:
                host, port = self._socket.getsockname()[:2]
                print(*greeting(self._config, host, port), sep="\n", flush=True)
            await self._report_availability(services)
            await services.drain(self._config.drain_s)
            return await services.close()

    async def _join(self, stack: AsyncExitStack) -> str | None:
        """Context that starts or joins Ray for engines that need it; yields the joined cluster's address."""
        from moot.actors.remote.ray_session import RaySession

        if all(run.engine == "inline" for run in self._config.runs().values()):
            return None
        ray_session = RaySession(self._address)
        stack.push_async_callback(asyncio.to_thread, ray_session.disconnect)
        await asyncio.to_thread(ray_session.connect)
        return "auto" if ray_session.can_grow else None

    async def _report_availability(self, services: Services) -> None:
        """Print refused kinds of requests, with reasons, until the server stops."""
        known: dict[str, str] = {}
        while not self._asked:
            services.check()
            for line in changes(known, known := services.unavailable()):
                print(line, file=sys.stderr, flush=True)
            await asyncio.sleep(_TICK_S)


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Line for each kind of request that is newly refused, for another reason, or accepted again.

    Args:
        before, now: reason by refused kind; accepted kinds are missing.
    """
    for kind, why in now.items():
        if before.get(kind) != why:
            yield f"{kind} are refused: {why}"
    for kind in before.keys() - now.keys():
        yield f"{kind} are accepted again"


def greeting(config: ServeConfig, host: str, port: int) -> Sequence[str]:
    """Startup message: the server's address, and example requests."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    place = f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
    kind, asked = next((kind, _EXAMPLES[kind]) for kind in config.runs())
    token = ""
    if config.token_env is not None:
        token = f' -H "Authorization: Bearer ${config.token_env}"'
    elif config.token_file is not None:
        token = f' -H "Authorization: Bearer $(cat {shlex.quote(config.token_file)})"'
    offered = ", ".join(config.runs())
    return (
        f"Serving {offered} at {place} (Ctrl-C drains and stops). Try:",
        f"  curl -sS {place}/v1/{kind}{token} -H 'Content-Type: application/json' -d '{asked}'",
    )


_EXAMPLES = {
    "debates": '{"question": "is seven a prime number", "labels": ["Yes", "No"]}',
    "judgments": '{"prompt": "is seven a prime number", "reply": "It is: only 1 and 7 divide it."}',
    "checks": '{"claim": "Seven is a prime number.", "documents": ["Only 1 and 7 divide seven."]}',
}
