"""What leaves for a process of Ray's, with the folders where it may look for users' modules."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from ray import cloudpickle
from ray.job_config import JobConfig

from moot.protocols.user_modules import LOOK_IN


class Carried:
    """A value that arrives as itself. Before it is made, `LOOK_IN` there is as it is here.

    Args:
        value: what is carried.
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


class _SearchedHere(list[str]):
    """The folders that workers search first: of those that Ray names only what this process searches first, too."""

    def extend(self, folders: Iterable[str]) -> None:
        """Ray adds the current folder in any case, so that a file beside the data could stand in for a package."""
        searched = {os.path.abspath(folder) for folder in sys.path} - set(LOOK_IN)
        super().extend(folder for folder in folders if os.path.abspath(folder) in searched)


def job_config() -> JobConfig:
    """Of a job whose workers search no folder that this process does not search."""
    config = JobConfig()
    config._py_driver_sys_path = _SearchedHere()
    return config
