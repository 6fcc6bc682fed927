"""Reliable channel between dispatcher and moderator: each outcome arrives once, whatever becomes of single calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from moot.actors.debate.moderator import Assignment, AssignmentOutcome, Moderator, ModeratorReport
from moot.actors.remote.reliable_channel import ReliableChannelClient, ReliableChannelServer
from moot.protocols.case import Case


class FakeModerator:
    """A moderator whose debates end when the test says so."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self._ended: list[AssignmentOutcome] = []
        self._news = asyncio.Event()

    def end(self, case_id: str) -> None:
        self._ended.append(AssignmentOutcome(case_id, 0, "finished"))
        self._news.set()

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> ModeratorReport:
        self.taken += [each.case.id for each in assignments]
        if wait:
            await self._news.wait()
        self._news.clear()
        ended, self._ended = self._ended, []
        return ModeratorReport(ended)


def _assignments(*case_ids: str) -> list[Assignment]:
    return [Assignment(Case(id=case_id, question="is it")) for case_id in case_ids]


def _made() -> tuple[FakeModerator, ReliableChannelServer, ReliableChannelClient]:
    debates = FakeModerator()
    return debates, ReliableChannelServer(cast(Moderator, debates)), ReliableChannelClient()


def _ids(report: ModeratorReport) -> list[str]:
    return [outcome.case_id for outcome in report.done]


async def test_an_outcome_whose_report_was_lost_comes_with_the_next_one() -> None:
    debates, channel, counter = _made()
    await channel.exchange(counter.next_batch(_assignments("a", "b")), wait=False)
    debates.end("a")
    await channel.exchange(counter.next_batch([]), wait=True)  # nobody gets it
    debates.end("b")
    assert _ids(counter.accept(await channel.exchange(counter.next_batch([]), wait=False))) == ["a", "b"]
    assert _ids(counter.accept(await channel.exchange(counter.next_batch([]), wait=False))) == []


async def test_a_call_that_nobody_waits_for_takes_no_news_away() -> None:
    debates, channel, counter = _made()
    ghost = asyncio.create_task(channel.exchange(counter.next_batch(_assignments("a")), wait=True))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(channel.exchange(counter.next_batch(_assignments("a")), wait=True))
    await asyncio.sleep(0)
    debates.end("a")
    await ghost
    assert _ids(counter.accept(await waiting)) == ["a"]


async def test_what_has_ended_does_not_run_again_because_its_report_was_lost() -> None:
    debates, channel, counter = _made()
    await channel.exchange(counter.next_batch(_assignments("a", "b")), wait=False)
    debates.end("a")
    await channel.exchange(counter.next_batch([]), wait=True)
    again = await channel.exchange(counter.next_batch(_assignments("a", "b")), wait=False)
    assert debates.taken == ["a", "b", "b"]
    assert _ids(counter.accept(again)) == ["a"]


async def test_a_late_batch_is_ignored_and_one_beside_a_listener_is_not() -> None:
    debates, channel, counter = _made()
    late, again = counter.next_batch(_assignments("a")), counter.next_batch(_assignments("a", "b"))
    beside, listening = counter.next_batch(_assignments("c")), counter.next_batch([])
    for batch in (again, late, listening, beside):
        await channel.exchange(batch, wait=False)
    assert debates.taken == ["a", "b", "c"]


async def test_an_outcome_that_comes_with_two_calls_at_once_counts_once() -> None:
    debates, channel, counter = _made()
    await channel.exchange(counter.next_batch(_assignments("a")), wait=False)
    first, second = counter.next_batch([]), counter.next_batch([])
    debates.end("a")
    returned = [await channel.exchange(batch, wait=False) for batch in (first, second)]
    assert [_ids(counter.accept(each)) for each in returned] == [["a"], []]


async def test_a_new_incarnation_counts_from_the_start() -> None:
    debates, channel, counter = _made()
    await channel.exchange(counter.next_batch(_assignments("a", "b")), wait=False)
    debates.end("a")
    assert _ids(counter.accept(await channel.exchange(counter.next_batch([]), wait=True))) == ["a"]
    reborn = ReliableChannelServer(cast(Moderator, debates))
    debates.end("b")
    assert _ids(counter.accept(await reborn.exchange(counter.next_batch(_assignments("b")), wait=False))) == ["b"]
