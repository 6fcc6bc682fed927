"""Connection of a process to a Ray cluster: joins it, or starts a local one, and restores what it changed."""

from __future__ import annotations

import importlib
import os
import shutil
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import ray
from ray import cloudpickle
from ray.job_config import JobConfig
from ray.util import client

from moot.actors.debate.placement import HERE, ClusterInfo, cluster_address
from moot.actors.record.process_folder import LOCK, FolderLock, remove_stale_folders
from moot.protocols.errors import ConfigError
from moot.protocols.user_modules import LOOK_IN


class ByValue:
    """Value pickled by value. Unpickling it first sets `LOOK_IN` as in this process.

    Args:
        value: the value.
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    def __reduce__(self) -> tuple[Any, ...]:
        named = [folder for folder in LOOK_IN if folder in sys.path]
        return _arrived, (list(LOOK_IN), named, cloudpickle.dumps(self._value))


def _arrived(look_in: list[str], named: list[str], pickled: bytes) -> Any:
    LOOK_IN[:] = look_in
    sys.path += [folder for folder in named if folder not in sys.path]
    return cloudpickle.loads(pickled)


class _SearchPath(list[str]):
    """Import path of the workers: of the folders that Ray adds, only those that this process searches too."""

    def extend(self, folders: Iterable[str]) -> None:
        """Add folders. Ray always adds the current folder, where a file beside the data could shadow a package."""
        searched = {os.path.abspath(folder) for folder in sys.path} - set(LOOK_IN)
        super().extend(folder for folder in folders if os.path.abspath(folder) in searched)


def job_config() -> JobConfig:
    """Configuration of a Ray job whose workers search no folder that this process does not search."""
    config = JobConfig()
    config._py_driver_sys_path = _SearchPath()
    return config


_OBJECT_STORE_BYTES = 200 * 2**20
_ANSWERS_WITHIN_S = 5.0
_WANTS_A_TOKEN = (
    "; something answers there: if it is a Ray that wants a token, RAY_AUTH_MODE=token must be set here, too, with "
    "RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
)
_NOT_STARTED = "no local Ray could be started (a run with --engine inline needs none)"
_LEAST_FREE_MB = 16
"""Free space below which a disk counts as full: Ray's processes cannot write their logs there, die one after the other,
and the run waits for them."""

_SPANS_MACHINES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_BREAKPOINT = "PYTHONBREAKPOINT"
"""Environment variable that Ray sets in every connecting process and does not restore."""


class RaySession:
    """Connection of this process to Ray.

    A program that is already connected keeps its cluster, its namespace and its settings. Otherwise the session
    connects, and undoes at the end what that has changed: the connection, a local Ray with its session folder, and
    environment variables that `ray.init` sets (`RAY_AUTH_MODE` among them).

    Args:
        address: the cluster to join; None: see `cluster_address`.

    Attributes:
        site: size of the cluster; available once connected.
    """

    site: ClusterInfo

    def __init__(self, address: str | None) -> None:
        self._given = address
        self._address = cluster_address(address)
        self._ours = False
        self._session: _LocalSession | None = None
        self._changed: dict[str, tuple[str | None, str | None]] = {}

    def connect(self) -> None:
        """Connect, unless this process is already connected.

        Raises:
            ConfigError: Ray cannot be reached or started, the program is only a client of it, or it has joined another
                cluster than `address`.
        """
        if client.ray.is_connected():
            raise ConfigError(
                "this program is a Ray client (ray://), which a run cannot be part of; submit it to the cluster with "
                "`ray job submit --working-dir . -- python ...`"
            )
        if ray.is_initialized():
            self._check_same()
        else:
            with self._noting_changes():
                self._connect()
        nodes = [node for node in ray.nodes() if node["Alive"]]
        cores = ray.cluster_resources().get("CPU", 0.0)
        self.site = ClusterInfo(cores, len(nodes), joined=self._address is not None or len(nodes) > 1)

    def _check_same(self) -> None:
        """Check that the program's own cluster is the requested one, if any."""
        if self._given in (None, "auto"):
            return
        joined = ray.get_runtime_context().gcs_address
        same = _started_here() if self._given == HERE else _place(str(self._given)) == _place(joined)
        if not same:
            raise ConfigError(
                f"address {self._given}: this program has joined the Ray at {joined} already, and a run lives where "
                "its program does; leave the address out, or call ray.shutdown() first"
            )

    def _connect(self) -> None:
        local = self._address is None
        if local:
            _check_space()
        options: dict[str, Any] = {"object_store_memory": _OBJECT_STORE_BYTES} if local else {}
        self._ours = True  # even when it fails half-way
        answers = False
        try:
            if not local:
                answers = _answers(str(self._address))
            with _as_local_ray() if local else nullcontext():
                context = ray.init(
                    address="local" if local else self._address,
                    include_dashboard=False if local else None,
                    log_to_driver=False,
                    logging_level="error",
                    job_config=job_config(),
                    **options,
                )
        except Exception as error:  # Ray also raises bare ones
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            if local:
                raise ConfigError(f"{_NOT_STARTED}: {reason}") from None
            hint = _WANTS_A_TOKEN if answers else ""
            raise ConfigError(f"cannot reach Ray at {self._address!r}: {reason}{hint}") from None
        if local:
            self._session = _LocalSession(Path(context.address_info["session_dir"]))

    @contextmanager
    def _noting_changes(self) -> Iterator[None]:
        before = _of_ray(os.environ)
        try:
            yield
        finally:
            after = _of_ray(os.environ)
            names = before.keys() | after.keys()
            changed = {name: (before.get(name), after.get(name)) for name in names}
            self._changed = {name: (was, now) for name, (was, now) in changed.items() if was != now}

    @property
    def can_grow(self) -> bool:
        """Whether nodes may be added to the cluster."""
        return not self._ours or self._address is not None

    def disconnect(self) -> None:
        """Disconnect if this session has connected, and undo what that has changed."""
        if not self._ours:
            return
        self._ours = False
        ray.shutdown(wait_for_processes=True)
        for name, (was, now) in self._changed.items():
            if os.environ.get(name) == now:
                _set(name, was)
        if "RAY_AUTH_MODE" in self._changed:
            _read_auth_mode_again()
        if self._session is not None:
            self._session.remove()


