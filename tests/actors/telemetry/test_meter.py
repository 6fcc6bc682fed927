"""What is counted: each reply, round and verdict once, each call where it is paid for; unknown is not 0."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from journal_writer import batch, debate_result, labelled, new_run, open_writer, reply

from moot.actors.limits.rate_limited_model import CallTelemetry
from moot.actors.models.interface import ModelReply
from moot.actors.models.prices import FREE, Price
from moot.actors.record.counters import FAILURES, judge_disagreements
from moot.actors.record.folder import RunFolder
from moot.actors.record.record_writer import RecordWriter
from moot.actors.telemetry.meter import (
    CALL_SECONDS,
    CALLS,
    COST,
    DEBATES_DONE,
    DEBATES_FAILED,
    METRICS,
    ROUND_NATS,
    TOKENS,
    TURNS,
    UNKNOWN_COST,
    Metric,
)
from moot.actors.telemetry.telemetry import NO_SPAN
from moot.protocols.errors import MootError, UserError
from moot.protocols.messages import Event, Usage

Numbers = dict[tuple[str, ...], list[float]]


class RecordingMeter:
    """A meter that keeps everything: sums of counters, and values of the rest, by name and labels."""

    def __init__(self) -> None:
        self.totals: dict[tuple[str, ...], float] = defaultdict(float)
        self.values: Numbers = defaultdict(list)

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """See `Meter.add`."""
        assert metric.kind == "counter"
        assert len(labels) == len(metric.labels)
        assert amount >= 0.0
        self.totals[metric.name, *labels] += amount

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """See `Meter.set`."""
        assert metric.kind == "gauge"
        self.values[metric.name, *labels] = [value]

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """See `Meter.observe`."""
        assert metric.kind == "histogram"
        assert len(labels) == len(metric.labels)
        self.values[metric.name, *labels].append(value)

    def total(self, metric: Metric, *labels: str) -> float:
        """A counter, over all labels that are not given."""
        return sum(v for key, v in self.totals.items() if key[: len(labels) + 1] == (metric.name, *labels))


def test_every_metric_is_named_as_prometheus_wants_it() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"moot_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert bool(metric.boundaries) == (metric.kind == "histogram")
        assert list(metric.boundaries) == sorted({bound for bound in metric.boundaries if bound > 0.0})
        assert not {"case", "case_id", "debate", "path", "protocol"} & set(metric.labels)


def test_every_failure_of_our_own_has_a_name() -> None:
    def below(error: type[BaseException]) -> list[type[BaseException]]:
        return [error, *(each for one in error.__subclasses__() for each in below(one))]

    ours = [e for e in below(MootError) if e.__module__ == MootError.__module__ and not issubclass(e, UserError)]
    names = {re.sub(r"(?<!^)([A-Z])", r"_\1", error.__name__).lower() for error in ours}
    ends_the_run = {"moot_error", "record_error", "actor_gone"}
    assert names - ends_the_run <= FAILURES


def _write(writer: RecordWriter, *, reply_id: str = "r1") -> None:
    """What a debate puts into the record, and puts there again when it is replayed."""
    known = {"role": "agent/1", "prompt_tokens": 3, "completion_tokens": 2}
    first = reply("c000", "say~invalid", f"{reply_id}~invalid", outcome="invalid", **known)
    writer.add_replies(batch([first, reply("c000", "say", reply_id, outcome="reasked", **known)]))
    writer.add_events([("c000", 0, Event("round", "round/0", {"jsd": 0.25, "round": 0}), 1.0)])


async def test_what_is_replayed_is_counted_once_also_by_a_writer_that_was_started_again(tmp_path: Path) -> None:
    first, second = RecordingMeter(), RecordingMeter()
    ends = [
        debate_result("c000", {"say": "r1"}, wall_s=2.0),
        debate_result("c001", {}, failure="own_trouble", error="x"),
    ]
    async with open_writer(new_run(tmp_path), compact=False, meter=first) as writer:
        await writer.register([labelled(0), labelled(1)])
        _write(writer)
        _write(writer)
        _write(writer, reply_id="r2")  # a moderator that was started again too early has paid once more
        assert first.total(DEBATES_DONE) == 0.0
        assert await writer.commit(ends) == [True, True]
        assert await writer.commit(ends) == [True, True]
    async with open_writer(RunFolder(tmp_path), compact=False, meter=second) as again:
        await again.register([labelled(0), labelled(1)])
        _write(again)
        assert await again.commit(ends) == [True, True]
    assert first.total(DEBATES_DONE) == first.total(TURNS, "agent", "reasked") == first.total(TURNS) == 1.0
    assert first.total(DEBATES_FAILED) == first.total(DEBATES_FAILED, "other") == 1.0
    assert first.values[ROUND_NATS.name, "jsd", "0"] == [0.25]
    assert first.values["moot_debate_seconds",] == [2.0, 0.0]
    assert sum(second.totals.values()) == 0.0
    assert not second.values


def _call(price: Price | None, reply: ModelReply | None, *, bills: bool = True) -> RecordingMeter:
    meter = RecordingMeter()
    with CallTelemetry(meter, "m", price, bills=bills).attempt(NO_SPAN) as call:
        if reply is None:
            call.failed("broken", "timeout", billed=bills)
        else:
            call.answered(reply)
    return meter


@pytest.mark.parametrize(
    ("price", "usage", "cost", "unknown"),
    [
        (Price(input=1.0, output=2.0), Usage(1_000_000, 500_000), 2.0, {}),
        (None, Usage(10, 10), 0.0, {"price": 1.0}),
        (Price(input=1.0, output=2.0), Usage(None, None), 0.0, {"usage": 1.0}),
        (FREE, Usage(10, 10), 0.0, {}),
    ],
)
def test_an_unknown_cost_is_counted_as_unknown(
    price: Price | None, usage: Usage, cost: float, unknown: dict[str, float]
) -> None:
    meter = _call(price, ModelReply("x", "stop", usage))
    assert meter.total(COST) == cost
    assert {key[-1]: v for key, v in meter.totals.items() if key[0] == UNKNOWN_COST.name and v} == unknown
    assert meter.total(TOKENS) == float((usage.prompt_tokens or 0) + (usage.completion_tokens or 0))
    assert meter.total(CALLS, "m", "answered") == meter.total(CALLS) == len(meter.values[CALL_SECONDS.name, "m"]) == 1


def test_a_call_without_a_reply_may_have_cost_something() -> None:
    price = Price(input=1.0, output=2.0)
    assert _call(price, None).total(UNKNOWN_COST, "m", "usage") == 1.0
    assert _call(price, None, bills=False).total(UNKNOWN_COST) == 0.0
    assert _call(price, None).total(CALLS, "m", "broken") == 1.0
    assert not _call(price, None).values


def _marks(**scores: tuple[int, ...]) -> dict[str, Any]:
    judges = [{"judge": judge, "scores": {"depth": score}} for judge, own in scores.items() for score in own]
    return {"reply": "p", "role": "agent", "scales": [["depth", 1, 5]], "scores": {"depth": 3.0}, "judges": judges}


def _judged(**scores: tuple[float | None, ...]) -> dict[str, Any]:
    said = [{"judge": judge, "score": score, "path": "p"} for judge, own in scores.items() for score in own]
    return {"candidates": [{"answer": "Yes", "judgments": said}]}


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("judging", _judged(a=(0.2, 0.4), b=(0.9, None)), [0.6]),
        ("judging", _judged(a=(0.2, 0.4)), []),
        ("judging", _judged(a=(0.2,), b=(None,)), []),
        ("crit", {"score": 0.5, "by_judge": {"a": 0.25, "b": 0.75, "c": None}}, [0.5]),
        ("assessment", _marks(a=(1, 3), b=(5,)), [0.75]),
        ("assessment", {"what": "ever"}, []),
        ("judging", {"candidates": "of my own"}, []),
        ("crit", {"by_judge": ["of my own"]}, []),
        ("round", {"jsd": 0.5}, []),
    ],
)
def test_judges_disagree_by_what_lies_between_them(kind: str, data: dict[str, Any], expected: list[float]) -> None:
    assert judge_disagreements(Event(kind, "p", data)) == pytest.approx(expected)
