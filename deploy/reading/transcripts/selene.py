"""The events of SELENE as a transcript shows them: gate signals beside their thresholds, scores by evidence variant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from moot.deploy.reading.event_shape import read_as
from moot.deploy.reading.text import number
from moot.deploy.reading.transcripts.shown import Shown
from moot.deploy.reading.transcripts.views import EventView

_NUMBERS = ("d", "tau_d", "m", "tau_m", "p", "tau_p")
_JUDGMENT_KEYS = frozenset({"variant", "judge", "pass", "support", "score", "missing", "path"})


class _Votes(BaseModel):
    answer: str
    count: int
    stated: float


class _Vote(BaseModel):
    """The data of a `vote` event."""

    votes: list[_Votes]
    tied: list[str]
    tie_broken_by: str
    answer: str


class Signal(NamedTuple):
    """One test of the gate.

    Attributes:
        name: what is looked at.
        value: in words; `unknown` when unknown.
        wanted: what lets the case skip its debate; `off` when the test is off.
        outcome: whether this test let it.
    """

    name: str
    value: str
    wanted: str
    outcome: Literal["pass", "fail", "not tested", "off"]


def is_gate(event: EventView) -> bool:
    """Whether an event is a gate decision as SELENE notes it, and not another protocol's of the same name."""
    data = event.data
    complete = data.keys() >= {"skip", "reasons", "unanimous", *_NUMBERS} and isinstance(data["reasons"], list)
    return event.kind == "gate" and complete and all(isinstance(data[key], int | float | None) for key in _NUMBERS)


def gate_signals(data: Mapping[str, Any]) -> list[Signal]:
    """The tests of a `gate` event, in the gate's order."""
    return [
        _test("D (disagreement)", data["d"], data["tau_d"], below=True, unknown="fail"),
        _test("M (misalignment)", data["m"], data["tau_m"], below=True, unknown="not tested"),
        _test(_named_p(data), data["p"], data["tau_p"], below=False, unknown="not tested"),
        _unanimity(data),
        *_openings(data),
        *_stages(data),
    ]


def _named_p(data: Mapping[str, Any]) -> str:
    """What the gate's p is: as printed it is half of what the replies show, for a sure answer."""
    if data.get("intrinsic_reading") == "printed":
        return "mean p as printed, p/(1+p)"
    return "mean p (own probability)"


def _stages(data: Mapping[str, Any]) -> list[Signal]:
    """The test that the own probabilities are of one kind; shown where they are not."""
    if data.get("comparable", True):
        return []
    outcome: Literal["fail", "off"] = "fail" if "not_comparable" in data["reasons"] else "off"
    return [Signal("own probabilities of one stage", "no", "yes" if outcome == "fail" else "off", outcome)]


def _test(
    name: str, value: float | None, tau: float | None, *, below: bool, unknown: Literal["fail", "not tested"]
) -> Signal:
    outcome: Literal["pass", "fail", "not tested", "off"]
    if tau is None:
        return Signal(name, number(value), "off", "off")
    outcome = unknown if value is None else "pass" if (value < tau if below else value >= tau) else "fail"
    return Signal(name, number(value, 4), f"{'<' if below else '>='} {number(tau, 4)}", outcome)


def _unanimity(data: Mapping[str, Any]) -> Signal:
    """Of the valid answers, and so not told as unanimity where one is missing; older records do not know."""
    equal = data.get("equal", data["unanimous"])
    said = "no" if not equal else "yes" if data.get("complete", True) else "incomplete"
    if not data.get("require_unanimity"):
        return Signal("unanimous", said, "off", "off")
    untested = said == "incomplete" and data.get("require_complete")
    return Signal("unanimous", said, "yes", "not tested" if untested else "pass" if equal else "fail")


def _openings(data: Mapping[str, Any]) -> list[Signal]:
    """The test that every agent gave a valid answer; shown where one did not."""
    if data.get("complete", True):
        return []
    if not data.get("require_complete"):
        return [Signal("every opening valid", "no", "off", "off")]
    return [Signal("every opening valid", "no", "yes", "fail")]


