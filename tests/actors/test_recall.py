"""What is asked of recorded verdicts when the record cannot be read, is slow, or is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from test_arena import Archive
from test_reception import Runtime, case, reception

from moot.actors.record.closing import Closing, Ended
from moot.actors.seating import NotHeld
from moot.protocols.errors import RecordError


class Record(Archive):
    """Has a verdict on every case; `fails` is what the next reading ends with, and `slow` holds readings up."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []
        self.fails: Exception | None = None
        self.slow: asyncio.Event | None = None

    async def endings(self, case_ids: Sequence[str]) -> dict[str, Ended]:
        self.asked.append(list(case_ids))
        if self.slow is not None:
            await self.slow.wait()
        if self.fails is not None:
            error, self.fails = self.fails, None
            raise error
        return {
            each: Ended(Closing(case_id=each, attempt=0, replies={}, answer="Yes", how="told"), {}) for each in case_ids
        }


class Finished(Runtime):
    """An engine whose record has ended with every case."""

    def __init__(self) -> None:
        super().__init__(1)
        self.record = Record()
        self.archive = self.record

    @property
    def past(self) -> dict[tuple[str, int], bool]:
        return {(f"q{number}", 0): False for number in range(9)}


async def test_a_reading_that_failed_is_the_error_of_those_who_asked_for_it_alone() -> None:
    runtime = Finished()
    async with reception(runtime, runtime.past) as found:
        runtime.record.fails = RecordError("the volume is away")
        ends = await asyncio.gather(found.hold(case(0)), found.recall("q1"), return_exceptions=True)
        assert [str(end) for end in ends] == ["the volume is away"] * 2
        assert (await found.hold(case(0))).reused
        again = await found.recall("q1")
        assert again is not None
        assert again.ended.closing.case_id == "q1"


async def test_closing_ends_every_wait_for_the_record() -> None:
    runtime = Finished()
    async with reception(runtime, runtime.past) as found:
        runtime.record.slow = asyncio.Event()
        asking = [asyncio.create_task(found.hold(case(0)))]
        while not runtime.record.asked:  # noqa: ASYNC110 - a condition of a test
            await asyncio.sleep(0)
        asking.append(asyncio.create_task(found.hold(case(1))))  # waits for the slow reading to end
        gone = asyncio.create_task(found.hold(case(2)))
        await asyncio.sleep(0)
        gone.cancel()
        await found.close(0.0)
        async with asyncio.timeout(5):
            for each in asking:
                with pytest.raises(NotHeld, match="closed before"):
                    await each
            with pytest.raises(NotHeld, match="closed"):
                await found.recall("q3")
        assert runtime.record.asked == [["q0"]]
