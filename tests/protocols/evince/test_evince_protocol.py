"""EVINCE on a scripted floor: every way through a debate, and what is noted of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from scripted_evince import (
    CASE,
    FIRST_A,
    FIRST_B,
    HAV,
    HBV,
    HCV,
    JAUNDICE,
    JUDGED,
    PRINTED,
    THIRD_A,
    THIRD_B,
    TURNS,
    debate,
    reads,
    says,
)
from scripted_floor import Script, ScriptedFloor

from moot.protocols.case import Case
from moot.protocols.distribution import OTHER
from moot.protocols.errors import CaseUnfit, QuorumFailed
from moot.protocols.evince.protocol import Evince
from moot.protocols.registry import make_protocol


def moving(one: Mapping[str, float], other: Mapping[str, float]) -> Any:
    """A side that says another thing in every round."""
    return lambda path, _: says(one if int(path.split("/")[1]) % 2 else other)


def numbered(first: Mapping[str, float], second: Mapping[str, float]) -> Any:
    """Arguments that say where they were made; the second distribution is that of side 1."""
    return lambda path, _: says(second if path.endswith("1") else first, f"Said at {path}.")


MOVES: Script = {"round/*/agent/0": says(FIRST_A), "round/*/agent/1": says(FIRST_B)}


class TestASingleSide:
    async def test_what_it_says_alone_is_the_verdict(self) -> None:
        verdict, floor = await debate({"round/0/agent/0": says(FIRST_A)}, agents=1, follow_ups="always")
        assert list(floor.asks) == ["round/0/agent/0"]
        assert floor.asks["round/0/agent/0"].template == "evince/opening"
        assert (verdict.answer, verdict.how, verdict.rounds) == (HCV, "alone", 0)
        assert verdict.confidence == pytest.approx(0.40)
        assert verdict.distribution == pytest.approx(dict.fromkeys((*JAUNDICE, OTHER), 0.0) | FIRST_A)
        assert floor.kinds() == ["distribution", "round"]
        assert floor.event("round")["distributions"] == {"agent/0": pytest.approx(FIRST_A)}

    async def test_without_a_distribution_the_case_fails(self) -> None:
        with pytest.raises(QuorumFailed, match="round/0/agent/0"):
            await debate({"round/0/agent/0": None}, agents=1)


class TestThePrintedCase:
    async def test_its_numbers_and_its_end(self) -> None:
        """The rounds of the jaundice case with a fourth that comes to rest: numbers by the formulas, not as printed."""
        verdict, floor = await debate(PRINTED, epsilon=0.06)
        rounds = [floor.event("round", f"round/{n}") for n in range(4)]
        assert [each["jsd"] for each in rounds[:3]] == pytest.approx([0.1568, 0.1568, 0.0037], abs=5e-5)
        assert [each["tv"] for each in rounds] == pytest.approx([0.35, 0.35, 0.05, 0.0])
        assert [each["wd"] for each in rounds] == pytest.approx([each["tv"] for each in rounds])
        assert rounds[0]["mi"] == pytest.approx(rounds[1]["mi"]), "a swap changes no symmetric measure"
        assert [each["swapped"] for each in rounds] == [False, True, False, False]
        assert rounds[3]["nmi"] == pytest.approx(1.0)
        assert rounds[3]["ce"]["agent/0>agent/1"] == pytest.approx(rounds[3]["entropy"]["agent/0"], abs=1e-5)
        assert (verdict.how, verdict.rounds) == ("converged", 3)
        assert "swapped" in verdict.flags
        assert verdict.answer == HCV
        assert verdict.confidence == pytest.approx(0.35)

    async def test_with_the_printed_scores_the_printed_rule_does_not_end_it_on_the_swap(self) -> None:
        """CRIT is printed as 0.76, 0.83 and 0.89: it rises on the swap, in which nothing else changes."""
        printed: Script = {f"crit/round/{n}/*": reads(mark) for n, mark in enumerate((7.6, 8.3, 8.9))}
        verdict, floor = await debate({**printed, **PRINTED}, stop="printed", max_rounds=2)
        assert (verdict.how, verdict.rounds) == ("max_rounds", 2)
        assert [floor.event("round", f"round/{n}")["crit"]["agent/0"] for n in range(3)] == pytest.approx(
            [0.76, 0.83, 0.89]
        )

    async def test_the_printed_rule_ends_it_on_the_swap_where_crit_stays(self) -> None:
        verdict, floor = await debate(PRINTED, stop="printed")
        assert (verdict.how, verdict.rounds) == ("printed", 1)
        stop = floor.event("stop")
        assert stop["jsd_change"] == pytest.approx(0.0, abs=1e-12)
        assert stop["crit_change"] == 0.0
        assert verdict.payload["converged"] is False

    @pytest.mark.parametrize(
        ("marks", "how", "rounds"), [((8, 8, 8, 8), "printed", 1), ((6, 7, 8, 9), "max_rounds", 3)]
    )
    async def test_sides_at_rest_that_agree_have_converged_whatever_rule_ends(
        self, marks: tuple[int, ...], how: str, rounds: int
    ) -> None:
        rising: Script = {f"crit/round/{n}/*": reads(mark) for n, mark in enumerate(marks)}
        verdict, _ = await debate({"round/*": says(FIRST_A), **rising}, stop="printed")
        assert (verdict.how, verdict.rounds, verdict.payload["converged"]) == (how, rounds, True)

    async def test_every_turn_has_its_events(self) -> None:
        _, floor = await debate(PRINTED, epsilon=0.06)
        for number in range(4):
            for agent in ("agent/0", "agent/1"):
                assert floor.event("distribution", f"round/{number}/{agent}")["changes"] == []
                assert floor.event("quality-gate", f"round/{number}/{agent}")["passed"] is True
                assert floor.event("crit", f"crit/round/{number}/{agent}")["score"] == pytest.approx(0.8)
        turned = [floor.event("contentiousness", f"round/{number}") for number in range(3)]
        assert [each["before"] for each in turned[1:]] == [each["after"] for each in turned[:-1]]
        assert floor.event("round", "round/1")["kappa"] == turned[0]["after"]


class TestStops:
    async def test_sides_that_stay_apart_have_stalled(self) -> None:
        verdict, floor = await debate({"round/*/agent/0": says(FIRST_A), "round/*/agent/1": says(FIRST_B), **JUDGED})
        assert (verdict.how, verdict.rounds) == ("stalled", 1)
        assert floor.event("stop")["jsd"] == pytest.approx(0.1568, abs=5e-5)

    async def test_sides_that_move_to_the_end(self) -> None:
        verdict, _ = await debate(
            {"round/*/agent/0": moving(FIRST_A, THIRD_B), "round/*/agent/1": says(FIRST_B), **JUDGED}
        )
        assert (verdict.how, verdict.rounds) == ("max_rounds", 3)

    async def test_a_round_in_which_nobody_could_speak_is_no_rest(self) -> None:
        script: Script = {"round/1/*": None, "round/*": says(FIRST_A), **JUDGED}
        verdict, floor = await debate(script)
        assert (verdict.how, verdict.rounds) == ("converged", 2)
        assert floor.event("round", "round/1")["failed"] == ["round/1/agent/0", "round/1/agent/1"]
        assert "turn-failed" in verdict.flags

    async def test_a_side_that_failed_to_speak_has_not_come_to_rest(self) -> None:
        script: Script = {
            "round/1/agent/1": None,
            "round/*/agent/0": says({HCV: 0.9, HBV: 0.1}),
            "round/0/agent/1": says({HBV: 0.9, HCV: 0.1}),
            "round/*/agent/1": says({HCV: 0.9, HBV: 0.1}),
            **JUDGED,
        }
        verdict, floor = await debate(script)
        assert floor.event("round", "round/1")["moves"] == {"agent/0": 0.0, "agent/1": None}
        assert floor.event("round", "round/1")["information_gain"] is None
        silence = floor.event("round", "round/1")
        assert silence["silent"] == ["agent/1"]
        assert (silence["entropy"]["agent/1"], silence["crit"]["agent/1"]) == (None, None), "they would be old"
        assert silence["crit"]["agent/0"] is not None
        assert (verdict.how, verdict.rounds, verdict.answer) == ("converged", 3, HCV)

    @pytest.mark.parametrize(
        ("silent", "settings", "converged"),
        [
            ("round/2/agent/1", {}, None),
            ("round/1/agent/1", {}, True),
            ("none", {"schedule": "ensemble"}, False),
        ],
    )
    async def test_whether_a_silent_side_has_converged_is_unknown(
        self, silent: str, settings: dict[str, Any], converged: bool | None
    ) -> None:
        script: Script = {silent: None, "round/*": says(FIRST_A), **JUDGED}
        rising: Script = {f"crit/round/{n}/*": reads(6 + n) for n in range(4)}
        more = settings or {"stop": "printed", "max_rounds": 2}
        verdict, _ = await debate({**rising, **script}, **more)
        assert verdict.payload["converged"] is converged


class TestSchedules:
    async def test_random_levels_hang_on_the_case_alone(self) -> None:
        levels = []
        for other in (FIRST_B, THIRD_A):
            script: Script = {"round/*/agent/0": moving(FIRST_A, THIRD_B), "round/*/agent/1": says(other), **JUDGED}
            _, floor = await debate(script, schedule="random")
            levels.append([floor.event("round", f"round/{n}")["kappa"] for n in range(4)])
        assert levels[0] == levels[1], "whatever is said"
        assert levels[0][0] == 0.9
        assert len(set(levels[0])) == 4

    async def test_a_second_debate_runs_through_the_schedule_again(self) -> None:
        case = Case(id="j", question="Which?", labels=JAUNDICE, documents=("HCV: blood.",))

        sides = moving({HCV: 0.3, HBV: 0.3, HAV: 0.4}, {HCV: 0.4, HBV: 0.3, HAV: 0.3})
        _, floor = await debate({"round/*": sides, **JUDGED}, case, schedule="linear", retrieve=1, retrieve_from=0.1)
        levels = [floor.event("round", f"round/{n}")["kappa"] for n in range(7)]
        assert levels[:4] == pytest.approx([0.9, 0.9 - 0.8 / 3, 0.9 - 1.6 / 3, 0.1])
        assert levels[4:] == pytest.approx([0.9, 0.9 - 0.8 / 3, 0.9 - 1.6 / 3])

    async def test_ensemble_is_no_debate(self) -> None:
        verdict, floor = await debate({"round/0/*": says(FIRST_A), **JUDGED}, schedule="ensemble")
        assert (verdict.how, verdict.rounds) == ("ensemble", 0)
        assert floor.paths("round/") == ["round/0/agent/0", "round/0/agent/1"]
        assert {floor.asks[path].template for path in floor.paths("round/")} == {"evince/opening"}
        assert verdict.distribution == pytest.approx({**dict.fromkeys(JAUNDICE, 0.0), **FIRST_A, OTHER: 0.0})


class TestWhatIsShown:
    async def test_full_history_in_order_and_only_once(self) -> None:
        _, floor = await debate(PRINTED, epsilon=0.06)
        slots = floor.asks["round/2/agent/1"].slots
        assert [(turn["name"], turn["round"]) for turn in slots["earlier"]] == [
            ("agent/0", 0), ("agent/1", 0), ("agent/0", 1),
        ]  # fmt: skip
        assert slots["own"]["round"] == 1
        assert [other["round"] for other in slots["others"]] == [2], "A has spoken in this round already"

    async def test_distributions_only(self) -> None:
        _, floor = await debate(PRINTED, history="distribution")
        slots = floor.asks["round/1/agent/1"].slots
        assert slots["earlier"] == []
        assert slots["others"][0]["text"] == ""
        assert slots["others"][0]["distribution"].startswith(HBV)

    async def test_a_weak_argument_is_withheld_from_the_others_and_fed_back_to_its_author(self) -> None:
        script: Script = {
            "crit/round/0/agent/0/judge/0": reads(2, "It is Tuesday."),
            **PRINTED,
            "round/0/agent/0": says(FIRST_A, "It is Tuesday."),
        }
        verdict, floor = await debate(script)
        gate = floor.event("quality-gate", "round/0/agent/0")
        assert (gate["passed"], gate["crit"], gate["threshold"]) == (False, pytest.approx(0.2), 0.4)
        assert "It is Tuesday." not in floor.prompt("round/0/agent/1")
        assert f"{HCV} 0.40" in floor.prompt("round/0/agent/1"), "the distribution is shown in any case"
        own = floor.prompt("round/1/agent/0")
        assert own.count("It is Tuesday.") == 2, "as its own reply, and as a weak argument"
        assert "argument-withheld" in verdict.flags

    async def test_a_false_reason_is_handed_back_as_such_and_the_good_ones_are_not(self) -> None:
        """The source's own case: a side builds on the absence of a fever that the case gives."""
        marks = {"There is no fever.": 9, "The skin is yellow.": 9, "The fatigue fits.": 8}
        reasons = [{"text": text, "validity": mark, "credibility": 9} for text, mark in marks.items()]
        reasons[0]["contradicts_facts"] = True
        read = reads(8) | {"reasons": reasons}
        _, floor = await debate({"crit/round/0/agent/0/*": read, "round/*": says(FIRST_A, *marks), **JUDGED})
        slots = floor.asks["round/1/agent/0"].slots
        assert (slots["contradicted"], slots["weak"]) == (["There is no fever."], [])
        prompt = floor.prompt("round/1/agent/0")
        assert prompt.count("</contradiction>") == 1
        assert "weak_argument" not in prompt
        assert not {"contradiction", "weak_argument"} & set(re.findall(r"\w+", floor.prompt("round/1/agent/1")))

    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"gate": False},
            {"agents": 3},
            {"gate": False, "crit_turns": "last"},
            {"retrieve": 1, "retrieve_from": 0.0},
        ],
    )
    async def test_judges_read_every_turn_in_the_same_way(self, settings: dict[str, Any]) -> None:
        """Scores of one case are compared with each other: in weights, in bars, and from first to last round."""
        case = msgspec.structs.replace(CASE, documents=("Retrieved.",) if "retrieve" in settings else ())
        _, floor = await debate({"round/*": numbered(FIRST_A, FIRST_B), **JUDGED}, case, **settings)
        again = [request for path, request in floor.asks.items() if request.slots.get("evidence")]
        assert bool(again) is ("retrieve" in settings)
        read = {path: dict(request.slots) for path, request in floor.asks.items() if path.startswith("crit/")}
        assert {slots["text"] for slots in read.values()} == {f"Said at {path[5:-8]}." for path in read}
        own = {"claim", "text"}
        assert len({str({name: slots[name] for name in slots if name not in own}) for slots in read.values()}) == 1
        assert {slots["opposing"] for slots in read.values()} == {""}

    async def test_the_bar_does_not_depend_on_the_opener(self) -> None:
        script: Script = {
            "crit/round/0/agent/0/*": reads(9),
            "crit/round/0/agent/1/*": reads(5),
            "crit/round/1/agent/0/*": reads(5),
            "round/*": says(FIRST_A),
            **JUDGED,
        }
        _, floor = await debate(script)
        bars = {path: floor.event("quality-gate", path)["threshold"] for path in TURNS}
        assert [bars[f"round/0/agent/{i}"] for i in (0, 1)] == [0.4, 0.4], "nobody has shown anything yet"
        assert [bars[f"round/1/agent/{i}"] for i in (0, 1)] == pytest.approx([0.55, 0.55])
        assert floor.event("quality-gate", "round/1/agent/0")["passed"] is False

    async def test_judges_see_the_text_of_a_letter(self) -> None:
        case = Case(id="l", question="Which drug?", labels=("A", "B"), choices=("Aspirin", "Warfarin"))
        _, floor = await debate({"round/*": says({"A": 0.9, "B": 0.1}), **JUDGED}, case)
        read = floor.prompt("crit/round/0/agent/0/judge/0")
        assert "A) Aspirin." in read
        assert "probability 0.90" not in read
        assert "B) Warfarin" in read


