"""The event of constructor-auditor; what its judges found is noted as `ReplyAssessed`."""

from __future__ import annotations

from typing import Any, ClassVar

from moot.protocols.events import DebateEvent


class TextsRetrieved(DebateEvent):
    """What was found for a question that comes without a passage, at `retrieved`.

    Attributes:
        documents: 0-based numbers of the case's documents, nearest first.
        passages: of the run's library, nearest first, as `document`, `chunk` and `page`.
    """

    kind: ClassVar[str] = "retrieved"

    documents: list[int]
    passages: list[dict[str, Any]]
