"""The events of EVINCE, and what its verdict says of itself. Probabilities and scores are None where unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from moot.protocols.events import ContentiousnessSet, DebateEvent, EventData

Probabilities = Mapping[str, float | None]
"""By label and "(other)"."""

Scores = Mapping[str, float | None]
"""By side."""


class DistributionRepair(EventData):
    """Something that was mended in a distribution.

    Attributes:
        what: e.g. `alias`, `unknown`, `renormalised`; see `moot.protocols.distribution.clean`.
        label: as the model wrote it.
        to: what the label was read as.
        value: the number that was dropped or divided by.
    """

    what: str
    label: Any = None
    to: Any = None
    value: Any = None


class DistributionStated(DebateEvent):
    """Noted after each turn, at its path: the distribution of its side.

    Attributes:
        cleaned: the labels with mass, likeliest first.
        changes: what was mended, in order.
    """

    kind: ClassVar[str] = "distribution"

    cleaned: Probabilities
    changes: list[DistributionRepair] = Field(default_factory=list)


class QualityGateDecision(EventData):
    """What the quality gate says of a turn.

    Attributes:
        on: whether there is a gate at all.
        threshold: the bar for this turn, in [0, 1]; None without a gate.
        crit: the turn's CRIT score; None when unknown.
        passed: whether the others see the arguments.
        why: in words.
    """

    on: bool
    threshold: float | None
    crit: float | None
    passed: bool
    why: str


class QualityGateDecided(DebateEvent, QualityGateDecision):
    """Noted after each turn that judges read in a debate, at the turn's path; with the fields of the decision.

    Attributes:
        opponents: sides in whose arguments judges looked for rivals, too; older records have none.
    """

    kind: ClassVar[str] = "quality-gate"

    opponents: list[str] = Field(default_factory=list)


class EvinceRoundEnded(DebateEvent):
    """Noted after each round, at `round/N`; divergences and entropies are in nats. Of a single side few are known.

    Attributes:
        round: 0 for the opening exchange.
        order: the sides as they speak.
        kappa: contentiousness of the round, in [0, 1]; None where none is stated.
        distributions: by side its last one.
        entropy: by side; None for one that did not speak.
        crit: by side, in [0, 1]; None for one that did not speak.
        silent: sides whose turn failed.
        moves: by side the total variation to its last distribution; None for the first round.
        swapped: whether two sides took each other's last position.
        information_gain: from the round before; None unless every side spoke in both.
        agreement_words: agreeing among agreeing and opposing phrases, in [0, 1].
        failed: paths of the turns that failed.
        round_score: how much there is to argue about; see `schedule.RoundSignals`.
        wd, jsd, tv, mi, nmi: mean over the pairs of sides; see `round_numbers.RoundNumbers`.
        jsd_max: the largest `jsd` of a pair.
        generalised_jsd: of all sides, where they are more than two.
        kl, ce: by ordered pair, `A>B`.
        kl_floored: how many of these needed the smoothing of `kl`.
        mixture_entropy: of the sides' mixture.
    """

    kind: ClassVar[str] = "round"

    round: int
    order: Any = None
    kappa: Any = None
    distributions: Mapping[str, Probabilities]
    entropy: Any = None
    crit: Any = None
    silent: list[str] = Field(default_factory=list)
    moves: Scores | None = None
    swapped: bool = False
    information_gain: Any = None
    agreement_words: float | None = None
    failed: Any = ()
    round_score: float | None = None
    wd: Any = None
    jsd: Any = None
    jsd_max: Any = None
    generalised_jsd: Any = None
    tv: Any = None
    mi: Any = None
    nmi: Any = None
    kl: Any = None
    ce: Any = None
    kl_floored: int | None = None
    mixture_entropy: Any = None


class KappaChanged(ContentiousnessSet):
    """Noted after a round that another one follows, at its path: the contentiousness of the next one.

    Attributes:
        before, after: kappa in [0, 1]; None where none is stated.
        schedule: the setting `schedule`.
        why: in words.
        score, disagreement, gain, quality, uncertainty: what the schedule looked at; see `schedule.RoundSignals`.
    """

    why: str
    score: Any = None
    disagreement: Any = None
    gain: Any = None
    quality: Any = None
    uncertainty: Any = None


class EvinceStopped(DebateEvent):
    """Noted when the rounds are over, at `stop`; at `stop/again` after a second debate, over what was retrieved.

    Attributes:
        reason: see `moderation.Reason`.
        round: the last one.
        max_rounds: the setting.
        moves, jsd, epsilon, tau: what decided, where the sides must stand still.
        wd_change, mi_change, jsd_change, crit_change: what decided, with `epsilon`, by the printed rule.
    """

    kind: ClassVar[str] = "stop"

    reason: str
    round: int
    max_rounds: Any = None
    moves: Any = None
    jsd: Any = None
    epsilon: Any = None
    tau: Any = None
    wd_change: Any = None
    mi_change: Any = None
    jsd_change: Any = None
    crit_change: Any = None


class EvidenceRetrieved(DebateEvent):
    """Noted before a second debate: what was retrieved for it.

    Attributes:
        documents: 0-based numbers of the case's documents, nearest first.
        passages: of the run's library, nearest first, as `document`, `chunk` and `page`.
        entropy, uncertainty: of the consensus that was too uncertain.
    """

    kind: ClassVar[str] = "retrieved"

    documents: list[int]
    passages: list[dict[str, Any]]
    entropy: float
    uncertainty: float


class ConsensusReached(DebateEvent):
    """Noted at the end: what the sides say together.

    Attributes:
        weights: by side, summing to 1.
        weights_from: `crit`, or `equal` where a score is unknown or all are 0.
        distribution: the labels with mass, likeliest first.
        entropy: in nats.
        uncertainty: entropy as a share of the greatest possible one, in [0, 1].
        answer: the likeliest label; None when "(other)" is the likeliest.
        confidence: its probability.
    """

    kind: ClassVar[str] = "consensus"

    weights: Scores
    weights_from: str
    distribution: Probabilities
    entropy: float | None
    uncertainty: Any = None
    answer: Any = None
    confidence: float | None


class FollowUpsNamed(DebateEvent):
    """Noted where sides are asked what to find out next.

    Attributes:
        questions, tests: of all sides, each once.
        failed: how many sides did not reply.
    """

    kind: ClassVar[str] = "follow-ups"

    questions: list[str]
    tests: list[str]
    failed: Any = None


class ConsensusPayload(EventData):
    """What a verdict that is a consensus says of itself; one of a single side has only some of it.

    Attributes:
        distribution_from: `consensus`.
        weights, weights_from, entropy, uncertainty: as in `ConsensusReached`.
        crit: by side its last CRIT score.
        crit_mean: their mean, in [0, 1]; None unless all are known.
        mixture_entropy_first, mixture_entropy_last: of the sides' mixture after the first and the last round, in nats.
        jsd: after the last round, in nats.
        distributions, arguments: by side.
        follow_ups: what to find out next; None where nothing is known.
    """

    distribution_from: Any = None
    weights: Any = None
    weights_from: Any = None
    crit: Any = None
    crit_mean: float | None = None
    entropy: Any = None
    uncertainty: float | None = None
    mixture_entropy_first: float | None = None
    mixture_entropy_last: float | None = None
    jsd: Any = None
    distributions: Any = None
    arguments: Any = None
    follow_ups: Any = None
