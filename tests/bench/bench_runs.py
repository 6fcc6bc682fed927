"""What the benches share: the mock server's process, CPU and memory of our processes, and a moot run to measure."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode
from urllib.request import urlopen

import psutil
import ray
from debate7 import ALTERNATIVES, CALLS, TEMPLATES, SevenCalls, task

from moot.actors.agent.roles import RoleBinding
from moot.actors.debate.run_spec import Placement, RunSpec
from moot.actors.dispatch.completed_cases import CompletedCases
from moot.actors.dispatch.dispatcher import Dispatcher
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership
from moot.actors.record.tables import read_table
from moot.actors.remote.runtime import RayRuntime
from moot.protocols.case import LabelledCase
from moot.protocols.templates import Templates

HERE = Path(__file__).parent
_RAYS_OWN = ("ray::IDLE", "ray::DashboardAgent", "ray::RuntimeEnvAgent", "ray::SPILL", "ray::RESTORE")
_numbers = itertools.count()


class Child:
    """A Python process that runs one of this folder's scripts, ended when the block ends."""

    def __init__(self, script: str, *args: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / script), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def line(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args!r} ended: {self.process.wait()}")
        return line

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """One JSON line in, one out."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return cast(dict[str, Any], json.loads(self.line()))

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *raised: object) -> None:
        self.process.terminate()
        self.process.communicate()


class MockServer(Child):
    """The mock server in a process of its own; its CPU is never counted.

    Args:
        tokens: tokens per reply.
    """

    def __init__(self, tokens: int = 100) -> None:
        super().__init__("mock_server.py", "--tokens", str(tokens))
        self.port = int(self.line().split()[1])
        self.url = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        self.model = f"http://127.0.0.1:{self.port}/v1#mock"

    def __enter__(self) -> MockServer:
        return self

    def set(self, latency_ms: float = 0, jitter_ms: float = 0, hold: str = "") -> None:
        """How long replies take, and which are held back until the next setting; zeroes the counters."""
        self._get("set?" + urlencode({"latency_ms": latency_ms, "jitter_ms": jitter_ms, "hold": hold}))

    def stats(self) -> dict[str, float]:
        """The counters."""
        return self._get("stats")

    def _get(self, path: str) -> dict[str, float]:
        with urlopen(f"http://127.0.0.1:{self.port}/{path}") as response:
            return cast(dict[str, float], json.load(response))


@contextmanager
def ray_session() -> Iterator[None]:
    """A Ray session of our own; moot joins it."""
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        object_store_memory=200 * 2**20,
    )
    try:
        yield
    finally:
        ray.shutdown()


class ProcessTree:
    """This process and everything below it, except `apart` (the mock server, the plain loop)."""

    def __init__(self, *apart: int) -> None:
        self._apart = set(apart)

    def all(self) -> list[psutil.Process]:
        """The processes that are alive now."""
        me = psutil.Process()
        return [me, *(p for p in me.children(recursive=True) if p.pid not in self._apart)]

    def actors(self) -> dict[int, str]:
        """Ray actor processes with their classes, such as `ModeratorActor`."""
        found = {}
        for process in self.all():
            title = _title(process)
            if _is_actor(title):
                found[process.pid] = title.removeprefix("ray::")
        return found

    def cpu(self, *, without: frozenset[int] = frozenset()) -> dict[int, float]:
        """User + system seconds by process id."""
        found = {}
        for process in self.all():
            if process.pid not in without:
                try:
                    times = process.cpu_times()
                except psutil.NoSuchProcess:
                    continue
                found[process.pid] = times.user + times.system
        return found

    async def watched(self, work: Coroutine[Any, Any, None], every_s: float = 0.05) -> tuple[float, float]:
        """Wall and CPU seconds of work that ends processes: what one used is what was last seen of it."""
        before, started = self.cpu(), time.perf_counter()
        last = dict(before)
        working = asyncio.ensure_future(work)
        while not working.done():
            await asyncio.wait([working], timeout=every_s)
            last |= self.cpu()
        await working
        return time.perf_counter() - started, spent(before, last)

    def pss(self) -> dict[str, int]:
        """Summed PSS in bytes: `ours` is the driver and every actor; `ray` is raylet, GCS and idle workers."""
        total = {"ours": 0, "ray": 0}
        for process in self.all():
            ours = process.pid == os.getpid() or _is_actor(_title(process))
            total["ours" if ours else "ray"] += _pss(process.pid)
        return total

    def pss_by_title(self) -> dict[str, int]:
        """PSS in bytes of the driver and every actor, by kind."""
        found: Counter[str] = Counter({"driver": _pss(os.getpid())})
        for pid, title in self.actors().items():
            found[title] += _pss(pid)
        return dict(found)


def _title(process: psutil.Process) -> str:
    try:
        line = process.cmdline()
    except psutil.NoSuchProcess:
        return ""
    return line[0].split(".")[0].strip() if line else ""


def _is_actor(title: str) -> bool:
    return title.startswith("ray::") and not title.startswith(_RAYS_OWN)


def _pss(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def spent(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """CPU seconds between two readings; a process that is new counts from its start."""
    return sum(cpu - before.get(pid, 0.0) for pid, cpu in after.items())


class MootRun:
    """The seven-call debate on a moot runtime: record, metrics and templates on, in a temporary run folder.

    Args:
        model: the mock server's model name.
        placement: `actors` or `packed`.
        logprobs: whether to ask for 5 alternatives per token and record all of them.
        open_: most debates open at once.
    """

    def __init__(self, model: str, placement: Placement, logprobs: bool, open_: int) -> None:
        self.debates = 0
        self.logprobs = logprobs
        self._temporary = tempfile.TemporaryDirectory(prefix="moot-bench-")
        binding = RoleBinding(model=model, top_logprobs=ALTERNATIVES if logprobs else None, timeout_s=900.0)
        self.folder, self._ownership, spec = bench_spec(
            Path(self._temporary.name),
            {"agent": [binding], "judge": [binding]},
            protocol="seven-calls",
            save_tokens="all",
            max_open=open_,
        )
        self.runtime = RayRuntime(spec, SevenCalls(), placement=placement)

    async def start(self) -> None:
        """Bring the actors up."""
        await self.runtime.start()

    async def hold(self, debates: int) -> None:
        """Hold `debates` debates; returns when every verdict is durable."""
        await self.hold_cases(task(debates, f"bench{next(_numbers)}").cases(), debates)

    async def hold_cases(self, cases: Iterator[LabelledCase], count: int) -> None:
        """The same for `count` given cases."""
        self.debates += count
        await Dispatcher(self.runtime, cases, CompletedCases({}, {})).run()

    async def batch_sizes(self) -> dict[str, Counter[int]]:
        """Calls by batch size: asks from moderators, replies from agents, and rows of the record from both."""
        found: dict[str, Counter[int]] = {}
        directory = self.runtime.directory
        names = [*directory.moderators, *(name for _, agents in directory.agents for name in agents)]
        for peer in directory.peers(names):
            for kind, counts in (await peer.call("batch_sizes")).items():
                found.setdefault(kind, Counter()).update(counts)
        return found

    async def stop(self) -> None:
        """Close the record and take the actors down."""
        await self.runtime.stop()
        self._ownership.release()

    async def checked_stop(self) -> None:
        """Stop, check what is on record, and delete it."""
        await self.stop()
        self.check()
        self.remove()

    def check(self) -> None:
        """Every debate has its verdict, its seven turns and, where asked for, their tokens in the record.

        Raises:
            AssertionError: saying what is missing.
        """
        verdicts = read_table(self.folder, "verdicts", ["case_id", "failed"])
        failed = sum(verdicts["failed"].to_pylist())
        found = {"verdicts": verdicts.num_rows, "failed": failed, "turns": self._rows("turns")}
        expected = {"verdicts": self.debates, "failed": 0, "turns": CALLS * self.debates}
        if self.logprobs:
            found["tokens"], expected["tokens"] = self._rows("tokens"), CALLS * self.debates
        assert found == expected, f"the record holds {found}, expected {expected}"

    def _rows(self, table: str) -> int:
        return int(read_table(self.folder, table, ["case_id"]).num_rows)

    def journal_bytes(self) -> int:
        """What the run folder takes on disk."""
        return sum(path.stat().st_size for path in self.folder.path.rglob("*") if path.is_file())

    def remove(self) -> None:
        """Delete the run folder."""
        self._temporary.cleanup()


def bench_spec(
    path: Path, roles: Mapping[str, Sequence[RoleBinding]], **settings: Any
) -> tuple[RunFolder, Ownership, RunSpec]:
    """A run folder that this process owns, and the run to hold in it."""
    folder = RunFolder(path / "run")
    folder.path.mkdir(parents=True)
    (folder.path / "run.yaml").write_text("bench: true\n")
    ownership = Ownership.acquire(folder)
    spec = RunSpec(
        roles={role: list(bindings) for role, bindings in roles.items()},
        templates={**Templates().sources, **TEMPLATES},
        task="memory:bench",
        seed=1,
        encoder="hashed-ngrams-512-v1",
        folder=str(folder.path),
        epoch=ownership.epoch,
        **settings,
    )
    return folder, ownership, spec


def lamp(number: int) -> dict[str, Any]:
    """A yes/no question about a passage that `number` makes its own."""
    passage = f"The lamp number {number} is blue. It was made in {1800 + number}. Nobody has painted it since."
    return {
        "id": f"lamp-{number}",
        "question": f"is the lamp number {number} blue",
        "labels": ["Yes", "No"],
        "passage": passage,
    }


def mean_batch(before: Mapping[str, Counter[int]], after: Mapping[str, Counter[int]]) -> dict[str, float]:
    """Mean batch size by kind of what was sent between two readings of `MootRun.batch_sizes`."""
    means = {}
    for kind, counts in after.items():
        sent = Counter(counts)
        sent.subtract(before.get(kind, Counter()))
        calls = sum(sent.values())
        if calls:
            means[kind] = sum(size * count for size, count in sent.items()) / calls
    return means
