"""SELENE and its baselines as whole debates on a scripted floor."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_floor import Script, ScriptedFloor, ScriptedPosition

from moot.protocols.case import Case
from moot.protocols.errors import QuorumFailed
from moot.protocols.messages import LogprobStage, Verdict
from moot.protocols.registry import make_protocol
from moot.protocols.selene.debate import stop_reason
from moot.protocols.templates import Templates

TEMPLATES = Templates()
CASE = Case(
    id="c", question="Can penguins fly?", labels=("Yes", "No"), passage="Penguins swim. They do not fly. Gulls do."
)
AGREE: Script = {"opening/*": ScriptedPosition("No"), "judge/consensus/*": 0.9}
SPLIT: Script = {
    "opening/agent/0": ScriptedPosition("Yes", reasoning="Birds fly. @90"),
    "opening/*": ScriptedPosition("No"),
}


async def debate(
    script: Script, settings: dict[str, Any] | None = None, *, name: str = "selene", case: Case = CASE, seed: int = 0
) -> tuple[Verdict, ScriptedFloor]:
    floor = ScriptedFloor(case, script, seed=seed)
    return await make_protocol(name, settings or {}).run(case, floor), floor


async def test_agreement_skips_and_takes_one_judge_pass() -> None:
    verdict, floor = await debate(AGREE)
    assert (verdict.answer, verdict.how, verdict.confidence, verdict.rounds) == ("No", "skipped", 0.9, 0)
    assert verdict.distribution == {"Yes": 0.0, "No": 1.0}
    assert verdict.payload["confidence_from"] == "judge"
    assert "confidence_stage" not in verdict.payload
    assert verdict.payload["distribution_from"] == "votes"
    assert floor.paths() == [
        "opening/agent/0",
        "opening/agent/1",
        "opening/agent/2",
        "judge/consensus/judge/0/variant/0/pass/0",
    ]
    assert floor.kinds() == ["gate", "judging"]
    gate = floor.event("gate")
    assert gate["skip"]
    assert gate["logprob_stages"] == ["unknown"] * 3
    assert (gate["tau_d"], gate["tau_d_encoder"]) == (0.35, "hashed-ngrams-512-v1")


async def test_uncertain_agreement_is_debated() -> None:
    script: Script = {
        "opening/*": ScriptedPosition("No", 0.5, 0.5),
        "round/*": ScriptedPosition("No"),
        "judge/candidate/*": 0.8,
    }
    verdict, floor = await debate(script)
    assert (verdict.how, verdict.rounds) == ("stable-agree", 1)
    assert floor.event("gate")["reasons"] == ["low_intrinsic"]


async def test_agents_see_each_other_once_per_round_and_converge() -> None:
    script: Script = {**SPLIT, "round/*": ScriptedPosition("No", 0.95), "judge/candidate/*": 0.8}
    verdict, floor = await debate(script)
    assert (verdict.answer, verdict.how, verdict.rounds) == ("No", "stable-agree", 2)
    first = floor.asks["round/1/agent/0"].slots
    assert first["own"]["answer"] == "Yes"
    assert {(o["name"], o["answer"]) for o in first["others"]} == {("agent/1", "No"), ("agent/2", "No")}
    assert floor.event("round", "round/1")["changed"] == ["agent/0"]
    assert floor.event("stop")["reason"] == "stable-agree"


async def test_the_others_come_in_a_seeded_order() -> None:
    async def orders(seed: int) -> list[list[str]]:
        script = {**SPLIT, "round/*": ScriptedPosition("No"), "judge/candidate/*": 0.8}
        _, floor = await debate(script, {"agents": 4, "debate.epsilon": 0.0}, seed=seed)
        return [[other["name"] for other in floor.asks[path].slots["others"]] for path in floor.paths("round/")]

    found = [await orders(seed) for seed in range(4)]
    assert found[0] == await orders(0)
    assert len({tuple(map(tuple, each)) for each in found}) == 4
    firsts = {order[0] for each in found for order in each}
    assert firsts == {f"agent/{i}" for i in range(4)}


@pytest.mark.parametrize("shown", [False, True])
async def test_stated_confidences_are_shown_only_where_configured(shown: bool) -> None:
    script: Script = {**TWO_OF_THREE, "round/*": ScriptedPosition("No", 0.95)}
    _, floor = await debate(script, {"debate.failed_openings": "join", "debate.show_confidence": shown})
    for path in floor.paths("round/"):
        ask = floor.asks[path]
        text = TEMPLATES.render(ask.template, ask.slots)[-1].content
        assert ("confidence=" in text) is shown, path
        assert 'answer="No"' in text


@pytest.mark.parametrize(
    ("before", "after", "agree", "last", "reason"),
    [
        (0.5, 0.49, True, False, "stable-agree"),
        (0.5, 0.51, False, False, "stable-disagree"),
        (0.5, 0.3, True, False, None),
        (0.5, 0.8, True, False, None),
        (0.5, 0.3, True, True, "unanimous"),
        (0.5, 0.3, False, True, "t_max"),
        (0.5, 0.8, False, True, "diverging"),
        (0.5, 0.8, True, True, "diverging"),
        (0.5, 0.5, True, True, "stable-agree"),
        (None, 0.5, True, True, "unanimous"),
    ],
)
def test_stop_reasons(before: float | None, after: float | None, agree: bool, last: bool, reason: str | None) -> None:
    assert stop_reason(before, after, agree=agree, revised=True, last=last, epsilon=0.02) == reason


def test_a_round_without_any_revision_is_not_stability() -> None:
    assert stop_reason(0.5, 0.5, agree=False, revised=False, last=False, epsilon=0.02) is None
    assert stop_reason(0.5, 0.5, agree=False, revised=False, last=True, epsilon=0.02) == "t_max"


def _angles(*rounds: int, final: str = "Yes") -> Script:
    """Agent 0 answers `final` at these angles, one per round; the others stay at 0 degrees with No."""
    own = {f"round/{t}/agent/0": ScriptedPosition(final, reasoning=f"So. @{a}") for t, a in enumerate(rounds, 1)}
    return {**SPLIT, **own, "round/*": ScriptedPosition("No"), "judge/candidate/0/*": 0.2, "judge/candidate/1/*": 0.8}


@pytest.mark.parametrize(
    ("script", "how", "rounds"),
    [
        (_angles(90), "stable-disagree", 1),
        (_angles(90, final="No"), "stable-agree", 1),
        (_angles(60, 40, 10), "t_max", 3),
        (_angles(60, 40, 10, final="No"), "unanimous", 3),
        (_angles(60, 40, 170), "diverging", 3),
    ],
)
async def test_each_stop_reason_is_reached(script: Script, how: str, rounds: int) -> None:
    verdict, floor = await debate(script)
    assert (verdict.how, verdict.rounds) == (how, rounds)
    assert len([kind for kind in floor.kinds() if kind == "round"]) == rounds
    stop = floor.event("stop")
    assert (stop["reason"], stop["epsilon"]) == (how, 0.02)


async def test_a_failed_revision_keeps_the_last_reply() -> None:
    script: Script = {
        **SPLIT, "round/1/agent/0": None, "round/*": ScriptedPosition("No"), "judge/candidate/0/*": 0.3, "judge/*": 0.6,
    }  # fmt: skip
    verdict, floor = await debate(script)
    assert (verdict.answer, verdict.how) == ("No", "stable-disagree")
    assert "revision-failed" in verdict.flags
    assert floor.event("round")["failed"] == {"agent/0": "refused"}
    assert floor.event("round")["answers"]["agent/0"] == "Yes"


async def test_quorum() -> None:
    with pytest.raises(QuorumFailed, match="1 of 3 openings"):
        await debate({"opening/agent/0": None, "opening/agent/1": None, **AGREE})


TWO_OF_THREE: Script = {"opening/agent/2": None, **AGREE, "judge/candidate/*": 0.8}


async def test_a_failed_opening_is_no_agreement() -> None:
    verdict, floor = await debate({**TWO_OF_THREE, "round/*": ScriptedPosition("No")})
    assert (verdict.answer, verdict.how, verdict.rounds) == ("No", "stable-agree", 1)
    assert verdict.flags == ("opening-failed",)
    gate = floor.event("gate")
    assert (gate["unanimous"], gate["equal"], gate["complete"]) == (False, True, False)
    assert (gate["reasons"], gate["answers"]) == (["incomplete"], ["No", "No"])
    assert floor.paths("round/") == ["round/1/agent/0", "round/1/agent/1"]


async def test_an_agent_whose_opening_failed_may_join_the_debate() -> None:
    script: Script = {
        **TWO_OF_THREE,
        "round/1/agent/2": None,
        "round/2/agent/2": ScriptedPosition("Yes"),
        "round/*": ScriptedPosition("No"),
    }
    settings = {"debate.failed_openings": "join", "debate.epsilon": 0.0}
    verdict, floor = await debate(script, settings)
    assert (verdict.how, verdict.rounds, verdict.flags) == ("unanimous", 3, ("opening-failed",))
    assert verdict.distribution == {"Yes": 0.0, "No": 1.0}
    first, joined, third = (floor.event("round", f"round/{number}") for number in (1, 2, 3))
    assert (first["failed"], first["joined"]) == ({"agent/2": "refused"}, [])
    assert (joined["joined"], joined["changed"], joined["answers"]["agent/2"]) == (["agent/2"], [], "Yes")
    assert (third["joined"], third["changed"]) == ([], ["agent/2"])
    asked = floor.asks["round/1/agent/2"]
    assert asked.template == "selene/joining"
    assert {other["name"] for other in asked.slots["others"]} == {"agent/0", "agent/1"}
    assert floor.asks["round/3/agent/2"].template == "selene/revision"


async def test_without_logprobs_the_gate_uses_disagreement_and_unanimity() -> None:
    verdict, floor = await debate(
        {"opening/*": ScriptedPosition("No", p=None), "judge/*": 0.9}, {"gate.intrinsic": "none"}
    )
    assert verdict.how == "skipped"
    gate = floor.event("gate")
    assert gate["untested"] == ["misalignment", "low_intrinsic"]
    assert gate["intrinsic"] == [None, None, None]


async def test_resampling_estimates_p_by_asking_again() -> None:
    script: Script = {
        **AGREE,
        "resample/agent/0/1": ScriptedPosition("Yes"),
        "resample/agent/1/*": None,
        "resample/agent/2/2": None,
        "resample/*": ScriptedPosition("No"),
        "round/*": ScriptedPosition("No"),
        "judge/*": 0.9,
    }
    _, floor = await debate(script, {"gate": {"intrinsic": "resampled", "resamples": 4}})
    assert floor.event("gate")["intrinsic"] == [0.75, None, 1.0]
    assert len(floor.paths("resample/")) == 12
    again = floor.asks["resample/agent/0/2"]
    assert (again.role, again.sample, again.template) == ("agent/0", 2, "selene/opening")
    assert again.slots == floor.asks["opening/agent/0"].slots


async def test_free_text_is_compared_folded_and_its_p_is_unknown() -> None:
    case = Case(id="c", question="Which bird swims?")
    script: Script = {
        "opening/agent/0": ScriptedPosition("Penguin.", p=None), "opening/*": ScriptedPosition("penguin", p=None),
        "judge/*": 0.9,
    }  # fmt: skip
    verdict, floor = await debate(script, {"gate.if_untested": "ignore"}, case=case)
    assert (verdict.answer, verdict.how, verdict.distribution) == ("penguin", "skipped", None)
    assert verdict.flags == ("evidence-from-rationales",)
    assert floor.event("judging")["evidence_from"] == "rationales"
    assert floor.event("gate")["untested"] == ["misalignment", "low_intrinsic"]


async def test_an_audit_debates_a_skipped_case_and_leaves_its_verdict() -> None:
    script: Script = {**AGREE, "round/*": ScriptedPosition("Yes"), "judge/candidate/*": 0.99}
    verdict, floor = await debate(script, {"audit_skipped": 1.0})
    assert (verdict.answer, verdict.how, verdict.rounds, verdict.confidence) == ("No", "skipped", 0, 0.9)
    audit = floor.event("audit")
    assert (audit["skipped_answer"], audit["debated_answer"], audit["rounds"]) == ("No", "Yes", 1)


async def test_the_audit_takes_its_share_by_the_seed() -> None:
    script: Script = {**AGREE, "round/*": ScriptedPosition("Yes"), "judge/candidate/*": 0.99}
    audited = ["audit" in (await debate(script, {"audit_skipped": 0.3}, seed=seed))[1].kinds() for seed in range(200)]
    assert 35 <= sum(audited) <= 85


@pytest.mark.parametrize("opening", [AGREE, SPLIT])
async def test_both_branches_run_whatever_the_gate_says(opening: Script) -> None:
    script: Script = {
        **opening,
        "round/*": ScriptedPosition("Yes"),
        "judge/candidate/*": 0.99,
        "judge/consensus/*": 0.6,
    }
    verdict, floor = await debate(script, {"both_branches": True, "audit_skipped": 1.0})
    branches = floor.event("branches")
    assert (branches["skipped_answer"], branches["debated_answer"]) == ("No", "Yes")
    assert (verdict.how == "skipped") == (opening is AGREE) == (branches["verdict_from"] == "skip")
    assert verdict.answer == ("No" if opening is AGREE else "Yes")
    assert "audit" not in floor.kinds()
    assert floor.paths("judge/consensus")
    assert floor.paths("round/1")


async def test_single_agent() -> None:
    protocol = make_protocol("single-agent")
    assert (protocol.roles, protocol.needs_logprobs) == (("agent",), False)
    verdict, floor = await debate({"opening/*": ScriptedPosition("Yes", 0.8, 0.7)}, name="single-agent")
    assert (verdict.answer, verdict.how, verdict.confidence) == ("Yes", "single", 0.7)
    assert verdict.payload["confidence_from"] == "intrinsic"
    assert floor.paths() == ["opening/agent/0"]
    assert floor.kinds() == []
    with pytest.raises(QuorumFailed, match="0 of 1 openings"):
        await debate({"opening/*": None}, name="single-agent")


@pytest.mark.parametrize(
    ("stages", "told"),
    [
        (("raw", "raw"), ("intrinsic", "raw")),
        (("masked", "masked"), ("intrinsic", "masked")),
        (("before", "after"), ("unknown", None)),
        (("raw", "masked"), ("unknown", None)),
    ],
)
async def test_the_verdict_says_at_which_stage_its_confidence_was_taken(
    stages: tuple[LogprobStage, LogprobStage], told: tuple[str, str | None]
) -> None:
    script: Script = {
        "opening/agent/0": ScriptedPosition("Yes", p=0.7, stage=stages[0]),
        "opening/agent/1": ScriptedPosition("Yes", p=0.7, stage=stages[1]),
        "opening/agent/2": ScriptedPosition("No", p=0.7, stage="unknown"),
    }
    verdict, _ = await debate(script, {"vote.samples": 1}, name="majority-vote")
    assert verdict.answer == "Yes"
    assert (verdict.payload["confidence_from"], verdict.payload.get("confidence_stage")) == told


async def test_majority_vote() -> None:
    script: Script = {
        "opening/*": ScriptedPosition("Yes"),
        "vote/*/1": ScriptedPosition("No", p=None),
        "vote/*": ScriptedPosition("No", p=0.6),
    }
    verdict, floor = await debate(script, name="majority-vote")
    assert (verdict.answer, verdict.how, len(floor.asks)) == ("No", "vote", 9)
    assert verdict.confidence == pytest.approx(0.6)
    assert floor.asks["vote/agent/2/1"].sample == 1
    assert verdict.distribution is not None
    assert verdict.distribution["No"] == pytest.approx(2 / 3)


async def test_vote_ties_go_to_stated_confidence_then_seed() -> None:
    settings = {"agents": 2, "vote.samples": 1}
    sure: Script = {"opening/agent/0": ScriptedPosition("Yes", 0.6), "opening/*": ScriptedPosition("No", 0.7)}
    verdict, floor = await debate(sure, settings, name="majority-vote")
    assert (verdict.answer, verdict.flags) == ("No", ("vote-tied",))
    assert floor.event("vote") == {
        "votes": [{"answer": "No", "count": 1, "stated": 0.7}, {"answer": "Yes", "count": 1, "stated": 0.6}],
        "tied": ["No", "Yes"],
        "tie_broken_by": "stated_confidence",
        "answer": "No",
    }
    even: Script = {"opening/agent/0": ScriptedPosition("Yes"), "opening/*": ScriptedPosition("No")}
    answers = {(await debate(even, settings, name="majority-vote", seed=s))[0].answer for s in range(30)}
    assert answers == {"Yes", "No"}
    assert (await debate(even, settings, name="majority-vote"))[1].event("vote")["tie_broken_by"] == "seed"


async def test_always_debate_judges_each_answer_once() -> None:
    script: Script = {**AGREE, "round/*": ScriptedPosition("No"), "judge/candidate/*": 0.4}
    verdict, floor = await debate(script, name="always-debate")
    assert (verdict.how, verdict.confidence, verdict.flags) == ("stable-agree", 0.4, ())
    assert floor.event("gate")["reasons"] == ["always"]
    script = {**_angles(90), "judge/candidate/0/*": 0.8, "judge/candidate/1/*": 0.7}
    verdict, floor = await debate(script, name="always-debate")
    assert (verdict.answer, len(floor.paths("judge/"))) == ("Yes", 2)
    weighted, floor = await debate(_angles(90), {"judging.method": "evidence-weighted"}, name="always-debate")
    assert (weighted.answer, len(floor.paths("judge/"))) == ("No", 6)


async def test_those_who_answered_may_agree_without_the_others_where_that_is_set() -> None:
    verdict, floor = await debate(TWO_OF_THREE, {"gate.require_complete": False})
    assert (verdict.answer, verdict.how, verdict.flags) == ("No", "skipped", ("opening-failed",))
    assert (floor.event("gate")["complete"], floor.event("gate")["skip"]) == (False, True)


@pytest.mark.parametrize("name", ["selene", "single-agent"])
async def test_final_answers_are_judged_once_more_beside_the_verdict(name: str) -> None:
    plain, _ = await debate(AGREE, name=name)
    verdict, floor = await debate({**AGREE, "audit/*": 0.2}, {"audit_judging": True, "judging.k": 4}, name=name)
    assert verdict == plain
    event = floor.event("judging", "audit/judge")
    assert [each["answer"] for each in event["candidates"]] == ["No"]
    assert floor.paths("audit/") == [f"audit/judge/candidate/0/judge/0/variant/{k}/pass/0" for k in range(4)]


@pytest.mark.parametrize("name", ["selene", "always-debate", "single-agent"])
async def test_an_audit_perturbs_as_the_judging_is_set_to_for_every_system(name: str) -> None:
    script: Script = {
        **_angles(90),
        "*paraphrase/0": ["They swim.", "No flight.", "Gulls fly."],
        "*paraphrase/1": ["Swimmers.", "Not fliers.", "As gulls are."],
        "*paraphrase/*": ["In water.", "On foot.", "Unlike gulls."],
        "audit/judge/*": 0.5,
    }
    settings = {"audit_judging": True, "judging.variants": "paraphrase"}
    _, floor = await debate(script, settings, name=name)
    audit = floor.event("judging", "audit/judge")
    assert (audit["variants"], audit["variant_sizes"]) == ("paraphrase", [3, 3, 3])
    asked = [path for path in floor.paths() if "paraphrase" in path]
    once = "evidence" if name == "selene" else "audit/evidence"
    assert asked == [f"{once}/paraphrase/{k}" for k in range(3)], "equal asks are paid once"


async def test_a_vote_replaces_missing_judges() -> None:
    script: Script = {
        **SPLIT,
        "round/*": ScriptedPosition("No", p=0.7),
        "round/*/agent/0": ScriptedPosition("Yes"),
        "judge/*": None,
    }
    verdict, floor = await debate(script, {"debate.max_rounds": 1})
    assert (verdict.answer, verdict.flags) == ("No", ("judges-missing",))
    assert verdict.confidence == pytest.approx(0.7)
    assert verdict.payload["confidence_from"] == "intrinsic"
    assert floor.event("vote")["answer"] == "No"
