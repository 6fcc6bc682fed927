"""The figures of `early_confidence.py`: does a reply's token confidence say whether the reply is true?

One sweep per model and target: every feature's directed AUROC (above .5: a higher value goes with a true answer) with a
95 % interval from 1000 resamples of questions, a p-value of 5000 permutations, Benjamini and Hochberg's q over the
features of all sweeps, the p-value of the best feature as the maximum of its sweep, and the AUROC of choosing the
feature on four fifths of the questions and using it on the last fifth, mean over 20 splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from printed import Figure
from recorded_answers import FALSE, OPENING, TRUE, Answers, Floats, answers
from scipy.stats import rankdata

from moot.metrics.class_separation import auroc_matrix, point_biserial_matrix
from moot.metrics.cluster_bootstrap import bootstrap_auroc, interval_from
from moot.metrics.cluster_permutation import PermutationTest, permutation_test
from moot.metrics.confidence_features import Feature, Origin, features, window_features
from moot.metrics.held_out import held_out_selection
from moot.metrics.multiple_testing import benjamini_hochberg

RESAMPLES, PERMUTATIONS, SPLITS = 1000, 5000, 20
WINDOWS = ("first-3", "first-5", "first-10", "full")
STATISTICS = ("mean", "median", "min", "max", "range", "std", "slope")
"""Without the variance, which ranks answers as the standard deviation does."""

Column = tuple[str, str, int]
"""A feature's name, the same in words, and its orientation."""

ORIGINS: tuple[Origin, Origin] = ("token 0", "content")

TARGETS = ("the judge", "people")
"""Who says whether an answer is true."""


@dataclass(frozen=True)
class Row:
    """A feature, or the length, in one sweep.

    Attributes:
        feature: its name.
        words: the same for a reader.
        orientation: +1 when a higher value means more confident, -1 less, 0 neither.
        n: answers that have it and a class.
        auroc: directed, with its interval.
        point_biserial: its values' correlation with the flag.
        p_value: of this feature alone.
        max_p_value: of a search over all features of the sweep; NaN for the length, which is not searched.
        q_value: Benjamini and Hochberg's, over the features of all sweeps; NaN for the length.
    """

    feature: str
    words: str
    orientation: int
    n: int
    auroc: Figure
    point_biserial: float
    p_value: float
    max_p_value: float
    q_value: float

    @property
    def folded(self) -> float:
        """The AUROC whichever way it points."""
        return max(self.auroc.value, 1.0 - self.auroc.value)

    @property
    def direction(self) -> str:
        """`confident -> true` or the reverse; neither for a slope or a length."""
        if not self.orientation:
            return "-"
        return f"confident -> {'true' if (self.auroc.value > 0.5) == (self.orientation > 0) else 'false'}"


@dataclass(frozen=True)
class Sweep:
    """All features of one model against one target.

    Attributes:
        model: whose answers, `all` for all models', each value ranked within its model.
        target: who says what is true, one of `TARGETS`.
        true: answers called true.
        n: answers with a class.
        length: of the answer in tokens, the baseline.
        rows: the features, in the order of the columns.
        held_out: AUROC on the rest of the questions, with the sign learnt, of the feature chosen on four fifths.
        by_chance: what the best feature's distance from .5 stays below in 95 % of permutations.
    """

    model: str
    target: str
    true: int
    n: int
    length: Row
    rows: list[Row]
    held_out: float
    by_chance: float

    @property
    def best(self) -> Row:
        """The feature farthest from .5."""
        return max(self.rows, key=lambda row: row.folded)

    def row(self, feature: str) -> Row:
        """The feature of this name."""
        return next(row for row in self.rows if row.feature == feature)


@dataclass(frozen=True)
class Classes:
    """What people called a model's answers; `left_out` by class, "" for none. `same` of `both` the judge says, too."""

    model: str
    true: int
    false: int
    left_out: dict[str, int]
    same: int
    both: int


@dataclass(frozen=True)
class Found:
    """All of it."""

    classes: list[Classes]
    sweeps: list[Sweep]

    @property
    def rows(self) -> list[Row]:
        """Every test but those of lengths; a feature without spread gives none."""
        return [row for sweep in self.sweeps for row in sweep.rows if not np.isnan(row.p_value)]


@dataclass(frozen=True)
class Sample:
    """What is swept: `(n, features)` values, `(n,)` lengths in tokens, verdicts of each target and questions."""

    model: str
    values: Floats
    lengths: Floats
    verdicts: dict[str, Floats]
    questions: npt.NDArray[np.intp]


def found_in(folder: Path) -> Found:
    """Everything, from a folder with `truthfulqa_gpt3_logprobs`."""
    models = answers(folder / "truthfulqa_gpt3_logprobs")
    samples = [_sample(model) for model in models]
    sweeps = [_sweep(sample, target) for sample in (*samples, pooled(samples)) for target in TARGETS]
    return Found([_classes(model) for model in models], _with_q_values(sweeps))


