"""How the debates that ended last ended, kept in mind so that asking for one again reads no record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from moot.actors.record.closing import Closing, Ended, ModelUsage
from moot.actors.record.rows import INVALID_SUFFIX

_MOST = 10_000
_MOST_BYTES = 64 * 2**20


class Used:
    """What the replies that stand of one open debate used, as the record will tell it.

    Attributes:
        known: False when an earlier life of the writer has recorded replies of the debate.
    """

    __slots__ = ("_gone", "_replies", "known")

    def __init__(self) -> None:
        self.known = True
        self._replies: dict[str, tuple[str, int | None, int | None]] = {}
        self._gone: set[str] = set()

    def add(
        self, reply_id: str, supersedes: str | None, model: str | None, prompt: int | None, completion: int | None
    ) -> None:
        """Count a reply that was taken into the journal; what it supersedes counts no more."""
        if supersedes:
            for gone in (supersedes, supersedes + INVALID_SUFFIX):
                self._gone.add(gone)
                self._replies.pop(gone, None)
        if model and reply_id not in self._gone:
            self._replies[reply_id] = (model, prompt, completion)

    def by_model(self) -> dict[str, ModelUsage]:
        """By model, what was used."""
        found: dict[str, ModelUsage] = {}
        for model, prompt, completion in self._replies.values():
            found.setdefault(model, ModelUsage()).add(prompt, completion)
        return found


class KnownEndings:
    """The last endings by case, bounded in number and in bytes; the oldest goes first."""

    def __init__(self, most: int = _MOST, most_bytes: int = _MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._endings: dict[str, bytes] = {}
        self._bytes = 0

    def put(self, closing: Closing, usage: Mapping[str, ModelUsage] | None) -> None:
        """Keep the end of a case's latest attempt; without its usage nothing is known of the case."""
        self._drop(closing.case_id)
        if usage is None:
            return
        ended = Ended(msgspec.structs.replace(closing, replies={}, noted_in=""), dict(usage))
        self._endings[closing.case_id] = raw = msgspec.msgpack.encode(ended)
        self._bytes += len(raw)
        while len(self._endings) > self._most or self._bytes > self._most_bytes:
            self._drop(next(iter(self._endings)))

    def _drop(self, case_id: str) -> None:
        self._bytes -= len(self._endings.pop(case_id, b""))

    def of(self, case_ids: Iterable[str]) -> dict[str, Ended]:
        """By case, what is known; the others are left out."""
        found = {case_id: raw for case_id in case_ids if (raw := self._endings.get(case_id)) is not None}
        return {case_id: msgspec.msgpack.decode(raw, type=Ended) for case_id, raw in found.items()}