class TestConsensus:
    async def test_weights_are_crit_scores(self) -> None:
        script: Script = {
            "round/*/agent/0": says({HCV: 1.0}),
            "round/*/agent/1": says({HBV: 1.0}),
            "crit/round/*/agent/0/*": reads(9),
            "crit/round/*/agent/1/*": reads(3),
        }
        verdict, floor = await debate(script, gate=False)
        assert floor.event("consensus")["weights"] == pytest.approx({"agent/0": 0.75, "agent/1": 0.25})
        assert verdict.answer == HCV
        assert verdict.confidence == pytest.approx(0.75)
        assert verdict.payload["crit_mean"] == pytest.approx(0.6)

    async def test_an_ensemble_is_the_average(self) -> None:
        marks: Script = {"crit/*/agent/0/*": reads(9), "crit/*/agent/1/*": reads(3)}
        script = {"round/*/agent/0": says({HCV: 0.9, HBV: 0.1}), "round/*/agent/1": says({HBV: 1.0}), **marks}
        verdict, floor = await debate(script, schedule="ensemble")
        assert floor.event("consensus")["weights"] == {"agent/0": 0.5, "agent/1": 0.5}
        assert floor.event("consensus")["weights_from"] == "equal"
        assert verdict.answer == HBV
        assert verdict.confidence == pytest.approx(0.55)

    async def test_an_unknown_score_is_not_zero(self) -> None:
        script: Script = {
            "round/*/agent/0": says({HCV: 1.0}),
            "round/*/agent/1": says({HBV: 0.9, HCV: 0.1}),
            "crit/round/*/agent/0/*": None,
            "crit/*": reads(9),
        }
        verdict, floor = await debate(script)
        assert floor.event("consensus")["weights_from"] == "equal"
        assert verdict.distribution is not None
        assert verdict.distribution[HCV] == pytest.approx(0.55)
        assert verdict.payload["crit"]["agent/0"] is None
        assert "judges-missing" in verdict.flags

    async def test_when_both_mean_something_else_there_is_no_answer(self) -> None:
        verdict, _ = await debate({"round/*": says({"Plague": 0.8, HCV: 0.2}), **JUDGED})
        assert (verdict.answer, verdict.confidence) == (None, None)
        assert {"other-leads", "distribution-mended"} <= set(verdict.flags)
        assert verdict.distribution is not None
        assert verdict.distribution[OTHER] == pytest.approx(0.8)

    async def test_only_the_last_turns_are_read(self) -> None:
        script = {**PRINTED}
        _, floor = await debate(script, gate=False, crit_turns="last", epsilon=0.06)
        assert floor.paths("crit/") == ["crit/round/3/agent/0/judge/0", "crit/round/3/agent/1/judge/0"]

    async def test_without_judges(self) -> None:
        verdict, floor = await debate({"round/*": says(FIRST_A)}, gate=False, crit_turns="none")
        assert not floor.paths("crit/")
        assert verdict.payload["crit_mean"] is None
        assert make_protocol("evince", {"gate": False, "crit_turns": "none"}).roles == ("agent",)


