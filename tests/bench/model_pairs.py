"""What the metrics of a debate's round say of real models: every pair on the same questions, as a table.

    python tests/bench/model_pairs.py FOLDER [--markdown]

FOLDER holds `mcq_logprobs` and `llm_confidence_panel` (see `model_panels.py`). No model debates here: A and B are what
two models said alone, the mixture is theirs, weighted by reliability. The truth is all mass on the right option.
Divergences are in nats; KL is smoothed with `EPSILON`, and `+n` says for how many questions it had to be. KL to the
truth is not smoothed: `+n` counts the questions for which it is infinite, which the mean leaves out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from model_panels import Panel, Rows, stated_panel, token_panel
from scipy.stats import spearmanr

from moot.metrics.brier import brier_multiclass
from moot.metrics.calibration_error import NullBand, calibration_null_band, expected_calibration_error
from moot.metrics.divergence import floored, jensen_shannon_divergence, kl_divergence, total_variation
from moot.metrics.maximal_coupling import mutual_information, normalised_mutual_information
from moot.metrics.mixture import mixture, reliability_weights
from moot.metrics.ranking import accuracy_at_k, rank_of_truth

EPSILON = 1e-3


@dataclass(frozen=True)
class Counted:
    """A mean over the finite values, and how many were not (or, smoothed, would not have been)."""

    mean: float
    infinite: int

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + (f" +{self.infinite}" if self.infinite else "")


@dataclass(frozen=True)
class Alone:
    """One model on a panel's questions; scores are over the questions that it covers."""

    model: str
    covered: int
    asked: int
    rescaled: int
    accuracy: float
    brier: float
    kl_to_truth: Counted
    calibration_error: float
    null_band: NullBand


@dataclass(frozen=True)
class Pair:
    """Two models on the questions that both cover; triples are A, B and their mixture, whose calibration it is."""

    a: str
    b: str
    n: int
    jsd: float
    tv: float
    kl_ab: Counted
    kl_ba: Counted
    mi: float
    nmi: float
    kl_to_truth: tuple[Counted, Counted, Counted]
    brier: tuple[float, float, float]
    accuracy: tuple[float, float, float]
    beats_better: float
    over_better_model: float
    calibration_error: float
    null_band: NullBand
    mi_with_agreement: float

    @property
    def beats_worse(self) -> bool:
        """Whether the mixture's Brier score is below the worse model's."""
        return self.brier[2] < max(self.brier[:2])

    @property
    def miscalibrated(self) -> bool:
        """Whether the mixture's calibration error is above what a perfect forecaster would be found to have."""
        return self.calibration_error > self.null_band.high


def calibration(error: float, band: NullBand) -> str:
    """An error beside the band of a perfect forecaster with the same confidences."""
    return f"{error:.3f} ({band.mean:.3f}, {band.low:.3f}-{band.high:.3f})"


def counted(values: Rows) -> Counted:
    """The mean of what is finite, and the count of the rest."""
    finite = values[np.isfinite(values)]
    return Counted(float(finite.mean()) if finite.size else float("nan"), int(np.isinf(values).sum()))


def of_model(panel: Panel, model: str) -> Alone:
    """A model's scores."""
    covers = np.flatnonzero(~np.isnan(panel.rows[model]).any(axis=1))
    rows, truth = panel.rows[model][covers], panel.truth[covers]
    ranks = rank_of_truth(rows, truth)
    confidence, correct = rows.max(axis=1), ranks == 1
    return Alone(
        model=model,
        covered=len(rows),
        asked=len(panel.truth),
        rescaled=panel.rescaled[model],
        accuracy=accuracy_at_k(ranks, 1),
        brier=float(brier_multiclass(rows, truth).mean()),
        kl_to_truth=counted(kl_divergence(np.eye(rows.shape[1])[truth], rows)),
        calibration_error=expected_calibration_error(confidence, correct),
        null_band=calibration_null_band(confidence),
    )


