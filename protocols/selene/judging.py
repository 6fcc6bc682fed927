"""Stage 3: judge the final answers over shared evidence variants and choose (SELENE section 3.4)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moot.protocols.case import Case, label_in_words
from moot.protocols.floor import Brief, Floor
from moot.protocols.messages import Missing
from moot.protocols.seeds import seeded
from moot.protocols.selene.agent_state import AgentState, comparable_intrinsic, known_part, mean_known
from moot.protocols.selene.events import AnswerVotes, CandidatesJudged, VotesCounted
from moot.protocols.selene.evidence import CaseVariants, Evidence, Variants, evidence_of
from moot.protocols.selene.scoring import (
    Candidate,
    CandidateChoice,
    ScoredCandidate,
    as_sentence,
    choose,
    judged_candidate,
    mean_stability,
    score_candidate,
    verdict_flip_rate,
)
from moot.protocols.selene.settings import JudgingSettings

TIED = "vote-tied"
"""Flag of a verdict chosen by a tie-break."""


def vote(agent_states: Sequence[AgentState], chance: random.Random, path: str) -> VotesCounted:
    """The most frequent answer; ties by the higher mean stated confidence, then by `chance`."""
    stated: dict[str, list[float | None]] = {}
    for state in agent_states:
        stated.setdefault(state.answer, []).append(state.confidence)
    counted = [AnswerVotes(answer=answer, count=len(of), stated=_mean_stated(of)) for answer, of in stated.items()]
    votes = sorted(counted, key=lambda each: (-each.count, each.answer))
    leading = [each for each in votes if each.count == votes[0].count]
    surest = max((each.stated for each in leading if each.stated is not None), default=None)
    best = [each.answer for each in leading if each.stated == surest]
    broken = "" if len(leading) == 1 else "stated_confidence" if len(best) == 1 else "seed"
    return VotesCounted(
        path=path,
        votes=votes,
        tied=[each.answer for each in leading] if broken else [],
        tie_broken_by=broken,
        answer=chance.choice(best) if broken == "seed" else best[0],
    )


def _mean_stated(stated: Sequence[float | None]) -> float | None:
    mean = mean_known(stated)
    return None if mean is None else round(mean, 12)


TEMPLATE = "selene/judge"
_TIE = {"vote": "tie/vote", "vote/consensus": "tie/consensus"}
"""Seed name for breaking a tie at random, by the path of the vote."""


@dataclass(frozen=True, slots=True)
class SeleneRuling:
    """Result of judging.

    Attributes:
        answer: the chosen answer.
        score: its S_i; None if no judge scored it.
        flags: `judges-missing`, `judge-below-half`, `judge-at-odds` (a `support` that contradicts its own score),
            `paraphrase-failed`, `variant-repeated`, `evidence-unperturbed`, `evidence-from-rationales`, `vote-tied`.
    """

    answer: str
    score: float | None
    flags: tuple[str, ...] = ()


def candidates_of(case: Case, agent_states: Sequence[AgentState], judging: JudgingSettings) -> list[Candidate]:
    """The distinct answers in the agents' order, or every agent's reply; each with the figures of its supporters."""
    if judging.candidates == "every-agent":
        return [_candidate(case, state.answer, agent_states, state, judging) for state in agent_states]
    answers = dict.fromkeys(state.answer for state in agent_states)
    return [_candidate(case, answer, agent_states, _spokesman(answer, agent_states), judging) for answer in answers]


def _spokesman(answer: str, agent_states: Sequence[AgentState]) -> AgentState:
    """The supporter that states the highest confidence, one without a stated one last; of equal ones the first."""
    backers = (state for state in agent_states if state.answer == answer)
    return max(backers, key=lambda state: (-1.0 if state.confidence is None else state.confidence, -state.agent))


def _candidate(
    case: Case, answer: str, agent_states: Sequence[AgentState], spokesman: AgentState, judging: JudgingSettings
) -> Candidate:
    backers = [state for state in agent_states if state.answer == answer]
    return Candidate(
        answer=answer,
        text=label_in_words(case, answer),
        support=len(backers),
        mean_p=mean_known(comparable_intrinsic(backers)),
        rationale=spokesman.reasoning if judging.show_rationale else "",
        p_known=known_part(backers),
    )


async def rule_on_candidates(
    case: Case,
    floor: Floor,
    agent_states: Sequence[AgentState],
    judging: JudgingSettings,
    case_variants: CaseVariants,
) -> SeleneRuling:
    """Judge the final answers; paths `judge/candidate/I`; the event `judging` at path `judge`.

    Without a judge (`method="none"`) the agents' vote decides (event `vote` at path `vote`); a tie is flagged
    `vote-tied`. Without any score their vote decides, too: no default score exists. A candidate without a score cannot
    win against one that has one. Either way the ruling is flagged `judges-missing`.
    """
    if judging.method == "none":
        ballot = _counted(floor, agent_states, "vote")
        return SeleneRuling(ballot.answer, None, _tie_flags(ballot))
    candidates = candidates_of(case, agent_states, judging)
    evidence = await evidence_of(case, floor, agent_states)
    perturbed = judging.method == "evidence-weighted" and len(candidates) > 1
    variants = await case_variants.of(evidence) if perturbed else Variants((evidence.sentences,), "none")
    passes = judging.repeats if perturbed else 1
    scored = await _judge_all(case, floor, candidates, variants, judging, "judge/candidate", passes)
    choice = choose(scored, floor.seed)
    flags = _flags(evidence, variants, scored)
    if choice.index is None:
        ballot = _counted(floor, agent_states, "vote")
        answer, score = ballot.answer, None
        flags = ("judges-missing", *_tie_flags(ballot), *flags)
    else:
        answer, score = scored[choice.index].candidate.answer, scored[choice.index].score
        if any(one.score is None for one in scored):
            flags = ("judges-missing", *flags)  # a candidate without any score has lost without being judged
    floor.note(_judged("judge", "debate", scored, choice, answer, evidence, variants, judging))
    return SeleneRuling(answer, score, flags)


async def rule_on_consensus(
    case: Case, floor: Floor, agent_states: Sequence[AgentState], judging: JudgingSettings
) -> SeleneRuling:
    """The consensus of a skipped case with its one judge pass, path `judge/consensus`, also the event's path.

    The judge cannot flip the consensus: a score below .5 is flagged `judge-below-half`, none
    `judges-missing`. Agents that do not all agree (`gate.require_unanimity` off) vote: the event `vote` at path
    `vote/consensus`, a tie flagged `vote-tied`.
    """
    ballot = _counted(floor, agent_states, "vote/consensus")
    answer = ballot.answer
    if judging.method == "none":
        return SeleneRuling(answer, None, _tie_flags(ballot))
    evidence = await evidence_of(case, floor, agent_states)
    variants = Variants((evidence.sentences,), "none")
    candidate = _candidate(case, answer, agent_states, _spokesman(answer, agent_states), judging)
    judgments = await floor.judge(_brief(case, candidate), path="judge/consensus", variants=_slots(variants), passes=1)
    scored = score_candidate(candidate, judgments, 1, judging)
    choice = choose([scored], floor.seed)
    floor.note(_judged("judge/consensus", "skip", [scored], choice, answer, evidence, variants, judging))
    flags = (*_tie_flags(ballot), *_flags(evidence, variants, [scored]))
    if scored.score is None:
        flags = ("judges-missing", *flags)
    elif scored.score < 0.5:
        flags = ("judge-below-half", *flags)
    return SeleneRuling(answer, scored.score, flags)


def _counted(floor: Floor, agent_states: Sequence[AgentState], path: str) -> VotesCounted:
    """The agents' vote; noted if it decides between several replies."""
    ballot = vote(agent_states, seeded(floor.seed, _TIE[path]), path)
    if len(agent_states) > 1 and (path == "vote" or len(ballot.votes) > 1):
        floor.note(ballot)
    return ballot


