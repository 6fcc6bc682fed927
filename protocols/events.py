"""Typed events of protocols, each defined once for its writers and its readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    SerializerFunctionWrapHandler,
    ValidationError,
    WrapSerializer,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from moot.protocols.messages import Event

T = TypeVar("T")


def _as_list(values: Any, dump: SerializerFunctionWrapHandler) -> list[Any]:
    return list(dump(values))


Listed = Annotated[tuple[T, ...], Field(strict=False), WrapSerializer(_as_list)]
"""Several values: a tuple here, a list in the record."""


class _NoneOnError:
    """Schema that turns invalid values into None. Not a validator function, which would be called for each value."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_default_schema(handler(source), default=None, on_error="default")


OrNone = Annotated[T | None, _NoneOnError()]
"""None for a value of another form: one odd value of a user's protocol must not hide the others."""


def reads_none(field: FieldInfo) -> bool:
    """Whether a field is None for a value of another form; see `OrNone`."""
    return any(isinstance(each, _NoneOnError) for each in field.metadata)


Finite = Annotated[float, Field(allow_inf_nan=False)]

Figures = OrNone[Finite | dict[str, OrNone[Finite]] | list[Any]]
"""A number, numbers by side or by pair of sides, or a list to be counted."""


class EventData(BaseModel):
    """Part of an event's data. Undefined keys are ignored: records of other versions may have them."""

    model_config = ConfigDict(frozen=True, strict=True, populate_by_name=True)

    @classmethod
    def read(cls, data: Any) -> Self | None:
        """Recorded data in this type; None for data of another type."""
        try:
            return cls.model_validate(data, extra="ignore")
        except ValidationError:
            return None

    @classmethod
    def read_json(cls, data: str) -> Self | None:
        """The same of recorded JSON, without a dictionary in between: figures read the events of whole runs."""
        try:
            return cls.model_validate_json(data, extra="ignore")
        except ValidationError:
            return None


class DebateEvent(EventData):
    """Base class of the typed events that each protocol defines in its `events.py`.

    The field names are the keys of the recorded data, and are stable. A field with a default may be absent in older
    records; unset fields are not recorded, and undefined ones cannot be written.

    Attributes:
        kind: the kind of the event in the record.
        path: the step of the debate; the last event of a kind at a path counts.
    """

    model_config = ConfigDict(extra="forbid")

    kind: ClassVar[str]

    path: str = Field(default="", exclude=True)

    def as_event(self) -> Event:
        """The event in its recorded form."""
        return Event(self.kind, self.path, self.model_dump(by_alias=True, exclude_unset=True))

    @classmethod
    def read(cls, data: Any, path: str = "") -> Self | None:
        """Recorded data of an event in this type; None for another protocol's event of that kind."""
        return super().read({**data, "path": path} if path and isinstance(data, dict) else data)

    @classmethod
    def read_json(cls, data: str, path: str = "") -> Self | None:
        """`read` of recorded JSON."""
        found = super().read_json(data)
        if found is not None and path:
            found.__dict__["path"] = path  # frozen for users; to validate the text again would take as long as reading
        return found


def as_event(event: Event | DebateEvent) -> Event:
    """Recorded form of a typed or an untyped event."""
    return event.as_event() if isinstance(event, DebateEvent) else event


GATE = "gate"
"""Kind of the event of a gate's decision."""


def lacks_values(kind: str, data: Mapping[str, Any]) -> bool:
    """Whether an event is of a gate that could not make a test for want of a value, except where none is expected."""
    return kind == GATE and bool(data.get("untested")) and data.get("intrinsic_reading") != "none"


class RoundFigures(DebateEvent):
    """Figures of a round that any protocol may note at `round/N`; a protocol notes those that it has.

    A run's figures by round and the traces of its debates use these, also for a user's own protocol.

    Attributes:
        round: number of the round, as the protocol counts it.
        order: the sides in speaking order.
        failed: the turns that failed: their paths, or the reason by side.
        kappa: contentiousness, in [0, 1].
        d: disagreement D of the answers, in [0, 2].
        changed: agents that changed their answer.
        wd, jsd, mi, nmi: measures of the sides' distributions, mean over the pairs of sides.
        generalised_jsd: Jensen-Shannon divergence of all sides together.
        kl, ce: by ordered pair, `A>B`.
        entropy: entropy by side, in nats.
        mixture_entropy: entropy of the sides' mixture.
        information_gain: decrease of the mixture's entropy since the previous round.
        crit: CRIT score by side, in [0, 1].
        gamma: mean of `crit` over the sides.
        agreement_words: share of agreeing words among agreeing and opposing ones, in [0, 1].
        conceded: sides that conceded.
        words: number of words of all sides together.
    """

    kind: ClassVar[str] = "round"

    round: int
    order: OrNone[list[str]] = None
    failed: OrNone[list[str] | dict[str, str]] = None
    kappa: Figures = None
    d: Figures = None
    changed: Figures = None
    wd: Figures = None
    jsd: Figures = None
    generalised_jsd: Figures = None
    kl: Figures = None
    mi: Figures = None
    nmi: Figures = None
    entropy: Figures = None
    mixture_entropy: Figures = None
    ce: Figures = None
    information_gain: Figures = None
    crit: Figures = None
    gamma: Figures = None
    agreement_words: OrNone[Finite] = None
    conceded: OrNone[list[str]] = None
    words: OrNone[Finite] = None


class ContentiousnessSet(DebateEvent):
    """The contentiousness of a round, set by any protocol.

    Attributes:
        before: contentiousness of the previous round; None if there is none.
        after: contentiousness of this round; None if none is stated.
        schedule: the setting `schedule`.
    """

    kind: ClassVar[str] = "contentiousness"

    before: float | None
    after: float | None
    schedule: str