def of_pair(panel: Panel, a: str, b: str) -> Pair:
    """A pair's divergences and scores."""
    both = ~np.isnan(panel.rows[a] + panel.rows[b]).any(axis=1)
    p, q, truth = panel.rows[a][both], panel.rows[b][both], panel.truth[both]
    pair = np.stack([p, q], axis=1)
    three = (p, q, mixture(pair, reliability_weights(pair)))
    right = np.eye(p.shape[1])[truth]
    brier = [brier_multiclass(rows, truth) for rows in three]
    means = [float(scores.mean()) for scores in brier]
    apart, shared = total_variation(p, q), mutual_information(p, q)
    confidence, correct = three[2].max(axis=1), rank_of_truth(three[2], truth) == 1
    return Pair(
        a=a,
        b=b,
        n=len(truth),
        jsd=float(jensen_shannon_divergence(p, q).mean()),
        tv=float(apart.mean()),
        kl_ab=Counted(float(kl_divergence(p, q, epsilon=EPSILON).mean()), int(floored(p, q).sum())),
        kl_ba=Counted(float(kl_divergence(q, p, epsilon=EPSILON).mean()), int(floored(q, p).sum())),
        mi=float(shared.mean()),
        nmi=float(normalised_mutual_information(p, q).mean()),
        kl_to_truth=(
            counted(kl_divergence(right, three[0])),
            counted(kl_divergence(right, three[1])),
            counted(kl_divergence(right, three[2])),
        ),
        brier=(means[0], means[1], means[2]),
        accuracy=(
            accuracy_at_k(rank_of_truth(three[0], truth), 1),
            accuracy_at_k(rank_of_truth(three[1], truth), 1),
            accuracy_at_k(rank_of_truth(three[2], truth), 1),
        ),
        beats_better=float((brier[2] < np.minimum(brier[0], brier[1])).mean()),
        over_better_model=means[2] - min(means[:2]),
        calibration_error=expected_calibration_error(confidence, correct),
        null_band=calibration_null_band(confidence),
        mi_with_agreement=float(spearmanr(shared, 1.0 - apart).statistic),
    )


def panels(folder: Path) -> list[Panel]:
    """What the folder holds: token probabilities before and after reasoning, and stated ones."""
    tokens = folder / "mcq_logprobs"
    return [
        token_panel(tokens, "Direct"),
        token_panel(tokens, "afterThinking"),
        stated_panel(folder / "llm_confidence_panel"),
    ]


def markdown(panel: Panel, models: list[Alone], pairs: list[Pair]) -> str:
    """Both tables of a panel, and their sums."""
    lines = [
        f"## {panel.name[:1].upper()}{panel.name[1:]}",
        "",
        "| model | covered | rescaled | accuracy | Brier | KL to truth | ECE (perfect: mean, 95 %) |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in models:
        lines.append(
            f"| {one.model} | {one.covered}/{one.asked} | {one.rescaled} | {one.accuracy:.2f} | {one.brier:.3f} "
            f"| {one.kl_to_truth} | {calibration(one.calibration_error, one.null_band)} |"
        )
    lines += [
        "",
        "| A, B | n | JSD | TV = WD | KL(A,B), KL(B,A) | MI, NMI | KL to truth: A, B, mixture "
        "| Brier: A, B, mixture | accuracy | beats both | over better | mixture's ECE (perfect: mean, 95 %) |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for pair in pairs:
        truth, brier, accuracy = (
            ", ".join(map(str, pair.kl_to_truth)),
            ", ".join(f"{score:.3f}" for score in pair.brier),
            ", ".join(f"{share:.2f}" for share in pair.accuracy),
        )
        lines.append(
            f"| {pair.a}, {pair.b} | {pair.n} | {pair.jsd:.3f} | {pair.tv:.3f} | {pair.kl_ab}, {pair.kl_ba} "
            f"| {pair.mi:.3f}, {pair.nmi:.2f} | {truth} | {brier} | {accuracy} | {pair.beats_better:.0%} "
            f"| {pair.over_better_model:+.3f} | {calibration(pair.calibration_error, pair.null_band)} |"
        )
    return "\n".join([*lines, "", summary(pairs), ""])


def summary(pairs: list[Pair]) -> str:
    """What holds over all pairs, in a line."""
    falls = [pair.mi_with_agreement for pair in pairs]
    below_worse, below_better = (
        sum(pair.beats_worse for pair in pairs),
        sum(pair.over_better_model < 0 for pair in pairs),
    )
    return (
        f"Pairs: {len(pairs)}; mixture's Brier below the worse model's: {below_worse}, below the better model's: "
        f"{below_better}, its ECE above a perfect forecaster's band: {sum(pair.miscalibrated for pair in pairs)}; rank "
        f"correlation of MI with agreement (1 - TV) over a pair's questions: median "
        f"{np.nanmedian(falls):+.2f}, negative for {sum(value < 0.0 for value in falls)}."
    )


def main() -> int:
    """Print the figures: JSON, or Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--markdown", action="store_true", help="tables instead of JSON")
    given = parser.parse_args()
    found = []
    for panel in panels(given.folder):
        models = [of_model(panel, model) for model in panel.rows]
        pairs = [of_pair(panel, a, b) for a, b in itertools.combinations(panel.rows, 2)]
        if given.markdown:
            print(markdown(panel, models, pairs))
        found.append({"panel": panel.name, "models": [*map(asdict, models)], "pairs": [*map(asdict, pairs)]})
    if not given.markdown:
        json.dump(found, sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