async def audit_judging(
    case: Case,
    floor: Floor,
    agent_states: Sequence[AgentState],
    judging: JudgingSettings,
    case_variants: CaseVariants,
) -> None:
    """Judge the distinct answers over K variants, outside the verdict: `audit/judge/candidate/I`.

    The variants are of the configured kind, whatever the method: the paper compares systems over paraphrases. Where the
    judging has made some of the same evidence, they are used; others are at `audit/evidence/paraphrase/K`. Notes the
    event `judging` at path `audit/judge`: the same passes for every compared system.
    """
    same = JudgingSettings(k=judging.k, variants=judging.variants, weighting="printed")
    candidates = candidates_of(case, agent_states, same)
    evidence = await evidence_of(case, floor, agent_states)
    variants = await case_variants.of(evidence, path="audit/evidence")
    scored = await _judge_all(case, floor, candidates, variants, same, "audit/judge/candidate", 1)
    choice = choose(scored, floor.seed)
    answer = None if choice.index is None else scored[choice.index].candidate.answer
    floor.note(_judged("audit/judge", "audit", scored, choice, answer, evidence, variants, same))


async def _judge_all(
    case: Case,
    floor: Floor,
    candidates: Sequence[Candidate],
    variants: Variants,
    judging: JudgingSettings,
    root: str,
    passes: int,
) -> list[ScoredCandidate]:
    """Judge every candidate on every variant concurrently; the order of arrival has no effect."""
    judged = await asyncio.gather(
        *(
            floor.judge(_brief(case, candidate), path=f"{root}/{i}", variants=_slots(variants), passes=passes)
            for i, candidate in enumerate(candidates)
        )
    )
    return [
        score_candidate(candidate, judgments, len(variants.sets), judging)
        for candidate, judgments in zip(candidates, judged, strict=True)
    ]


