"""Tiers, what they need, how processes share them out, and the state that no test leaves to the next."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from hypothesis import settings
from places import DATA, TESTS

TIERS = ("slow", "docs", "lint", "extras", "browser")
PAGE = "::test_everything_on_a_page_runs["

# Hundreds of processes are started: without bytecode each compiles the package anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Arrays in tests are small: threads of BLAS in each of several processes only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A record is flushed to disk again and again; of a folder in memory that is free.
MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 6 * 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

settings.register_profile("default", max_examples=20, deadline=None)
settings.register_profile("ci", max_examples=50, deadline=None, print_blob=True, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

collect_ignore = (
    []
    if find_spec("torch")
    else [f"actors/models/local/test_local_{of}.py" for of in ("model", "runs", "schemas", "weights")]
)
"""What cannot be imported without the extra `local`; the other tests of extras are counted where they are left out."""
ABSENT = pytest.StashKey[Counter[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """A whole tier is shared out among processes, unless `-n` says how; a chosen part of it is run in one."""
    chosen = config.args_source is pytest.Config.ArgsSource.ARGS
    if chosen or not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    if config.option.numprocesses is None and not (config.option.usepdb or config.option.collectonly):
        # Of two cores one is often free while a test waits for processes to come, servers or clocks; a browser and the
        # model `small` compute.
        config.option.numprocesses = 2 if _tiers(config) & {"browser", "extras"} else 3
        config.option.dist = "loadgroup"
        config.option.loadscopereorder = False


def _tiers(config: pytest.Config) -> set[str]:
    """The tiers that `-m` asks for, as in `docs` or `lint or slow`; none where it asks for anything else."""
    asked = {*config.option.markexpr.split(" or ")}
    return asked if asked <= {*TIERS} else set()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A tier's tests stand in few files: the other hundreds need not be imported by each process to be left out."""
    tiers = _tiers(config)
    if not tiers or not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text("utf-8")
    return None if any(f"pytest.mark.{tier}" in text for tier in tiers) else True


def _is_absent(need: str) -> bool:
    kind, _, name = need.partition("/")
    if kind == "data":
        return not (DATA / name).exists()
    return shutil.which(name) is None if kind == "program" else find_spec(name) is None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """What shares one Ray is kept together and comes first; of what is chosen, tests whose needs are absent are left
    out and counted."""
    for item in items:
        if _uses_ray(item) and not _has_marker(item, *TIERS):
            item.add_marker(pytest.mark.xdist_group("ray"))
    items.sort(key=_turn)
    yield
    absent = config.stash[ABSENT] = Counter()
    kept, left = [], []
    for item in items:
        missing = {need for mark in item.iter_markers("needs") for need in mark.args if _is_absent(need)}
        (left if missing else kept).append(item)
        if missing:
            absent[" and ".join(sorted(missing))] += 1
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def pytest_collection_finish() -> None:
    """Thousands of tests and all modules live to the end: the garbage collector finds nothing among them, and took a
    sixth of the processor's time for that."""
    gc.collect()
    gc.freeze()


def _uses_ray(item: pytest.Item) -> bool:
    return _has_marker(item, "ray") or "local_ray" in getattr(item, "fixturenames", ())


def _has_marker(item: pytest.Item, *names: str) -> bool:
    return any(item.get_closest_marker(name) for name in names)


def _turn(item: pytest.Item) -> tuple[int, float]:
    """The longest first, so that no process is left alone with them: types, and what is allowed most time."""
    allowed = item.get_closest_marker("timeout")
    first = _has_marker(item, "xdist_group", "lint")
    return 0 if first else 1, -allowed.args[0] if allowed else 0.0


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A worker hands its count to who started it. A tier of which everything was left out has not failed."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.stash.get(ABSENT, None):
        session.exitstatus = pytest.ExitCode.OK
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["absent"] = dict(session.config.stash.get(ABSENT, Counter()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each worker has collected the same tests."""
    node.config.stash[ABSENT] = Counter(getattr(node, "workeroutput", {}).get("absent", {}))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """One line that counts what was left out."""
    if absent := config.stash.get(ABSENT, None):
        said = ", ".join(f"{count} for want of {need}" for need, count in sorted(absent.items()))
        terminalreporter.write_line(f"left out: {said}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that share one Ray go to one process, and a file's to one; a page of the documentation shares nothing."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroupFileOrPage(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            _, at, group = nodeid.rpartition("@")
            if at and not group.endswith("]"):
                return group
            return nodeid if PAGE in nodeid else nodeid.partition("::")[0]

    return ByGroupFileOrPage(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(autouse=True)
def _log_that_is_nobodys() -> Iterator[None]:
    """A command that ran in this process leaves no level, and no closed stream, to whichever test comes next."""
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def _ray_for_who_asks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test with the marker `ray` joins the session's; what runs in a Ray that its program has joined runs in this
    process where a test asks for none, whichever tests came before."""
    if _uses_ray(request.node):
        request.getfixturevalue("local_ray")
    elif "ray" in sys.modules:
        monkeypatch.setattr("moot.deploy.runs.single_debate.sys", SimpleNamespace(modules={}))


@pytest.fixture(autouse=True)
def _encoder_of_a_plain_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--encoder auto` chooses the same, whether or not the weights of the small encoder are installed here."""
    monkeypatch.setattr("moot.deploy.runs.prior_runs.minilm_installed", lambda: False)


@pytest.fixture(scope="session", autouse=True)
def _without_extras(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests start finds what a plain installation has."""
    from no_pandas import no_pandas

    with no_pandas(tmp_path_factory.mktemp("no_pandas")):
        yield


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """A local Ray of two CPUs; its workers find the support modules, too."""
    import ray

    from moot.actors.remote.ray_session import without_idle_processes

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS / "support"), before]))
    with without_idle_processes():
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            object_store_memory=200 * 2**20,
        )
    yield
    ray.shutdown()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before
