"""Which verdicts the record takes: those that rest on replies that it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from moot.actors.record.arrivals import Arrivals
from moot.actors.record.closing import Closing
from moot.actors.record.known_endings import Used
from moot.actors.record.registry import Registry

_PATIENCE_S = 10.0


class Admission:
    """Admits each debate's verdict once, when everything it rests on is here.

    Args:
        arrivals: what has come.
        registry: what is right in each case.
        write: takes an admitted verdict into the journal, with what its replies used.
        life: the writer's. What an earlier one had taken and not yet written was lost with it: replies are missed by
            their ids, notes by nothing, so that a debate with notes from then is replayed, which notes them again.
    """

    def __init__(
        self, arrivals: Arrivals, registry: Registry, write: Callable[[Closing, Used], None], life: str
    ) -> None:
        self._arrivals, self._registry, self._write, self._life = arrivals, registry, write, life

    async def admit(self, closings: Sequence[Closing]) -> list[bool]:
        """Whether each is in the journal now, or was before; waits a little for replies that are on their way."""
        admitted = [self._at_once(closing) for closing in closings]
        late = [i for i, ok in enumerate(admitted) if ok is None]
        for i, ok in zip(late, await asyncio.gather(*(self._in_time(closings[i]) for i in late)), strict=True):
            admitted[i] = ok
        return [bool(ok) for ok in admitted]

    def _at_once(self, closing: Closing) -> bool | None:
        """Admit a verdict whose replies are all here, or refuse one that rests on others; None to wait for some."""
        key = (closing.case_id, closing.attempt)
        if self._arrivals.has_ended(key):
            return True
        if closing.noted_in not in ("", self._life):
            return False
        if self._incomplete(closing):
            return None
        debate = self._arrivals.debate(key)
        if any(debate.reply_ids[path] != reply_id for path, reply_id in closing.replies.items()):
            return False
        self._arrivals.end(key)
        self._write(closing, debate.used)
        return True

    def _incomplete(self, closing: Closing) -> bool:
        """Whether what is right in the case or a reply of the verdict is not here yet; a verdict that came twice is
        complete when the first one is."""
        key = (closing.case_id, closing.attempt)
        if self._arrivals.has_ended(key):
            return False
        replies = self._arrivals.debate(key).reply_ids
        return not self._registry.knows(closing.case_id) or any(path not in replies for path in closing.replies)

    async def _in_time(self, closing: Closing) -> bool:
        """The same, waiting for what is on its way."""
        debate = self._arrivals.debate((closing.case_id, closing.attempt))
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while self._incomplete(closing):
                    debate.arrived.clear()
                    await debate.arrived.wait()
        except TimeoutError:
            return False
        return bool(self._at_once(closing))
