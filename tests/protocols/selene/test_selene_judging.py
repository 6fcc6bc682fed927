"""Scores, ties and missing judgments."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_floor import ScriptedFloor

from moot.protocols.case import Case
from moot.protocols.messages import Judgment, Missing
from moot.protocols.selene.agent_state import AgentState
from moot.protocols.selene.evidence import CaseVariants
from moot.protocols.selene.judging import SeleneRuling, candidates_of, rule_on_candidates, rule_on_consensus
from moot.protocols.selene.scoring import (
    Candidate,
    ScoredCandidate,
    choose,
    contradicts_score,
    score_candidate,
    verdict_flip_rate,
    winners_by_variant,
)
from moot.protocols.selene.settings import JudgingSettings

CASE = Case(
    id="c", question="Did Galileo invent the telescope?", labels=("Yes", "No"), passage="One. Two. Three. Four."
)


def scored(
    answer: str,
    scores: Sequence[float | None],
    *,
    support: int = 1,
    p: float | None = None,
    judging: JudgingSettings | None = None,
) -> ScoredCandidate:
    judgments: list[Judgment | Missing] = [
        Missing(f"x/{k}", "judge/0", k, 0, "refused: no")
        if s is None
        else Judgment(f"x/{k}", "judge/0", "m", k, 0, s, "supported", "")
        for k, s in enumerate(scores)
    ]
    candidate = Candidate(answer, answer, support, p)
    return score_candidate(candidate, judgments, len(scores), judging or JudgingSettings())


def stand(agent: int, answer: str, confidence: float = 0.9, p: float | None = None) -> AgentState:
    return AgentState(agent, f"agent/{agent}", answer, f"I am agent {agent}.", confidence, p)


def test_galileo() -> None:
    yes, no = scored("Yes", [0.9, 0.4, 0.6], support=5), scored("No", [0.88, 0.91, 0.90])
    assert choose([yes, no], 0).index == 1
    assert yes.score == pytest.approx(0.63333 * 2.718281828**-0.042222, abs=1e-4)
    assert yes.stability == pytest.approx(1 - 0.042222, abs=1e-5)
    assert winners_by_variant([yes, no], 1) == ["Yes", "No", "No"]
    assert verdict_flip_rate([yes, no], 1) == pytest.approx(1 / 3)


def test_printed_weights_cancel_and_ours_do_not() -> None:
    steady, shaky = [0.7, 0.7, 0.7], [0.5, 0.7, 0.9]
    printed = JudgingSettings(weighting="printed")
    tie = [scored("A", shaky, judging=printed), scored("B", steady, judging=printed, support=2)]
    assert choose(tie, 0).tie_broken_by == "support"
    ours = choose([scored("A", shaky, support=2), scored("B", steady)], 0)
    assert (ours.index, ours.tie_broken_by) == (1, "")


def test_ties_go_to_support_then_p_then_seed() -> None:
    same = [0.8, 0.8]
    by_support = [scored("A", same, support=1, p=0.99), scored("B", same, support=2, p=0.1)]
    assert (choose(by_support, 0).index, choose(by_support, 0).tie_broken_by) == (1, "support")
    by_p = [scored("A", same, p=0.6), scored("B", same, p=0.7)]
    assert (choose(by_p, 0).index, choose(by_p, 0).tie_broken_by) == (1, "mean_p")
    unknown = [scored("A", same, p=0.6), scored("B", same)]
    picks = {choose(unknown, seed).index for seed in range(40)}
    assert picks == {0, 1}
    assert choose(unknown, 3) == choose(unknown, 3)
    assert choose(unknown, 3).tie_broken_by == "seed"
    swapped = [scored("B", same), scored("A", same, p=0.6)]
    assert all(
        unknown[i].candidate.answer == swapped[j].candidate.answer
        for s in range(20)
        if (i := choose(unknown, s).index) is not None and (j := choose(swapped, s).index) is not None
    )


def test_missing_is_missing() -> None:
    part = scored("A", [0.8, None, 0.8])
    assert part.score == pytest.approx(0.8)
    assert part.means == [0.8, None, 0.8]
    nothing = scored("B", [None, None, None], support=9)
    assert nothing.score is None
    assert nothing.stability is None
    assert choose([nothing, scored("A", [0.0, 0.0, 0.0])], 0).index == 1
    assert choose([nothing], 0).index is None
    assert winners_by_variant([part, nothing], 0) == [None, None, None]
    assert verdict_flip_rate([part, nothing], 0) is None


@given(st.lists(st.lists(st.none() | st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=4), st.integers())
def test_the_winner_has_the_best_score(rows: list[list[float | None]], seed: int) -> None:
    all_scored = [scored(f"a{i}", row) for i, row in enumerate(rows)]
    index = choose(all_scored, seed).index
    present = [s.score for s in all_scored if s.score is not None]
    if index is None:
        assert not present
    else:
        best = all_scored[index].score
        assert best is not None
        assert best >= max(present) - 1e-9


async def rule(
    case: Case, floor: ScriptedFloor, agent_states: Sequence[AgentState], judging: JudgingSettings
) -> SeleneRuling:
    return await rule_on_candidates(
        case, floor, agent_states, judging, CaseVariants(floor, judging.k, judging.variants)
    )


async def test_variants_are_shared_by_all_candidates_and_keep_at_least_half() -> None:
    floor = ScriptedFloor(CASE, {"judge/candidate/0/*": 0.3, "judge/candidate/1/*": 0.7}, judges=2)
    ruling = await rule(CASE, floor, [stand(0, "Yes"), stand(1, "Yes"), stand(2, "No")], JudgingSettings(repeats=2))
    assert ruling.answer == "No"
    assert ruling.score == pytest.approx(0.7)
    assert len(floor.paths("judge/candidate/0/")) == 2 * 3 * 2
    for variant in range(3):
        sets = {tuple(ask.slots["evidence"]) for path, ask in floor.asks.items() if f"/variant/{variant}/" in path}
        assert len(sets) == 1
        assert 2 <= len(sets.pop()) <= 3
    event = floor.event("judging", "judge")
    assert event["candidates"][0]["support"] == 2
    assert event["variants"] == "subset"
    assert event["flip_rate"] == 0.0
    assert event["judge_stability"] == pytest.approx(1.0)
    assert event["missing"] == 0


async def test_per_variant_weights_use_the_repeats() -> None:
    noisy = {"*/variant/0/pass/0": 0.0, "*/variant/0/pass/1": 1.0}
    floor = ScriptedFloor(CASE, {"judge/candidate/1/*": 0.1, **noisy, "*": 0.9})
    judging = JudgingSettings(weighting="per-variant", repeats=2, k=2)
    ruling = await rule(CASE, floor, [stand(0, "Yes"), stand(1, "No")], judging)
    assert ruling.answer == "Yes"
    assert ruling.score is not None
    assert 0.7 < ruling.score < 0.9


async def test_a_single_candidate_takes_one_pass_on_the_unchanged_evidence() -> None:
    floor = ScriptedFloor(CASE, {"*": 0.2})
    ruling = await rule(CASE, floor, [stand(0, "Yes"), stand(1, "Yes")], JudgingSettings())
    assert (ruling.answer, ruling.score) == ("Yes", 0.2)
    assert floor.paths() == ["judge/candidate/0/judge/0/variant/0/pass/0"]
    assert floor.asks[floor.paths()[0]].slots["evidence"] == ["One.", "Two.", "Three.", "Four."]
    assert floor.event("judging")["judge_stability"] is None


async def test_without_any_score_the_majority_rules_and_is_flagged() -> None:
    floor = ScriptedFloor(CASE, {"*": None})
    stands = [stand(0, "No"), stand(1, "Yes"), stand(2, "Yes")]
    ruling = await rule(CASE, floor, stands, JudgingSettings())
    assert (ruling.answer, ruling.score, ruling.flags) == ("Yes", None, ("judges-missing",))
    event = floor.event("judging")
    assert event["winner"] is None
    assert event["missing"] == 6
    assert event["candidates"][0]["judgments"][0]["score"] is None
    assert event["candidates"][0]["judgments"][0]["missing"] == "refused: scripted"


@pytest.mark.parametrize(
    ("score", "flags"), [(0.9, ()), (0.5, ()), (0.49, ("judge-below-half",)), (None, ("judges-missing",))]
)
async def test_the_judge_cannot_flip_a_consensus(score: float | None, flags: tuple[str, ...]) -> None:
    floor = ScriptedFloor(CASE, {"judge/consensus/*": score})
    ruling = await rule_on_consensus(CASE, floor, [stand(0, "Yes"), stand(1, "Yes")], JudgingSettings())
    assert (ruling.answer, ruling.score, ruling.flags) == ("Yes", score, flags)
    assert len(floor.asks) == 1


def test_candidates() -> None:
    case = Case(id="c", question="?", labels=("A", "B"), choices=("red", "blue"))
    stands = [stand(0, "B", 0.6, 0.5), stand(1, "A"), stand(2, "B", 0.8, 0.7)]
    distinct = candidates_of(case, stands, JudgingSettings(show_rationale=True))
    assert [(c.answer, c.text, c.support) for c in distinct] == [("B", "B) blue", 2), ("A", "A) red", 1)]
    assert distinct[0].mean_p == pytest.approx(0.6)
    assert distinct[0].rationale == "I am agent 2."
    every = candidates_of(case, stands, JudgingSettings(candidates="every-agent"))
    assert [c.answer for c in every] == ["B", "A", "B"]
    assert all(c.rationale == "" for c in every)


@pytest.mark.parametrize(
    ("support", "score", "odd"),
    [
        ("supported", 0.5, False),
        ("supported", 0.49, True),
        ("contradicted", 0.5, False),
        ("contradicted", 0.51, True),
        ("not covered", 0.5, False),
        ("not covered", 0.25, False),
        ("not covered", 0.2, True),
        ("not covered", 0.8, True),
    ],
)
def test_support_and_score_may_not_contradict_each_other(support: str, score: float, odd: bool) -> None:
    assert contradicts_score(support, score) is odd


class _SelfContradictingJudge(ScriptedFloor):
    """Says `supported` whatever the score."""

    async def judge(self, *args: Any, **more: Any) -> list[Judgment | Missing]:
        given = await super().judge(*args, **more)
        return [dataclasses.replace(j, support="supported") if isinstance(j, Judgment) else j for j in given]


async def test_judgments_that_contradict_themselves_are_counted_and_flagged() -> None:
    stands = [stand(0, "Yes"), stand(1, "No")]
    floor = _SelfContradictingJudge(CASE, {"judge/candidate/0/*": 0.2, "judge/candidate/1/*": 0.9})
    ruling = await rule(CASE, floor, stands, JudgingSettings())
    assert (ruling.answer, ruling.flags) == ("No", ("judge-at-odds",))
    assert floor.event("judging")["at_odds"] == 3


@pytest.mark.parametrize(
    ("variants", "flags"), [("subset", ("evidence-unperturbed",)), ("paraphrase", ("variant-repeated",))]
)
async def test_one_sentence_has_no_subset_and_the_verdict_says_so(variants: Any, flags: tuple[str, ...]) -> None:
    case = msgspec.structs.replace(CASE, passage="Penguins swim.")
    floor = ScriptedFloor(case, {"evidence/*": ["They swim."], "*": 0.7})
    ruling = await rule(case, floor, [stand(0, "Yes"), stand(1, "No")], JudgingSettings(variants=variants))
    assert ruling.flags == flags
    event = floor.event("judging")
    assert event["unperturbed"] is (variants == "subset")
    assert event["judge_stability"] is None, "one variant cannot vary"
