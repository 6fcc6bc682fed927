"""Reading a record back while its writer goes on writing: one reading at a time, of no more than is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from moot.actors.record.as_written import Snapshot
from moot.actors.record.closing import Ended
from moot.actors.record.endings import recorded_endings
from moot.actors.record.folder import RunFolder
from moot.actors.record.journal import Journal
from moot.actors.record.part_index import PartIndex
from moot.actors.record.recovery import HISTORY_STREAMS, History, histories
from moot.actors.record.reopening import REOPENING_STREAMS, Reopened, reopened
from moot.actors.record.schema import CaseKey
from moot.actors.record.threads import to_its_end


class ReadBack:
    """What one writer is asked of its record.

    Args:
        folder: the run's folder.
        journal: the writer's.
    """

    def __init__(self, folder: RunFolder, journal: Journal) -> None:
        self._folder, self._journal = folder, journal
        self._index = PartIndex()
        self._reading = asyncio.Lock()

    async def histories(self, keys: Sequence[CaseKey]) -> list[History]:
        """What is recorded of each debate, up to what the writer has taken by now.

        Raises:
            RecordError: what it has taken cannot be written.
        """
        recorded = await self._snapshot(keys, HISTORY_STREAMS)
        async with self._reading:  # without the journal's lock: verdicts need it
            return await to_its_end(lambda: histories(recorded, keys, self._index))

    async def reopened(self, keys: Sequence[CaseKey]) -> dict[CaseKey, Reopened]:
        """See `reopening.reopened`; raises as `histories`."""
        recorded = await self._snapshot(keys, REOPENING_STREAMS)
        async with self._reading:
            return await to_its_end(lambda: reopened(recorded, keys, self._index))

    async def _snapshot(self, keys: Sequence[CaseKey], streams: Sequence[str]) -> Snapshot:
        await self._journal.readable()
        case_ids = [case_id for case_id, _ in keys]
        async with self._journal.lock:
            return await to_its_end(lambda: Snapshot.take(self._folder, case_ids, streams))

    async def endings(self, case_ids: Sequence[str]) -> dict[str, Ended]:
        """See `recorded_endings`."""
        async with self._reading:
            return await to_its_end(lambda: recorded_endings(self._folder, case_ids, self._index))