class TestAfterwards:
    UNSURE = says({HCV: 0.35, HBV: 0.35, HAV: 0.3})

    async def test_follow_ups_when_unsure(self) -> None:
        script: Script = {
            "round/*": self.UNSURE,
            **JUDGED,
            "follow-ups/agent/0": {"questions": ["Since when?", "since when"], "tests": ["ALT"]},
            "follow-ups/agent/1": {"questions": ["Any travel?"], "tests": ["alt", "Serology"]},
        }
        verdict, floor = await debate(script, follow_ups="unsure", retrieve=0)
        found = {"questions": ["Since when?", "Any travel?"], "tests": ["ALT", "Serology"]}
        assert verdict.payload["follow_ups"] == found
        assert floor.event("follow-ups") == {**found, "failed": 0}

    async def test_what_was_withheld_stays_withheld(self) -> None:
        script: Script = {
            "round/*/agent/0": says({HCV: 0.35, HBV: 0.35, HAV: 0.3}, "It is Tuesday."),
            "round/*": self.UNSURE,
            "crit/round/*/agent/0/*": reads(2, "It is Tuesday."),
            **JUDGED,
            "follow-ups/*": {"questions": ["Since when?"], "tests": ["ALT"]},
        }
        _, floor = await debate(script, follow_ups="unsure", retrieve=0)
        assert floor.asks["follow-ups/agent/1"].slots["arguments"] == ["The skin is yellow."]

    async def test_follow_ups_that_failed_are_not_nothing_to_ask(self) -> None:
        script: Script = {"round/*": self.UNSURE, **JUDGED, "follow-ups/*": None}
        verdict, floor = await debate(script, follow_ups="unsure", retrieve=0)
        assert verdict.payload["follow_ups"] is None
        assert "follow-ups-failed" in verdict.flags
        assert "turn-failed" not in verdict.flags
        assert "follow-ups" not in floor.kinds()

    async def test_none_when_sure(self) -> None:
        verdict, floor = await debate({"round/*": says({HCV: 0.9, HBV: 0.1}), **JUDGED}, follow_ups="unsure")
        assert verdict.payload["follow_ups"] is None
        assert not floor.paths("follow-ups")

    async def test_uncertain_with_documents_debates_once_more(self) -> None:
        case = Case(id="j", question="Which?", labels=JAUNDICE, documents=("HCV: blood.", "HBV: blood, too."))
        script: Script = {
            "round/[01]/*": self.UNSURE,
            "round/*": says({HCV: 0.95, HBV: 0.05}),
            **JUDGED,
        }
        verdict, floor = await debate(script, case, retrieve=2, retrieve_from=0.5)
        assert floor.event("retrieved")["documents"] == [0, 1]
        assert "HCV: blood." not in floor.prompt("round/1/agent/0")
        assert "HCV: blood." in floor.prompt("round/2/agent/0")
        assert floor.event("contentiousness", "round/1")["why"] == "debated once more"
        assert floor.event("stop", "stop/again")["reason"] == "converged"
        assert "retrieved" in verdict.flags
        assert verdict.confidence == pytest.approx(0.95)


