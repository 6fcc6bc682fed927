"""Signals of a run: round measures, token confidence, and confidence against judged reasoning, as aggregates that
merge over writers, with their statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from moot.actors.models.sampling import Sampling
from moot.actors.record.round_bands import RoundBands, RoundKey, RoundSums
from moot.actors.record.signal_group import CORRECT, FEATURES, FLAG, PLACES, QUALITY, JudgedReplySignals, SignalGroup
from moot.actors.record.token_confidence import Speaker, SpeakerSums, TokenConfidence
from moot.metrics.online.divergence_counts import SignalDivergences, divergences
from moot.metrics.online.moments import Moments
from moot.metrics.online.quantile_bands import QuantileBands
from moot.metrics.online.value_histogram import ValueHistogram
from moot.metrics.signal_divergences import HIGH_QUALITY, LOW_QUALITY, TAIL
from moot.protocols.errors import ConfigError, unknown_name

Floats = npt.NDArray[np.float64]


class GroupKey(NamedTuple):
    """Key of a signal group.

    Attributes:
        domain, role, model: of the replies.
        sampling: None for replies without log-probabilities, which it does not affect.
    """

    domain: str
    role: str
    model: str
    sampling: Sampling | None


@dataclass(frozen=True, slots=True, eq=False)
class LogprobBands:
    """Log-probability along replies, from the first token (0) to the last (1).

    Attributes:
        place: `(101,)`, relative positions.
        n: `(101,)`, replies with a log-probability there.
        mean: `(101,)`, NaN where n is 0, as are all the following.
        low_10, low_25, median, high_75, high_90: `(101,)`, quantiles, at most 2.5 % off, or 0.0002 next to 0.
    """

    place: Floats
    n: npt.NDArray[np.int64]
    mean: Floats
    low_10: Floats
    low_25: Floats
    median: Floats
    high_75: Floats
    high_90: Floats

    @classmethod
    def of(cls, histograms: QuantileBands, curve: Moments) -> LogprobBands:
        """Bands of histograms and moments at the same positions."""
        quantiles = histograms.quantiles((0.10, 0.25, 0.50, 0.75, 0.90))
        return cls(PLACES, histograms.n(), curve.known_mean(), *quantiles)


@dataclass(frozen=True, slots=True, eq=False)
class Correlations:
    """Pearson's correlation of each feature with each target; `str` gives it as a table.

    Attributes:
        features: F names, such as `logprob.first-3.range`.
        targets: T names: the rubric's dimensions, `quality`, `flag`, `correct`.
        value: `(F, T)`, in [-1, 1]; NaN where n is below 3 or one of both does not vary.
        n: `(F, T)`, replies for which both are known.
    """

    features: tuple[str, ...]
    targets: tuple[str, ...]
    value: Floats
    n: npt.NDArray[np.int64]

    def __str__(self) -> str:
        width = max(map(len, self.features))
        lines = ["  ".join([" " * width, *(f"{target} (n)".rjust(_WIDTH) for target in self.targets)])]
        for feature, values, counts in zip(self.features, self.value, self.n, strict=True):
            cells = [
                f"{'-' if np.isnan(value) else format(value, '+.2f')} ({n:,})".rjust(max(_WIDTH, len(target) + 4))
                for value, n, target in zip(values, counts, self.targets, strict=True)
            ]
            lines.append("  ".join([feature.ljust(width), *cells]))
        return "\n".join(lines)


_WIDTH = 14


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """Running aggregates of a run: measures of its debates by round, token confidence of its replies, and the judged
    replies.

    A round counts when it is recorded; a reply counts when its debate has a verdict and has not failed.

    Groups of judged replies are (domain, role). If a role has several models, as listed by `models`, one has to be
    named; if its replies were sampled in several ways, the same applies to `samplings`: neither scores nor
    log-probabilities of different models are comparable, nor log-probabilities at different temperatures, or before and
    after temperature scaling.
    """

    kept: Mapping[GroupKey, SignalGroup] = field(default_factory=dict)
    round_sums: RoundSums = field(default_factory=RoundSums)
    tokens: TokenConfidence = field(default_factory=TokenConfidence)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been aggregated."""
        return not (self.kept or self.round_sums.kept or self.round_sums.left_out or self.tokens.replies)

    @property
    def kind(self) -> Literal["signals"]:
        """Distinguishes signals from the events of a stream."""
        return "signals"

    @classmethod
    def of(cls, judged: Sequence[JudgedReplySignals]) -> Signals:
        """Signals of some replies."""
        members: dict[GroupKey, list[JudgedReplySignals]] = {}
        for one in judged:
            spoken = one.logprobs is not None and len(one.logprobs) > 0
            found = one.assessment
            key = GroupKey(found.domain or "", found.role, one.model, one.sampling if spoken else None)
            members.setdefault(key, []).append(one)
        return cls({key: SignalGroup.of(replies) for key, replies in members.items()})

    def merge(self, other: Signals) -> Signals:
        """Sum of both signals."""
        merged = dict(self.kept)
        for key, group in other.kept.items():
            merged[key] = merged[key].merge(group) if key in merged else group
        return Signals(merged, self.round_sums.merge(other.round_sums), self.tokens.merge(other.tokens))

    def measures(self) -> list[str]:
        """Round measures with values, sorted: fields of the event `round`, such as `jsd`, and `m` of a gate."""
        return self.round_sums.measures()

    def rounds(self, measure: str) -> RoundBands:
        """A measure by round, over debates: of numbers by side each debate's mean, unknown if one is unknown.

        Raises:
            ConfigError: no debate has the measure.
        """
        if measure not in (known := self.measures()):
            raise unknown_name("measure", measure, known)
        return self.round_sums.bands(measure)

    def speakers(self) -> list[Speaker]:
        """(role, model, sampling) of the replies with log-probabilities, in order."""
        return self.tokens.speakers()

    def spoken(self, speaker: Speaker) -> LogprobBands:
        """Log-probability along the replies of a speaker, judged or not.

        Raises:
            ConfigError: there is no such speaker.
        """
        sums = self._of_speaker(speaker)
        return LogprobBands.of(sums.along, sums.curve)

    def spoken_rounds(self, speaker: Speaker) -> RoundBands:
        """Mean log-probability of the replies of a speaker by round.

        Raises:
            ConfigError: there is no such speaker.
        """
        return RoundBands.of(self._of_speaker(speaker).by_round)

    def _of_speaker(self, speaker: Speaker) -> SpeakerSums:
        if speaker not in self.tokens.kept:
            raise ConfigError(f"there is no speaker {tuple(speaker)}; known: {[*map(tuple, self.speakers())]}")
        return self.tokens.kept[speaker]

    @property
    def replies(self) -> int:
        """Number of judged replies in all groups."""
        return sum(group.replies for group in self.kept.values())

    def groups(self) -> list[tuple[str, str]]:
        """(domain, role) of every group, sorted."""
        return sorted({(key.domain, key.role) for key in self.kept})

    def models(self, domain: str, role: str) -> list[str]:
        """Models of the group's replies, sorted; `unknown` for a reply without a recorded model."""
        return sorted({key.model for key in self.kept if key[:2] == (domain, role)})

    def samplings(self, domain: str, role: str, *, model: str | None = None) -> list[Sampling]:
        """Sampling parameters of the group's replies with log-probabilities, those of one model or of all."""
        of_model = [key for key in self.kept if key[:2] == (domain, role) and model in (None, key.model)]
        return sorted({key.sampling for key in of_model if key.sampling is not None}, key=repr)

    def group(
        self, domain: str, role: str, sampling: Sampling | None = None, *, model: str | None = None
    ) -> SignalGroup:
        """Aggregates of a group; replies without log-probabilities count with every sampling.

        Args:
            domain, role: the group.
            sampling: selects replies; required if there are several kinds.
            model: selects replies; required if there are several models.

        Raises:
            ConfigError: the group does not exist; it has several models or samplings and none is named; or the named
                one does not exist.
        """
        model = self._model(domain, role, model)
        known = self.samplings(domain, role, model=model)
        if sampling is None and len(known) > 1:
            raise ConfigError(f"{domain}/{role} was sampled in several ways; name one as `sampling`: {known}")
        if sampling is not None and sampling not in known:
            raise ConfigError(f"{domain}/{role} has no {sampling}; known: {known}")
        spoken = sampling or next(iter(known), None)
        parts = [self.kept.get(GroupKey(domain, role, model, one)) for one in dict.fromkeys((spoken, None))]
        found = SignalGroup.empty()
        for part in parts:
            found = found if part is None else found.merge(part)
        return found

    def _model(self, domain: str, role: str, model: str | None) -> str:
        """The named model, or the only one."""
        known = self.models(domain, role)
        if not known:
            raise unknown_name("group", f"{domain}/{role}", ["/".join(group) for group in self.groups()])
        if model is None and len(known) > 1:
            raise ConfigError(f"{domain}/{role} was spoken by several models; name one as `model`: {known}")
        if model is not None and model not in known:
            raise unknown_name("model", model, known)
        return model or known[0]

    def bands(
        self, domain: str, role: str, sampling: Sampling | None = None, *, model: str | None = None
    ) -> LogprobBands:
        """Log-probability along the replies. Arguments and errors: see `group`."""
        group = self.group(domain, role, sampling, model=model)
        return LogprobBands.of(group.bands, group.curve)

    def correlation(
        self, domain: str, role: str, sampling: Sampling | None = None, *, model: str | None = None
    ) -> Correlations:
        """Correlation of every feature with every target. Arguments and errors: see `group`."""
        group = self.group(domain, role, sampling, model=model)
        last = [QUALITY, FLAG, CORRECT]
        targets = (*sorted(group.with_targets.keys() - set(last)), *last)
        found = [group.with_targets[target] for target in targets]
        value = np.hstack([moments.correlation() for moments in found])
        return Correlations(FEATURES, targets, value, np.hstack([moments.n for moments in found]).astype(np.int64))

    def divergences(
        self,
        domain: str,
        role: str,
        sampling: Sampling | None = None,
        *,
        model: str | None = None,
        low_quality: float = LOW_QUALITY,
        high_quality: float = HIGH_QUALITY,
        mu_share: float = TAIL,
    ) -> SignalDivergences:
        """Counts of disagreement between confidence, quality and correctness; see
        `moot.metrics.online.divergence_counts`. Arguments and errors of the group: see `group`."""
        joint = self.group(domain, role, sampling, model=model).joint
        return divergences(joint, low_quality=low_quality, high_quality=high_quality, mu_share=mu_share)


