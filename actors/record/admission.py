"""Which verdicts the record takes: those that rest on replies that it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from moot.actors.record.arrivals import Arrivals, Right
from moot.actors.record.closing import Closing
from moot.actors.record.open_debate import OpenDebate

_PATIENCE_S = 10.0


class Admission:
    """Admits each debate's verdict once, when everything it rests on is here.

    Args:
        arrivals: what has come.
        write: takes an admitted verdict into the journal, with its debate and what is right in its case.
        life: the writer's. What an earlier one had taken and not yet written was lost with it: replies are missed by
            their ids, notes by nothing, so that a debate with notes from then is replayed, which notes them again.
    """

    def __init__(self, arrivals: Arrivals, write: Callable[[Closing, OpenDebate, Right], None], life: str) -> None:
        self._arrivals, self._write, self._life = arrivals, write, life

    async def admit(self, closings: Sequence[Closing]) -> list[bool]:
        """Whether each is in the journal now, or was before; waits a little for replies that are on their way."""
        admitted = [self._at_once(closing) for closing in closings]
        late = [i for i, ok in enumerate(admitted) if ok is None]
        for i, ok in zip(late, await asyncio.gather(*(self._in_time(closings[i]) for i in late)), strict=True):
            admitted[i] = ok
        return [bool(ok) for ok in admitted]

    def _at_once(self, closing: Closing) -> bool | None:
        """Admit a verdict whose replies are all here, or refuse one that rests on others; None to wait for what is
        right in its case, or for some of its replies."""
        key = (closing.case_id, closing.attempt)
        if self._arrivals.has_ended(key):
            return True
        if closing.noted_in not in ("", self._life):
            return False
        debate = self._arrivals.debate(key)
        if not self._arrivals.knows(closing.case_id) or not closing.replies.keys() <= debate.reply_ids.keys():
            return None
        if any(debate.reply_ids[path] != reply_id for path, reply_id in closing.replies.items()):
            return False
        self._write(closing, debate, self._arrivals.end(key))
        return True

    async def _in_time(self, closing: Closing) -> bool:
        """The same, waiting for what is on its way."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while (admitted := self._at_once(closing)) is None:
                    await self._arrivals.changed((closing.case_id, closing.attempt))
        except TimeoutError:
            return False
        return admitted
