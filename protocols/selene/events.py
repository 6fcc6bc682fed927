"""The events of SELENE and of the baselines made of its parts, and the payload of their verdicts.

Older records lack some keys; these have defaults. None is unknown.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from moot.protocols.events import GATE, DebateEvent, EventData
from moot.protocols.verdict_sources import VerdictSources

UNKNOWN = "_unknown"
"""Suffix, of a test's name in the gate's reasons, of a test that could not be made because a value was unknown."""


class RetrievedPiece(EventData):
    """A chunk of a document that is evidence.

    Attributes:
        document: the document's name; `document N` for those of the case.
        chunk: 0-based number of the chunk in its document.
        page: 1-based page on which it begins; None for documents without pages.
        text: of the chunk.
        similarity: cosine with the question and its choices, in [-1, 1].
    """

    document: str
    chunk: int
    page: int | None = None
    text: str
    similarity: float


class EvidenceRetrieved(DebateEvent):
    """The retrieved chunks of documents, at `retrieval`, before the openings.

    Attributes:
        pieces: the chunks, nearest first.
    """

    kind: ClassVar[str] = "retrieved"

    pieces: list[RetrievedPiece]


class GateDecided(DebateEvent):
    """The gate's decision after the openings, at `gate`: its signals with their thresholds (None: off).

    Attributes:
        skip: whether the debate is skipped.
        reasons: the tests that failed, or why no test was needed; see `gate.GateDecision`.
        untested: tests that are on but could not be made, because a value was unknown.
        if_untested: the setting `gate.if_untested` if there are such tests; empty in older records, whose gates ignored
            them.
        when: the setting `gate.when`.
        d: disagreement D of the openings, in [0, 2].
        tau_d: D must be below to skip; chosen for the encoder `tau_d_encoder`.
        m: misalignment M, in [0, 1], of the openings whose p_i is known.
        tau_m: M must be below to skip.
        p: mean known intrinsic probability, in [0, 1].
        tau_p: p must be at least this to skip.
        c: mean stated confidence, in [0, 1].
        unanimous: whether all agents gave the same answer.
        equal: whether all valid answers are the same.
        require_unanimity: whether `equal` is tested.
        complete: whether all agents gave a valid opening.
        require_complete: whether `complete` is tested.
        comparable: whether the known p_i belong to one stage; p_i of several stages must not be pooled.
        intrinsic_reading: the setting `gate.intrinsic`.
        answers, stated: answer and stated confidence per valid opening, in the agents' order; None if none was stated.
        intrinsic: p_i per valid opening, in the agents' order.
        logprob_stages: stage of each p_i, in the same order; empty if it is unknown.
        embedded: `text_hash` in the table `embeddings` of each valid opening, in the agents' order: D is the mean
            cosine distance of these vectors. Empty in records older than the field.
    """

    kind: ClassVar[str] = GATE

    skip: bool
    reasons: list[Any]
    untested: list[str] = Field(default_factory=list)
    if_untested: str = ""
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
    stated: list[float | None] = Field(default_factory=list)
    intrinsic: list[float | None] = Field(default_factory=list)
    logprob_stages: list[str] = Field(default_factory=list)
    embedded: list[str] = Field(default_factory=list)

    @property
    def p_known(self) -> int:
        """Number of valid openings whose p_i is known: M and p are of these."""
        return sum(p is not None for p in self.intrinsic)

    @property
    def answers_equal(self) -> bool:
        """`equal`; records from before it know only `unanimous`, which was of the valid answers."""
        return bool(self.unanimous if self.equal is None else self.equal)


class RoundEnded(DebateEvent):
    """A round of revision, at `round/N`.

    Attributes:
        round: number of the round, from 1.
        d: disagreement D after the round, in [0, 2].
        d_before: D before the round.
        delta: `d` minus `d_before`.
        answers: by agent, the answer after the round.
        stated: by agent, the stated confidence, in [0, 1]; None if none was stated.
        changed: agents that changed their answer.
        joined: agents whose first valid answer came in this round.
        failed: by agent, the kind of failure if there was no revision.
        embedded: by agent, `text_hash` in the table `embeddings` of its last valid reply: `d` is the mean cosine
            distance of these vectors. Empty in records older than the field.
    """

    kind: ClassVar[str] = "round"

    round: int
    d: float | None = None
    d_before: float | None = None
    delta: float | None
    answers: dict[str, str]
    stated: dict[str, float | None]
    changed: list[str] = Field(default_factory=list)
    joined: list[str] = Field(default_factory=list)
    failed: dict[str, str] = Field(default_factory=dict)
    embedded: dict[str, str] = Field(default_factory=dict)


class DebateStopped(DebateEvent):
    """The end of the rounds, at `stop`.

    Attributes:
        reason: why the rounds ended; see `debate.stop_reason`.
        rounds: number of rounds.
        d: disagreement D at the end, in [0, 2].
        delta: change of D in the last round.
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
        path: path of the judgment.
        judge: the judge's full role name.
        variant: number of the evidence variant, from 0.
        pass_index: number of the pass, from 0; `pass` in the record.
        score: the score, in [0, 1].
        support: the judge's finding: `supported`, `contradicted` or `not covered`.
        missing: why there is no score; empty if there is one.
    """

    path: str
    judge: str
    variant: int
    pass_index: int = Field(validation_alias="pass", serialization_alias="pass")
    score: float | None
    support: str | None
    missing: str


class JudgedCandidate(EventData):
    """A candidate answer with its judgments.

    Attributes:
        answer: canonical label, or normalised free text.
        text: the answer with the text of its choice, if it has one.
        support: number of agents that gave it.
        mean_p: mean known intrinsic probability of these agents, in [0, 1].
        p_known: number of these agents whose probability is known, where not all are; None otherwise.
        score: S_i, in [0, 1].
        stability: 1 - Var over the variants.
        variant_scores: mean score by variant.
        judgments: every judgment, including missing ones.
    """

    answer: str
    text: str = ""
    support: Any = None
    mean_p: float | None = None
    p_known: int | None = None
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
        evidence_from: source of the evidence: `passage`, `documents`, `passage and documents`, or `rationales`.
        evidence_sentences: number of sentences of the evidence.
        variants: how the evidence is perturbed: `subset`, `paraphrase`, or `none`.
        variant_sizes: number of sentences by variant.
        paraphrases_failed: number of variants that could not be paraphrased.
        variants_repeated: number of variants that were left out because they repeat the evidence or another variant;
            None in older records, which judged them.
        unperturbed: whether no variant could be perturbed.
        candidates: the judged candidates.
        winner: index of the best candidate; None if no candidate has a score.
        answer: the chosen answer.
        tie_broken_by: `support`, `mean_p` or `seed`; empty without a tie.
        judge_stability: mean stability of the candidates.
        flip_rate: share of the variants with another winner than the most frequent, in [0, 1].
        at_odds: number of judgments whose support contradicts their score.
        missing: number of missing judgments.
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
    variants_repeated: int | None = None
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
    """The votes for one answer: their number, and the mean stated confidence of the agents that gave it, in [0, 1];
    None if they stated none."""

    answer: str
    count: int
    stated: float | None


class VotesCounted(DebateEvent):
    """A vote of the agents, at `vote`; at `vote/consensus` if the agents of a skipped debate disagree.

    Attributes:
        votes: the votes for every answer, the most frequent first.
        tied: the answers that share the most votes; empty if one answer has more than any other.
        tie_broken_by: `stated_confidence` or `seed`; empty without a tie.
        answer: the most frequent answer, or the one that the tie-break chose.
    """

    kind: ClassVar[str] = "vote"

    votes: list[AnswerVotes]
    tied: list[str]
    tie_broken_by: str = ""
    answer: str


class BranchesCompared(DebateEvent):
    """Results of both branches on one case, for calibration (`both_branches`), at `branches`.

    Attributes:
        verdict_from: the branch that gives the verdict: `skip` or `debate`.
        skipped_answer, debated_answer: answer of each branch.
        skipped_confidence, debated_confidence: the judge's score of that answer, in [0, 1].
        skipped_flags, debated_flags: flags of each branch.
        stop: how the debate ended.
        rounds: number of rounds of the debate.
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
    """Results of both branches on a skipped case that was debated to audit the gate (`audit_skipped`), at `audit`."""

    kind: ClassVar[str] = "audit"


class SelenePayload(VerdictSources):
    """The payload of a verdict; without a gate it has only the sources of the figures.

    Attributes:
        skip, reasons, d, m, p: the gate's decision and its signals; see `GateDecided`.
        p_known, openings: number of openings whose p_i is known, and of all valid ones; if M and p are of a part only.
        distribution_from: `votes` if there is a distribution.
        confidence_stage: stage of a mean p, if it is known.
    """

    skip: bool | None = None
    reasons: list[str] = Field(default_factory=list)
    d: float | None = None
    m: float | None = None
    p: float | None = None
    p_known: int | None = None
    openings: int | None = None
