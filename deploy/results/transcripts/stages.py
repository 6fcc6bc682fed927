"""Stages of a debate, from the paths of its replies and events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from moot.actors.record.rows import call_of, step_of
from moot.deploy.results.record.readers import read_as
from moot.deploy.results.text import natural_sort_key
from moot.deploy.results.transcripts.generic_blocks import numbered_places
from moot.deploy.results.transcripts.views import EventView, Section, TurnView
from moot.protocols.events import RoundFigures

_STAGES = (
    (re.compile(r"retrieval$"), "Retrieved evidence"),
    (re.compile(r"opening$"), "Opening"),
    (re.compile(r"challenge$"), "Challenge"),
    (re.compile(r"synthesis$"), "Synthesis"),
    (re.compile(r"opening/"), "Independent answers"),
    (re.compile(r"vote/agent/"), "Further answers for the vote"),
    (re.compile(r"resample/"), "The same question again, to estimate p"),
    (re.compile(r"gate$"), "Gate"),
    (re.compile(r"vote/consensus$"), "Consensus by vote"),
    (re.compile(r"round/(\d+)(/|$)"), "Round {}"),
    (re.compile(r"stop(/|$)"), "Why the debate stopped"),
    (re.compile(r"consensus$"), "Consensus"),
    (re.compile(r"follow-ups(/|$)"), "Follow-up questions"),
    (re.compile(r"evidence/"), "Evidence in other words"),
    (re.compile(r"vision/"), "Reading the pictures"),
    (re.compile(r"evidence$"), "Evidence"),
    (re.compile(r"turn/(\d+)(/|$)"), "Message {}"),
    (re.compile(r"(judge(/|$)|ruling$)"), "Judging"),
    (re.compile(r"(audit(/|$)|branches$)"), "Audit"),
    (re.compile(r"assessment/"), "Judges under a rubric"),
    (re.compile(r"state/\d+$"), "State, version by version"),
)
_AGENT, _AFTER_ALL = re.compile(r"\bagent/(\d+)"), 1000
_CRIT = re.compile(r"crit/(round/\d+/.*)")
_ASSESSMENT = re.compile(r"assessment/(opening|challenge)(?:/|$)")


_Stage = tuple[tuple[int, int, str], str]
_Found = tuple[list[TurnView], list[EventView]]


def group_by_stage(turns: Iterable[TurnView], events: Iterable[EventView], began: Mapping[str, float]) -> list[Section]:
    """Sections of replies and events by stage, in the stages' order.

    If a reply's path belongs to no stage (of a user's protocol), sections are in order of time, and paths without a
    stage start a section whenever their first part changes.

    Args:
        turns: the replies.
        events: the events.
        began: Unix time of the earliest row by path.
    """
    events = list(events)
    last_opens = any(_is_reversed(figures.order or ()) for _, figures in read_as(events, RoundFigures))
    turns = sorted(
        turns, key=lambda each: (natural_sort_key(_by_speaker(step_of(each.path), last_opens)), not each.superseded)
    )
    # Events of a whole stage come after events of its parts.
    events = sorted(
        events, key=lambda each: ((*natural_sort_key(each.path), (2, 0, "")), each.kind != "round", each.kind)
    )
    if any(_stage(turn.path)[0][0] == len(_STAGES) for turn in turns):
        return _by_time(turns, events, began)
    sections: dict[_Stage, _Found] = {}
    for turn in turns:
        sections.setdefault(_stage(turn.path), ([], []))[0].append(turn)
    for event in events:
        sections.setdefault(_stage(event.path), ([], []))[1].append(event)
    return [_section(stage, found) for stage, found in sorted(sections.items(), key=lambda item: item[0])]


def _is_reversed(order: Sequence[str]) -> bool:
    """Whether a round's speaking order is the reverse order of the agents."""
    return len(order) > 1 and list(order) == sorted(order, key=natural_sort_key, reverse=True)


