"""Scoring of judgments, and the winner (SELENE section 3.4); missing judgments stay missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from moot.metrics.evidence_weighting import evidence_weighted_score, flip_rate, judge_stability
from moot.protocols.messages import Judgment, Missing
from moot.protocols.seeds import seeded
from moot.protocols.selene.events import CandidateJudgment, JudgedCandidate
from moot.protocols.selene.gate import known
from moot.protocols.selene.settings import JudgingSettings
from moot.protocols.text.folding import fold

_EQUAL = 1e-9
_UNCOVERED = 0.5
"""Score of a candidate that the evidence does not cover."""

_SAYING: dict[str, str] = {"yes": ": it is so", "true": ": it is so", "no": ": it is not so", "false": ": it is not so"}


def as_sentence(candidate: str) -> str:
    """Statement of a candidate for judges: beside "contradicted", a bare "No" could be meant either way.

    >>> as_sentence("No"), as_sentence("B) blue")
    ('The answer to the question is No: it is not so.', 'The answer to the question is B) blue.')
    """
    return f"The answer to the question is {candidate.rstrip('.')}{_SAYING.get(fold(candidate), '')}."


def contradicts_score(support: str, score: float) -> bool:
    """Whether a judge's two verdicts on a candidate contradict each other on the given scale.

    `supported` is scored at least 0.5, `contradicted` at most; `not covered` nearer to 0.5 than to 0 or 1.
    """
    if support == "not covered":
        return abs(score - _UNCOVERED) > min(score, 1.0 - score)
    return score < _UNCOVERED if support == "supported" else score > _UNCOVERED


@dataclass(frozen=True, slots=True)
class Candidate:
    """A judged answer.

    Attributes:
        answer: canonical label or folded free text.
        text: the answer with the text of its choice, if any.
        support: number of agents that gave it.
        mean_p: mean known intrinsic probability of those agents; None if none is known.
        p_known: number of those agents whose probability is known, where not all are; None otherwise.
        rationale: reasoning shown to the judge; empty unless configured.
    """

    answer: str
    text: str
    support: int
    mean_p: float | None
    rationale: str = ""
    p_known: int | None = None


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """A candidate with its judgments.

    Attributes:
        candidate: the judged answer.
        judgments: in the floor's order.
        rows: per evidence variant, the scores of judges x passes; None is missing.
        score: S_i; None if no judgment is usable.
        stability: 1 - Var over the variants; None with fewer than two variants scored.
    """

    candidate: Candidate
    judgments: tuple[Judgment | Missing, ...]
    rows: tuple[tuple[float | None, ...], ...]
    score: float | None
    stability: float | None

    @property
    def at_odds(self) -> int:
        """Number of judgments that contradict themselves, see `contradicts_score`."""
        return sum(
            isinstance(each, Judgment) and contradicts_score(each.support, each.score) for each in self.judgments
        )

    @property
    def means(self) -> list[float | None]:
        """Mean score per variant; None if all of its judgments are missing."""
        present = [[s for s in row if s is not None] for row in self.rows]
        return [fmean(row) if row else None for row in present]


def score_candidate(
    candidate: Candidate, judgments: Sequence[Judgment | Missing], variants: int, judging: JudgingSettings
) -> ScoredCandidate:
    """S_i by the configured weighting; a plain mean if there is only one variant."""
    rows: list[list[float | None]] = [[] for _ in range(variants)]
    for judgment in judgments:
        rows[judgment.variant].append(judgment.score if isinstance(judgment, Judgment) else None)
    width = max(map(len, rows))
    matrix = [[math.nan if s is None else s for s in row] + [math.nan] * (width - len(row)) for row in rows]
    weighting = judging.weighting if variants > 1 else "printed"
    return ScoredCandidate(
        candidate,
        tuple(judgments),
        tuple(map(tuple, rows)),
        known(evidence_weighted_score(matrix, weighting, judging.lam)),
        known(judge_stability(matrix)),
    )


@dataclass(frozen=True, slots=True)
class CandidateChoice:
    """Index of the winner among the candidates (None: none has a score), and the tie-break, if any."""

    index: int | None
    tie_broken_by: Literal["", "support", "mean_p", "seed"] = ""


def choose(scored: Sequence[ScoredCandidate], seed: int) -> CandidateChoice:
    """argmax S_i; ties by support, then by mean p if every tied candidate has one, then by the seed.

    A candidate without a score ranks below every candidate with one.
    """
    scores = {i: s.score for i, s in enumerate(scored) if s.score is not None}
    if not scores:
        return CandidateChoice(None)
    best = max(scores.values())
    tied = [i for i, score in scores.items() if best - score <= _EQUAL]
    if len(tied) == 1:
        return CandidateChoice(tied[0])
    support = {i: scored[i].candidate.support for i in tied}
    tied = [i for i in tied if support[i] == max(support.values())]
    if len(tied) == 1:
        return CandidateChoice(tied[0], "support")
    p = {i: mean for i in tied if (mean := scored[i].candidate.mean_p) is not None}
    if len(p) == len(tied):
        tied = [i for i in tied if max(p.values()) - p[i] <= _EQUAL]
        if len(tied) == 1:
            return CandidateChoice(tied[0], "mean_p")
    tied.sort(key=lambda i: scored[i].candidate.answer)
    return CandidateChoice(seeded(seed, "tie/judge").choice(tied), "seed")


def winners_by_variant(scored: Sequence[ScoredCandidate], winner: int | None) -> list[str | None]:
    """Answer that each evidence variant alone would choose; None unless it scored every candidate.

    If several share a variant's best score, the overall winner counts if it is among them: a tie is not a
    flip.
    """
    chosen: list[str | None] = []
    for column in zip(*(s.means for s in scored), strict=True):
        present = [score for score in column if score is not None]
        if len(present) < len(column):
            chosen.append(None)
            continue
        best = [i for i, score in enumerate(present) if max(present) - score <= _EQUAL]
        chosen.append(scored[winner if winner in best and winner is not None else best[0]].candidate.answer)
    return chosen


def verdict_flip_rate(scored: Sequence[ScoredCandidate], winner: int | None) -> float | None:
    """Share of the variants with another winner than the most frequent; None with fewer than two to count."""
    winners = [w for w in winners_by_variant(scored, winner) if w is not None]
    return known(flip_rate(winners)) if len(winners) > 1 else None


def mean_stability(scored: Sequence[ScoredCandidate]) -> float | None:
    """Judge stability averaged over the candidates that have one; None if none has one."""
    present = [s.stability for s in scored if s.stability is not None]
    return fmean(present) if present else None


def judged_candidate(scored: ScoredCandidate) -> JudgedCandidate:
    """A candidate's part of the event `CandidatesJudged`."""
    known = scored.candidate.p_known
    judged = JudgedCandidate(
        answer=scored.candidate.answer,
        text=scored.candidate.text,
        support=scored.candidate.support,
        mean_p=scored.candidate.mean_p,
        score=scored.score,
        stability=scored.stability,
        variant_scores=scored.means,
        judgments=[_judgment(judgment) for judgment in scored.judgments],
    )
    return judged if known is None else judged.model_copy(update={"p_known": known})


def _judgment(judgment: Judgment | Missing) -> CandidateJudgment:
    there = judgment if isinstance(judgment, Judgment) else None
    return CandidateJudgment(
        path=judgment.path,
        judge=judgment.judge,
        variant=judgment.variant,
        pass_index=judgment.pass_index,
        score=there.score if there else None,
        support=there.support if there else None,
        missing=judgment.reason if isinstance(judgment, Missing) else "",
    )
