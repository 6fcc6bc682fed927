"""Claims in words: rows of the summary, and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moot.deploy.results.figures.claims import (
    ALWAYS,
    BARE,
    VERDICT,
    ClaimSet,
    DebaterErrors,
    Detection,
    DurationSummary,
    HallusionAccuracies,
    SourceCalibration,
    UnitAccuracy,
)
from moot.deploy.results.report.blocks import Block, Note, Table
from moot.deploy.results.stats import (
    LEAST_CASES,
    IntervalEstimate,
    calibration_words,
    in_percent,
    in_seconds,
    in_units,
    signed_points,
    too_few_words,
    without_interval,
)
from moot.deploy.results.text import count, number, percent
from moot.metrics.jackknife import LEAST_CLUSTERS
from moot.protocols.claims import HALLUCINATED, SUPPORTED

NOTE = (
    "%, [95 %]. The accuracy of independent claims has Wilson's interval; all others are over groups of claims, and "
    f"there is none of fewer than {LEAST_CLUSTERS} groups. Each F1 has its own class as the positive one; "
    "macro is the mean of both. A claim left open is a miss of its class, and wrong."
)
"""Notes on the tables of F1."""


def detection_rows(found: Detection, tokens_per_case: float | None) -> list[tuple[str, str]]:
    """Rows of the detection figures, as name and text."""
    rows = [("claims", _claims(found))]
    if found.whole is not None and (verdict := found.whole.by(VERDICT)) is not None:
        rows.append(("claims left open", f"{verdict.abstained:,} of {found.whole.n:,}"))
        if found.whole.gain is not None and found.whole.has_bare:
            metric = "accuracy" if found.whole.only else "macro F1"
            rows.append((f"{metric} gain over the judges' bare verdict", f"{signed_points(found.whole.gain)} points"))
    if found.debaters is not None:
        rows += _debater_rows(found.debaters)
    if (durations := found.seconds) is not None:
        mean, median, p90 = map(in_seconds, (durations.mean, durations.median, durations.p90))
        rows.append(("seconds per case", f"{mean} (median {median}, 90 % within {p90})"))
    return [*rows, ("tokens per case", count(tokens_per_case))]


def _claims(found: Detection) -> str:
    counted = 0 if found.whole is None else found.whole.n
    excluded = [
        f"{n:,} {why}"
        for n, why in (
            (found.failed, "failed"),
            (found.open - found.withdrawn, "without verdict"),
            (found.withdrawn, "withdrawn"),
            (found.unlabelled, "without a label"),
            (found.trained_on, "in the classifier's training data"),
            (found.group_trained_on, "of a group in the classifier's training data"),
        )
        if n
    ]
    return f"{counted:,} counted" + (f"; left out: {', '.join(excluded)}" if excluded else "")


def _debater_rows(found: DebaterErrors) -> list[tuple[str, str]]:
    (one, other), (first, second) = found.debaters, (percent(rate) for rate in found.error_rates)
    base = f"(error rates: {one} {first}, {other}, which reads it, {second}; n = {found.n:,})"
    if found.n < LEAST_CASES:
        return [("correlation of debaters' errors", f"{too_few_words(found.n)} {base}")]
    rho, effective = in_units(found.rho, 2), in_units(found.effective_debaters, 2)
    return [
        ("correlation of debaters' errors", f"{rho} {base}"),
        ("effective number of debaters", f"{effective} of 2"),
    ]


def detection_blocks(found: Detection) -> list[Block]:
    """Report blocks of the detection figures: all claims, categories, HallusionBench, calibration, and a note."""
    blocks = list[Block]()
    if found.whole is not None:
        blocks += _whole(found.whole)
    if found.by_category:
        blocks += [_categories(found.by_category), _category_costs(found.by_category)]
    if found.hallusionbench:
        has_bare = found.whole is not None and found.whole.has_bare
        blocks.append(_hallusionbench([each for each in found.hallusionbench if has_bare or each.by != BARE]))
    blocks += [_calibration(each) for each in found.calibration]
    return blocks + ([Note(NOTE, "dim")] if found.whole is not None else [])


def _whole(found: ClaimSet) -> list[Table]:
    base = f"{found.n:,} claims" + (f" in {found.groups:,} groups" if found.groups < found.n else "")
    rows = [each for each in found.detectors if found.has_bare or each.by != BARE]
    if found.only is not None:
        title = f"{base}, all {found.only}: precision is 1 by construction, and F1 = 2R/(1+R) for recall R"
        return [Table(title, ("", "recall"), [(each.by, in_percent(each.accuracy)) for each in rows])]
    of = f"{rows[0].supported.n:,} {SUPPORTED}, {rows[0].hallucinated.n:,} {HALLUCINATED}"
    f1s = [(each.supported.f1, each.hallucinated.f1, each.macro_f1) for each in rows]
    recalls = [(each.supported.recall, each.hallucinated.recall, each.accuracy) for each in rows]
    f1_cells, recall_cells = (
        [(each.by, *map(in_percent, figures)) for each, figures in zip(rows, several, strict=True)]
        for several in (f1s, recalls)
    )
    f1_header = ("", f"F1 /{SUPPORTED}", f"F1 /{HALLUCINATED}", "F1 /macro")
    recall_header = ("", f"recall /{SUPPORTED}", f"recall /{HALLUCINATED}", "accuracy")
    return [
        Table(f"{base}: {of}", f1_header, f1_cells),
        Table("recall of each class, and accuracy", recall_header, recall_cells),
    ]


def _categories(sets: Sequence[ClaimSet]) -> Table:
    bare = any(each.has_bare for each in sets)
    heads = ("category", "n", "F1 /macro", "accuracy", *(("bare /macro",) if bare else ()), "trivial /macro")
    meaning = "bare: the judges' bare verdict; " if bare else ""
    title = f"by category ({meaning}trivial: the better of always one label)"
    return Table(title, heads, [_category(each, bare) for each in sets])


def _category_costs(sets: Sequence[ClaimSet]) -> Table:
    rows = [
        (
            each.category or "none",
            in_seconds(each.seconds),
            count(each.tokens),
        )
        for each in sets
    ]
    return Table("mean time and tokens of a claim by category", ("category", "seconds", "tokens"), rows)


def _category(found: ClaimSet, bare: bool) -> tuple[str, ...]:
    verdict, judges = found.by(VERDICT), found.by(BARE)
    if verdict is None:
        return (found.category or "-", count(found.n))
    trivial = max((each.macro_f1.value or 0.0 for name in ALWAYS.values() if (each := found.by(name))), default=0.0)
    return (
        found.category or "none",
        count(found.n),
        in_percent(verdict.macro_f1),
        without_interval(verdict.accuracy),
        *((without_interval(judges.macro_f1 if judges else IntervalEstimate()),) if bare else ()),
        "-" if found.only else f"{100 * trivial:.1f}",
    )


def _hallusionbench(rows: Sequence[HallusionAccuracies]) -> Table:
    detectors = list(dict.fromkeys(each.by for each in rows))
    table = {(each.by, each.part): each for each in rows}
    parts = list(dict.fromkeys(each.part for each in rows))
    cells = []
    for name, share in _SHARES.items():
        for part in parts:
            found = [share(table[detector, part]) for detector in detectors]
            shown = [in_percent(each.share) for each in found]
            cells.append((name if part is None else f"{name}, {part}", count(found[0].n), *shown))
    return Table(_hallusion_title(rows[0]), ("", "n", *detectors), cells)


_SHARES: dict[str, Callable[[HallusionAccuracies], UnitAccuracy]] = {
    "aAcc": lambda found: found.question,
    "fAcc": lambda found: found.figure,
    "qAcc": lambda found: found.pair,
    "easy": lambda found: found.easy,
    "hard": lambda found: found.hard,
}


def _hallusion_title(whole: HallusionAccuracies) -> str:
    parts = ["HallusionBench as its authors score it: questions (aAcc), figures (fAcc), question pairs (qAcc)"]
    if n := whole.left_open_right:
        parts.append(f"{n:,} questions without their figure left open, which counts as right")
    if n := whole.question.incomplete:
        parts.append(f"{n:,} questions not counted")
    for name, units in (("figures", whole.figure), ("question pairs", whole.pair)):
        if units.incomplete:
            parts.append(f"{units.incomplete:,} {name} incomplete, not counted")
    return "; ".join(parts)


def _calibration(found: SourceCalibration) -> Table | Note:
    unknown = f", {found.unknown:,} unknown" if found.unknown else ""
    title = (
        f"p_hallucinated, {found.source} (n = {found.n:,}{unknown}): Brier {in_units(found.brier)}, of always stating "
        f"the share {number(found.brier_of_share)}; ECE: "
        f"{calibration_words(found.calibration_error, found.calibration_null, found.n)}"
    )
    if found.calibration_null is None:
        return Note(title)
    rows = [(f"{each.p_hallucinated:.2f}", f"{100 * each.hallucinated:.1f}", count(each.n)) for each in found.bins]
    return Table(title, ("stated, mean", "hallucinated, %", "n"), rows)


def mean_seconds(found: DurationSummary | None) -> str:
    """Text of the mean duration of a run's claims."""
    return in_seconds(None if found is None else found.mean)


def claims_notes(names: Sequence[str], trained_on: Sequence[tuple[int, int]]) -> list[str]:
    """Notes on excluded claims: those in the training data of a run's classifier.

    Args:
        names: names of the runs.
        trained_on: for each run, the number of its claims in the training data, and of those with only other claims of
            their group in it.
    """
    return [
        f"{name}: {claims + groups:,} claims left out: its classifier was trained on {claims:,} of them, and on others "
        f"of the groups of {groups:,}"
        for name, (claims, groups) in zip(names, trained_on, strict=True)
        if claims or groups
    ]
