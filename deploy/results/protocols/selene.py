"""SELENE in results: its events and payload in words, and the gate and the judges of a run."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from moot.deploy.results.figures.rounds import round_charts
from moot.deploy.results.figures.summary import Summary, record_summary
from moot.deploy.results.glossary import named_ending
from moot.deploy.results.protocol_parts import KnownEvent, ProtocolParts, Stage
from moot.deploy.results.record import RunRecord
from moot.deploy.results.recorded_data import EventView, titled_blocks
from moot.deploy.results.report.blocks import Block, Chart, Guide, Heading, Note, Series, Table
from moot.deploy.results.stats import MeanOverCases, mean_over_cases
from moot.deploy.results.text import cases, count, number, percent
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


_OUTCOMES: Mapping[bool | None, str] = {True: "right", False: "wrong", None: "not scored"}
_PARTS = [(skip, correct) for correct in _OUTCOMES for skip in (True, False)]
_STYLES = {part: style for style, part in enumerate(_PARTS)}


class _Gated(NamedTuple):
    """A case at the gate; `correct` is None where its verdict cannot be scored, or there is none.

    Attributes:
        ended: whether it has a verdict.
    """

    case_id: str
    gate: GateDecided
    correct: bool | None
    ended: bool


def selene(run: RunRecord) -> Iterator[Block]:
    """The gate and the judges of SELENE; nothing for a run without a gate and without judged candidates."""
    gated = [_gated(run, row.case_id, gate) for row, gate in run.counted_events(GateDecided)]
    judged = _scores_by_variant(run)
    if not gated and not judged:
        return
    yield Heading("Gate and judges")
    if gated:
        yield from _gate_part(run, gated)
        yield from round_charts(run, ("distance", "changed"))
    if judged:
        yield _variants(run, judged)
    yield from _stability(record_summary(run))


def _gated(run: RunRecord, case_id: str, gate: GateDecided) -> _Gated:
    verdict = run.by_case.get(case_id)
    if verdict is None or verdict.failed:
        return _Gated(case_id, gate, correct=None, ended=False)
    return _Gated(case_id, gate, verdict.correct, ended=True)


def _gate_part(run: RunRecord, gated: Sequence[_Gated]) -> Iterator[Block]:
    yield Note(_branches(record_summary(run), gated))
    not_requested = run.info.requests_logprobs is False
    yield from _plane(gated, f"{'this run requested ' if not_requested else ''}no token probabilities")
    reasons = Counter(str(reason) for each in gated if not each.gate.skip for reason in each.gate.reasons)
    if reasons:
        rows = [(REASONS.get(reason, reason), count(n)) for reason, n in reasons.most_common()]
        yield Table("Why cases were debated (a case may have several reasons)", ("reason", "cases"), rows)
    if (without := record_summary(run).gate_untested) is not None:
        yield Note(f"Tests that could not be made: {without.words}. Skipped without them: {cases(without.skipped)}.")
    if (coverage := record_summary(run).gate_coverage) is not None:
        yield Note(f"{coverage.words[0].upper()}{coverage.words[1:]}.")


def _branches(summary: Summary, gated: Sequence[_Gated]) -> str:
    skipped = sum(each.gate.skip for each in gated)
    right = [
        f"{percent(value, interval, n)} of the {name}"
        for name, value, interval, n in (
            ("skipped", summary.accuracy_skipped, summary.accuracy_skipped_interval, summary.scored_skipped),
            ("debated", summary.accuracy_debated, summary.accuracy_debated_interval, summary.scored_debated),
        )
        if n
    ]
    sentence = f"The gate skipped {count(skipped)} of {cases(len(gated))}."
    if not skipped and not any(_decides(each.gate) for each in gated):
        sentence = f"There was no gate: all {cases(len(gated))} were debated."
    ended = sum(each.ended for each in gated)
    if ended < len(gated):
        sentence += f" {count(ended)} of the {count(len(gated))} have a verdict."
    return f"{sentence} Right: {', '.join(right)}." if right else sentence


def _plane(gated: Sequence[_Gated], why_unknown: str) -> Iterator[Block]:
    """The plane D x M; where no M is known, as of models without token probabilities, D and stated confidence."""
    by_misalignment = any(each.gate.m is not None for each in gated)
    heights = [each.gate.m if by_misalignment else each.gate.c for each in gated]
    found: dict[tuple[bool, bool | None], list[tuple[_Gated, float, float]]] = defaultdict(list)
    for each, height in zip(gated, heights, strict=True):
        if each.gate.d is not None and height is not None:
            found[each.gate.skip, each.correct].append((each, each.gate.d, height))
    if not found:
        return
    shown = sum(map(len, found.values()))
    how = [
        "Each point is a case; a click opens it.",
        "D says how far the first answers are apart.",
        "M says how far stated confidence is from the models' own token probabilities."
        if by_misalignment
        else f"M is unknown ({why_unknown}): the height is the stated confidence.",
        _rule(each.gate for each in gated),
    ]
    how += ["Skipped and wrong: an error that a debate might have mended."] if any(g.gate.skip for g in gated) else []
    how += [f"Without both numbers, and not shown: {cases(len(gated) - shown)}."] if shown < len(gated) else []
    yield Chart(
        "gate-plane",
        "The gate: each case by what its first answers show, skipped or debated, right or wrong"
        if any(_decides(each.gate) for each in gated)
        else "Each case by what its first answers show, right or wrong",
        [_points(part, found[part]) for part in _PARTS if part in found],
        x_label="D: disagreement",
        y_label="M: misalignment" if by_misalignment else "stated confidence",
        note=" ".join(how),
        guides=_thresholds([each.gate for each in gated], misalignment=by_misalignment),
    )


def _decides(gate: GateDecided) -> bool:
    """Whether a gate looks at its case, unlike one that is always open or shut."""
    return gate.when in ("", "selective")


def _rule(gates: Iterable[GateDecided]) -> str:
    if not any(map(_decides, gates)):
        return "There was no gate that could skip a debate."
    return "A case is debated if it lies beyond a threshold, if its first answers differ, or if mean p is low."


def _points(part: tuple[bool, bool | None], points: Sequence[tuple[_Gated, float, float]]) -> Series:
    skip, correct = part
    ids, across, up = zip(*((each.case_id, d, height) for each, d, height in points), strict=True)
    name = f"{'skipped' if skip else 'debated'}, {_OUTCOMES[correct]} ({len(points):,})"
    return Series(name, across, up, cases=ids, style=_STYLES[part])


def _thresholds(gates: Sequence[GateDecided], *, misalignment: bool) -> list[Guide]:
    """Guides at the gate's thresholds; a gate that is always open or shut has none."""
    deciding = [gate for gate in gates if _decides(gate)]
    of_d = sorted({gate.tau_d for gate in deciding if gate.tau_d is not None})
    of_m = sorted({gate.tau_m for gate in deciding if gate.tau_m is not None and misalignment})
    return [
        *(Guide(f"tau_d = {number(tau)}", x=tau) for tau in of_d),
        *(Guide(f"tau_m = {number(tau)}", y=tau) for tau in of_m),
    ]


