"""EVINCE in results: its events and payload in words, and the rounds of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moot.deploy.results.distributions import distribution_line, distribution_rows
from moot.deploy.results.figures.round_trace import format_aligned
from moot.deploy.results.figures.rounds import change_blocks, dynamics_of, round_charts, truth_blocks
from moot.deploy.results.protocol_parts import KnownEvent, Position, ProtocolParts, Stage
from moot.deploy.results.record import RunRecord
from moot.deploy.results.recorded_data import EventView, plain_pairs, titled_blocks
from moot.deploy.results.report.blocks import Block, Heading
from moot.deploy.results.text import number
from moot.protocols.crit.events import CritJudged, CritReading
from moot.protocols.crit.scoring import out_of_ten
from moot.protocols.evince.events import (
    ConsensusPayload,
    ConsensusReached,
    DistributionRepair,
    DistributionStated,
    EvinceRoundEnded,
    EvinceStopped,
    FollowUpsNamed,
    KappaChanged,
    QualityGateDecided,
    Scores,
)
from moot.protocols.evince.moderation import AGAIN

_REASONS = {
    "converged": "the sides no longer move and agree",
    "stalled": "the sides no longer move and do not agree",
    "printed": "WD, MI and JSD hardly changed and CRIT no longer rose (the printed rule)",
    "max_rounds": "no further round was allowed",
    "ensemble": "there was no debate: each side answered on its own",
    "plateau": "the quality of the arguments no longer rose",
    "schedule-ended": "the schedule of contentiousness ended",
    "both-done": "both sides had no more to say",
    "ended-by-person": "a person ended it",
}
_CRIT_HEADER = ("judge", "", "argument", "gamma", "theta", "s")
_CHANGES = {
    "alias": "{label} was read as {to}",
    "unknown": "{label} is not one of the labels: its mass went to (other)",
    "repeated": "{label} was named again: its masses were added up",
    "negative": "{label} had a negative probability: dropped",
    "not-a-number": "{label} had no number: dropped",
    "renormalised": "the probabilities summed to {value}: divided by it",
    "percent": "the probabilities summed to {value}: read as percent",
}


def _round(event: EventView, data: EvinceRoundEnded) -> list[Block] | None:
    if not data.distributions:
        return None
    sides = list(data.distributions)
    rows = distribution_rows(list(data.distributions.values()))
    columns = [format_aligned([values[i] for _, values in rows]) for i in range(len(sides))]
    lines = [f"{side} did not reply: its distribution is the previous one" for side in data.silent]
    if data.moves is not None:
        lines.append(f"moved since the last round (total variation): {_by_side(data.moves)}")
    if data.swapped:
        lines.append("two sides swapped positions: no symmetric measure changed, yet they have not converged")
    if data.kl_floored:
        lines.append(f"KL and CE: without smoothing, {data.kl_floored} of the directions would be infinite")
    if data.agreement_words is not None:
        lines.append(f"agreeing words among agreeing and opposing ones: {number(data.agreement_words)}")
    if data.round_score is not None:
        lines.append(f"score of the round (high: there is more to argue about): {number(data.round_score)}")
    cells = [(label, *(column[row] for column in columns)) for row, (label, _) in enumerate(rows)]
    return titled_blocks(f"distributions after round {data.round}", ("label", *sides), cells, lines)


def _distribution(event: EventView, data: DistributionStated) -> list[Block]:
    title = f"{_who(event.path)} states {distribution_line(data.cleaned)}"
    return titled_blocks(title, lines=[_change(change) for change in data.changes])


def _most_probable(data: DistributionStated) -> Position:
    known = [(share, label) for label, share in data.cleaned.items() if share is not None]
    return Position(*max(known)[::-1]) if known else Position(None, None)


def _change(change: DistributionRepair) -> str:
    value = number(change.value) if isinstance(change.value, int | float) else str(change.value)
    if change.what not in _CHANGES:
        return f"repaired: {change.what}"
    return "repaired: " + _CHANGES[change.what].format(
        label=repr(str(change.label)), to=repr(str(change.to)), value=value
    )


def _quality_gate(event: EventView, data: QualityGateDecided) -> list[Block]:
    who = f"{_who(event.path)}'s arguments"
    opponents = ", ".join(data.opponents)
    lines = [f"judges also searched the arguments of {opponents} for rivals"] if opponents else []
    if not data.on:
        return titled_blocks(f"quality gate: {who} were not compared with a bar ({data.why})", lines=lines)
    result = "shown to the others" if data.passed else "WITHHELD from the others"
    scores = f"CRIT {out_of_ten(data.crit)}, bar {out_of_ten(data.threshold)}"
    return titled_blocks(f"quality gate: {who} were {result} ({data.why}: {scores})", lines=lines)


def _contentiousness(event: EventView, data: KappaChanged) -> list[Block]:
    kappa = f"kappa {number(data.before)} to {number(data.after)} for the next round"
    if data.before is None and data.after is None:
        kappa = "no kappa is stated in the next round"
    why = "" if data.why in ("", data.schedule) else f": {data.why}"
    return titled_blocks(
        f"{kappa} (schedule {data.schedule}{why})", lines=_rest(event.data, "before", "after", "schedule", "why")
    )


def _stop(event: EventView, data: EvinceStopped) -> list[Block] | None:
    if data.reason not in _REASONS:
        return None
    debate = "second debate, over the retrieved passages (max_rounds again): " if event.path == AGAIN else ""
    title = f"{debate}ended after round {data.round}, {data.reason}: {_REASONS[data.reason]}"
    return titled_blocks(title, lines=_rest(event.data, "reason", "round"))


def _consensus(event: EventView, data: ConsensusReached) -> list[Block]:
    rows = distribution_rows([data.distribution])
    cells = list(zip((label for label, _ in rows), format_aligned([values[0] for _, values in rows]), strict=True))
    source = {"crit": "by CRIT", "equal": "equal, because no CRIT score distinguishes the sides"}
    lines = [
        f"weights ({source.get(data.weights_from, data.weights_from)}): {_by_side(data.weights)}",
        f"confidence {number(data.confidence)}, entropy {number(data.entropy)} nat",
    ]
    return titled_blocks("consensus", ("label", "probability"), cells, lines)


def _follow_ups(event: EventView, data: FollowUpsNamed) -> list[Block]:
    lines = [f"ask: {each}" for each in data.questions] + [f"test: {each}" for each in data.tests]
    return titled_blocks("follow-up questions", lines=lines or ["no question or test was named"])


def _crit(event: EventView, data: CritJudged) -> list[Block]:
    rows = [row for judge, read in data.judges.items() for row in _points(judge, read)]
    lines = [f"{judge} {out_of_ten(score)}" for judge, score in data.by_judge.items() if len(data.by_judge) > 1]
    lines += [f"{judge} is missing: {why}" for judge, why in data.missing.items()]
    lines += [f"contradicts the given facts: {text}" for text in data.contradicted]
    lines += [f"weak: {text}" for text in data.weak]
    if data.notes:
        lines.append(f"notes: {', '.join(data.notes)}")
    return titled_blocks(
        f"CRIT of {event.path.removeprefix('crit/')}: {out_of_ten(data.score)}", _CRIT_HEADER, rows, lines
    )


def _points(judge: str, read: CritReading, depth: int = 0) -> Iterable[tuple[str, ...]]:
    for kind, points in (("reason", read.reasons), ("rival", read.rivals)):
        for point in points:
            counts = number(point.s) if point.repeats is None else "repeated"
            text = f"{point.text} (contradicts the given facts)" if point.contradicts_facts else point.text
            yield judge, f"{'> ' * depth}{kind}", text, number(point.gamma), number(point.theta), counts
            if point.deeper is not None:
                yield from _points(judge, point.deeper, depth + 1)


def consensus_pairs(payload: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """Pairs of name and text of a consensus verdict's payload, without its events; None for any other verdict."""
    data = ConsensusPayload.read(payload)
    if payload.get("distribution_from") != "consensus" or data is None:
        return None
    first, last = number(data.mixture_entropy_first), number(data.mixture_entropy_last)
    pairs = {
        "CRIT, mean of the sides": ("crit_mean", out_of_ten(data.crit_mean)),
        "uncertainty (0 to 1)": ("uncertainty", number(data.uncertainty)),
        "entropy of the mixture": ("mixture_entropy_first", f"{first} nat at first, {last} nat at the end"),
    }
    return [(name, words) for name, (key, words) in pairs.items() if key in payload]


