"""How a run's debates went, round by round: means over cases of what their rounds hold, and first against last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from moot.deploy.reading.natural import natural
from moot.deploy.reading.record import read_events, read_facts
from moot.deploy.reading.rounds.measures import MEASURES
from moot.deploy.reading.rounds.over_cases import Measured, latest_attempts, mean_over_cases
from moot.deploy.reading.rounds.trace import Trace, trace_of
from moot.deploy.reading.rounds.truth import Truth, truths
from moot.deploy.reading.summaries.consensus import consensus_verdicts
from moot.protocols.errors import ConfigError

_LEFT_OUT = {"kl", "ce", "information_gain"}
"""What JSD tells without a direction, and what is a change from round to round itself (of `mixture_entropy`)."""

KEYS = tuple(measure.key for measure in MEASURES if measure.key not in _LEFT_OUT)
"""What is measured: keys of `MEASURES`."""


class RoundMeans(BaseModel):
    """One round of a run's debates.

    Attributes:
        round: as the protocol counts it.
        cases: whose debates held it. Debates that had ended before take no part.
        measured: by key, as recorded; of a number by side or pair the mean over these, unknown if one is unknown.
    """

    model_config = ConfigDict(frozen=True)

    round: int
    cases: int
    measured: dict[str, Measured]


class Change(BaseModel):
    """What became of a number from each debate's first round that knows it to the last one that does.

    Attributes:
        first, last: means over the same cases, those with two such rounds.
        by_case: the mean change, last less first.
        percent: the mean change as a share of the mean at first (the source's "total improvement"); None when that
            is not above 0.
    """

    model_config = ConfigDict(frozen=True)

    first: float | None
    last: float | None
    by_case: Measured
    percent: float | None


class Dynamics(BaseModel):
    """The rounds of a run (EVINCE, tables 7.2 and 7.3, over many debates).

    Attributes:
        rounds: in order.
        changes: by key of what any debate knows twice.
        truth: sides, mixture and consensus held against the gold labels in the first round and in the last; empty
            where there are none, or no distributions.
    """

    model_config = ConfigDict(frozen=True)

    schema_version: int
    run: str
    simulated: bool
    rounds: list[RoundMeans]
    changes: dict[str, Change]
    truth: list[Truth] = []


class _Value(NamedTuple):
    case_id: str
    round: int
    value: float | None


def dynamics(folder: str | Path) -> Dynamics:
    """Measure it in a run, finished or not; of each case the latest attempt counts.

    Raises:
        ConfigError: no round of the run holds anything that is measured.
        RecordError: when there is no run in the folder or it cannot be read.
    """
    facts = read_facts(folder)
    by_case: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    for event in latest_attempts(read_events(folder, ("round",))):
        by_case[event.case_id].append((event.path, event.data))
    ordered = {case_id: sorted(rounds, key=lambda each: natural(each[0])) for case_id, rounds in by_case.items()}
    traces = {case_id: trace for case_id, rounds in by_case.items() if (trace := trace_of(rounds)) is not None}
    values = {key: _values(traces, key) for key in KEYS}
    known = {key: found for key, found in values.items() if any(each.value is not None for each in found)}
    if not known:
        raise ConfigError(f"{facts.name}: its debates have no rounds with numbers")
    return Dynamics(
        schema_version=facts.schema_version,
        run=facts.name,
        simulated=facts.simulated,
        rounds=_rounds(traces, known),
        changes={key: change for key, found in known.items() if (change := _change(found)) is not None},
        truth=truths(consensus_verdicts(folder), ordered),
    )


def _values(traces: Mapping[str, Trace], key: str) -> list[_Value]:
    found = []
    for case_id, trace in traces.items():
        series = [one.values for one in trace.series if one.key == key]
        if series:
            for number, of_sides in zip(trace.rounds, zip(*series, strict=True), strict=True):
                said = [value for value in of_sides if value is not None]
                found.append(_Value(case_id, number, fmean(said) if len(said) == len(of_sides) else None))
    return found


def _rounds(traces: Mapping[str, Trace], known: Mapping[str, Sequence[_Value]]) -> list[RoundMeans]:
    rounds = []
    for number in sorted({number for trace in traces.values() for number in trace.rounds}):
        measured = {
            key: mean_over_cases([(each.case_id, each.value) for each in values if each.round == number])
            for key, values in known.items()
        }
        cases = sum(number in trace.rounds for trace in traces.values())
        rounds.append(RoundMeans(round=number, cases=cases, measured=measured))
    return rounds


def _change(values: Sequence[_Value]) -> Change | None:
    of_case: dict[str, list[float]] = defaultdict(list)
    for each in values:
        if each.value is not None:
            of_case[each.case_id].append(each.value)
    ends = {case_id: (known[0], known[-1]) for case_id, known in of_case.items() if len(known) > 1}
    if not ends:
        return None
    first, last = (fmean(end[place] for end in ends.values()) for place in (0, 1))
    by_case = mean_over_cases([(case_id, after - before) for case_id, (before, after) in ends.items()])
    percent = 100.0 * (last - first) / first if first > 0.0 else None
    return Change(first=first, last=last, by_case=by_case, percent=percent)
