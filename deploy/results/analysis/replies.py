"""Data set of an analysis: replies with log-probabilities, scores, correctness and features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from moot.actors.models.sampling import Sampling
from moot.metrics.confidence_features import LEAST_LOGPROB, Feature, Origin, Signal, features, window_features
from moot.metrics.distribution import Floats
from moot.metrics.ragged import RaggedArray
from moot.protocols.rubrics.events import ReplyAssessed

Texts = npt.NDArray[np.object_]
Rows = npt.NDArray[np.int64]

QUALITY, FLAG = "quality", "critical flag"
"""Targets of every rubric: Q, and whether at least half of the marks flag the reply."""


@dataclass(frozen=True, slots=True, eq=False)
class Replies:
    """Replies as columns of R rows, in an order that does not depend on the order of the record.

    Attributes:
        run, case, reply: the run or file, the case's id, and the reply's path.
        group: cluster index from 0: replies on one case, or on cases of one group, are not independent.
        slot: the case's position in its group, such as the trait of an essay; empty when unknown.
        rubric: the rubric of the judges; empty when unknown.
        dataset, domain, role, model: data set, domain, role and model.
        sampling: sampling parameters.
        logprobs: log-probability of each token, in nats; empty rows for replies without any.
        has_logprobs: whether the reply has log-probabilities; an empty reply may have them, of no token.
        content_start: index of the first token after the section label or other fixed opening.
        opening: that opening as text; empty without one.
        entropies: entropy of each token, in nats, by name (`lower`, `renormalised`, `upper`); empty without
            alternatives.
        scores: mean over the marks, by dimension; NaN where it is missing.
        quality: mean Q; NaN where every mark is missing.
        flag: 1 where at least half of the marks flag the reply, else 0; NaN where every mark is missing.
        correct: 1 where the case's answer is right, else 0; NaN where it cannot be scored.
        confidence: the stated probability of the answer, in [0, 1]; NaN where none was stated, as in a run.
        assessments: the event `assessment`; None where the reply was not judged.
        left_out: excluded replies by reason.
    """

    run: Texts
    case: Texts
    reply: Texts
    group: Rows
    slot: Texts
    rubric: Texts
    dataset: Texts
    domain: Texts
    role: Texts
    model: Texts
    sampling: Sequence[Sampling]
    logprobs: RaggedArray
    has_logprobs: npt.NDArray[np.bool_]
    content_start: Rows
    opening: Texts
    entropies: Mapping[str, RaggedArray]
    scores: Mapping[str, Floats]
    quality: Floats
    flag: Floats
    correct: Floats
    confidence: Floats
    assessments: Sequence[ReplyAssessed | None]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.case)

    @property
    def ordinal(self) -> dict[str, Floats]:
        """Ordinal targets by name: every dimension, and Q."""
        return {**self.scores, QUALITY: self.quality}

    @property
    def binary(self) -> dict[str, Floats]:
        """Binary targets by name: the flag, and whether the answer is right."""
        return {FLAG: self.flag, "correct": self.correct}

    def in_order(self, roles: Sequence[str]) -> Replies:
        """Replies sorted by data set, group, slot, case, role, run and reply, with groups renumbered in that order.

        Args:
            roles: every role, in display order.
        """
        place = {role: number for number, role in enumerate(roles)}
        role_order = [place[role] for role in self.role]
        keys = zip(self.dataset, self.group, self.slot, self.case, role_order, self.run, self.reply, strict=True)
        rows = np.array([number for _, number in sorted((key, n) for n, key in enumerate(keys))], np.int64)
        group = self.group[rows]
        first = np.unique(group, return_index=True)[1]
        renumbered = np.empty(int(group.max()) + 1 if len(group) else 0, np.int64)
        renumbered[group[np.sort(first)]] = np.arange(len(first))
        taken = {each.name: _take(getattr(self, each.name), rows) for each in fields(self) if each.name != "left_out"}
        return replace(self, **taken | {"group": renumbered[group]})


def _take(column: Any, rows: Rows) -> Any:
    """Rows of a field of `Replies` of any type."""
    if isinstance(column, RaggedArray):
        return column.take(rows)
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, Mapping):
        return {name: _take(values, rows) for name, values in column.items()}
    return [column[row] for row in rows.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """Stratum of replies that may be pooled: one data set, model, sampling, rubric and role.

    Attributes:
        dataset: the data set; the domain, for strata by domain.
        rows: indices of the replies.
        words: display name, unique among the strata: `asap-7 / constructor`.
    """

    dataset: str
    model: str
    sampling: Sampling
    rubric: str
    role: str
    rows: Rows
    words: str

    @property
    def named(self) -> dict[str, Any]:
        """Display name and keys: the first columns of most tables."""
        return {"stratum": self.words, **self.keys}

    @property
    def keys(self) -> dict[str, Any]:
        """Columns that identify the stratum."""
        return {
            "dataset": self.dataset,
            "model": self.model,
            "sampling": self.sampling.words,
            "rubric": self.rubric,
            "role": self.role,
        }


def texts(values: Iterable[str]) -> Texts:
    """Array of texts, of dtype object."""
    return np.array(list(values), dtype=object)


def numbers(values: Iterable[float | bool | None]) -> Floats:
    """Array of numbers, with NaN for None."""
    return np.array(list(values), np.float64)


def strata(replies: Replies, by: Literal["dataset", "domain"] = "dataset") -> list[Stratum]:
    """Strata of replies by data set, model, sampling, rubric and role; roles in order of first occurrence.

    With `by="domain"`, the data sets of a domain are pooled.
    """
    found: dict[tuple[str, str, Sampling, str, str], list[int]] = {}
    keys = zip(getattr(replies, by), replies.model, _stages(replies), replies.rubric, replies.role, strict=True)
    for number, key in enumerate(keys):
        found.setdefault(key, []).append(number)
    several = [len({key[place] for key in found}) > 1 for place in range(4)]

    def words(dataset: str, model: str, sampling: Sampling, rubric: str, role: str) -> str:
        parts = (dataset, model, sampling.words, rubric)
        return " / ".join([part for part, needed in zip(parts, several, strict=True) if needed] + [role])

    ordered = sorted(found.items(), key=lambda item: tuple(map(str, item[0][:4])))
    return [Stratum(*key, np.array(rows, np.int64), words(*key)) for key, rows in ordered]


def _stages(replies: Replies) -> list[Sampling]:
    """Sampling of each reply, with the stage of comparable replies for one without log-probabilities.

    The stage of such a reply is undefined; it takes that of the replies with the same data set, model, temperature and
    top-p, if they share one, so that its scores are pooled with theirs.
    """
    comparable: dict[tuple[Any, ...], set[str]] = {}
    keys = list(zip(replies.dataset, replies.model, (each[:2] for each in replies.sampling), strict=True))
    for key, sampling, known in zip(keys, replies.sampling, replies.has_logprobs, strict=True):
        if known:
            comparable.setdefault(key, set()).add(sampling.stage)
    return [
        sampling._replace(stage=next(iter(comparable[key])))
        if not known and len(comparable.get(key, ())) == 1
        else sampling
        for key, sampling, known in zip(keys, replies.sampling, replies.has_logprobs, strict=True)
    ]


def settings_of(several: Sequence[Stratum]) -> Iterator[tuple[str, list[Stratum]]]:
    """Groups of strata that differ only in the role: their common name, and the strata."""
    found: dict[tuple[str, str, Sampling, str], list[Stratum]] = {}
    for stratum in several:
        found.setdefault((stratum.dataset, stratum.model, stratum.sampling, stratum.rubric), []).append(stratum)
    for members in found.values():
        yield members[0].words.removesuffix(members[0].role).removesuffix(" / ") or members[0].dataset, members


ENTROPY = "renormalised"
"""Name of the entropy whose features are extracted: that over the listed alternatives alone."""


@dataclass(frozen=True, slots=True, eq=False)
class ReplyFeatures:
    """Feature matrix of the replies.

    Attributes:
        replies: the replies.
        features: names of the columns.
        x: features, shape `(R, F)`; NaN where a reply has no token in the window.
        mu: mean log-probability of each reply, in nats, shape `(R,)`; NaN without any.
        sigma: population standard deviation of the log-probabilities of each reply, shape `(R,)`.
        length: number of tokens with a log-probability, shape `(R,)`; NaN without any.
        unknown_tokens: number of tokens without a valid log-probability (not finite, or a vendor's -9999).
    """

    replies: Replies
    features: tuple[Feature, ...]
    x: Floats
    mu: Floats
    sigma: Floats
    length: Floats
    unknown_tokens: int

    def column(self, name: str) -> Floats:
        """Column of a feature, shape `(R,)`."""
        return self.x[:, [feature.name for feature in self.features].index(name)]


def extract_features(replies: Replies) -> ReplyFeatures:
    """Feature matrix of replies, for log-probability and (with alternatives) entropy, from token 0 and from content."""
    signals: list[tuple[Signal, RaggedArray]] = [("logprob", replies.logprobs)]
    if ENTROPY in replies.entropies:
        signals.append(("entropy", replies.entropies[ENTROPY]))
    names: list[Feature] = []
    columns: list[Floats] = []
    for signal, values in signals:
        origins: list[tuple[Origin, RaggedArray]] = [("token 0", values)]
        if replies.content_start.any():
            origins.append(("content", values.from_starts(np.minimum(replies.content_start, values.lengths))))
        for origin, part in origins:
            names += features(signal, origin)
            columns.append(window_features(part))
    x = np.concatenate(columns, axis=1)
    place = {feature.name: number for number, feature in enumerate(names)}
    lengths = replies.logprobs.lengths.astype(np.float64)
    tokens = replies.logprobs.values
    return ReplyFeatures(
        replies=replies,
        features=tuple(names),
        x=x,
        mu=x[:, place["logprob.full.mean"]],
        sigma=x[:, place["logprob.full.std"]],
        length=np.where(replies.has_logprobs & (lengths > 0), lengths, np.nan),
        unknown_tokens=int((~np.isfinite(tokens) | (tokens <= LEAST_LOGPROB)).sum()),
    )
