"""Calibration of early stop: a signal chosen on a validation split and evaluated on held-out cases, from a record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import yaml

from moot.actors.models.early_stop import EarlyStop
from moot.actors.record.store.mirror import record_path
from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.calibration.cases import held_out_mask
from moot.deploy.results.calibration.labelled_replies import Bools, LabelledReplies, read_labelled_replies
from moot.deploy.results.detection.estimates import coefficient
from moot.deploy.results.record.run_info import read_run_info
from moot.deploy.results.text import Interval
from moot.metrics.cluster_bootstrap import resampled_auroc
from moot.metrics.confidence_features import STATISTICS
from moot.metrics.detection import auroc
from moot.metrics.distribution import Floats, ratio
from moot.metrics.jackknife import LEAST_CLUSTERS, left_out_sums, left_out_weights
from moot.protocols.errors import ConfigError

WINDOWS = (3, 5, 10, 20, 30, 50)
"""Candidate lengths of the window of first tokens, those of "Early-Token Confidence"."""

LEAST = 50
"""Fewest replies with a known value of a feature in each split."""


class EarlySignal(FrozenModel):
    """Early signal of wrong answers: a feature of a reply's first tokens, for one model, temperature and stage.

    Figures are None when unknown.

    Attributes:
        model, temperature: of the replies; a temperature of None is the server's default.
        stage: stage of the log-probabilities; stages are never pooled.
        n_learning, n_held_out: replies of the validation split, and held-out replies.
        early_stop: the chosen rule; None where no feature could be evaluated.
        auroc_learning: AUROC of the chosen feature on the validation split; optimistic, because it is the best of many.
        auroc: AUROC on the held-out cases, in the learned direction; 0.5 is chance.
        auroc_interval: 95 % interval, over groups of cases.
        n_known: held-out replies with a known feature.
        share_stopped: share of them that the rule would stop.
        error_stopped, error_kept: error rate of the replies that it would stop, and of the others.
        difference_interval: 95 % interval of the difference of the error rates, over groups of cases.
        works: whether the interval of the held-out AUROC is above 0.5 and that of the difference above 0; with a high
            AUROC alone, the rule may still stop right answers.
    """

    model: str
    temperature: float | None
    stage: str
    n_learning: int
    n_held_out: int
    early_stop: EarlyStop | None = None
    auroc_learning: float | None = None
    auroc: float | None = None
    auroc_interval: Interval | None = None
    n_known: int = 0
    share_stopped: float | None = None
    error_stopped: float | None = None
    error_kept: float | None = None
    difference_interval: Interval | None = None
    works: bool = False

    @property
    def role_yaml(self) -> str:
        """YAML of the rule for the role's settings; empty unless it works."""
        if not self.works or self.early_stop is None:
            return ""
        settings = self.early_stop.model_dump(mode="json")
        return yaml.safe_dump({"early_stop": settings}, default_flow_style=None, sort_keys=False, width=200).strip()


class EarlyStopCalibration(FrozenModel):
    """Result of `calibrate_early_stop`.

    Attributes:
        role: the role of the replies.
        holdout: share of the cases that is held out.
        share: target share of stopped replies.
        left_out: excluded replies by reason. Replies with a forced token in the window (the chosen one, else the
            shortest) count among the replies of their signal, too.
        signals: signals by model, temperature and stage.
        warnings: caveats.
    """

    schema_version: int
    run: str
    simulated: bool
    role: str
    seed: int
    holdout: float
    share: float
    left_out: dict[str, int]
    signals: list[EarlySignal]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class _StopChoice:
    stop: EarlyStop
    auroc: float
    sign: float


def calibrate_early_stop(
    folder: str | Path,
    *,
    role: str = "agent",
    holdout: float = 0.5,
    seed: int = 0,
    share: float = 0.1,
    keep_truncated: bool = False,
) -> EarlyStopCalibration:
    """Chooses the early signal that predicts wrong answers, with its direction, and evaluates it on held-out cases.

    On a validation split, the feature (window and statistic) with the AUROC farthest from 0.5 is chosen, with its
    direction and the bound that would stop `share` of the replies. It is evaluated on the other cases. No model is
    called.

    Args:
        folder: the run's folder, with labelled cases and recorded tokens.
        role: the role family whose replies are used.
        holdout: share of the cases that is held out, in (0, 1).
        seed: random seed of the split.
        share: target share of the stopped replies, in (0, 0.5].
        keep_truncated: whether to include replies that were truncated at their token limit.

    Raises:
        ConfigError: no reply can be used, or an argument is out of range.
        RecordError: the folder has no run or cannot be read.
    """
    if not 0.0 < holdout < 1.0:
        raise ConfigError(f"holdout is the share of cases held out, between 0 and 1, not {holdout:g}")
    if not 0.0 < share <= 0.5:
        raise ConfigError(f"share is the share of replies to stop, above 0 and at most 0.5, not {share:g}")
    folder = record_path(folder)
    facts = read_run_info(folder)
    groups, left_out = read_labelled_replies(folder, role, keep_truncated=keep_truncated)
    signals = [_signal(group, holdout, seed, share) for group in groups]
    windows = [min(WINDOWS) if each.early_stop is None else each.early_stop.window for each in signals]
    if forced := sum(group.forced(window) for group, window in zip(groups, windows, strict=True)):
        left_out["with a token in the window that a schema may have forced"] = forced
    return EarlyStopCalibration(
        schema_version=facts.schema_version,
        run=facts.name,
        simulated=facts.simulated,
        role=role,
        seed=seed,
        holdout=holdout,
        share=share,
        left_out=left_out,
        signals=signals,
        warnings=list(_warnings(facts.simulated, signals)),
    )


