"""Processes that import nothing: forked from a server that has imported what they need."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from moot.actors import failpoints

_SERVER = multiprocessing.get_context("forkserver")
# In Python 3.11 the server does not get the path of who starts it: it finds what is installed.
_SERVER.set_forkserver_preload(["moot.actors.record.compaction", "moot.actors.record.recorder"])


@dataclass(frozen=True)
class Ended:
    """How a process ended, and what it said; `returncode` is minus the signal that killed it."""

    returncode: int
    stdout: str
    stderr: str


def forked(work: Callable[..., object], *args: Any, **environment: str) -> Ended:
    """Do `work` in a process with an environment, failpoints and output of its own, and wait for its end.

    Args:
        work: a function of a module that the process can import.
        environment: variables beside those of this process.
    """
    with TemporaryDirectory() as place:
        said = [Path(place) / name for name in ("stdout", "stderr")]
        process = _SERVER.Process(target=_child, args=(work, args, said, environment))
        process.start()
        process.join(120)
        if process.is_alive():
            process.kill()
            process.join()
        assert process.exitcode is not None
        return Ended(process.exitcode, *(file.read_text("utf-8") for file in said))


def _child(work: Callable[..., object], args: Any, said: list[Path], environment: Mapping[str, str]) -> None:
    for number, file in enumerate(said, start=1):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.update(environment)
    sys.path[:0] = os.environ.get("PYTHONPATH", "").split(os.pathsep)  # as in a process that was started
    failpoints._PLAN = failpoints._plan(environment.get("MOOT_FAILPOINTS", ""))
    work(*args)