class TestTrouble:
    async def test_no_labels(self) -> None:
        with pytest.raises(CaseUnfit, match="closed list of labels"):
            await debate({}, Case(id="f", question="Why?"))

    async def test_a_label_that_is_called_like_the_rest(self) -> None:
        with pytest.raises(CaseUnfit, match="rename the label"):
            await debate({}, Case(id="o", question="Which?", labels=("Flu", OTHER)))

    @pytest.mark.parametrize("schedule", ["adaptive", "ensemble"])
    async def test_one_side_alone_is_no_debate(self, schedule: str) -> None:
        with pytest.raises(QuorumFailed, match="1 of 2 sides"):
            await debate({"round/0/agent/1": None, "round/*": says(FIRST_A), **JUDGED}, schedule=schedule)

    async def test_when_the_opener_fails_among_three_the_next_one_opens(self) -> None:
        script: Script = {"round/0/agent/0": None, "round/*": says(FIRST_A), **JUDGED}
        verdict, floor = await debate(script, agents=3)
        assert floor.asks["round/0/agent/1"].template == "evince/opening"
        assert floor.event("round", "round/0")["entropy"].keys() == {"agent/1", "agent/2"}
        assert floor.event("round", "round/1")["moves"] is None, "there is no last round of the same sides"
        assert verdict.how == "converged"


