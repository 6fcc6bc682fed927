"""Debates that end in the way that their case names, in an open run, and everything that is kept of open ones."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from short_protocols import TEMPLATES

from moot.actors.debate.inline_engine import InlineRuntime
from moot.actors.debate.moderator import Moderator
from moot.actors.record.folder import RunFolder
from moot.actors.record.follow import RecordFollower
from moot.deploy.results.run_info import read_run_info
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.service.live.figures import READ_OF_JOURNAL, RunningFigures
from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case
from moot.protocols.errors import QuorumFailed
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Event, Verdict
from moot.protocols.replies import FreeText

ENDINGS = ("verdict", "invalid", "quorum", "crash", "exit", "no verdict", "twice", "cancelled itself", "late")


class WaitingDebate(DebateProtocol):
    """A reply, a shared reply and a note; then the debate ends as its case's title says, or waits for `go_on`."""

    name = "waiting-debate"
    roles = ("agent",)
    templates = TEMPLATES

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        await floor.ask("agent/0", "tiny/say", {"question": case.question}, reply=FreeText, path="say")
        told = Request("agent/0", "tiny/say", {"question": "what all share"}, FreeText, "shared")
        await floor.shared("one for all", told)
        floor.note(Event("noted", "note", {"x": 1.0}))
        how: Any = case.title
        if how == "quorum":
            raise QuorumFailed("nobody came")
        if how == "crash":
            raise RuntimeError("a bug")
        if how == "exit":
            sys.exit(1)
        if how == "no verdict":
            return how  # type: ignore[no-any-return]
        if how == "cancelled itself":
            raise asyncio.CancelledError
        if how == "twice":
            await floor.ask("agent/0", "tiny/say", {"question": case.question}, reply=FreeText, path="say")
        if how in ("waits", "late"):
            await self.go_on.wait()
        await floor.embed([case.question])
        return Verdict(answer="Yes", how="told")


def case_of(name: str, how: str = "waits") -> dict[str, Any]:
    """A case whose debate ends in a way."""
    return {"id": name, "question": f"Is it {name}?", "title": how, "labels": ["Yes", "No"]}


class Follower:
    """A page's figures of a run in progress."""

    def __init__(self, folder: Path) -> None:
        self.figures = RunningFigures(read_run_info(folder))
        self._record = RecordFollower(RunFolder(folder), self.figures.columns, READ_OF_JOURNAL)

    async def open_cases(self, run: OpenRun) -> set[str]:
        """Cases of the debates in progress, after everything so far was written and read."""
        engine = engine_of(run)
        engine._record_client.flush()
        await engine._writer.flush()
        for added in self._record.read():
            self.figures.add(added)
        return {case_id for case_id, _ in self.figures.debates._open}

    def close(self) -> None:
        """Close the files."""
        self._record.close()


def engine_of(run: OpenRun) -> InlineRuntime:
    """The inline engine of an open run."""
    assert isinstance(run._runtime, InlineRuntime)
    return run._runtime


def kept_of_open_debates(run: OpenRun) -> dict[str, int]:
    """What is kept of open debates in each place of an open run: nothing once they have all ended."""
    engine, dispatcher = engine_of(run), run._dispatcher
    assert dispatcher is not None
    router, writer = dispatcher._router, engine._writer
    (moderator,) = engine.moderators
    assert isinstance(moderator, Moderator)
    calls = [] if engine._limiter_client is None else engine._limiter_client._queues.values()
    counts = {
        "submitted": len(dispatcher._pending_cases),
        "queued": sum(map(len, router._queues)),
        "assigned": sum(map(len, router._assigned)),
        "event streams": len(dispatcher._event_streams._open),
        "debates": len(moderator._tasks) + moderator._open,
        "outcomes": len(moderator._report.done),
        "asks": engine._context.in_flight.count,
        "shared asks": sum(not each.done() for each in engine._context.shared.values()),
        "asks of agents": sum(len(agent._under_way) for agent in engine._agent_pool._agents.values()),
        "calls": sum(queue._in_use for queue in calls),
        "calls that wait": sum(len(queue.waiting) for queue in calls),
        "debates of the writer": sum(not key[0].startswith("shared") for key in writer._arrivals._open),
        "ground truth": len(writer._arrivals._ground_truth),
        "verdicts that wait": len(writer._arrivals._waiting),
        "leases": len(writer.leases._leases),
    }
    return {name: count for name, count in counts.items() if count}


@asynccontextmanager
async def waiting_debates(folder: Path, **options: Any) -> AsyncIterator[tuple[OpenRun, WaitingDebate, Follower]]:
    """An open run of `WaitingDebate` on the inline engine, its protocol, and a page that follows it."""
    protocol = WaitingDebate()
    run = OpenRun(RunConfig(**{"out": str(folder), "engine": "inline", "seed": 3, **options}), protocol=protocol)
    await run.open()
    try:
        with closing(Follower(folder)) as page:
            yield run, protocol, page
    finally:
        await run.close()
