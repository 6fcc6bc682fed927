"""Pages and case indexes of runs, built once for each version of their records."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from moot.deploy.results.report.blocks import Block
from moot.deploy.results.report.html import page_policy, report_html
from moot.deploy.results.run_report.report import build_report
from moot.deploy.results.text import shell_path
from moot.deploy.service.errors import RequestError
from moot.deploy.service.view.case_pages import CaseIndex
from moot.deploy.service.view.catalogue import FoundRun, RecordVersion
from moot.protocols.errors import UserError

_KEPT = 8
"""Most pages and case indexes in memory."""

MOST_COMPARED_CASES = 50_000
"""Most cases of the runs of one report, together: they and their transcripts are in the page."""

_AT_ONCE = 2
"""Most records read at once: each report of a large run takes much memory."""

_WORTH = 5.0
"""Factor from the duration of reading a live run to the time until it is read again."""

NOT_COMPARABLE = "not_comparable"
"""Code of an error of runs that have no case in common."""


FORMS = ("forms.js",)
"""Scripts of a run's page beside those of any page with cases."""


LIST = ("vendor/tabulator.min.js", "text.js", "filters.js", "figures.js", "runs.js")
"""Scripts of the list of runs."""


class Page(NamedTuple):
    """Page, and the Content-Security-Policy of its response."""

    html: str
    policy: str


def make_page(title: str, blocks: Sequence[Block], data: Mapping[str, Any], scripts: Sequence[str] = ()) -> Page:
    """Builds a page that requests its content from this server, and may not be framed."""
    policy = page_policy(data, "'self'", scripts) + "; frame-ancestors 'none'"
    return Page(report_html(title, blocks, data, connect="'self'", more=scripts), policy)


_Version = tuple[RecordVersion | None, ...]
"""Versions of the records of some runs."""


class _Made:
    """Result of reading a record, pending or done, with the version that was read."""

    def __init__(self, version: _Version, make: Callable[[], Any], slots: asyncio.Semaphore) -> None:
        self.version = version
        self._began = time.monotonic()
        self.again_at = 0.0
        self.task: asyncio.Task[Any] = asyncio.create_task(_made_in_thread(make, slots))
        self.task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        now = time.monotonic()
        self.again_at = now + _WORTH * (now - self._began)

    def is_good(self, version: _Version, *, live: bool) -> bool:
        """Whether it is still valid for a record of this version."""
        if not self.task.done():
            return True
        if self.task.exception() is not None:
            return False
        return self.version == version or (live and time.monotonic() < self.again_at)


async def _made_in_thread(make: Callable[[], Any], slots: asyncio.Semaphore) -> Any:
    async with slots:
        return await asyncio.to_thread(_made, make)


def _made(make: Callable[[], Any]) -> Any:
    try:
        return make()
    finally:
        pa.default_memory_pool().release_unused()  # else a server keeps as much as its largest record took


class RecordCache:
    """Cache of reports and case indexes of the latest opened runs, each read in a thread.

    Args:
        common: data of every run's page.
    """

    def __init__(self, common: Mapping[str, Any]) -> None:
        self._common = common
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._made: OrderedDict[tuple[str, ...], _Made] = OrderedDict()

    async def report(self, run: FoundRun, within_s: float) -> Page | None:
        """Page of a run's report; None when it is not ready within `within_s` seconds, and is still being built.

        Raises:
            RecordError: the record cannot be read.
        """
        index = await self.cases(run)

        def build() -> Page:
            report = build_report(run.path)
            return make_page(f"{run.name} - moot", report.blocks, self.data(index), FORMS)

        task = (await self._find("report", [run], build)).task
        await asyncio.wait([task], timeout=within_s)
        page: Page | None = task.result() if task.done() else None
        return page

    async def cases(self, run: FoundRun) -> CaseIndex:
        """Index of a run's cases; for a run in progress it may be slightly outdated.

        Raises:
            RecordError: the record cannot be read.
        """
        found = await self._find("cases", [run], lambda: CaseIndex(run.path))
        index: CaseIndex = await asyncio.shield(found.task)
        return index

    async def cases_within(self, run: FoundRun, within_s: float) -> CaseIndex | None:
        """As `cases`; None when it is not ready within `within_s` seconds, and is still being read."""
        try:
            async with asyncio.timeout(within_s):
                return await self.cases(run)
        except TimeoutError:
            return None

    def data(self, index: CaseIndex) -> dict[str, Any]:
        """Data of a page whose cases and transcripts come from this server."""
        return {**self._common, "server": True, "decisions": "decisions.json", "cases": index.described()}

    async def comparison(self, runs: Sequence[FoundRun]) -> Page:
        """Page of the report of several runs, the first of which is the baseline.

        Raises:
            RequestError: 422, they have too many cases, or none in common.
            RecordError: a record cannot be read.
        """
        indexes = [await self.cases(run) for run in runs]
        if sum(index.total for index in indexes) > MOST_COMPARED_CASES:
            command = f"moot report {' '.join(shell_path(run.path) for run in runs)}"
            raise RequestError(422, f"so many cases are not compared here: {command}")

        def build() -> Page:
            report = build_report(*(run.path for run in runs))
            return make_page(report.title, report.blocks, {**report.data(), "home": "./"})

        try:
            page: Page = await asyncio.shield((await self._find("compare", runs, build)).task)
        except UserError as error:
            raise RequestError(422, str(error), NOT_COMPARABLE) from None
        return page

    async def _find(self, what: str, runs: Sequence[FoundRun], make: Callable[[], Any]) -> _Made:
        version, live = await asyncio.to_thread(
            lambda: (tuple(run.version() for run in runs), any(run.is_live() for run in runs))
        )
        key = (what, *(run.name for run in runs))
        known = self._made.get(key)
        if known is None or not known.is_good(version, live=live):
            known = self._made[key] = _Made(version, make, self._slots)
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return known
