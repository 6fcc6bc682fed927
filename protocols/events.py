"""Typed events: what a protocol notes of a debate, defined once for whoever writes it and whoever reads it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, WrapSerializer

from moot.protocols.messages import Event

T = TypeVar("T")


def _as_list(values: Any, dump: SerializerFunctionWrapHandler) -> list[Any]:
    return list(dump(values))


Listed = Annotated[tuple[T, ...], Field(strict=False), WrapSerializer(_as_list)]
"""Several values: a tuple here, a list in the record."""


class EventData(BaseModel):
    """A part of an event's data. Keys that it does not define are ignored: records of other versions may have them."""

    model_config = ConfigDict(frozen=True, strict=True, populate_by_name=True)

    @classmethod
    def read(cls, data: Any) -> Self | None:
        """Recorded data in this type; None when they are not of it."""
        try:
            return cls.model_validate(data, extra="ignore")
        except ValidationError:
            return None


class DebateEvent(EventData):
    """A typed event: the base of the events that each protocol defines in its `events.py`.

    The field names are the keys of the recorded data, and stay. A field with a default may be absent in older records;
    what a writer does not set is not recorded, and what the type does not define cannot be written.

    Attributes:
        kind: the kind by which the record knows it.
        path: where in the debate it happened; the last event of a kind at a path counts.
    """

    model_config = ConfigDict(extra="forbid")

    kind: ClassVar[str]

    path: str = Field(default="", exclude=True)

    def as_event(self) -> Event:
        """The event as it is recorded."""
        return Event(self.kind, self.path, self.model_dump(by_alias=True, exclude_unset=True))

    @classmethod
    def read(cls, data: Any, path: str = "") -> Self | None:
        """A recorded event's data in this type; None when they are not of it: another protocol's event of that kind."""
        read = super().read(data)
        return read.model_copy(update={"path": path}) if read is not None and path else read


def as_event(event: Event | DebateEvent) -> Event:
    """An event as it is recorded, whichever way it was noted."""
    return event.as_event() if isinstance(event, DebateEvent) else event