class TestOrder:
    @pytest.mark.parametrize(("order", "opens"), [("given", "agent/0"), ("reversed", "agent/1")])
    async def test_who_opens(self, order: str, opens: str) -> None:
        verdict, floor = await debate({**MOVES, **JUDGED}, order=order)
        other = {"agent/0": "agent/1", "agent/1": "agent/0"}[opens]
        assert floor.paths("round/")[:4] == [f"round/{n}/{name}" for n in (0, 1) for name in (opens, other)]
        assert floor.asks[f"round/0/{opens}"].template == "evince/opening"
        assert "Explore:" in floor.prompt(f"round/0/{other}")
        assert list(floor.event("round", "round/0")["entropy"]) == ["agent/0", "agent/1"], "by side, whoever opens"
        assert floor.event("round", "round/0")["order"] == [opens, other]
        assert verdict.how == "stalled"

    async def test_a_seeded_order_hangs_on_the_case_alone_and_stays(self) -> None:
        openers = set()
        for seed in range(20):
            orders = []
            for second in (FIRST_B, THIRD_A):
                floor = ScriptedFloor(CASE, {**MOVES, "round/*/agent/1": says(second), **JUDGED}, seed=seed)
                await make_protocol("evince", {"order": "seeded", "follow_ups": "never"}).run(CASE, floor)
                orders += [floor.event("round", f"round/{n}")["order"] for n in (0, 1)]
            assert all(order == orders[0] for order in orders)
            openers.add(orders[0][0])
        assert openers == {"agent/0", "agent/1"}