def encode_signals(signals: Signals) -> bytes:
    """Encodes signals."""
    rounds, tokens = signals.round_sums, signals.tokens
    parts = (
        list(signals.kept.items()),
        (list(rounds.kept.items()), rounds.left_out),
        (list(tokens.kept.items()), tokens.left_out),
    )
    return msgspec.msgpack.encode(parts, enc_hook=array_as_plain)


def decode_signals(raw: bytes) -> Signals:
    """Decodes a result of `encode_signals`."""
    groups, rounds, tokens = msgspec.msgpack.decode(raw, type=_Encoded, dec_hook=plain_as_array)
    return Signals(dict(groups), RoundSums(dict(rounds[0]), rounds[1]), TokenConfidence(dict(tokens[0]), tokens[1]))


_Encoded = tuple[
    list[tuple[GroupKey, SignalGroup]],
    tuple[list[tuple[RoundKey, ValueHistogram]], int],
    tuple[list[tuple[Speaker, SpeakerSums]], int],
]


def array_as_plain(value: Any) -> Any:
    """Encodes an array."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    raise NotImplementedError(f"{type(value).__name__} is no part of signals")


def plain_as_array(kind: Any, value: Any) -> Any:
    """Decodes a result of `array_as_plain`."""
    dtype, shape, raw = value
    return np.frombuffer(raw, dtype).reshape(shape)
