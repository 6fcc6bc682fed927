"""Calibration of early stop: a signal chosen on a validation split and evaluated on held-out cases, from a record."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import yaml

from moot.actors.models.early_stop import EarlyStop
from moot.actors.models.sampling import UNKNOWN, mask_forced_tokens, may_be_masked
from moot.actors.record.rows import LENGTH, is_truncated, step_of
from moot.actors.record.store.mirror import record_path
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.replies import USABLE
from moot.deploy.results.record import counted_rows
from moot.deploy.results.references import References
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.run_info import read_run_info
from moot.deploy.results.stats import coefficient
from moot.deploy.results.text import Interval
from moot.deploy.studies.calibration.branches import held_out_mask
from moot.metrics.cluster_bootstrap import resampled_auroc
from moot.metrics.confidence_features import STATISTICS, Statistic, window_statistic
from moot.metrics.detection import auroc
from moot.metrics.distribution import Floats, ratio
from moot.metrics.jackknife import LEAST_CLUSTERS, left_out_sums, left_out_weights
from moot.protocols.errors import ConfigError
from moot.protocols.messages import family_of

Bools = npt.NDArray[np.bool_]

_Scored = tuple[str, bool, Floats, float]
"""Reply: its case's group, whether its answer is wrong, its log-probabilities, the index of its first forced token."""


@dataclass(frozen=True, slots=True)
class LabelledReplies:
    """Labelled replies of one model, temperature and stage; log-probabilities of others are not comparable.

    Attributes:
        model: name of the model.
        temperature: as requested; None is the server's default.
        stage: stage of the log-probabilities, see `moot.actors.models.sampling.Sampling`.
        groups: group of each reply's case, see `References.group`; n of them.
        wrong: whether each answer is wrong, shape `(n,)`.
        logprobs: n vectors of the tokens' log-probabilities, in nats; NaN where a schema's mask may have forced the
            token.
        first_forced: index of the first such token, shape `(n,)`; infinite without one.
    """

    model: str
    temperature: float | None
    stage: str
    groups: tuple[str, ...]
    wrong: Bools
    logprobs: tuple[Floats, ...]
    first_forced: Floats

    def forced(self, window: int) -> int:
        """Number of replies of at least `window` tokens of which a schema may have forced one of the first `window`."""
        lengths = np.array([len(values) for values in self.logprobs])
        return int(np.count_nonzero((lengths >= window) & (self.first_forced < window)))

    def feature(self, window: int, statistic: Statistic) -> Floats:
        """Statistic of each reply's first `window` tokens, shape `(n,)`; NaN for shorter replies."""
        found = np.full(len(self.logprobs), np.nan)
        long_enough = [i for i, values in enumerate(self.logprobs) if len(values) >= window]
        if long_enough:
            windows = np.stack([self.logprobs[i][:window] for i in long_enough])
            found[long_enough] = window_statistic(windows, statistic)
        return found


def read_labelled_replies(
    folder: str | Path, role: str, *, keep_truncated: bool = False
) -> tuple[list[LabelledReplies], dict[str, int]]:
    """Labelled replies of a role by model, temperature and stage, and the number of excluded replies by reason.

    They are of the attempts that count (see `counted_rows`). Truncated and overlong replies are excluded unless
    `keep_truncated`.
    Replies that were stopped early are excluded, and so are their replacements, which are a biased sample.

    Raises:
        ConfigError: no reply can be used.
        RecordError: the record cannot be read.
    """
    gold = {row["case_id"]: row["gold"] for row in read_table(folder, "cases", ["gold"]).to_pylist()}
    references = References.of(folder)
    logprobs = _logprobs(folder)
    columns = ["role", "model", "temperature", "answer", "outcome", "reply_id", "finish_reason"]
    columns += ["reading", "logprob_stage", "held"]
    turns = counted_rows(read_table(folder, "turns", columns), read_table(folder, "verdicts", []))
    rows = [row for row in turns.to_pylist() if family_of(row["role"] or "") == role]
    replaced = {(row["case_id"], row["attempt"], step_of(row["path"])) for row in rows if row["outcome"] == "cut"}
    left_out: Counter[str] = Counter()
    groups: defaultdict[tuple[str, float | None, str], list[_Scored]] = defaultdict(list)
    for row in rows:
        if row["outcome"] not in USABLE or row["superseded"] or row["answer"] is None:
            continue
        tokens = logprobs.get(row["reply_id"])
        correct = references.correct(row["case_id"], row["answer"], gold.get(row["case_id"]))
        if (row["case_id"], row["attempt"], row["path"]) in replaced:
            left_out["replacing one that was stopped"] += 1
        elif row["finish_reason"] == LENGTH and not keep_truncated:
            left_out["truncated" if is_truncated(row) else "overlong"] += 1
        elif correct is None:
            left_out["cannot be scored"] += 1
        elif tokens is None or not len(tokens):
            left_out["without log-probabilities"] += 1
        else:
            stage = row["logprob_stage"] or UNKNOWN
            own = mask_forced_tokens(tokens) if may_be_masked(stage, bool(row["held"])) else tokens
            forced = np.flatnonzero(np.isnan(own) & ~np.isnan(tokens))
            first_forced = float(forced[0]) if len(forced) else np.inf
            scored = (references.group(row["case_id"]), not correct, own, first_forced)
            groups[row["model"], row["temperature"], stage].append(scored)
    if not groups:
        why = (
            ", ".join(f"{n} {reason}" for reason, n in sorted(left_out.items())) or f"the role {role!r} has no replies"
        )
        raise ConfigError(f"{folder}: no reply can be used: {why}; `top_logprobs: 1` requests log-probabilities")
    return [_labelled(*key, found) for key, found in groups.items()], dict(sorted(left_out.items()))


def _labelled(model: str, temperature: float | None, stage: str, found: Sequence[_Scored]) -> LabelledReplies:
    return LabelledReplies(
        model=model,
        temperature=temperature,
        stage=stage,
        groups=tuple(group for group, *_ in found),
        wrong=np.array([wrong for _, wrong, *_ in found], np.bool_),
        logprobs=tuple(tokens for _, _, tokens, _ in found),
        first_forced=np.array([first for *_, first in found]),
    )


def _logprobs(folder: str | Path) -> dict[str, Floats]:
    """Log-probabilities by reply id; an empty vector where none were recorded."""
    table = read_table(folder, "tokens", ["logprob"])
    found: dict[str, Floats] = {}
    for batch in table.to_batches():
        column: pa.ListArray = batch["logprob"]
        offsets = column.offsets.to_numpy()
        values = column.values.to_numpy(zero_copy_only=False).astype(np.float64)
        for i, reply_id in enumerate(batch["reply_id"].to_pylist()):
            found[reply_id] = values[offsets[i] : offsets[i + 1]]
    return found


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
