"""How often a process that holds debates collects garbage."""

from __future__ import annotations

import gc

_THRESHOLDS = (50_000, 50, 50)


def collect_seldom() -> None:
    """Leave what is there now out of every collection, and collect the rest seldom: many debates are open for long, and
    collecting them again and again took a third of a moderator's CPU, and stopped a server for a tenth of a second.

    For a process that is ours, once it is set up.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