def columns() -> list[Column]:
    """The features of a sweep: every window and statistic, from token 0 and from content."""
    return [
        (one.name, one.words, one.orientation)
        for origin in ORIGINS
        for one in features("logprob", origin)
        if _kept(one)
    ]


def pooled(samples: Sequence[Sample]) -> Sample:
    """All models' answers, each value as its rank among those of its model, from 0 to 1.

    So a model that is surer, longer or truer than another makes no association; answers to one question stay together.
    """
    return Sample(
        model="all",
        values=np.vstack([_shares(sample.values) for sample in samples]),
        lengths=np.concatenate([_shares(sample.lengths) for sample in samples]),
        verdicts={target: np.concatenate([sample.verdicts[target] for sample in samples]) for target in TARGETS},
        questions=np.concatenate([sample.questions for sample in samples]),
    )


def _shares(values: Floats) -> Floats:
    """Mean ranks by column, over how many values are known; NaN stays."""
    ranks = rankdata(values, axis=0, nan_policy="omit")
    return np.asarray((ranks - 0.5) / (~np.isnan(values)).sum(axis=0))


def _kept(feature: Feature) -> bool:
    return feature.window in WINDOWS and feature.statistic in STATISTICS


def _classes(model: Answers) -> Classes:
    known = ~np.isnan(model.people_true)
    return Classes(
        model=model.model,
        true=int((model.people_true == 1.0).sum()),
        false=int((model.people_true == 0.0).sum()),
        left_out={name: count for name, count in model.classes.items() if name not in (*TRUE, *FALSE)},
        same=int((model.people_true == model.judged_true)[known].sum()),
        both=int(known.sum()),
    )


def _sample(model: Answers) -> Sample:
    """The features of a model's answers; content begins behind the fixed opening."""
    behind = model.logprobs.from_starts(np.full(len(model.logprobs), len(OPENING)))
    kept = np.array([_kept(one) for one in features("logprob")])
    return Sample(
        model=model.model,
        values=np.hstack([window_features(tokens)[:, kept] for tokens in (model.logprobs, behind)]),
        lengths=model.logprobs.lengths.astype(np.float64),
        verdicts=dict(zip(TARGETS, (model.judged_true, model.people_true), strict=True)),
        questions=model.questions,
    )


def _sweep(sample: Sample, target: str) -> Sweep:
    """Every figure but the q-values, which are over all sweeps."""
    flags, questions = sample.verdicts[target], sample.questions
    tested = permutation_test(sample.values, flags, questions, PERMUTATIONS, statistic="auroc")
    held_out = [
        held_out_selection(sample.values, flags, questions, seed=split, statistic="auroc").value[0]
        for split in range(SPLITS)
    ]
    lengths = sample.lengths[:, np.newaxis]
    of_length = permutation_test(lengths, flags, questions, PERMUTATIONS, statistic="auroc")
    (length,) = _rows([("length", "Length in tokens", 0)], lengths, flags, questions, of_length)
    return Sweep(
        model=sample.model,
        target=target,
        true=int(np.nansum(flags)),
        n=int((~np.isnan(flags)).sum()),
        length=replace(length, max_p_value=float("nan")),
        rows=_rows(columns(), sample.values, flags, questions, tested),
        held_out=float(np.mean(held_out)),
        by_chance=float(tested.null_quantile[0]),
    )


def _rows(
    named: Sequence[Column], values: Floats, flags: Floats, questions: npt.NDArray[np.intp], tested: PermutationTest
) -> list[Row]:
    """Every figure of every column but the q-value."""
    areas = auroc_matrix(values, flags)[:, 0]
    drawn = bootstrap_auroc(values, flags, questions, RESAMPLES)[:, :, 0]
    low, high = interval_from(drawn, areas, lowest=0.0)
    correlations = point_biserial_matrix(values, flags)[:, 0]
    known = (~np.isnan(values) & ~np.isnan(flags)[:, np.newaxis]).sum(axis=0)
    return [
        Row(
            feature=name,
            words=words,
            orientation=orientation,
            n=int(known[i]),
            auroc=Figure(float(areas[i]), float(low[i]), float(high[i])),
            point_biserial=float(correlations[i]),
            p_value=float(tested.p_value[i, 0]),
            max_p_value=float(tested.max_p_value[i, 0]),
            q_value=float("nan"),
        )
        for i, (name, words, orientation) in enumerate(named)
    ]


def _with_q_values(sweeps: Sequence[Sweep]) -> list[Sweep]:
    """The sweeps with q-values over all their features."""
    q_values = benjamini_hochberg([row.p_value for sweep in sweeps for row in sweep.rows])
    by_sweep = np.split(q_values, np.cumsum([len(sweep.rows) for sweep in sweeps])[:-1])
    return [
        replace(sweep, rows=[replace(row, q_value=float(q)) for row, q in zip(sweep.rows, own, strict=True)])
        for sweep, own in zip(sweeps, by_sweep, strict=True)
    ]
