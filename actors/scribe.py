"""The record's port when the writer lives in the same process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from moot.actors.record.closing import Closing
from moot.actors.record.recorder import Recorder
from moot.actors.record.recovery import History
from moot.actors.record.rows import Rows
from moot.protocols.errors import RecordError
from moot.protocols.messages import Event

_CLAIM_LEASE_S = 180.0


class LocalScribe:
    """Hands rows to a recorder of this process; replies are gathered until the loop is idle.

    Args:
        recorder: the one writer.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._replies = Rows("replies")
        self._scheduled = False

    def put_reply(self, case_id: str, columns: dict[str, Any]) -> None:
        """See `ports.Scribe.put_reply`."""
        self._replies.append(**columns)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_later(0.05, self._hand_over_later)

    def _hand_over_later(self) -> None:
        with suppress(RecordError):  # the next event gets it
            self.hand_over()

    def hand_over(self) -> None:
        """Give the recorder what has been gathered."""
        self._scheduled = False
        if len(self._replies):
            self._recorder.add_replies(self._replies.take())

    def put_event(self, case_id: str, attempt: int, event: Event) -> None:
        """See `ports.Scribe.put_event`."""
        self._recorder.add_events([(case_id, attempt, event, time.time())])

    def put_vectors(self, case_id: str, attempt: int, encoder: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """See `ports.Scribe.put_vectors`."""
        self._recorder.add_vectors(case_id, attempt, encoder, vectors)

    async def commit(self, closing: Closing) -> bool:
        """See `ports.Scribe.commit`."""
        self.hand_over()
        return (await self._recorder.commit([closing]))[0]

    async def history(self, case_id: str, attempt: int) -> History:
        """See `ports.Scribe.history`."""
        self.hand_over()
        return (await self._recorder.history([(case_id, attempt)]))[0]

    async def has_shared(self, key: str) -> bool:
        """See `ports.Scribe.has_shared`."""
        self.hand_over()
        return await self._recorder.has_shared(key)

    async def claim(self, key: str) -> tuple[bool, History]:
        """See `ports.Scribe.claim`."""
        return await self._recorder.claim(key, _CLAIM_LEASE_S)

    async def settle(self, key: str) -> None:
        """See `ports.Scribe.settle`."""
        self.hand_over()
        self._recorder.claims.settle(key)
