"""The events of SELENE and of the baselines made of its parts, and the payload of their verdicts.

Older records lack some keys; these have defaults. None is unknown.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from moot.protocols.events import DebateEvent, EventData
from moot.protocols.verdict_sources import VerdictSources


class GateDecided(DebateEvent):
    """The gate's decision after the openings, at `gate`: its signals beside their thresholds (None: off).

    Attributes:
        skip: whether the debate is skipped.
        reasons: the tests that failed, or why none was needed; see `gate.GateDecision`.
        untested: tests that are on but had no known value.
        when: the setting `gate.when`.
        d: disagreement D of the openings, in [0, 2].
        tau_d: D must be below to skip; chosen for the encoder `tau_d_encoder`.
        m: misalignment M, in [0, 1].
        tau_m: M must be below to skip.
        p: mean intrinsic probability, in [0, 1].
        tau_p: p must be at least this to skip.
        c: mean stated confidence, in [0, 1].
        unanimous: whether every agent that was asked gave the same answer.
        equal: whether all valid answers are the same.
        require_unanimity: whether `equal` is tested.
        complete: whether every agent that was asked gave a valid opening.
        require_complete: whether `complete` is tested.
        comparable: whether the known p_i are of one stage; those of several must not be pooled.
        intrinsic_reading: the setting `gate.intrinsic`.
        answers, stated: answer and stated confidence per valid opening, in the agents' order.
        intrinsic: p_i likewise.
        logprob_stages: where p_i is taken, likewise; empty where it is not read.
    """

    kind: ClassVar[str] = "gate"

    skip: bool
    reasons: list[Any]
    untested: list[str] = Field(default_factory=list)
    when: str = ""
    d: float | None
    tau_d: float | None
    tau_d_encoder: str = ""
    m: float | None
    tau_m: float | None
    p: float | None
    tau_p: float | None
    c: float | None = None
    unanimous: Any
    equal: Any = None
    require_unanimity: bool = False
    complete: bool = True
    require_complete: bool = False
    comparable: bool = True
    intrinsic_reading: str = ""
    answers: list[str] = Field(default_factory=list)
    stated: list[float] = Field(default_factory=list)
    intrinsic: list[float | None] = Field(default_factory=list)
    logprob_stages: list[str] = Field(default_factory=list)

    @property
    def answers_equal(self) -> bool:
        """`equal`; records from before it know only `unanimous`, which was of the valid answers."""
        return bool(self.unanimous if self.equal is None else self.equal)


class RoundEnded(DebateEvent):
    """A round of revision, at `round/N`.

    Attributes:
        round: its number, from 1.
        d: disagreement D after it, in [0, 2].
        d_before: D before it.
        delta: `d` less `d_before`.
        answers: by agent, its answer after the round.
        stated: by agent, its stated confidence, in [0, 1].
        changed: agents that changed their answer.
        joined: agents whose first valid answer came in this round.
        failed: by agent, the kind of failure where no revision came.
    """

    kind: ClassVar[str] = "round"

    round: int
    d: float | None = None
    d_before: float | None = None
    delta: float | None
    answers: dict[str, str]
    stated: dict[str, float]
    changed: list[str] = Field(default_factory=list)
    joined: list[str] = Field(default_factory=list)
    failed: dict[str, str] = Field(default_factory=dict)


class DebateStopped(DebateEvent):
    """The end of the rounds, at `stop`.

    Attributes:
        reason: why; see `debate.stop_reason`.
        rounds: how many there were.
        d: disagreement D at the end, in [0, 2].
        delta: by how much D changed in the last round.
        epsilon: the setting `debate.epsilon`.
        max_rounds: the setting `debate.max_rounds`.
    """

    kind: ClassVar[str] = "stop"

    reason: str
    rounds: int
    d: float | None = None
    delta: float | None = None
    epsilon: float | None = None
    max_rounds: int | None = None


class CandidateJudgment(EventData):
    """One judge's pass over one candidate on one evidence variant.

    Attributes:
        path: of the judgment.
        judge: the judge's full role name.
        variant: number of the evidence variant, from 0.
        pass_index: number of the pass, from 0; `pass` in the record.
        score: in [0, 1].
        support: what the evidence says of the candidate: `supported`, `contradicted` or `not covered`.
        missing: why there is no score; empty where there is one.
    """

    path: str
    judge: str
    variant: int
    pass_index: int = Field(validation_alias="pass", serialization_alias="pass")
    score: float | None
    support: str | None
    missing: str


class JudgedCandidate(EventData):
    """A candidate with its judgments.

    Attributes:
        answer: canonical label or folded free text.
        text: the answer with the words of its choice, if it has any.
        support: number of agents that gave it.
        mean_p: their mean known intrinsic probability, in [0, 1].
        score: S_i, in [0, 1].
        stability: 1 - Var over the variants.
        variant_scores: mean score by variant.
        judgments: every judgment, missing ones included.
    """

    answer: str
    text: str = ""
    support: Any = None
    mean_p: float | None = None
    score: float | None = None
    stability: float | None = None
    variant_scores: list[float | None] = Field(default_factory=list)
    judgments: list[CandidateJudgment]


class CandidatesJudged(DebateEvent):
    """A judging of the final answers at `judge`, of a skipped case's consensus at `judge/consensus`, or of the audit at
    `audit/judge`.

    Attributes:
        branch: `debate`, `skip` or `audit`.
        method, weighting, lam: the settings of `judging`.
        evidence_from: where the evidence comes from.
        evidence_sentences: of how many sentences it is.
        variants: how it is perturbed: `subset`, `paraphrase`, or `none`.
        variant_sizes: sentences by variant.
        paraphrases_failed: variants that could not be paraphrased.
        unperturbed: whether nothing could be perturbed.
        candidates: what was judged.
        winner: the place of the best candidate; None where nobody has a score.
        answer: the answer that was chosen.
        tie_broken_by: `support`, `mean_p` or `seed`; empty without a tie.
        judge_stability: mean stability of the candidates.
        flip_rate: share of the variants with another winner than the most frequent, in [0, 1].
        at_odds: judgments whose support contradicts their score.
        missing: judgments that did not come.
    """

    kind: ClassVar[str] = "judging"

    branch: str = ""
    method: str = ""
    weighting: str = ""
    lam: float | None = None
    evidence_from: Any = None
    evidence_sentences: Any = None
    variants: str | None = None
    variant_sizes: list[Any] | None = None
    paraphrases_failed: int | None = None
    unperturbed: Any = None
    candidates: list[JudgedCandidate]
    winner: int | None = None
    answer: Any = None
    tie_broken_by: Any = None
    judge_stability: float | None = None
    flip_rate: float | None = None
    at_odds: int | None = None
    missing: int | None = None


class AnswerVotes(EventData):
    """The votes for one answer: how many, and the mean stated confidence of those who gave it, in [0, 1]."""

    answer: str
    count: int
    stated: float


class VotesCounted(DebateEvent):
    """A vote of the agents, at `vote`; of those who skip a debate and disagree, at `vote/consensus`.

    Attributes:
        votes: of every answer, the most frequent first.
        tied: the answers that share the most votes; empty when one has more than any other.
        tie_broken_by: `stated_confidence` or `seed`; empty without a tie.
        answer: the most frequent answer, or the one that the tie-break chose.
    """

    kind: ClassVar[str] = "vote"

    votes: list[AnswerVotes]
    tied: list[str]
    tie_broken_by: str = ""
    answer: str


class BranchesCompared(DebateEvent):
    """Both ways through the protocol on one case, for calibration (`both_branches`), at `branches`.

    Attributes:
        verdict_from: the branch that gives the verdict: `skip` or `debate`.
        skipped_answer, debated_answer: each branch's answer.
        skipped_confidence, debated_confidence: the judge's score of it, in [0, 1].
        skipped_flags, debated_flags: each branch's flags.
        stop: how the debate ended.
        rounds: how many rounds it took.
    """

    kind: ClassVar[str] = "branches"

    verdict_from: str = ""
    skipped_answer: str | None
    skipped_confidence: float | None = None
    skipped_flags: list[str] = Field(default_factory=list)
    debated_answer: str | None
    debated_confidence: float | None = None
    debated_flags: list[str] = Field(default_factory=list)
    stop: str = ""
    rounds: int | None = None


class SkipAudited(BranchesCompared):
    """The same on a skipped case that was debated to audit the gate (`audit_skipped`), at `audit`."""

    kind: ClassVar[str] = "audit"


class SelenePayload(VerdictSources):
    """The payload of a verdict; without a gate it holds only where the figures are from.

    Attributes:
        skip, reasons, d, m, p: what the gate decided and its signals; see `GateDecided`.
        distribution_from: `votes` where there is a distribution.
        confidence_stage: of a mean p, where it is known.
    """

    skip: bool | None = None
    reasons: list[str] = Field(default_factory=list)
    d: float | None = None
    m: float | None = None
    p: float | None = None
