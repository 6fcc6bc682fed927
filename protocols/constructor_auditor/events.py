"""The event of constructor-auditor, and the payload of its verdict; what judges found is noted as `ReplyAssessed`."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from moot.protocols.case import Domain
from moot.protocols.events import DebateEvent, EventData


class TextsRetrieved(DebateEvent):
    """Retrieved texts for a question without a passage, at `retrieved`.

    Attributes:
        documents: 0-based numbers of the case's documents, nearest first.
        passages: passages of the run's library, nearest first, as `document`, `chunk` and `page`.
    """

    kind: ClassVar[str] = "retrieved"

    documents: list[int]
    passages: list[dict[str, Any]]


class ConstructorAuditorPayload(EventData):
    """The payload of a verdict.

    Attributes:
        domain: the kind of task.
        quality, flagged: the judges' results, by role of the reply; see `ReplyAssessed`. Absent if no judge was asked.
    """

    domain: Domain
    quality: dict[str, float | None] = Field(default_factory=dict)
    flagged: dict[str, bool | None] = Field(default_factory=dict)
