"""Report blocks of SELENE's events: gate signals beside their thresholds, scores by evidence variant, votes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from moot.deploy.results.endings import named_ending
from moot.deploy.results.report.blocks import Block
from moot.deploy.results.text import number
from moot.deploy.results.transcripts.generic_blocks import Kinds, titled_blocks
from moot.deploy.results.transcripts.views import EventView
from moot.protocols.ceda.items import place_in_words
from moot.protocols.selene.events import (
    CandidatesJudged,
    DebateStopped,
    EvidenceRetrieved,
    GateDecided,
    RoundEnded,
    SelenePayload,
    VotesCounted,
)

REASONS = {
    "disagreement": "the openings disagree: D is not below tau_d",
    "misalignment": "stated confidence and token probabilities differ: M is not below tau_m",
    "low_intrinsic": "the models' own probability is too low: p is below tau_p",
    "not_comparable": "token probabilities were taken in different ways and cannot be compared",
    "not_unanimous": "the answers differ",
    "incomplete": "an opening is missing",
    "disagreement_unknown": "D is unknown: its test could not be made",
    "misalignment_unknown": "M is not known of every agent: its test could not be made",
    "low_intrinsic_unknown": "p is not known of every agent: its test could not be made",
    "known_tests_passed": "every test that could be made passes",
    "always": "the gate is off: every case is debated",
    "all_tests_passed": "every test passes",
    "never": "the gate is off: no case is debated",
}
"""Texts for the reasons to debate or skip a case."""

Outcome = Literal["pass", "fail", "not tested", "off"]


class GateSignal(NamedTuple):
    """Test of the gate, as texts.

    Attributes:
        name: name of the signal.
        value: its value, or `unknown`.
        wanted: condition for skipping the debate; `off` when the test is off.
        outcome: the result of the test.
    """

    name: str
    value: str
    wanted: str
    outcome: Outcome


def _gate(event: EventView, data: GateDecided) -> list[Block]:
    reasons = ", ".join(str(each).replace("_", " ") for each in data.reasons)
    title = f"decision: {'skip the debate' if data.skip else 'debate'} ({reasons})"
    return titled_blocks(title, ("signal", "value", "skips if", "test"), _signals(data), SIGNALS)


def gate_pairs(payload: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """Pairs of name and text of the gate's decision and signals; None for any other payload."""
    if "skip" not in payload or (gate := SelenePayload.read(payload)) is None:
        return None
    why = "; ".join(REASONS.get(reason, reason) for reason in gate.reasons) or "no reason is recorded"
    signals = {"d": ("D (disagreement)", gate.d), "m": ("M (misalignment)", gate.m), "p": ("mean p", gate.p)}
    part = _of_part(gate.p_known, gate.openings)
    known = [
        (name, number(value, 4) + (part if key != "d" else ""))
        for key, (name, value) in signals.items()
        if key in payload
    ]
    return [("gate", f"{'skip the debate' if gate.skip else 'debate'}: {why}"), *known]


def _of_part(known: int | None, openings: int | None) -> str:
    """How many openings M and p are of, if not of all; empty if they are, or if none is known."""
    return f" ({known} of {openings} openings)" if known and openings and known < openings else ""


SIGNALS = (
    "D: distance between the meanings of the openings; 0 is the same meaning",
    "M: mean gap between the confidence that an agent states and its model's probability, 0 to 1",
    "mean p: the probability that the models themselves gave their answers, 0 to 1",
    "unanimous: whether all agents gave the same answer",
)
"""Descriptions of the gate's signals, a line each."""


def _signals(data: GateDecided) -> list[GateSignal]:
    """Tests of the gate, in order; completeness and comparability of the openings only if they are not met."""
    is_printed = data.intrinsic_reading == "printed"  # the printed formula gives 1/2 for p = 1
    p_name = "mean p as printed, p/(1+p)" if is_printed else "mean p (own probability)"
    part = _of_part(data.p_known, len(data.intrinsic))
    found = [
        _test("D (disagreement)", data.d, data.tau_d, below=True, untested="disagreement" in data.untested),
        _test("M (misalignment)", data.m, data.tau_m, below=True, untested="misalignment" in data.untested, part=part),
        _test(p_name, data.p, data.tau_p, below=False, untested="low_intrinsic" in data.untested, part=part),
        _unanimity(data),
    ]
    if not data.complete:
        found.append(_failed_signal("every opening valid", data.require_complete))
    if not data.comparable:
        found.append(_failed_signal("own probabilities of one stage", "not_comparable" in data.reasons))
    return found


def _failed_signal(name: str, is_tested: bool) -> GateSignal:
    return GateSignal(name, "no", "yes", "fail") if is_tested else GateSignal(name, "no", "off", "off")


def _test(
    name: str, value: float | None, tau: float | None, *, below: bool, untested: bool, part: str = ""
) -> GateSignal:
    if tau is None:
        return GateSignal(name, number(value) + part, "off", "off")
    outcome: Outcome = "not tested"
    if value is not None and not untested:
        outcome = "pass" if (value < tau if below else value >= tau) else "fail"
    return GateSignal(name, number(value, 4) + part, f"{'<' if below else '>='} {number(tau, 4)}", outcome)


