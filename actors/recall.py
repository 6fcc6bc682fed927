"""Recalling: how cases ended that have a verdict on record, asked for one by one and read many at a time."""

from __future__ import annotations

import asyncio

from moot.actors.arena import Archive
from moot.actors.record.closing import Ended
from moot.actors.remote.mailbox import Mailbox
from moot.actors.visit import NotHeld

_ASK_EACH_S = 0.02
_Question = tuple[str, asyncio.Future[Ended | None]]


class Recall:
    """Reads recorded verdicts for whoever asks; one reading that fails is the error of those who asked for it.

    Args:
        archive: the record's writers.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._unanswered: set[_Question] = set()
        self._questions: Mailbox[_Question] = Mailbox(self._ask, spacing_s=_ASK_EACH_S)
        self._closed = False

    async def ending(self, case_id: str) -> Ended | None:
        """How a case ended; None when the record does not say.

        Raises:
            NotHeld: this was closed before the record had answered.
        """
        if self._closed:
            raise _closed(case_id)
        question: _Question = (case_id, asyncio.get_running_loop().create_future())
        self._unanswered.add(question)
        try:
            self._questions.post(question)
            return await question[1]
        finally:
            self._unanswered.discard(question)

    async def close(self) -> None:
        """Read no more; whoever still waits for an answer gets `NotHeld`."""
        self._closed = True
        await self._questions.close()
        for case_id, answer in self._unanswered:
            if not answer.done():
                answer.set_exception(_closed(case_id))

    async def _ask(self, batch: list[_Question]) -> None:
        try:
            found = await self._archive.endings([case_id for case_id, _ in batch])
        except Exception as error:
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
            return
        for case_id, answer in batch:
            if not answer.done():
                answer.set_result(found.get(case_id))


def _closed(case_id: str) -> NotHeld:
    return NotHeld(f"the run was closed before its record told how case {case_id!r} ended")