class TestMore:
    async def test_three_sides(self) -> None:
        script: Script = {
            "round/*/agent/0": says(FIRST_A), "round/*/agent/1": says(FIRST_B), "round/*/agent/2": says(THIRD_A),
            **JUDGED,
        }  # fmt: skip
        verdict, floor = await debate(script, agents=3)
        found = floor.event("round", "round/1")
        assert len(found["kl"]) == 6
        assert found["generalised_jsd"] > 0.0
        assert found["jsd"] < found["jsd_max"]
        assert verdict.how == "stalled"
        assert sum(verdict.payload["weights"].values()) == pytest.approx(1.0)

    async def test_a_ground_distance_between_labels(self) -> None:
        _, floor = await debate(PRINTED, ground="embedding")
        found = floor.event("round", "round/0")
        assert found["wd"] != pytest.approx(found["tv"])
        assert floor.embedded == list(JAUNDICE)

    async def test_kullback_leibler_needs_smoothing_and_says_so(self) -> None:
        _, floor = await debate(PRINTED, kl_epsilon=1e-3)
        found = floor.event("round", "round/0")
        assert found["kl_floored"] == 2
        assert 0.0 < found["kl"]["agent/0>agent/1"] < 7.0

    def test_settings_without_effect_make_no_difference(self) -> None:
        def effective(**settings: Any) -> Mapping[str, Any]:
            protocol = make_protocol("evince", settings)
            assert isinstance(protocol, Evince)
            return protocol.effective_settings()

        assert effective(schedule="ensemble", gate=True) == effective(schedule="ensemble", gate=False)
        assert effective(schedule="ensemble", max_rounds=9) == effective(schedule="ensemble")
        assert effective(gate=True) != effective(gate=False)
        assert effective(schedule="fixed") != effective()
        assert effective(agents=1, schedule="fixed", gate=False, top_k=3) == effective(agents=1, top_k=3)
        assert effective(agents=1, answer_first=False) != effective(agents=1)

    def test_what_one_side_never_reads_is_reported(self) -> None:
        one, two = (make_protocol("evince", {"agents": agents}) for agents in (1, 2))
        assert isinstance(one, Evince)
        assert isinstance(two, Evince)
        assert {"schedule", "kappa", "gate", "quality", "crit", "max_rounds"} <= one.unread_settings
        assert not {"agents", "top_k", "answer_first"} & one.unread_settings
        assert not {"schedule", "kappa", "gate", "max_rounds"} & two.unread_settings

    @pytest.mark.parametrize(
        "settings",
        [
            {"agents": 1},
            {"agents": 1, "answer_first": False},
            {},
            {"history": "distribution"},
            {"schedule": "ensemble"},
            {"follow_ups": "never"},
            {"crit_turns": "none", "gate": False},
        ],
    )
    async def test_it_declares_the_replies_that_it_asks_for(self, settings: dict[str, Any]) -> None:
        script: Script = {**MOVES, **JUDGED, "follow-ups/*": {"questions": ["Q?"], "tests": []}}
        _, floor = await debate(script, **{"follow_ups": "always", **settings})
        asked = {(request.role.partition("/")[0], request.reply) for request in floor.asks.values()}
        protocol: Any = make_protocol("evince", {"follow_ups": "always", **settings})
        assert {(family, reply) for family, replies in protocol.replies.items() for reply in replies} == asked