def _unanimity(data: GateDecided) -> GateSignal:
    """Test of the unanimity of the valid answers; `incomplete` if an opening is missing."""
    equal = data.answers_equal
    unanimous = "no" if not equal else "yes" if data.complete else "incomplete"
    if not data.require_unanimity:
        return GateSignal("unanimous", unanimous, "off", "off")
    untested = unanimous == "incomplete" and data.require_complete
    return GateSignal("unanimous", unanimous, "yes", "not tested" if untested else "pass" if equal else "fail")


def _judging(event: EventView, data: CandidatesJudged) -> list[Block]:
    """Report blocks of SELENE's event `judging`: judgments by candidate and variant; a missing one has no score."""
    rows = [
        (
            candidate.answer,
            str(each.variant),
            each.judge,
            str(each.pass_index),
            f"missing: {each.missing}" if each.missing else each.support or "-",
            "-" if each.score is None else number(each.score),
        )
        for candidate in data.candidates
        for each in sorted(candidate.judgments, key=lambda j: (j.variant, j.judge, j.pass_index))
    ]
    header = ("candidate", "evidence variant", "judge", "pass", "evidence says", "score")
    return titled_blocks(_judging_title(data), header, rows, _outcome(data))


def _judging_title(data: CandidatesJudged) -> str:
    of = {"skip": " of the skipped answer", "audit": " for the audit"}.get(data.branch, "")
    return f"judging{of}"


def _round(event: EventView, data: RoundEnded) -> list[Block]:
    """Report blocks of a round of revision: each agent's answer, and its change."""
    changed = {**dict.fromkeys(data.changed, "changed"), **dict.fromkeys(data.joined, "first answer")}
    rows = [
        (agent, answer, number(data.stated.get(agent)), changed.get(agent, "-"))
        for agent, answer in data.answers.items()
    ]
    rows += [(agent, f"failed: {kind}", "-", "-") for agent, kind in data.failed.items() if agent not in data.answers]
    moved = f"disagreement D {number(data.d, 4)}, before {number(data.d_before, 4)}"
    return titled_blocks(f"round {data.round}", ("agent", "answer", "states", "since the round before"), rows, [moved])


def _stop(event: EventView, data: DebateStopped) -> list[Block]:
    lines = [f"after round {data.rounds} of at most {data.max_rounds or 'unknown'}"]
    lines.append(f"D {number(data.d, 4)}, changed by {number(data.delta, 4)} (stable below {number(data.epsilon, 4)})")
    return titled_blocks(named_ending(data.reason), lines=lines)


def _outcome(data: CandidatesJudged) -> list[str]:
    evidence = f"evidence from {data.evidence_from}, {data.evidence_sentences} sentences"
    if data.variants not in (None, "none"):
        evidence += f"; {data.variants} variants of {', '.join(map(str, data.variant_sizes or ()))}"
    if data.variants_repeated:
        evidence += f"; {data.variants_repeated} repeated and left out"
    if data.unperturbed:
        evidence += "; nothing could be perturbed"
    lines = [evidence]
    for each in data.candidates:
        stability = "" if each.stability is None else f"stability {number(each.stability)}, "
        votes = "1 agent" if each.support == 1 else f"{each.support} agents"
        scores = f"S = {number(each.score)}, {stability}{votes}, mean p {number(each.mean_p)}"
        scores += f" ({each.p_known} of {votes})" if each.p_known is not None else ""
        lines.append(f"{each.answer}: {scores}")
    chosen = f"chosen: {data.answer}"
    if data.tie_broken_by:
        chosen += f" (a tie, broken by {data.tie_broken_by})"
    if data.flip_rate is not None:
        chosen += f"; flip rate over variants {number(data.flip_rate)}"
    if data.at_odds:
        chosen += f"; judgments whose support contradicts their score: {data.at_odds}"
    return [*lines, chosen]


def _retrieved(event: EventView, data: EvidenceRetrieved) -> list[Block]:
    rows = [
        (place_in_words(each.document, page=each.page, chunk=each.chunk), number(each.similarity), each.text)
        for each in data.pieces
    ]
    return titled_blocks("documents nearest to the question", ("source", "cosine", "text"), rows)


def _vote(event: EventView, found: VotesCounted) -> list[Block]:
    """Report blocks of the event `vote` of SELENE and its baselines."""
    rows = [(each.answer, str(each.count), number(each.stated)) for each in found.votes]
    chosen = f"chosen: {found.answer}"
    if found.tied:
        broken = found.tie_broken_by.replace("_", " ")
        chosen += f" (a tie of {', '.join(found.tied)}, broken by {broken})"
    return titled_blocks("vote", ("answer", "votes", "mean stated confidence"), rows, [chosen])


KINDS: Kinds = (
    (EvidenceRetrieved, _retrieved),
    (GateDecided, _gate),
    (CandidatesJudged, _judging),
    (VotesCounted, _vote),
    (RoundEnded, _round),
    (DebateStopped, _stop),
)
"""Types of SELENE's events with their report blocks."""
