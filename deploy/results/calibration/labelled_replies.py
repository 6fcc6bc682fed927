"""Labelled replies of a record: replies with log-probabilities, and with answers that can be scored."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from moot.actors.models.sampling import UNKNOWN, mask_forced_tokens, may_be_masked
from moot.actors.record.rows import LENGTH, is_truncated, step_of
from moot.actors.record.tables import read_table
from moot.deploy.results.record.readers import counted_rows
from moot.deploy.results.record.references import References
from moot.deploy.results.summaries.model_replies import USABLE
from moot.metrics.confidence_features import Statistic, window_statistic
from moot.metrics.distribution import Floats
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
