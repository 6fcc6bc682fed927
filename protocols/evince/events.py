"""Events of EVINCE, and the payload of its verdict. Probabilities and scores are None where unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from moot.protocols.events import ContentiousnessSet, DebateEvent, EventData

Probabilities = Mapping[str, float | None]
"""Probabilities by label and "(other)"."""

Scores = Mapping[str, float | None]
"""Values by side."""


class DistributionRepair(EventData):
    """A repair of a distribution.

    Attributes:
        what: kind of the repair, such as `alias`, `unknown`, `renormalised`; see `moot.protocols.distribution.clean`.
        label: the label as the model wrote it.
        to: the label that it was read as.
        value: the number that was dropped or divided by.
    """

    what: str
    label: Any = None
    to: Any = None
    value: Any = None


class DistributionStated(DebateEvent):
    """The distribution of a side; noted after each turn, at its path.

    Attributes:
        cleaned: the labels with mass, most probable first.
        changes: the repairs, in order.
    """

    kind: ClassVar[str] = "distribution"

    cleaned: Probabilities
    changes: list[DistributionRepair] = Field(default_factory=list)


class QualityGateDecision(EventData):
    """The quality gate's decision on a turn.

    Attributes:
        on: whether the gate is on.
        threshold: the lowest score with which this turn passes, in [0, 1]; None without a gate.
        crit: the turn's CRIT score; None if unknown.
        passed: whether the others see the arguments.
        why: the reason in words.
    """

    on: bool
    threshold: float | None
    crit: float | None
    passed: bool
    why: str


class QualityGateDecided(DebateEvent, QualityGateDecision):
    """The quality gate's decision; noted after each turn that judges read in a debate, at the turn's path.

    Attributes:
        opponents: sides in whose arguments judges also looked for rivals, in older records only; there, scores of
            turns with and without them are not comparable.
    """

    kind: ClassVar[str] = "quality-gate"

    opponents: list[str] = Field(default_factory=list)


class EvinceRoundEnded(DebateEvent):
    """The figures of a round, at `round/N`; divergences and entropies are in nats. With a single side few are known.

    Attributes:
        round: 0 for the opening exchange.
        order: the sides in speaking order.
        kappa: contentiousness of the round, in [0, 1]; None if none is stated.
        distributions: by side, its last distribution.
        entropy: entropy by side; None for a side that did not speak.
        crit: CRIT score by side, in [0, 1]; None for a side that did not speak.
        silent: sides whose turn failed.
        moves: by side, the total variation from its previous distribution; None for the first round.
        swapped: whether two sides exchanged their positions.
        information_gain: decrease of the mixture's entropy since the previous round; None unless every side spoke in
            both.
        agreement_words: share of agreeing phrases among agreeing and opposing ones, in [0, 1].
        failed: paths of the turns that failed.
        round_score: score of the round for the adaptive schedule; see `schedule.RoundSignals`.
        wd, jsd, tv, mi, nmi: mean over the pairs of sides; see `round_numbers.RoundNumbers`.
        jsd_max: the largest `jsd` of a pair.
        generalised_jsd: Jensen-Shannon divergence of all sides together, if there are more than two.
        kl, ce: by ordered pair, `A>B`.
        kl_floored: number of these that would be infinite without the smoothing, which all have; see `kl_epsilon`.
        mixture_entropy: entropy of the sides' mixture.
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
    """The contentiousness of the next round; noted after each round that another one follows, at its path.

    Attributes:
        before, after: kappa in [0, 1]; None if none is stated.
        schedule: the setting `schedule`.
        why: the reason in words.
        score, disagreement, gain, quality, uncertainty: the inputs of the schedule; see `schedule.RoundSignals`.
    """

    why: str
    score: Any = None
    disagreement: Any = None
    gain: Any = None
    quality: Any = None
    uncertainty: Any = None


class EvinceStopped(DebateEvent):
    """The end of the rounds, at `stop`; at `stop/again` after a second debate over retrieved documents.

    Attributes:
        reason: why the rounds ended; see `moderation.Reason`.
        round: the last round.
        max_rounds: the setting `max_rounds`.
        moves, jsd, epsilon, tau: the values that decided, with `stop=converged`.
        wd_change, mi_change, jsd_change, crit_change: the values that decided, with `epsilon`, by the printed rule.
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
    """The retrieved documents of a second debate; noted before it.

    Attributes:
        documents: 0-based numbers of the case's documents, nearest first.
        passages: passages of the run's library, nearest first, as `document`, `chunk` and `page`.
        entropy, uncertainty: entropy and uncertainty of the consensus that was too uncertain.
    """

    kind: ClassVar[str] = "retrieved"

    documents: list[int]
    passages: list[dict[str, Any]]
    entropy: float
    uncertainty: float


class ConsensusReached(DebateEvent):
    """The consensus of the sides; noted at the end.

    Attributes:
        weights: weight by side, summing to 1.
        weights_from: `crit`, or `equal` of an ensemble, and if a score is unknown or all are 0.
        distribution: the labels with mass, most probable first.
        entropy: entropy of the consensus, in nats.
        uncertainty: entropy as a share of the greatest possible one, in [0, 1].
        answer: the most probable label; None if "(other)" is the most probable.
        confidence: the probability of the answer.
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
    """Questions and tests that the sides propose; noted if sides are asked for them.

    Attributes:
        questions, tests: those of all sides, without repeats.
        failed: number of sides that did not reply.
    """

    kind: ClassVar[str] = "follow-ups"

    questions: list[str]
    tests: list[str]
    failed: Any = None


class ConsensusPayload(EventData):
    """The payload of a verdict that is a consensus; with a single side it has only some of these.

    Attributes:
        distribution_from: `consensus`.
        weights, weights_from, entropy, uncertainty: as in `ConsensusReached`.
        crit: by side, its last CRIT score.
        crit_mean: their mean, in [0, 1]; None unless all are known.
        mixture_entropy_first, mixture_entropy_last: entropy of the sides' mixture after the first and the last round,
            in nats.
        jsd: Jensen-Shannon divergence after the last round, in nats.
        converged: whether the sides no longer moved in the last round, and agreed, by `epsilon` and `tau`; whatever
            ended the debate. False of an ensemble; None if a side was silent in the last round, and in older records.
        distributions, arguments: the last distributions and the arguments, by side.
        follow_ups: questions and tests that the sides propose; None if there are none.
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
    converged: bool | None = None
    distributions: Any = None
    arguments: Any = None
    follow_ups: Any = None
