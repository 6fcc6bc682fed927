"""One local Ray per process, a log per test, how processes share the suite out, and the folder of support modules."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

SUPPORT = str(Path(__file__).parent / "actors")
sys.path.insert(0, SUPPORT)
PROCESSES = 3
PAGE = "::test_everything_on_a_page_runs["

# Hundreds of processes are started: without bytecode each compiles the package anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """The whole suite is shared out among processes, unless `-n` says how; a chosen part of it is run in one."""
    chosen = config.args_source is pytest.Config.ArgsSource.ARGS
    if chosen or not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    if config.option.numprocesses is None and not (config.option.usepdb or config.option.collectonly):
        config.option.numprocesses, config.option.dist = PROCESSES, "loadfile"
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a suite that is shared out the longest files come first, so that no process is left alone with one."""
    if not hasattr(config, "workerinput"):
        return
    long = {item.path for item in items if item.get_closest_marker("kill")}
    items.sort(key=lambda item: 0 if item.path in long else 1 if PAGE in item.nodeid else 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests go to one process, for they share what is costly; a page of the documentation shares nothing."""
    from xdist.scheduler import LoadFileScheduling

    class ByFileOrPage(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if PAGE in nodeid else str(super()._split_scope(nodeid))

    return ByFileOrPage(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(autouse=True)
def _log_that_is_nobodys() -> Iterator[None]:
    """A command that ran in this process leaves no level, and no closed stream, to whichever test comes next."""
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def _no_ray_but_for_who_asks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs in a Ray that its program has joined runs in this process where a test asks for no Ray, whichever
    tests came before."""
    if "local_ray" not in request.fixturenames and not request.node.get_closest_marker("ray") and "ray" in sys.modules:
        monkeypatch.setattr("moot.deploy.running.single.sys", SimpleNamespace(modules={}))


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

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SUPPORT, before]))
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