def _check_space() -> None:
    """Check that the disk of a local Ray's session folder is not full.

    Raises:
        ConfigError: it is.
    """
    folder = importlib.import_module("ray._common.utils").get_default_system_temp_dir()
    try:
        free_mb = shutil.disk_usage(folder).free / 1e6
    except OSError:  # Ray makes the folder, or says why it cannot
        return
    if free_mb < _LEAST_FREE_MB:
        raise ConfigError(
            f"{_NOT_STARTED}: {folder}, where Ray writes its logs, has only {free_mb:.1f} MB free; make space, or set "
            "RAY_TMPDIR to a folder on another disk"
        )


@contextmanager
def _as_local_ray() -> Iterator[None]:
    """Makes Ray start as one machine and one driver need it."""
    with _listening_on_loopback(), without_idle_processes():
        yield


@contextmanager
def without_idle_processes() -> Iterator[None]:
    """Makes Ray start without three processes that a local run has no use for, and would wait for: the autoscaler, the
    log monitor, and the API server, which without a dashboard only counts usage. `ray.init` has no argument for them.
    """
    parameter: Any = importlib.import_module("ray._private.parameter")
    services: Any = importlib.import_module("ray._private.services")
    make_parameters, start_api_server = parameter.RayParams, services.start_api_server

    def parameters(*args: Any, **named: Any) -> Any:
        made = make_parameters(*args, **named)
        made.no_monitor, made.include_log_monitor = True, False
        return made

    parameter.RayParams = parameters
    services.start_api_server = lambda *_, **__: ("", None)  # no address and no process
    try:
        yield
    finally:
        parameter.RayParams, services.start_api_server = make_parameters, start_api_server


@contextmanager
def _listening_on_loopback() -> Iterator[None]:
    """Makes a local Ray listen on the loopback interface only, as Ray does on Windows and macOS.

    Elsewhere it listens on every interface, `/metrics` included. A variable set by the user takes precedence.
    """
    if _SPANS_MACHINES in os.environ:
        yield
        return
    constants: Any = importlib.import_module("ray._private.ray_constants")
    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    os.environ[_SPANS_MACHINES] = "0"  # for the processes that it starts; `disconnect` restores it
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _answers(address: str) -> bool:
    """Whether something listens at the address; False where it names no host.

    Ray itself waits minutes for a missing head node, and Ctrl-C waits for Ray.

    Raises:
        ConnectionError: nothing listens there.
    """
    named = importlib.import_module("ray._private.services").canonicalize_bootstrap_address(address)
    host, separator, port = (named or "").rpartition(":")
    if not separator:
        return False
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWERS_WITHIN_S).close()
    except OSError as error:
        raise ConnectionError(f"nothing answers at {named} ({error.strerror or error})") from None
    return True


def _started_here() -> bool:
    """Whether this process has started the Ray that it has joined."""
    node = importlib.import_module("ray._private.worker")._global_node
    return node is not None and node.is_head()


def _place(address: str) -> tuple[str, str]:
    """Host and port, so that two names of one cluster are equal."""
    try:
        named = importlib.import_module("ray._private.services").canonicalize_bootstrap_address(address) or address
    except ValueError as error:
        raise ConfigError(f"address {address}: {error}; expected HOST:PORT") from None
    host, _, port = named.rpartition(":")
    with suppress(OSError):
        host = socket.gethostbyname(host.strip("[]"))
    return host, port


def _of_ray(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("RAY_") or name == _BREAKPOINT}


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _read_auth_mode_again() -> None:
    """Makes Ray read `RAY_AUTH_MODE` again, which it otherwise does once per process."""
    with suppress(ImportError, AttributeError):
        importlib.import_module("ray._raylet").Config.initialize("")


class _LocalSession:
    """Session folder of a local Ray that this process started; those of killed processes are removed at the next
    start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FolderLock(folder)
        remove_stale_folders(folder.parent.glob(f"session_*/{LOCK}"))

    def remove(self) -> None:
        """Remove the folder of an ended session, and the link to it as the latest."""
        self._lock.remove()
        latest = self._folder.with_name("session_latest")
        with suppress(OSError):
            if Path(os.readlink(latest)).name == self._folder.name:
                latest.unlink()
