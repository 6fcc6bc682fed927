"""Model card of a trained classifier, its held-out figures, and its folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from moot.actors.classifiers.card import (
    BODY,
    Body,
    ClassifierCard,
    HeldOutMetrics,
    MetricEstimate,
    Training,
    known,
    read_card,
)
from moot.actors.classifiers.classifier import check_body
from moot.actors.record.files import write_whole
from moot.actors.record.referenced_files import CLASSIFIER_CARD
from moot.actors.record.store.mirror import display_name
from moot.deploy.results.figures.claims import BINS
from moot.deploy.results.stats import IntervalEstimate, coefficient, mean_estimate, share_estimate
from moot.deploy.runs.versions import installed_versions
from moot.deploy.studies.training.examples import TrainingExamples
from moot.deploy.studies.training.fit import FittedHead, Floats, TrainingData
from moot.metrics.calibration_error import calibration_null_band, dependence_inflation, expected_calibration_error
from moot.metrics.class_separation import within_groups_auroc
from moot.metrics.cluster_bootstrap import resampled_auroc
from moot.metrics.detection import detection_figures, detection_outcomes, resampled_figures
from moot.metrics.jackknife import left_out_sums, left_out_weights
from moot.protocols.claims import HALLUCINATED, classified_label
from moot.protocols.errors import ConfigError, RecordError

OWN = "the classifier"
MASKED = "the same without verdict words"
MASKED_HEAD = "head alone learnt without verdict words"
JUDGES = "the judges' bare verdict"
ALWAYS = "always supported"
"""Names of the classifiers in the table; with a fine-tuned body, only the head is retrained without verdict words."""

_PACKAGES = ("moot", "numpy", "scipy")
_MORE = ("setfit", "sentence-transformers", "transformers", "torch")


def make_card(
    fitted: FittedHead,
    examples: TrainingExamples,
    data: TrainingData,
    *,
    runs: Sequence[str | Path],
    encoder: str,
    body: Body | None,
    training_digest: str,
) -> ClassifierCard:
    """Build the card, with its checksum.

    Args:
        fitted, examples, data: the head with its held-out probabilities, and its training data.
        runs: folders of the runs, as the user gave them.
        encoder: identity of the encoder; with a body, the name of the body.
        body: the fine-tuned encoder; None for the kind `logistic`.
        training_digest: see `Training.digest`.
    """
    training = Training(
        digest=training_digest,
        runs=tuple(display_name(run) for run in runs),
        tasks=_named(run.task for run in examples.runs),
        protocols=_named(run.protocol for run in examples.runs),
        simulated=examples.simulated,
        n=len(examples.rows),
        hallucinated=int(data.outcome.sum()),
        cases=len({row.content_hash for row in examples.rows}),
        groups=len(np.unique(data.groups)),
        left_out=examples.left_out,
        folds=data.folds,
        seed=data.seed,
    )
    return ClassifierCard(
        kind="logistic" if body is None else "setfit",
        encoder=encoder,
        body=body,
        head=fitted.head,
        ridge=fitted.ridge,
        versions=dict(installed_versions(*_PACKAGES, *(() if body is None else _MORE))),
        training=training,
        trained_on=tuple(sorted({row.claim for row in examples.rows})),
        trained_on_groups=tuple(sorted({row.source for row in examples.rows if row.source})),
        held_out=_held_out(fitted, examples, data, MASKED if body is None else MASKED_HEAD),
    ).with_digest()


def _held_out(
    fitted: FittedHead, examples: TrainingExamples, data: TrainingData, masked: str
) -> tuple[HeldOutMetrics, ...]:
    cases = HeldOutCases(data.outcome, data.groups, data.fold)
    judged = [np.nan if row.judged_hallucinated is None else float(row.judged_hallucinated) for row in examples.rows]
    return (
        cases.of_probabilities(OWN, fitted.p),
        cases.of_probabilities(masked, fitted.p_masked),
        cases.of_answers(JUDGES, np.array(judged)),
        cases.of_answers(ALWAYS, np.zeros(len(judged))),
    )


def _named(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))


class HeldOutCases:
    """Held-out summaries.

    Args:
        outcome: `(n,)`, 1 for a hallucinated claim.
        groups: `(n,)`, group of each summary; groups are left out whole.
        fold: `(n,)`, fold in which each was held out.
    """

    def __init__(self, outcome: Floats, groups: npt.NDArray[np.str_], fold: npt.NDArray[np.intp]) -> None:
        self._outcome, self._fold = outcome, fold
        self._groups = groups
        self._weights = left_out_weights(groups)

    def of_probabilities(self, name: str, p: Floats) -> HeldOutMetrics:
        """Figures of probabilities of "hallucinated", `(n,)`, with the decision rule of a run."""
        squares = (p - self._outcome) ** 2
        answer = np.array([float(classified_label(each) == HALLUCINATED) for each in p])
        inflation = dependence_inflation(p, self._outcome, self._groups)
        return self._figures(name, answer, p).model_copy(
            update={
                "brier": _figure(mean_estimate(squares, self._groups.tolist())),
                "ece": known(expected_calibration_error(p, self._outcome, bins=BINS)),
                "ece_null_high": known(calibration_null_band(p, bins=BINS, inflation=inflation).high),
            }
        )

    def of_answers(self, name: str, answer: Floats) -> HeldOutMetrics:
        """Figures of answers alone: `(n,)`, 1 for "hallucinated", 0 for "supported", NaN for undecided."""
        return self._figures(name, answer, np.where(np.isnan(answer), 0.5, answer))

    def _figures(self, name: str, answer: Floats, score: Floats) -> HeldOutMetrics:
        outcomes = detection_outcomes(self._outcome, answer)
        counts = outcomes.sum(axis=0)
        observed = detection_figures(counts)
        left_out = resampled_figures(counts, left_out_sums(outcomes, self._groups))
        supported, hallucinated = map(coefficient, observed.f1, left_out.f1.T)
        area = within_groups_auroc(score, self._outcome, self._fold).squeeze()
        return HeldOutMetrics(
            name=name,
            n=len(answer),
            accuracy=_figure(share_estimate(observed.accuracy, left_out.accuracy)),
            f1_hallucinated=_figure(hallucinated),
            f1_supported=_figure(supported),
            macro_f1=_figure(coefficient(observed.macro_f1, left_out.macro_f1)),
            auroc=_figure(coefficient(area, self._left_out_auroc(score))),
        )

    def _left_out_auroc(self, score: Floats) -> Floats:
        """AUROC without each group, over pairs within a fold."""
        wins, pairs = np.zeros(len(self._weights)), np.zeros(len(self._weights))
        for number in np.unique(self._fold):
            rows = self._fold == number
            weights, ones = self._weights[:, rows], self._outcome[rows]
            area_of_fold = resampled_auroc(score[rows], ones, weights)[:, 0, 0]
            count = (weights @ ones) * (weights @ (1.0 - ones))
            wins += np.where(count > 0.0, np.nan_to_num(area_of_fold) * count, 0.0)
            pairs += count
        area: Floats = np.divide(wins, pairs, out=np.full(len(wins), np.nan), where=pairs > 0.0)
        return area


def _figure(found: IntervalEstimate) -> MetricEstimate:
    low, high = found.interval or (None, None)
    return MetricEstimate(value=found.value, low=low, high=high)


def find_classifier(out: str | Path, training_digest: str) -> ClassifierCard | None:
    """Card of the classifier in `out`, if it is from the same training; None if the folder is empty or missing.

    Raises:
        ConfigError: the folder has other content, or the classifier was changed.
    """
    folder = Path(out).expanduser().absolute()
    try:
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return None
    except OSError as error:
        raise ConfigError(f"--out {out}: {(error.strerror or 'cannot be read').lower()}") from None
    if not (folder / CLASSIFIER_CARD).is_file():
        raise ConfigError(f"--out {out}: the folder has other content; name another folder")
    card = read_card(folder)
    if card.training.digest != training_digest:
        raise ConfigError(
            f"--out {out}: contains a classifier trained on other summaries or with other settings; name another folder"
        )
    if card.body is not None:
        check_body(folder / BODY, card.body.digest)
    return card


def write_classifier(out: str | Path, make: Callable[[Path], ClassifierCard]) -> ClassifierCard:
    """Write the folder of a classifier.

    Args:
        out: the folder; empty or missing.
        make: function that writes the files other than the card into a folder, and returns the card.

    Raises:
        ConfigError: the folder cannot be written; no partial content remains.
    """
    folder = Path(out).expanduser().absolute()
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        draft.mkdir(parents=True)
        card = make(draft)
        write_whole(draft / CLASSIFIER_CARD, card.to_json())
        draft.rename(folder)
    except OSError as error:
        raise ConfigError(f"--out {out}: {(error.strerror or 'cannot be written').lower()}") from None
    except RecordError as error:
        raise ConfigError(f"--out {out}: {error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return card
