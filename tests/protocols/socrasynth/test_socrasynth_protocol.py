"""SocraSynth on a scripted floor: every way to its verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scripted_floor import R, ScriptedFloor
from socrasynth_script import (
    ROUNDS,
    SUBJECT,
    agenda,
    closing,
    finishing,
    marks,
    reading,
    run_scripted,
    speech,
    themes,
    whole,
)

from moot.protocols.case import Case
from moot.protocols.errors import AskFailed, QuorumFailed
from moot.protocols.floor import Request
from moot.protocols.messages import Decision, Failure, Slots, Turn
from moot.protocols.socrasynth.debater_slots import Positions
from moot.protocols.socrasynth.panel import judge_closings
from moot.protocols.socrasynth.sides import SIDES, Topic


async def test_the_whole_debate_in_order() -> None:
    floor, verdict = await run_scripted(settings={"max_rounds": 2})
    order = list(dict.fromkeys(path.split("/")[0] for path in floor.asks))
    assert order == ["topics", "round", "crit", "confirm", "closing", "joint", "panel"]
    assert (verdict.answer, verdict.how, verdict.rounds, verdict.confidence) == ("For", "max_rounds", 2, None)
    assert verdict.payload["totals"] == {"A": 22.5, "B": 16.5}
    assert verdict.payload["position_bias"] == {"judge/0": 0}
    assert verdict.payload["joint"]["proposal"] == ["Amended point."]
    assert set(verdict.flags) == {"judges-not-independent"}
    kinds = floor.kinds()
    assert [kind for kind in dict.fromkeys(kinds) if kind != "crit"] == [
        "topics",
        "contentiousness",
        "round",
        "stop",
        "confirm",
        "closing",
        "joint",
        "panel",
    ]
    assert kinds.count("round") == 3
    assert kinds.count("crit") == 3 * 2 + 2


class TestTopics:
    async def test_what_is_proposed_merged_and_fixed_is_on_record(self) -> None:
        floor, _ = await run_scripted()
        data = floor.event("topics")
        assert [theme["title"] for theme in data["proposed"]["agent/1"]] == ["Trade", "Freedom"]
        assert [topic["title"] for topic in data["topics"]] == ["Trade", "Air", "Freedom"]
        assert data["merged"] == [{"into": "Trade", "from": ["A2", "B1"]}]
        assert (data["by"], data["dropped"], data["wanted"]) == ("moderator", [], 3)
        shown = floor.asks["topics/moderator"].slots["themes"]
        assert [theme["tag"] for theme in shown] == ["A1", "A2", "B1", "B2"]
        assert floor.asks["topics/refine/agent/1"].slots["others"][0]["title"] == "Air"

    async def test_repeats_are_merged_visibly_and_nothing_is_made_up_in_their_place(self) -> None:
        floor, verdict = await run_scripted({"topics/moderator": agenda("Trade", " trade ", "TRADE", "Air")})
        data = floor.event("topics")
        assert [topic["title"] for topic in data["topics"]] == ["Trade", "Air"]
        assert data["merged"] == [{"into": "Trade", "from": ["trade"]}, {"into": "Trade", "from": ["TRADE"]}]
        assert "fewer-topics" in verdict.flags

    @pytest.mark.parametrize(("text", "flagged"), [("", True), ("Air\nTrade\nNoise", False), ("Air", False)])
    async def test_a_person_has_as_many_topics_as_they_want(self, text: str, flagged: bool) -> None:
        edit = {"moderation/topics": Decision("edit", text)} if text else {}
        _, verdict = await run_scripted({"topics/moderator": agenda("Trade", "Air")}, decisions=edit)
        assert ("fewer-topics" in verdict.flags) == flagged

    async def test_a_failed_refinement_leaves_the_proposal(self) -> None:
        floor, verdict = await run_scripted({"topics/refine/agent/0": None, "topics/propose/agent/0": themes("Noise")})
        assert floor.asks["topics/moderator"].slots["themes"][0]["title"] == "Noise"
        assert "proposal-failed" not in verdict.flags

    async def test_without_any_proposal_the_case_fails(self) -> None:
        with pytest.raises(QuorumFailed, match="neither side proposed"):
            await run_scripted({"topics/propose/*": None})

    async def test_without_a_moderator_the_case_fails(self) -> None:
        with pytest.raises(AskFailed, match="topics/moderator"):
            await run_scripted({"topics/moderator": None})


class TestRounds:
    async def test_b_sees_the_last_argument_of_a_and_the_opening_is_blind(self) -> None:
        floor, _ = await run_scripted(settings={"max_rounds": 1})
        assert [floor.asks[f"round/0/agent/{i}"].slots["transcript"] for i in (0, 1)] == [[], []]
        seen = {
            i: [(one["round"], one["side"]) for one in floor.asks[f"round/1/agent/{i}"].slots["transcript"]]
            for i in (0, 1)
        }
        assert seen[0] == [(0, "A")] * 3 + [(0, "B")] * 3
        assert seen[1] == [*seen[0], *[(1, "A")] * 3]

    async def test_levels_fall_as_scheduled(self) -> None:
        floor, verdict = await run_scripted(settings={"schedule": "three-phase"})
        levels = [floor.event("contentiousness", f"round/{n}")["after"] for n in range(4)]
        assert levels == [0.9, 0.7, 0.5, 0.1]
        assert floor.asks["round/2/agent/1"].slots["contentiousness"]["level"] == "0.50"
        assert (verdict.how, verdict.rounds) == ("schedule-ended", 3)

    async def test_temperature_follows_contentiousness_only_when_set(self) -> None:
        floor, _ = await run_scripted(settings={"max_rounds": 1})
        assert floor.asks["round/1/agent/0"].decoding is None
        floor, _ = await run_scripted(settings={"max_rounds": 1, "temperature": 1.0, "max_tokens": 77})
        decoding = floor.asks["round/1/agent/0"].decoding
        assert decoding is not None
        assert decoding.temperature == pytest.approx(0.75)
        assert decoding.max_tokens == 77
        assert floor.event("round", "round/1")["temperature"] == pytest.approx(0.75)

    async def test_weak_points_go_back_to_the_side_that_made_them(self) -> None:
        judged = {"crit/round/0/agent/1/*": reading(2.0), "crit/round/0/agent/0/*": reading(9.0, contradicts=True)}
        floor, _ = await run_scripted(judged, {"max_rounds": 1, "crit.weak_points": 1})
        a, b = (floor.asks[f"round/1/agent/{i}"].slots for i in (0, 1))
        assert (a["contradicted"], b["contradicted"]) == (["a weak reason"], [])
        assert b["deeper"] == ["a weak reason"]
        data = floor.event("round", "round/0")
        assert data["crit"] == {
            "agent/0": floor.event("crit", "crit/round/0/agent/0")["score"],
            "agent/1": pytest.approx(0.2),
        }
        assert data["gamma"] == pytest.approx((data["crit"]["agent/0"] + 0.2) / 2)

    async def test_crit_reads_the_facts_and_the_other_side(self) -> None:
        floor, _ = await run_scripted(settings={"max_rounds": 0})
        slots = floor.asks["crit/round/0/agent/1/judge/0"].slots
        assert slots["facts"] == SUBJECT.passage
        assert slots["claim"] == "Against: Should the town ban cars?"
        assert slots["text"].startswith("Trade: round/0/agent/1 on Trade.")
        assert slots["opposing"].startswith("Trade: round/0/agent/0 on Trade.")

    async def test_a_skipped_topic_is_recorded(self) -> None:
        def one_topic(path: str, slots: Slots) -> dict[str, Any]:
            return speech(path, slots) | {
                "arguments": [{"topic": 2, "argument": "Air."}, {"topic": 9, "argument": "?"}]
            }

        floor, _ = await run_scripted({"round/1/agent/0": one_topic}, {"max_rounds": 1})
        assert floor.event("round", "round/1")["left_out"] == {"agent/0": ["Trade", "Freedom"]}


class TestStopping:
    async def test_on_a_plateau_of_gamma(self) -> None:
        floor, verdict = await run_scripted(settings={"patience": 2, "min_delta": 0.01})
        assert (verdict.how, verdict.rounds) == ("plateau", 2)
        stop = floor.event("stop")
        assert (stop["reason"], stop["patience"], stop["min_delta"]) == ("plateau", 2, 0.01)
        assert stop["gammas"] == [pytest.approx(0.6)] * 3

    async def test_a_topic_ends_when_both_sides_are_exhausted(self) -> None:
        floor, verdict = await run_scripted({"round/1/agent/0": finishing, "round/2/agent/?": finishing})
        assert (verdict.how, verdict.rounds) == ("both-done", 2)
        assert floor.event("stop")["finished"] == ["agent/0", "agent/1"]

    @pytest.mark.parametrize(("reply", "how"), [({"declined": True}, "declined"), (None, "turn-failed")])
    async def test_when_a_side_argues_no_further(self, reply: dict[str, Any] | None, how: str) -> None:
        floor, verdict = await run_scripted({"round/2/agent/0": reply})
        assert (verdict.how, verdict.rounds, verdict.answer) == (how, 2, "For")
        assert floor.event("round", "round/2")["failed"] == {"agent/0": "declined" if reply else "refused"}
        assert floor.event("round", "round/2")["crit"]["agent/0"] is None
        assert "round/2/agent/1" not in floor.asks, "there is nothing that B could answer"
        assert not floor.paths("crit/round/2")
        assert not floor.paths("confirm/")

    async def test_a_concession_needs_no_argument_and_is_never_lost(self) -> None:
        bare: dict[str, Any] = {"round/1/agent/0": {"conceded": True}, "round/1/agent/1": finishing}
        floor, verdict = await run_scripted(bare)
        assert (verdict.how, verdict.rounds, verdict.payload["conceded"]) == ("both-done", 1, ["agent/0"])
        assert floor.event("concession", "round/1/agent/0") == {"side": "A", "round": 1}
        assert floor.event("round", "round/1")["left_out"] == {}
        assert not floor.paths("crit/round/1/agent/0")
        for also in ({"declined": True}, {"arguments": [{"topic": 0, "argument": "Weather."}]}):
            floor, verdict = await run_scripted({"round/1/agent/1": {"conceded": True, **also}}, {"max_rounds": 1})
            assert verdict.how == ("declined" if "declined" in also else "max_rounds")
            assert floor.event("round", "round/1")["conceded"] == verdict.payload["conceded"] == ["agent/1"]

    @pytest.mark.parametrize("reply", [{"declined": True}, None])
    async def test_no_debate_without_both_openings(self, reply: dict[str, Any] | None) -> None:
        with pytest.raises(QuorumFailed, match=r"agent/1: (declined|refused)"):
            await run_scripted({"round/0/agent/1": reply})


class TestConfirming:
    @pytest.mark.parametrize(
        ("settings", "how"),
        [
            ({"patience": 1}, "plateau"),
            ({"max_rounds": 1}, "max_rounds"),
            ({"schedule": "three-phase"}, "schedule-ended"),
        ],
    )
    async def test_both_are_asked_at_once_before_the_closings(self, settings: dict[str, Any], how: str) -> None:
        floor, verdict = await run_scripted(settings=settings)
        assert verdict.how == how
        assert floor.paths("confirm/") == ["confirm/agent/0", "confirm/agent/1"]
        seen = [floor.asks[f"confirm/agent/{i}"].slots["transcript"] for i in (0, 1)]
        assert seen[0] == seen[1]
        assert floor.event("confirm")["presented_all"] == {"agent/0": True, "agent/1": True}

    async def test_an_exhausted_or_ended_side_is_not_asked(self) -> None:
        floor, _ = await run_scripted({ROUNDS: finishing})
        ended, _ = await run_scripted(decisions={"moderation/round/0": Decision("end")})
        for each in (floor, ended):
            assert not each.paths("confirm/")
            assert "confirm" not in each.kinds()

    async def test_additions_precede_the_closings_and_no_round_follows(self) -> None:
        more = {"presented_all": False, "additions": [{"topic": 2, "addition": "Trees."}], "conceded": False}
        changes = {"confirm/agent/1": more, "closing/agent/1": None}
        floor, verdict = await run_scripted(changes, {"max_rounds": 1})
        told = floor.asks["closing/agent/0"].slots["transcript"][-1]
        assert (told["side"], told["round"], told["topic"], told["text"]) == ("B", 1, "Air", "Trees.")
        assert floor.event("confirm")["added"] == {"agent/1": ["Air"]}
        assert floor.asks["panel/order/1/topic/2/judge/0"].slots["second"]["text"] == "Trees."
        assert verdict.rounds == 1

    async def test_what_is_added_though_all_was_presented_is_counted_and_reaches_no_prompt(self) -> None:
        more = [{"topic": 2, "addition": "Trees."}, {"topic": 1, "addition": "Trees."}]
        floor, _ = await run_scripted(
            {"confirm/agent/1": {"presented_all": True, "additions": more}}, {"max_rounds": 1}
        )
        data = floor.event("confirm")
        assert (data["added"], data["passed_over"]) == ({}, {"agent/1": 2})
        assert "Trees." not in str([request.slots for request in floor.asks.values()])

    async def test_a_concession_and_a_failure(self) -> None:
        changes = {"confirm/agent/0": {"presented_all": False, "conceded": True}, "confirm/agent/1": None}
        floor, verdict = await run_scripted(changes, {"max_rounds": 1})
        assert floor.event("concession", "confirm/agent/0") == {"side": "A", "round": 1}
        assert verdict.payload["conceded"] == ["agent/0"]
        data = floor.event("confirm")
        assert (data["presented_all"], data["failed"]) == ({"agent/0": False, "agent/1": None}, {"agent/1": "refused"})


class TestClosing:
    async def test_the_last_arguments_replace_a_failed_closing(self) -> None:
        floor, verdict = await run_scripted({"closing/agent/1": None}, {"max_rounds": 1})
        assert "closing-failed" in verdict.flags
        assert floor.event("closing")["failed"] == {"agent/1": "refused"}
        assert floor.asks["panel/order/1/topic/1/judge/0"].slots["second"]["text"] == "round/1/agent/1 on Trade."

    async def test_crit_of_each_topic_on_request(self) -> None:
        floor, _ = await run_scripted(settings={"crit_topics": True, "max_rounds": 0})
        assert floor.event("closing")["crit_by_topic"] == {f"agent/{i}": [pytest.approx(0.6)] * 3 for i in (0, 1)}
        assert floor.asks["crit/closing/topic/2/agent/0/judge/0"].slots["text"] == "closing/agent/0 on Air."

    async def test_a_topic_that_one_side_skips_has_no_score_to_compare(self) -> None:
        said = [{"topic": n, "statement": f"On {n}."} for n in (1, 3)]
        without = {"closing/agent/1": {"declined": False, "statements": said}}
        floor, _ = await run_scripted(without, {"crit_topics": True, "max_rounds": 0})
        alone = floor.asks["crit/closing/topic/2/agent/0/judge/0"].slots
        assert alone["opposing"] == "", "a judge finds its rivals elsewhere, and fewer of them"
        expected = [pytest.approx(0.6), None, pytest.approx(0.6)]
        assert floor.event("closing")["crit_by_topic"] == {"agent/0": expected, "agent/1": expected}

    async def test_parts_of_the_proposal_that_fail(self) -> None:
        floor, verdict = await run_scripted({"joint/draft/agent/0": None})
        assert floor.event("joint")["proposal"] is None
        assert "joint-failed" in verdict.flags
        floor, verdict = await run_scripted({"joint/amend/agent/1": None})
        joint = floor.event("joint")
        assert (joint["proposal"], joint["amended_by"]) == (["Draft point."], None)
        assert joint["consents"] == {"agent/0": True, "agent/1": None}
        floor, verdict = await run_scripted({"joint/consent/agent/0": None})
        assert floor.event("joint")["consents"] == {"agent/0": None, "agent/1": True}


class NamedJudges(ScriptedFloor):
    """Judges on the models of `models`."""

    models: list[str]

    def _say(self, request: Request[R]) -> Turn[R] | Failure:
        turn = super()._say(request)
        return turn if isinstance(turn, Failure) else replace(turn, model=self.models[int(request.role[-1])])


class TestPanel:
    async def test_every_judge_topic_and_order(self) -> None:
        floor, _ = await run_scripted(judges=2)
        assert len(floor.paths("panel/")) == 2 * 3 * 2
        one, two = (floor.asks[f"panel/order/{order}/topic/1/judge/1"].slots for order in (1, 2))
        assert [one["first"]["stance"], two["first"]["stance"]] == ["for", "against"]
        assert one["first"] == two["second"]
        panel = floor.event("panel")
        found = [(sheet["judge"], sheet["order"], sheet["totals"], sheet["winner"]) for sheet in panel["orders"]]
        assert found[:2] == [("judge/0", 1, {"A": 24, "B": 18}, "A"), ("judge/0", 2, {"A": 21, "B": 15}, "A")]
        assert panel["orders"][0]["rationales"] == ["Because."] * 3

    async def test_a_missing_judgment_is_counted_and_not_zero(self) -> None:
        floor, verdict = await run_scripted({"panel/order/2/topic/1/*": None})
        assert "judges-missing" in verdict.flags
        panel = floor.event("panel")
        assert panel["missing"] == 1
        assert panel["orders"][1]["scores"][0] is None
        assert panel["orders"][1]["missing"] == [{"topic": 1, "why": "refused: scripted"}]
        assert verdict.payload["totals"] == {"A": 15, "B": 11}

    async def test_marks_that_were_not_numbers_are_on_the_sheet(self) -> None:
        floor, _ = await run_scripted({"panel/order/2/topic/1/*": {"first": "5/10", "second": "70%"}})
        sheets = floor.event("panel")["orders"]
        assert (sheets[1]["scores"][0], sheets[0]["repairs"]) == ([7, 5], [])
        assert sheets[1]["repairs"] == [{"topic": 1, "marks": ["first: 5/10", "second: 70%"]}]

    async def test_simulated_models_do_not_favour_themselves(self) -> None:
        models = ["simulated?judge_noise=0.2", "http://127.0.0.1:9/v1#simulated", "simulation", "apart"]
        floor = NamedJudges(SUBJECT, {"panel/*": marks(5, 5)}, judges=len(models))
        floor.models = models
        said = {side: {"Air": "So."} for side in SIDES}
        ruling = await judge_closings(SUBJECT, floor, [Topic("Air")], said, models[:-1], Positions())
        assert ruling.not_independent == ("judge/2",)

    async def test_a_topic_on_which_neither_closed_is_put_before_nobody(self) -> None:
        def only_air(path: str, slots: Slots) -> dict[str, Any]:
            said = closing(path, slots)
            return said | {"statements": [one for one in said["statements"] if one["topic"] == 2]}

        floor, _ = await run_scripted({"closing/agent/?": only_air})
        assert {path.split("/")[4] for path in floor.paths("panel/")} == {"2"}
        assert floor.event("panel")["orders"][0]["scores"] == [None, [8, 6], None]


class TestAsPublished:
    async def test_b_answers_as_opening(self) -> None:
        floor, _ = await run_scripted(settings={"openings": "answered", "max_rounds": 0})
        assert floor.asks["round/0/agent/0"].slots["transcript"] == []
        heard = floor.asks["round/0/agent/1"].slots["transcript"]
        assert [(one["side"], one["round"]) for one in heard] == [("A", 0)] * 3

    async def test_a_subject_that_a_side_finds_unbalanced_is_debated_and_flagged(self) -> None:
        doubt = {"topics/balance/agent/1": {"balanced": False, "why": "Nobody is for it."}}
        floor, verdict = await run_scripted(doubt, {"topics.ask_balance": True})
        assert "subject-unbalanced" in verdict.flags
        assert floor.event("topics")["balance"]["agent/1"] == {"balanced": False, "why": "Nobody is for it."}
        assert "Nobody is for it." in floor.forms["moderation/topics"].body
        floor, verdict = await run_scripted({"topics/balance/agent/1": None}, {"topics.ask_balance": True})
        assert list(floor.event("topics")["balance"]) == ["agent/0"]
        assert "subject-unbalanced" not in verdict.flags

    async def test_a_judge_marks_all_topics_at_once_with_one_rationale(self) -> None:
        floor, verdict = await run_scripted(settings={"panel": "whole"}, judges=2)
        assert len(floor.paths("panel/")) == 2 * 2
        one, two = (floor.asks[f"panel/order/{order}/judge/1"].slots for order in (1, 2))
        assert one["first"] == two["second"]
        assert [each["topic"] for each in one["first"]["statements"]] == [1, 2, 3]
        sheet = floor.event("panel")["orders"][0]
        assert (sheet["scores"], sheet["overall"]) == ([[8, 6]] * 3, "Overall.")
        assert verdict.payload["totals"] == {"A": 22.5, "B": 16.5}, "as topic by topic"

    async def test_topics_that_were_not_marked_are_missing(self) -> None:
        changes = {"panel/order/1/judge/*": whole(8, 6, 2, 2, 9), "panel/order/2/judge/*": None}
        floor, verdict = await run_scripted(changes, {"panel": "whole"})
        sheets = floor.event("panel")["orders"]
        assert sheets[0]["scores"] == [None, [8, 6], None]
        assert {one["why"] for one in sheets[0]["missing"]} == {"not marked"}
        assert {one["why"] for one in sheets[1]["missing"]} == {"refused: scripted"}
        assert (verdict.answer, "judges-missing" in verdict.flags) == (None, True)


class TestCases:
    @pytest.mark.parametrize("labels", [("For", "Against"), ("False", "True"), ("no", "yes"), ("a", "b")])
    async def test_two_labels_that_say_for_and_against(self, labels: tuple[str, ...]) -> None:
        choices = ("Against.", "For.") if labels == ("a", "b") else ()
        case = Case(id="x", question="Is it?", labels=labels, choices=choices)
        floor, verdict = await run_scripted(settings={"max_rounds": 0}, case=case)
        assert floor.asks["round/0/agent/0"].slots["labels"] == []
        assert verdict.answer == (labels[0] if labels[0] == "For" else labels[1])

    @pytest.mark.parametrize(("bonus", "answer"), [(3, "Yes"), (-3, "No"), (0, None)])
    async def test_a_yes_or_no_question_is_answered_in_its_own_words(self, bonus: int, answer: str | None) -> None:
        case = Case(id="x", question="Is it Tuesday?", labels=("Yes", "No"))
        changes = {"panel/order/1/*": marks(5 + bonus, 5), "panel/order/2/*": marks(5, 5 + bonus)}
        floor, verdict = await run_scripted(changes, {"max_rounds": 0}, case=case)
        assert verdict.answer == answer
        assert floor.asks["round/0/agent/1"].slots["labels"] == []
        assert floor.asks["crit/round/0/agent/1/judge/0"].slots["claim"] == "Against: Is it Tuesday?"


class TestContentiousness:
    """Its start and delta are settings; fixed levels can be compared (Study 3)."""

    async def test_rounds_and_closings_say_how_agreeable_their_words_are(self) -> None:
        floor, _ = await run_scripted({"closing/*": lambda path, slots: agreeing(slots)})
        assert floor.event("round", "round/1")["agreement_words"] is None
        assert floor.event("round", "round/1")["words"] > 0
        assert floor.event("closing")["agreement_words"] == 1.0


def agreeing(slots: Slots) -> dict[str, Any]:
    return {"declined": False, "statements": [{"topic": n, "statement": "I agree."} for n in range(1, 2)]}