def _by_speaker(path: str, last_opens: bool) -> str:
    """Sort key of a path by speaking order; with `last_opens`, the last agent speaks first.

    >>> _by_speaker("round/1/agent/2", True), _by_speaker("round/1/agent/2", False)
    ('round/1/agent/998', 'round/1/agent/2')
    """
    return _AGENT.sub(lambda found: f"agent/{_AFTER_ALL - int(found[1])}", path) if last_opens else path


def _by_time(turns: Iterable[TurnView], events: Iterable[EventView], began: Mapping[str, float]) -> list[Section]:
    sections: list[tuple[_Stage, _Found]] = []
    of_stage: dict[_Stage, _Found] = {}
    of_path: dict[str, _Found] = {}

    def place(path: str) -> _Found:
        stage = _stage(path)
        known = of_path.get(path) or (of_stage.get(stage) if stage[0][0] < len(_STAGES) else None)
        if known is None and sections and sections[-1][0] == stage:
            known = sections[-1][1]
        if known is None:
            known = ([], [])
            sections.append((stage, known))
        of_stage[stage] = of_path[path] = known
        return known

    def at(each: TurnView | EventView) -> float:
        path = step_of(each.path)
        return began.get(path, began.get(each.path, inf))

    everything: list[TurnView | EventView] = [*turns, *events]
    for each in sorted(everything, key=at):
        found = place(step_of(each.path))
        if isinstance(each, TurnView):
            found[0].append(each)
        else:
            found[1].append(each)
    return [_section(stage, found) for stage, found in sections]


def _section(stage: _Stage, found: _Found) -> Section:
    return Section(title=stage[1], turns=_final_last(found[0]), events=found[1])


def _final_last(turns: list[TurnView]) -> list[TurnView]:
    """Replies in order, each after the unreadable and stopped replies of the same ask."""
    places = {turn.path: i for i, turn in reversed(list(enumerate(turns)))}
    return sorted(turns, key=lambda t: (places.get(step_of(t.path), places[t.path]), _stage_of_reply(t.path)))


def _stage_of_reply(path: str) -> tuple[int, int, str]:
    """Sort key of the replies to one ask: by call, stopped replies before the complete one."""
    step, call = step_of(path), call_of(path)
    if path == step:
        return (2, 0, path)
    return (0 if call in (None, step) else 1, 1 if call is None else 0, path)


def step_words(path: str) -> str:
    """Text of a step: its stage, and its position in it.

    >>> step_words("opening/agent/0"), step_words("round/2/agent/1"), step_words("gate"), step_words("mine/agent/0")
    ('Independent answers, agent 0', 'Round 2, agent 1', 'Gate', 'mine, agent 0')
    >>> step_words("judge/candidate/0/judge/1/variant/2/pass/0"), step_words("round/0/agent/1")
    ('Judging, candidate 0, judge 1, evidence variant 2, pass 0', 'Round 0, agent 1')
    """
    step = step_of(path)
    _, title = _stage(step)
    places = numbered_places(step)
    in_title = places and title.partition(":")[0].endswith(f" {places[0].rpartition(' ')[2]}")
    return ", ".join([title, *(places[1:] if in_title else places)])


def _stage(path: str) -> _Stage:
    if read := _CRIT.match(path):
        (rank, number, _), title = _stage(read[1])
        return (rank, number, "crit"), f"{title}: the judges on its arguments"
    if judged := _ASSESSMENT.match(path):
        (rank, number, _), title = _stage(judged[1])
        return (rank, number, "assessment"), f"{title}: the judges on its reasoning"
    for rank, (pattern, title) in enumerate(_STAGES):
        found = pattern.match(path)
        if found:
            number = int(found[1]) if "{}" in title else 0
            return (rank, number, ""), title.format(number)
    first = path.partition("/")[0]
    return (len(_STAGES), 0, first), first
