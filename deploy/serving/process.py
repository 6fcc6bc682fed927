"""`moot serve` as a process: it starts or joins Ray, has Ray Serve run the server, and drains it at a signal."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from moot.actors.placement import cluster_address
from moot.actors.record.folder import RunFolder
from moot.deploy.running.checks import Trials, check_models
from moot.deploy.running.open_run import OpenRun
from moot.deploy.running.outcome import EXIT_INTERRUPTED, EXIT_OK
from moot.deploy.running.prepare import Bindings
from moot.deploy.running.resume import check_resumable
from moot.deploy.serving.settings import Kind, ServeConfig, is_loopback
from moot.deploy.serving.stopping import Stopping
from moot.protocols.errors import ActorGone, ConfigError, RunFolderBusy

if TYPE_CHECKING:
    from moot.actors.remote.joining import Membership

SILENT = {"requests": "the server does not answer; Ray Serve starts it anew"}
"""What is said of a server that does not answer."""

_LET_GO_S = 15.0
"""Seconds that a server which was killed may need until its actors are gone, too."""

_CLOSE_S = 90.0
_TICK_S = 0.5
_ANSWER_S, _SILENT_S = 0.1, 2.0
_QUIET = {"log_level": "WARNING", "enable_access_log": False}
_log = structlog.get_logger(__name__)
_ERROR_LINE = re.compile(r"(?:moot\.protocols\.errors\.)\w+: (.+)")


class Notices:
    """Lines for what has changed."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._incarnation = ""

    def of(self, closed: Mapping[str, str], incarnation: str = "") -> Iterator[str]:
        """A line for each kind of request that is newly refused, for another reason, or taken again.

        A replica that Serve has started anew took no requests in between, however short that was.

        Args:
            closed: by kind why it is refused now; kinds that are taken are missing.
            incarnation: of the replica that says so; empty when it does not answer.
        """
        if incarnation and self._incarnation not in ("", incarnation) and self._known != SILENT:
            yield from self.of(SILENT)
        self._incarnation = incarnation or self._incarnation
        for kind, why in closed.items():
            if self._known.get(kind) != why:
                yield f"{kind} are not taken: {why}"
        for kind in self._known.keys() - closed.keys():
            yield f"{kind} are taken again"
        self._known = dict(closed)


@dataclass(frozen=True)
class Listening:
    """Where a server listens.

    Attributes:
        host: an address of this machine.
        port: 0 takes a free one.
        address: the Ray cluster to join; None starts a local one, unless `RAY_ADDRESS` names one.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    address: str | None = None


def run_server(config: ServeConfig, where: Listening) -> int:
    """Serve until SIGINT or SIGTERM, drain, and give the exit code: 130 when debates were put aside, else 0.

    The second signal breaks the drain off, or the start; see `Stopping`.

    Raises:
        UserError: one line about what is wrong; nothing was written.
    """
    tried = _check(config, where)
    try:
        with Stopping() as stopping:
            _import_serve()  # seconds, in which a signal is not to be lost
            port = _free(where.host, where.port)
            logging.getLogger("ray.serve").setLevel(logging.ERROR)
            print("starting Ray and the server ...", file=sys.stderr, flush=True)
            with _ray(where.address, stopping) as membership:
                left = _serve(config, where, port, stopping, tried, joined=membership.can_grow)
    except (KeyboardInterrupt, SystemExit):  # while it starts, Ray turns a SIGTERM into the latter
        print("stopped at once; the same command goes on with what was open", file=sys.stderr)
        return EXIT_INTERRUPTED
    if left:
        print(f"stopped; {left:,} put aside: the same command goes on with them", file=sys.stderr)
        return EXIT_INTERRUPTED
    print("stopped", file=sys.stderr)
    return EXIT_OK


def _check(config: ServeConfig, where: Listening) -> dict[Kind, Bindings]:
    """Whatever can be known before a process is started; gives by kind what trial calls found, if they were made."""
    if not 0 <= where.port <= 65535:
        raise ConfigError(f"--port {where.port} is not in [0, 65535]")
    token = config.read_token()
    if token is None and not is_loopback(where.host):
        raise ConfigError(f"--host {where.host} is open to others: name the token's variable with --token-env")
    joined = cluster_address(where.address)
    tried: dict[Kind, Bindings] = {}
    trials = Trials()
    for kind, prepared in {kind: OpenRun(each).prepared for kind, each in config.runs().items()}.items():
        check_resumable(prepared, reuses=False)
        _wait_for(RunFolder(prepared.folder))
        if joined is None:
            tried[kind] = asyncio.run(check_models(prepared, trials=trials)).bindings
    return tried


def _wait_for(folder: RunFolder) -> None:
    deadline = time.monotonic() + _LET_GO_S
    while folder.is_owned():
        if time.monotonic() > deadline:
            raise RunFolderBusy(f"{folder.path} is being written by another server: stop it, or name another --out")
        time.sleep(_TICK_S)


def _import_serve() -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A thread of Ray Serve's that is about to ask something when Ray has left would start another Ray.
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
    try:
        import ray.serve  # noqa: F401
    except ImportError:
        raise ConfigError("`moot serve` needs an extra: pip install 'moot[serve]'") from None


def _free(host: str, port: int) -> int:
    """The port, found free; a free one for 0.

    Raises:
        ConfigError: it is taken, or the host is none of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ConfigError(f"cannot listen on {host}:{port}: {reason}; name another --port") from None
        found: int = probe.getsockname()[1]
        return found