Scores = dict[tuple[bool | None, int], list[tuple[str, float | None]]]
"""Case and mean score, by correctness of the candidate and by variant."""


def _scores_by_variant(run: RunRecord) -> Scores:
    """Scores of candidates judged on several variants: others would differ from these by more than the evidence."""
    found: Scores = defaultdict(list)
    for row, judged in run.counted_events(CandidatesJudged):
        verdict = run.by_case.get(row.case_id)
        if judged.branch == "audit" or verdict is None or verdict.failed:
            continue
        for candidate in judged.candidates:
            if len(candidate.variant_scores) > 1:
                correct = run.references.correct(row.case_id, candidate.answer, verdict.gold)
                for variant, score in enumerate(candidate.variant_scores):
                    found[correct, variant].append((row.case_id, score))
    return found


def _variants(run: RunRecord, found: Scores) -> Chart:
    several = []
    for correct, words in _OUTCOMES.items():
        by_variant = {v: values for (of, v), values in sorted(found.items(), key=_variant) if of is correct}
        means = {v: mean_over_cases(values, run.references.group) for v, values in by_variant.items()}
        known = {variant: mean for variant, mean in means.items() if mean.mean is not None}
        if known:
            name = f"{words} answers ({_cases_words(list(known.values()))})"
            several.append(_means(name, known, style=list(_OUTCOMES).index(correct)))
    return Chart(
        "judge-scores",
        "Judges' mean score of right and wrong answers, by variant of the evidence",
        several,
        x_label="variant of the evidence",
        y_label="mean score",
        y_range=(0.0, 1.0),
        note="Judges read each answer of a debate beside several variants of the evidence. Right answers should lie "
        "well above wrong ones, and a line should be level: a good judge does not depend on which sentences it is "
        "shown. The bands are 95 % intervals over groups of cases, where there are ten or more.",
    )


