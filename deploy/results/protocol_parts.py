"""What results show of one protocol alone. Each file of `protocols/` gives it as its `PARTS`, and is found by listing
the folder: events, payloads and paths are known by their form, whatever protocol wrote them, a user's own included."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from moot.deploy.results.record import RunRecord
from moot.deploy.results.recorded_data import AttemptView, EventView, Transcript
from moot.deploy.results.report.blocks import Block
from moot.protocols.events import DebateEvent

T = TypeVar("T")

Phase = Literal["preparation", "opening", "debate", "end", "judging", "after"]
"""Phase of a debate, in order."""

NamedTexts = list[tuple[str, str]]
"""Pairs of name and text."""


class Stage(NamedTuple):
    """Stage of a debate.

    Attributes:
        phase: that it belongs to; within a phase, stages are in the order in which a protocol lists them.
        path: pattern of the beginning of its paths; its first group, if any, is the stage's number.
        title: its title, with `{}` for the number.
    """

    phase: Phase
    path: re.Pattern[str]
    title: str


class Position(NamedTuple):
    """Position of an agent after a reply: an answer, and its confidence; None is unknown."""

    answer: str | None
    confidence: float | None


class KnownEvent(NamedTuple):
    """Known type of event; types of one kind differ in their form.

    Attributes:
        type: its type.
        blocks: its report blocks; None where it is better shown as it is recorded.
        position: position of the agent whose reply it is about; None for a type that states none.
        score: a judgment of that reply, in a few words; None for a type that is none.
    """

    type: type[DebateEvent]
    blocks: Callable[[EventView, Any], list[Block] | None]
    position: Callable[[Any], Position] | None = None
    score: Callable[[Any], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolParts:
    """What results show of one protocol; whatever it lacks is shown as any protocol's.

    Attributes:
        events: its known types of events.
        stages: titles of the stages that no other protocol has.
        payload: pairs of a verdict's payload, without what its events show; None for a payload of another form.
        verdict: pairs of a payload that are the whole verdict, where there is no answer; None as for `payload`.
        document: another view of a debate than its transcript; None for a debate of another protocol.
        report: its part of a run's report; no block for a run without anything of it.
    """

    events: Sequence[KnownEvent] = ()
    stages: Sequence[Stage] = ()
    payload: Callable[[Mapping[str, Any]], NamedTexts | None] = lambda payload: None
    verdict: Callable[[Mapping[str, Any]], NamedTexts | None] = lambda payload: None
    document: Callable[[Transcript], AttemptView | None] = lambda debate: None
    report: Callable[[RunRecord], Iterable[Block]] = lambda run: ()


@cache
def protocol_parts() -> tuple[ProtocolParts, ...]:
    """The parts of all protocols, in order of the names of their files."""
    folder = import_module(f"{__package__}.protocols")
    modules = (import_module(f"{folder.__name__}.{each.name}") for each in iter_modules(folder.__path__))
    return tuple(module.PARTS for module in modules if hasattr(module, "PARTS"))


_COMMON = (
    Stage("opening", re.compile(r"opening/"), "Independent answers"),
    Stage("debate", re.compile(r"round/(\d+)(/|$)"), "Round {}"),
    Stage("end", re.compile(r"stop(/|$)"), "Why the debate stopped"),
    Stage("judging", re.compile(r"(judge(/|$)|ruling$)"), "Judging"),
    Stage("judging", re.compile(r"assessment/"), "Judges under a rubric"),
)


@cache
def stages() -> tuple[Stage, ...]:
    """The stages of all protocols, in order."""
    phases = get_args(Phase)
    several = [*_COMMON, *(stage for parts in protocol_parts() for stage in parts.stages)]
    return tuple(sorted(several, key=lambda stage: phases.index(stage.phase)))


def read_event(event: EventView) -> tuple[KnownEvent, Any] | None:
    """The known type of an event, and the event in it; None for an event of another kind or form."""
    for parts in protocol_parts():
        for known in parts.events:
            if (data := event.read_as(known.type)) is not None:
                return known, data
    return None


def document_of(debate: Transcript) -> AttemptView | None:
    """The view of a debate that its protocol has instead of the transcript; None without one."""
    return first_known(parts.document(debate) for parts in protocol_parts())


def first_known(values: Iterable[T | None]) -> T | None:
    """The first value that is not None; None without any."""
    return next((value for value in values if value is not None), None)