def _warnings(simulated: bool, signals: list[EarlySignal]) -> Iterator[str]:
    if simulated:
        yield "simulated models: these signals say nothing about any real model"
    if len(signals) > 1:
        yield f"{len(signals)} models, temperatures and stages were tried: by chance one in forty appears to work"
    if not any(signal.works for signal in signals):
        yield "no early signal predicts wrong answers on the held-out cases: leave early stop off"


def _signal(replies: LabelledReplies, holdout: float, seed: int, share: float) -> EarlySignal:
    held_out = held_out_mask(replies.groups, holdout, seed)
    known = EarlySignal(
        model=replies.model,
        temperature=replies.temperature,
        stage=replies.stage,
        n_learning=int((~held_out).sum()),
        n_held_out=int(held_out.sum()),
    )
    choice = _choice(replies, ~held_out, share)
    return known if choice is None else known.model_copy(update=_evaluated(replies, held_out, choice))


def _choice(replies: LabelledReplies, learning: Bools, share: float) -> _StopChoice | None:
    """Feature with the AUROC farthest from 0.5; of equal ones that with the shortest window."""
    best: _StopChoice | None = None
    for window in WINDOWS:
        for statistic in STATISTICS:
            values = replies.feature(window, statistic)
            usable = learning & ~np.isnan(values)
            found = auroc(values[usable], replies.wrong[usable])
            if usable.sum() < LEAST or math.isnan(found):
                continue
            sign = 1.0 if found >= 0.5 else -1.0
            directed = found if sign > 0 else 1.0 - found
            if best is not None and directed <= best.auroc:
                continue
            keep: Literal["above", "below"] = "below" if sign > 0 else "above"
            bound = float(np.quantile(values[usable], 1.0 - share if sign > 0 else share))
            stop = EarlyStop(window=window, statistic=statistic, keep=keep, bound=float(f"{bound:.6g}"))
            best = _StopChoice(stop, directed, sign)
    return best


def _evaluated(replies: LabelledReplies, held_out: Bools, choice: _StopChoice) -> dict[str, object]:
    values = choice.sign * replies.feature(choice.stop.window, choice.stop.statistic)
    usable = held_out & ~np.isnan(values)
    figures: dict[str, object] = {
        "early_stop": choice.stop,
        "auroc_learning": choice.auroc,
        "n_known": int(usable.sum()),
    }
    values, wrong = values[usable], replies.wrong[usable]
    found = auroc(values, wrong)
    if usable.sum() < LEAST or math.isnan(found):
        return figures
    clusters = np.array(replies.groups)[usable]
    stopped = values > choice.sign * choice.stop.bound
    area: Interval | None = None
    if _enough(wrong, clusters):
        area = coefficient(found, resampled_auroc(values, wrong, left_out_weights(clusters))[:, 0, 0]).interval
    difference = _difference(wrong, stopped, clusters)
    return figures | {
        "auroc": found,
        "auroc_interval": area,
        "share_stopped": float(stopped.mean()),
        "error_stopped": _mean(wrong[stopped]),
        "error_kept": _mean(wrong[~stopped]),
        "difference_interval": difference,
        "works": area is not None and area[0] > 0.5 and difference is not None and difference[0] > 0.0,
    }


def _enough(of: Bools, clusters: npt.NDArray[np.str_]) -> bool:
    """Whether both classes are of so many groups that an interval of them covers."""
    return min(len(set(clusters[of])), len(set(clusters[~of]))) >= LEAST_CLUSTERS


def _difference(wrong: Bools, stopped: Bools, clusters: npt.NDArray[np.str_]) -> Interval | None:
    """Interval of the error rate of the stopped replies minus that of the others."""
    if not _enough(stopped, clusters):
        return None
    columns = np.column_stack([wrong & stopped, stopped, wrong & ~stopped, ~stopped])
    observed, left_out = (
        ratio(sums[..., 0], sums[..., 1]) - ratio(sums[..., 2], sums[..., 3])
        for sums in (columns.sum(axis=0), left_out_sums(columns, clusters))
    )
    return coefficient(observed, left_out, lowest=-1.0).interval


def _mean(wrong: Bools | Floats) -> float | None:
    return float(wrong.mean()) if len(wrong) else None