def _brief(case: Case, candidate: Candidate) -> Brief:
    slots = {
        "question": case.question,
        "candidate": candidate.answer,
        "candidate_text": as_sentence(candidate.text),
        "rationale": candidate.rationale,
    }
    return Brief(TEMPLATE, slots)


def _slots(variants: Variants) -> list[dict[str, Any]]:
    return [{"evidence": list(sentences)} for sentences in variants.sets]


def _tie_flags(ballot: VotesCounted) -> tuple[str, ...]:
    return (TIED,) if ballot.tied else ()


def _flags(evidence: Evidence, variants: Variants, scored: Sequence[ScoredCandidate]) -> tuple[str, ...]:
    found = {
        "judge-at-odds": any(one.at_odds for one in scored),
        "paraphrase-failed": variants.failed > 0,
        "variant-repeated": variants.repeated > 0 and not variants.unperturbed,
        "evidence-unperturbed": variants.unperturbed,
        "evidence-from-rationales": evidence.source == "rationales",
    }
    return tuple(flag for flag, holds in found.items() if holds)


def _judged(
    path: str,
    branch: str,
    scored: Sequence[ScoredCandidate],
    choice: CandidateChoice,
    answer: str | None,
    evidence: Evidence,
    variants: Variants,
    judging: JudgingSettings,
) -> CandidatesJudged:
    return CandidatesJudged(
        path=path,
        branch=branch,
        method=judging.method,
        weighting=judging.weighting,
        lam=judging.lam,
        evidence_from=evidence.source,
        evidence_sentences=len(evidence.sentences),
        variants=variants.kind,
        variant_sizes=[len(sentences) for sentences in variants.sets],
        paraphrases_failed=variants.failed,
        variants_repeated=variants.repeated,
        unperturbed=variants.unperturbed,
        candidates=[judged_candidate(one) for one in scored],
        winner=choice.index,
        answer=answer,
        tie_broken_by=choice.tie_broken_by,
        judge_stability=mean_stability(scored),
        flip_rate=verdict_flip_rate(scored, choice.index),
        at_odds=sum(one.at_odds for one in scored),
        missing=sum(isinstance(j, Missing) for one in scored for j in one.judgments),
    )
