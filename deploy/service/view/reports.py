"""Report pages of runs, built once for each state of their records."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, NamedTuple

from moot.deploy.results.report.html import report_html
from moot.deploy.results.run_report.build import build_report
from moot.deploy.service.view.case_pages import CaseIndex
from moot.deploy.service.view.catalogue import FoundRun, RecordVersion

_KEPT = 8
"""Pages, and case indexes, in memory."""


class _Built(NamedTuple):
    """Something that was read of a record, and of which version of it."""

    version: RecordVersion | None
    task: asyncio.Task[Any]


class RecordCache:
    """Reports and case indexes of the runs that were opened last, each read in a thread; one at a time is built of a
    run, and a new one only once its record has changed."""

    def __init__(self) -> None:
        self._built: OrderedDict[tuple[str, str], _Built] = OrderedDict()

    async def page(self, run: FoundRun, within_s: float) -> str | None:
        """The page of a run's report; None when it is not ready within so many seconds, and is still being built.

        Raises:
            RecordError: the record cannot be read.
        """
        task = await self._task("report", run, _report)
        await asyncio.wait([task], timeout=within_s)
        return str(task.result()) if task.done() else None

    async def cases(self, run: FoundRun) -> CaseIndex:
        """The index of a run's cases.

        Raises:
            RecordError: the record cannot be read.
        """
        index: CaseIndex = await asyncio.shield(await self._task("cases", run, _case_index))
        return index

    async def _task(self, what: str, run: FoundRun, build: Any) -> asyncio.Task[Any]:
        version = await asyncio.to_thread(run.version)
        key = (what, run.name)
        known = self._built.get(key)
        if known is None or (known.task.done() and (known.version != version or known.task.exception())):
            known = self._built[key] = _Built(version, asyncio.create_task(asyncio.to_thread(build, run)))
            while len(self._built) > _KEPT:
                self._built.popitem(last=False)
        self._built.move_to_end(key)
        return known.task


def _report(run: FoundRun) -> str:
    report = build_report(run.path)
    return report_html(f"{run.name} - moot", report.blocks, {"served": True}, connect="'self'")


def _case_index(run: FoundRun) -> CaseIndex:
    return CaseIndex(run.path)