def _cases_words(means: Sequence[MeanOverCases]) -> str:
    """Number of cases of each mean, or the least and the greatest one."""
    counts = [each.cases for each in means]
    least, most = min(counts), max(counts)
    return f"n = {cases(most)}" if least == most else f"n = {count(least)} to {cases(most)}"


def _variant(item: tuple[tuple[bool | None, int], object]) -> int:
    return item[0][1]


def _means(name: str, means: Mapping[int, MeanOverCases], style: int) -> Series:
    return Series(
        name,
        [str(variant + 1) for variant in means],
        [each.mean for each in means.values()],
        low=[each.low for each in means.values()],
        high=[each.high for each in means.values()],
        mark="line",
        style=style,
    )


def _stability(summary: Summary) -> Iterator[Block]:
    """What the variants say about the judges: in the verdicts' own judging, and in the audit of all cases."""
    if summary.judge_stability is not None or summary.flip_rate is not None:
        split, n = summary.flip_rate_split, summary.flip_rate_split_cases
        flips = percent(summary.flip_rate, n=summary.flip_rate_cases) if split is None else percent(split, n=n)
        yield Note(
            f"Judge stability {number(summary.judge_stability)} (1: scores are equal on all variants; n = "
            f"{count(summary.judge_stability_cases)} of {cases(summary.finished)}: only answers that differ are judged "
            f"on several variants). Variants that alone would choose another answer: {flips}.",
            "dim",
        )
    if summary.judge_stability_audit is not None:
        kind = f"{', '.join(summary.audit_variants)} variants"
        yield Note(
            f"In the audit, which judges every case's answers over {kind}: judge stability "
            f"{number(summary.judge_stability_audit)} (n = {count(summary.judge_stability_audit_cases)} of "
            f"{cases(summary.finished)}).",
            "dim",
        )


PARTS = ProtocolParts(
    events=(
        KnownEvent(EvidenceRetrieved, _retrieved),
        KnownEvent(GateDecided, _gate),
        KnownEvent(CandidatesJudged, _judging),
        KnownEvent(VotesCounted, _vote),
        KnownEvent(RoundEnded, _round),
        KnownEvent(DebateStopped, _stop),
    ),
    stages=(
        Stage("preparation", re.compile(r"retrieval$"), "Retrieved evidence"),
        Stage("opening", re.compile(r"vote/agent/"), "Further answers for the vote"),
        Stage("opening", re.compile(r"resample/"), "The same question again, to estimate p"),
        Stage("opening", re.compile(r"gate$"), "Gate"),
        Stage("opening", re.compile(r"vote/consensus$"), "Consensus by vote"),
        Stage("end", re.compile(r"evidence/"), "Evidence in other words"),
        Stage("after", re.compile(r"(audit(/|$)|branches$)"), "Audit"),
    ),
    payload=gate_pairs,
    report=selene,
)
