"""Confidence signals against judged reasoning while a run goes on: what adds up over writers, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from moot.actors.record.signal_group import CORRECT, FEATURES, FLAG, PLACES, QUALITY, Group, JudgedReply, Sampling
from moot.metrics.online.divergence_counts import Divergences, divergences
from moot.metrics.signal_divergences import HIGH_QUALITY, LOW_QUALITY, TAIL
from moot.protocols.errors import ConfigError, unknown_name

Floats = npt.NDArray[np.float64]

SILENT = Sampling(float("-inf"), None)
"""Stands for the sampling of replies without log-probabilities, which it did not touch."""


class GroupKey(NamedTuple):
    """What is counted together."""

    domain: str
    role: str
    sampling: Sampling


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """Log-probability along a group's replies, from the first token (0) to the last (1).

    Attributes:
        place: `(101,)`, shares of the way.
        n: `(101,)`, replies with a log-probability there.
        mean: `(101,)`, NaN where n is 0, as all that follow.
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


@dataclass(frozen=True, slots=True, eq=False)
class Correlations:
    """Pearson's correlation of each feature with each target; `str` gives it as a table.

    Attributes:
        features: F names, such as `logprob.first-3.range`.
        targets: T names: the rubric's dimensions, `quality`, `flag`, `correct`.
        value: `(F, T)`, in [-1, 1]; NaN where n is below 3 or one of both does not vary.
        n: `(F, T)`, replies of which both are known.
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
    """Signals of all judged replies whose debates have a verdict, as they stand now.

    Groups are (domain, role). Where a role's replies were sampled in several ways, `samplings` names them, and one is
    to be named: log-probabilities under different temperatures are not of one kind.
    """

    kept: Mapping[GroupKey, Group] = field(default_factory=dict)

    @property
    def kind(self) -> Literal["signals"]:
        """Tells it from the events of a stream."""
        return "signals"

    @classmethod
    def of(cls, judged: Sequence[JudgedReply]) -> Signals:
        """Of some replies."""
        members: dict[GroupKey, list[JudgedReply]] = {}
        for one in judged:
            spoken = one.logprobs is not None and len(one.logprobs) > 0
            key = GroupKey(one.assessment.domain or "", one.assessment.role, one.sampling if spoken else SILENT)
            members.setdefault(key, []).append(one)
        return cls({key: Group.of(found) for key, found in members.items()})

    def merge(self, other: Signals) -> Signals:
        """Of both together."""
        merged = dict(self.kept)
        for key, group in other.kept.items():
            merged[key] = merged[key].merge(group) if key in merged else group
        return Signals(merged)

    @property
    def replies(self) -> int:
        """Judged replies in all groups."""
        return sum(group.replies for group in self.kept.values())

    def groups(self) -> list[tuple[str, str]]:
        """(domain, role) of every group, sorted."""
        return sorted({(key.domain, key.role) for key in self.kept})

    def samplings(self, domain: str, role: str) -> list[Sampling]:
        """How the group's replies with log-probabilities were sampled."""
        found = [key.sampling for key in self.kept if key[:2] == (domain, role) and key.sampling != SILENT]
        return sorted(found, key=repr)

    def group(self, domain: str, role: str, sampling: Sampling | None = None) -> Group:
        """Everything that is kept of a group; replies without log-probabilities count with every sampling.

        Raises:
            ConfigError: there is no such group, or it was sampled in several ways and none of them is named.
        """
        if (domain, role) not in self.groups():
            raise unknown_name("group", f"{domain}/{role}", ["/".join(group) for group in self.groups()])
        known = self.samplings(domain, role)
        if sampling is None and len(known) > 1:
            raise ConfigError(f"{domain}/{role} was sampled in several ways; name one as `sampling`: {known}")
        if sampling is not None and sampling not in known:
            raise ConfigError(f"{domain}/{role} has no {sampling}; known: {known}")
        chosen = [*([sampling] if sampling is not None else known), SILENT]
        found = Group.empty()
        for one in chosen:
            found = found.merge(self.kept.get(GroupKey(domain, role, one), Group.empty()))
        return found

    def bands(self, domain: str, role: str, sampling: Sampling | None = None) -> Bands:
        """Log-probability along the replies. Raises as `group`."""
        group = self.group(domain, role, sampling)
        quantiles = group.bands.quantiles((0.10, 0.25, 0.50, 0.75, 0.90))
        return Bands(PLACES, group.bands.n(), group.curve.known_mean(), *quantiles)

    def correlation(self, domain: str, role: str, sampling: Sampling | None = None) -> Correlations:
        """Every feature against every target. Raises as `group`."""
        group = self.group(domain, role, sampling)
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
        low_quality: float = LOW_QUALITY,
        high_quality: float = HIGH_QUALITY,
        mu_share: float = TAIL,
    ) -> Divergences:
        """How often confidence, quality and correctness part; see `moot.metrics.online.divergence_counts`. Raises as
        `group`."""
        joint = self.group(domain, role, sampling).joint
        return divergences(joint, low_quality=low_quality, high_quality=high_quality, mu_share=mu_share)
