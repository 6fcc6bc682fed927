"""Failpoints: named points in the code where a test may kill the process, to test that nothing is lost or paid twice.

With `MOOT_FAILPOINTS=NAME:HIT,NAME:HIT,...` and `MOOT_FAILPOINT_DIR=FOLDER` in the environment, a process is killed by
SIGKILL when it reaches NAME for the HIT-th time. A file in FOLDER marks each entry as used, so that a restarted process
continues. Without the variables every call is one failed dictionary lookup.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

_NAMES = (
    "driver.fed",
    "agent.received",
    "agent.sent_to_writer",
    "agent.sent_to_moderator",
    "judge.received",
    "judge.sent_to_writer",
    "judge.sent_to_moderator",
    "moderator.debate_closed",
    "moderator.committed",
    "writer.buffered",
    "writer.flushed",
    "segment.torn",
    "compaction.part_written",
    "compaction.part_renamed",
    "compaction.manifest_written",
    "library.appended",
    "store.delta_put",
    "store.part_put",
)


def _plan(text: str) -> dict[str, list[int]]:
    plan: dict[str, list[int]] = {}
    for entry in filter(None, text.split(",")):
        name, _, hit = entry.partition(":")
        if name not in _NAMES:
            raise ValueError(f"unknown failpoint {name!r}; known: {', '.join(_NAMES)}")
        plan.setdefault(name, []).append(int(hit or 1))
    return plan


_PLAN = _plan(os.environ.get("MOOT_FAILPOINTS", ""))
_HITS: Counter[str] = Counter()


def failpoint(name: str) -> None:
    """Kill this process by SIGKILL if the environment requests it for this hit of `name`."""
    if name not in _PLAN:
        return
    _HITS[name] += 1
    for planned in _PLAN[name]:
        if _HITS[name] >= planned and _claim(f"{name}:{planned}"):
            os.kill(os.getpid(), signal.SIGKILL)


def about_to_fail(name: str) -> bool:
    """Whether the next hit of `name` will kill this process; for faults that leave partial writes."""
    due = [hit for hit in _PLAN.get(name, ()) if _HITS[name] + 1 >= hit]
    return any(not _marker(f"{name}:{hit}").exists() for hit in due)


def _marker(entry: str) -> Path:
    return Path(os.environ.get("MOOT_FAILPOINT_DIR", "")) / entry.replace(":", "-")


def _claim(entry: str) -> bool:
    try:
        os.close(os.open(_marker(entry), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