class JudgedRow(NamedTuple):
    """One judge pass over one candidate under one evidence variant; `score` is None when the judge is missing."""

    answer: str
    variant: int
    judge: str
    pass_index: int
    support: str
    score: float | None
    missing: str
    path: str


def is_judging(event: EventView) -> bool:
    """Whether an event is a judging as SELENE notes it."""
    candidates = event.data.get("candidates")
    return event.kind == "judging" and isinstance(candidates, list) and all(map(_is_candidate, candidates))


def _is_candidate(candidate: Any) -> bool:
    judgments = candidate.get("judgments") if isinstance(candidate, dict) and "answer" in candidate else None
    return isinstance(judgments, list) and all(isinstance(j, dict) and j.keys() >= _JUDGMENT_KEYS for j in judgments)


def judged_rows(data: Mapping[str, Any]) -> list[JudgedRow]:
    """Every judgment of a `judging` event: candidate by candidate, variant by variant."""
    return [
        JudgedRow(
            candidate["answer"],
            judgment["variant"],
            judgment["judge"],
            judgment["pass"],
            judgment["support"] or "-",
            judgment["score"],
            judgment["missing"],
            judgment["path"],
        )
        for candidate in data["candidates"]
        for judgment in sorted(candidate["judgments"], key=lambda j: (j["variant"], j["judge"], j["pass"]))
    ]


def judging_words(data: Mapping[str, Any]) -> list[str]:
    """A `judging` event's outcome in lines."""
    evidence = f"evidence from {data.get('evidence_from')}, {data.get('evidence_sentences')} sentences"
    kind = data.get("variants")
    if kind not in (None, "none"):
        evidence += f"; {kind} variants of {', '.join(map(str, data.get('variant_sizes') or ()))}"
    if data.get("unperturbed"):
        evidence += "; nothing could be perturbed"
    lines = [evidence]
    for candidate in data["candidates"]:
        parts = [f"S = {number(candidate.get('score'))}"]
        if candidate.get("stability") is not None:
            parts.append(f"stability {number(candidate['stability'])}")
        parts.append(f"{candidate.get('support')} agents")
        parts.append(f"mean p {number(candidate.get('mean_p'))}")
        lines.append(f"{candidate['answer']}: {', '.join(parts)}")
    chosen = f"chosen: {data.get('answer')}"
    if data.get("tie_broken_by"):
        chosen += f" (a tie, broken by {data['tie_broken_by']})"
    if data.get("flip_rate") is not None:
        chosen += f"; flip rate over variants {number(data['flip_rate'])}"
    if data.get("at_odds"):
        chosen += f"; judgments whose support contradicts their score: {data['at_odds']}"
    return [*lines, chosen]


def vote_event(event: EventView) -> Shown | None:
    """A `vote` event as shown; None when it is none, or not as SELENE and its baselines note it."""
    found = read_as(_Vote, event.data) if event.kind == "vote" else None
    if found is None:
        return None
    rows = [(each.answer, str(each.count), number(each.stated)) for each in found.votes]
    chosen = f"chosen: {found.answer}"
    if found.tied:
        broken = found.tie_broken_by.replace("_", " ")
        chosen += f" (a tie of {', '.join(found.tied)}, broken by {broken})"
    return Shown(f"vote at {event.path}", ("answer", "votes", "mean stated confidence"), rows, [chosen])


def plain_pairs(data: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Any JSON-like data as dotted keys and values in words, for events that nothing here knows."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from plain_pairs(value, f"{name}.")
        elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
            yield from plain_pairs({str(i): each for i, each in enumerate(value)}, f"{name}.")
        elif isinstance(value, list):
            yield name, ", ".join(map(_word, value)) or "-"
        else:
            yield name, _word(value)


def _word(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == {}:
        return "-"
    if isinstance(value, float):
        return number(value, 4)
    return str(value)