@contextmanager
def _ray(address: str | None, stopping: Stopping) -> Iterator[Membership]:
    """Ray, started here or joined, and left as it was found."""
    from moot.actors.remote.joining import Membership

    membership = Membership(address)
    try:
        membership.join()
        yield membership
    finally:
        stopping.meanwhile(membership.leave)


def _serve(
    config: ServeConfig,
    where: Listening,
    port: int,
    stopping: Stopping,
    tried: Mapping[Kind, Bindings],
    *,
    joined: bool,
) -> int:
    """Have Ray Serve run the server until a signal; gives how many debates were put aside."""
    from ray import serve

    from moot.deploy.serving.deployment import NAME, application, listening_application

    stopping.take_back()
    if _is_running(serve):
        raise ConfigError(
            "Ray Serve runs on that cluster already: add the application with `serve run` or `serve deploy`"
        )
    try:
        if joined:  # the replica may be on any node: the head's proxy finds it
            at = {"host": where.host, "port": port}
            serve.start(proxy_location="HeadOnly", http_options=at, logging_config=_QUIET)
            handle = _run(serve, application(config), NAME)
        else:
            serve.start(proxy_location="Disabled", logging_config=_QUIET)
            handle = _run(serve, listening_application(config, where.host, port, tried), NAME)
        for line in () if stopping.wait(0.0) else greeting(config, where.host, port):
            print(line, flush=True)
        stopping.started()
        _watch(handle, stopping)
        print(f"draining for at most {config.drain_s:g} s (again: stop at once)", file=sys.stderr, flush=True)
        left = _drained(handle, config.drain_s + _CLOSE_S)
        stopping.drained()
        return left
    except KeyboardInterrupt:
        if joined:
            with suppress(Exception):
                serve.delete(NAME, _blocking=False)
            joined = False
        raise
    finally:
        if joined:  # a Ray that was started here goes as a whole
            _take_down(serve, NAME)


def _watch(handle: Any, stopping: Stopping) -> None:
    """Say on the terminal what the server refuses and why, until it is to stop."""
    notices, asking, asked_at = Notices(), None, 0.0
    while not stopping.wait(_TICK_S):
        try:
            if asking is None:
                asking, asked_at = handle.refused.remote(), time.monotonic()
            (incarnation, refused), asking = asking.result(timeout_s=_ANSWER_S), None
        except TimeoutError:
            if time.monotonic() - asked_at < _SILENT_S:
                continue
            incarnation, refused = "", SILENT
        except Exception as error:  # of Ray, of Serve, or of the replica
            _log.debug("the server did not say what it refuses", error=repr(error))
            incarnation, refused, asking = "", SILENT, None
        for line in notices.of(refused, incarnation):
            print(line, file=sys.stderr, flush=True)


def _drained(handle: Any, within_s: float) -> int:
    try:
        left: int = handle.drain.remote().result(timeout_s=within_s)
    except Exception as error:  # of Ray, of Serve, or of the replica
        raise ActorGone(f"the server could not be drained ({type(error).__name__}); its journal counts") from None
    return left


def _take_down(serve: Any, name: str) -> None:
    with suppress(Exception):
        serve.delete(name)
    with suppress(Exception):
        if not serve.status().applications:
            serve.shutdown()


def _is_running(serve: Any) -> bool:
    try:
        return bool(serve.status().proxies)
    except Exception:  # Serve has no name for it
        return False


def _run(serve: Any, application: Any, name: str) -> Any:
    try:
        return serve.run(application, name=name, route_prefix="/", logging_config=_QUIET)
    except RuntimeError as error:
        text = f"{_told_of_replica(serve, name)}\n{error}"
        said = _ERROR_LINE.findall(text) or [line for line in text.splitlines() if line.strip()][-1:]
        raise ConfigError(f"the server did not start: {' '.join(said[-1].split())[:500]}") from None


def _told_of_replica(serve: Any, name: str) -> str:
    """What Ray Serve says of a deployment: why its replica did not start, where the application's error does not."""
    with suppress(Exception):
        return "\n".join(each.message for each in serve.status().applications[name].deployments.values())
    return ""


def greeting(config: ServeConfig, host: str, port: int) -> Sequence[str]:
    """Where the server listens, and a command that asks it."""
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
        f"moot serves {offered} at {place} (Ctrl-C drains and stops it); try",
        f"  curl -sS {place}/v1/{kind}{token} -H 'Content-Type: application/json' -d '{asked}'",
    )


_EXAMPLES = {
    "debates": '{"question": "is seven a prime number", "labels": ["Yes", "No"]}',
    "judgments": '{"prompt": "is seven a prime number", "reply": "It is: only 1 and 7 divide it."}',
    "checks": '{"claim": "Seven is a prime number.", "documents": ["Only 1 and 7 divide seven."]}',
}
