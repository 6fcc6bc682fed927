"""SELENE in a report: the plane of the gate's signals, why cases were debated, and scores by evidence variant."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from moot.deploy.results.report.blocks import Block, Chart, Guide, Heading, Note, Series, Table
from moot.deploy.results.rounds.case_means import MeanOverCases, mean_over_cases
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.run_report.round_charts import round_charts
from moot.deploy.results.summaries.summary import Summary
from moot.deploy.results.text import cases, count, number, percent
from moot.deploy.results.transcripts.selene import REASONS
from moot.protocols.selene.events import CandidatesJudged, GateDecided

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


def selene(run: RunData) -> Iterator[Block]:
    """The gate and the judges of SELENE; nothing for a run without a gate and without judged candidates."""
    gated = [_gated(run, row.case_id, gate) for row, gate in run.counted_events(GateDecided)]
    judged = _scores_by_variant(run)
    if not gated and not judged:
        return
    yield Heading("Gate and judges")
    if gated:
        yield from _gate(run, gated)
        yield from round_charts(run, ("distance", "changed"))
    if judged:
        yield _variants(run, judged)
    yield from _stability(run.summary)


def _gated(run: RunData, case_id: str, gate: GateDecided) -> _Gated:
    verdict = run.by_case.get(case_id)
    if verdict is None or verdict.failed:
        return _Gated(case_id, gate, correct=None, ended=False)
    return _Gated(case_id, gate, verdict.correct, ended=True)


def _gate(run: RunData, gated: Sequence[_Gated]) -> Iterator[Block]:
    yield Note(_branches(run.summary, gated))
    not_requested = run.info.requests_logprobs is False
    yield from _plane(gated, f"{'this run requested ' if not_requested else ''}no token probabilities")
    reasons = Counter(str(reason) for each in gated if not each.gate.skip for reason in each.gate.reasons)
    if reasons:
        rows = [(REASONS.get(reason, reason), count(n)) for reason, n in reasons.most_common()]
        yield Table("Why cases were debated (a case may have several reasons)", ("reason", "cases"), rows)
    if (without := run.summary.gate_untested) is not None:
        yield Note(f"Tests that could not be made: {without.words}. Skipped without them: {cases(without.skipped)}.")
    if (coverage := run.summary.gate_coverage) is not None:
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


def _scores_by_variant(run: RunData) -> Scores:
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


def _variants(run: RunData, found: Scores) -> Chart:
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