def _by_side(values: Scores) -> str:
    return ", ".join(f"{side} {number(value)}" for side, value in values.items()) or "-"


def _rest(data: Mapping[str, Any], *shown: str) -> list[str]:
    """Lines of the fields of an event that its title does not contain; they differ by rule and protocol."""
    rest = {key: value for key, value in data.items() if key not in shown}
    return [f"{name}: {value}" for name, value in plain_pairs(rest)]


def _who(path: str) -> str:
    """Side in the path of a turn.

    >>> _who("round/2/agent/1")
    'agent/1'
    """
    return "/".join(path.split("/")[-2:])


def evince(run: RunRecord) -> Iterator[Block]:
    """The rounds of debates whose sides state distributions; nothing for a run without any."""
    found = dynamics_of(run)
    if found is None or not run.counted_events(EvinceRoundEnded):
        return
    yield Heading("Debates round by round")
    yield from round_charts(run)
    yield from change_blocks(found)
    yield from truth_blocks(found)


PARTS = ProtocolParts(
    events=(
        KnownEvent(CritJudged, _crit, score=lambda judged: f"CRIT {out_of_ten(judged.score)}"),
        KnownEvent(EvinceRoundEnded, _round),
        KnownEvent(DistributionStated, _distribution, position=_most_probable),
        KnownEvent(QualityGateDecided, _quality_gate),
        KnownEvent(KappaChanged, _contentiousness),
        KnownEvent(EvinceStopped, _stop),
        KnownEvent(ConsensusReached, _consensus),
        KnownEvent(FollowUpsNamed, _follow_ups),
    ),
    stages=(
        Stage("end", re.compile(r"consensus$"), "Consensus"),
        Stage("end", re.compile(r"follow-ups(/|$)"), "Follow-up questions"),
    ),
    payload=consensus_pairs,
    report=evince,
)
