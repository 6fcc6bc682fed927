"""CRIT on a scripted floor: paths, depth, budget, missing judges, contradicted facts, feedback."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest
from scripted_floor import Script, ScriptedFloor

from moot.protocols.case import Case
from moot.protocols.crit.appraisal import CritDocument
from moot.protocols.crit.evaluate import crit, crit_all
from moot.protocols.crit.result import CritResult
from moot.protocols.crit.settings import CritSettings

CASE = Case(id="c", question="Does it work?")
DOCUMENT = CritDocument("It works.", "It works, because it is quick and cheap.")


def argument(text: str, validity: float, credibility: float, **marks: bool) -> dict[str, Any]:
    return {"text": text, "validity": validity, "credibility": credibility, **marks}


def reading(*reasons: dict[str, Any], rivals: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {
        "claim": "It works, says the judge.",
        "reasons": list(reasons),
        "rivals": list(rivals),
        "justification": "The reasons carry it.",
        "reflection": "Elsewhere it may fail.",
    }


QUICK, CHEAP = argument("It is quick.", 8, 10), argument("It is cheap.", 4, 10)


def floor_of(script: Script, judges: int = 1) -> ScriptedFloor:
    return ScriptedFloor(CASE, script, judges=judges)


async def crit_of(script: Script, document: CritDocument = DOCUMENT, judges: int = 1, **settings: Any) -> CritResult:
    return await crit(floor_of(script, judges), document, CritSettings(**settings), path="x")


class TestPanel:
    async def test_the_score_is_the_mean_over_the_judges(self) -> None:
        floor = floor_of({"crit/a/judge/0": reading(QUICK), "crit/a/judge/1": reading(CHEAP)}, judges=2)
        result = await crit(floor, DOCUMENT, CritSettings(), path="crit/a")
        assert result.score == pytest.approx(0.6)
        assert result.by_judge == {"judge/0": 0.8, "judge/1": 0.4}
        assert result.shown == "6.0/10"
        assert floor.paths() == ["crit/a/judge/0", "crit/a/judge/1"]
        assert floor.event("crit", "crit/a") == result.record()

    async def test_a_failed_judge_is_missing_with_its_reason_not_zero(self) -> None:
        result = await crit_of({"x/judge/0": None, "x/judge/1": reading(CHEAP)}, judges=2)
        assert result.score == 0.4
        assert result.by_judge == {"judge/0": None, "judge/1": 0.4}
        assert result.missing == {"judge/0": "refused: scripted"}

    async def test_a_reading_without_reasons_has_no_score_but_is_not_missing(self) -> None:
        bare = reading(rivals=(argument("It is dear.", 1, 9),))
        result = await crit_of({"x/judge/0": bare, "x/judge/1": reading(CHEAP)}, judges=2)
        assert (result.score, result.by_judge["judge/0"], result.missing) == (0.4, None, {})
        assert result.notes == ("no-reasons",)

    async def test_nobody_is_asked_to_read_nothing(self) -> None:
        floor = floor_of({}, judges=2)
        result = await crit(floor, CritDocument("It works.", " \n"), CritSettings(), path="x")
        assert floor.paths() == []
        assert (result.score, result.notes) == (None, ("empty-document",))
        assert result.by_judge == {"judge/0": None, "judge/1": None}
        assert floor.event("crit", "x")["calls"] == 0


class TestRivals:
    READ: ClassVar = reading(argument("It is quick.", 5, 5), rivals=(argument("It is dear.", 2, 5),))

    async def test_count_as_printed_unless_they_are_capped(self) -> None:
        assert (await crit_of({"*": self.READ})).score == pytest.approx(0.65)
        capped = await crit_of({"*": self.READ}, rivals="capped")
        assert (capped.score, capped.notes) == (0.5, ("rivals-capped",))


class TestRecord:
    async def test_is_plain_data_with_every_mark(self) -> None:
        rival = argument("It is dear.", 5, 5)
        floor = floor_of({"x/judge/0": reading(QUICK, CHEAP, rivals=(rival,))})
        await crit(floor, DOCUMENT, CritSettings(), path="x")
        event = floor.event("crit")
        assert msgspec.json.decode(msgspec.json.encode(event)) == event
        judge = event["judges"]["judge/0"]
        assert [(p["gamma"], p["theta"], p["s"]) for p in judge["reasons"]] == [(0.8, 1.0, 0.8), (0.4, 1.0, 0.4)]
        assert [(p["gamma"], p["theta"], p["s"]) for p in judge["rivals"]] == [(0.5, 0.5, 0.5)]
        assert (judge["calls"], judge["depth"]) == (1, 0)
        assert (judge["justification"], judge["reflection"]) == ("The reasons carry it.", "Elsewhere it may fail.")


class TestDeeper:
    CLAIM = argument("It is quick.", 8, 10, is_claim=True)

    async def test_the_deeper_score_takes_the_place_of_the_mark(self) -> None:
        deeper = reading(argument("A race was held.", 2, 10))
        floor = floor_of({"x/judge/0": reading(CHEAP, self.CLAIM), "x/judge/0/reason/1": deeper})
        result = await crit(floor, DOCUMENT, CritSettings(), path="x")
        assert result.score == pytest.approx((0.4 + 0.2) / 2)
        asked = floor.asks["x/judge/0/reason/1"].slots
        assert (asked["claim"], asked["text"]) == ("It is quick.", DOCUMENT.text)
        point = floor.event("crit")["judges"]["judge/0"]["reasons"][1]
        assert (point["gamma"], point["stated_gamma"], point["deeper"]["score"]) == (0.2, 0.8, 0.2)
        assert (floor.event("crit")["calls"], floor.event("crit")["depth"]) == (2, 1)

    async def test_goes_as_deep_as_allowed_and_says_where_it_stopped(self) -> None:
        floor = floor_of({"x/judge/0*": reading(self.CLAIM)})
        await crit(floor, DOCUMENT, CritSettings(max_depth=2), path="x")
        assert floor.paths() == ["x/judge/0", "x/judge/0/reason/0", "x/judge/0/reason/0/reason/0"]
        deepest = floor.event("crit")["judges"]["judge/0"]["reasons"][0]["deeper"]["reasons"][0]["deeper"]
        assert deepest["reasons"][0]["unread"] == "depth"

    async def test_depth_0_reads_once(self) -> None:
        floor = floor_of({"x/judge/0": reading(self.CLAIM)})
        result = await crit(floor, DOCUMENT, CritSettings(max_depth=0), path="x")
        assert (len(floor.asks), result.score) == (1, 0.8)

    async def test_the_budget_goes_to_the_most_credible_and_the_rest_is_recorded(self) -> None:
        claims = [argument(f"Reason number {i}.", 9, c, is_claim=True) for i, c in enumerate((2, 9, 5, 7))]
        floor = floor_of({"x/judge/?": reading(*claims), "x/judge/?/reason/?": reading(QUICK)}, judges=2)
        result = await crit(floor, DOCUMENT, CritSettings(max_calls=3), path="x")
        for judge in ("judge/0", "judge/1"):
            assert sorted(floor.paths(f"x/{judge}/")) == [f"x/{judge}/reason/1", f"x/{judge}/reason/3"]
            told = floor.event("crit")["judges"][judge]
            assert [point["unread"] for point in told["reasons"]] == ["budget", "", "budget", ""]
            assert told["calls"] == 3
        assert result.notes == ("budget-spent",)

    async def test_a_failed_deeper_reading_leaves_the_mark_and_says_so(self) -> None:
        floor = floor_of({"x/judge/0": reading(self.CLAIM), "x/judge/0/reason/0": None})
        result = await crit(floor, DOCUMENT, CritSettings(), path="x")
        assert (result.score, result.missing) == (0.8, {})
        assert result.notes == ("deeper-reading-failed",)
        assert floor.event("crit")["judges"]["judge/0"]["reasons"][0]["unread"] == "refused: scripted"

    async def test_a_repeat_is_not_read_again(self) -> None:
        floor = floor_of({"x/judge/0": reading(self.CLAIM, self.CLAIM), "x/judge/0/reason/0": reading(QUICK)})
        await crit(floor, DOCUMENT, CritSettings(), path="x")
        assert floor.paths("x/judge/0/") == ["x/judge/0/reason/0"]

    async def test_the_nearest_source_is_read(self) -> None:
        sources = ("About cost.", "About speed.")

        class Nearest(ScriptedFloor):
            async def retrieve(self, query: str, documents: Any, *, n: int = 5) -> list[int]:
                assert (query, tuple(documents), n) == ("It is quick.", sources, 1)
                return [1]

        floor = Nearest(CASE, {"x/judge/0": reading(self.CLAIM), "x/judge/0/reason/0": reading(CHEAP)})
        document = CritDocument("It works.", "Quick.", facts="Given.", opposing="No.", sources=sources)
        await crit(floor, document, CritSettings(), path="x")
        asked = floor.asks["x/judge/0/reason/0"].slots
        assert (asked["text"], asked["facts"], asked["opposing"]) == ("About speed.", "Given.", "No.")
        assert floor.event("crit")["judges"]["judge/0"]["reasons"][0]["deeper"]["source"] == 1


class TestMany:
    async def test_one_fan_out_per_depth_for_all_documents_and_judges(self) -> None:
        script = {"*/judge/?": reading(TestDeeper.CLAIM), "*/reason/0": reading(CHEAP)}
        floor = floor_of(script, judges=2)
        documents = [
            ("a", DOCUMENT),
            ("b", CritDocument("It fails.", "")),
            ("c", CritDocument("It fails.", "It is dear.")),
        ]
        results = await crit_all(floor, documents, CritSettings())
        tops = ["a/judge/0", "a/judge/1", "c/judge/0", "c/judge/1"]
        assert floor.together == [tops, [f"{top}/reason/0" for top in tops]]
        assert [result.score for result in results] == [0.4, None, 0.4]
        assert [event.path for event in floor.events] == ["a", "b", "c"]


class TestFacts:
    """In the source's own liver case both sides build on a fever that is absent, and the case gives one."""

    FACTS = "The patient has yellow skin, dark urine, itching and a mild fever."
    NO_FEVER = argument("Without any fever an infection of the bile ducts is unlikely.", 9, 8, contradicts_facts=True)
    DARK = argument("Dark urine and itching point to blocked bile ducts.", 6, 8)

    async def test_what_contradicts_a_given_fact_is_listed_and_counts_as_0(self) -> None:
        text = "There is no fever, so the ducts are not infected. The urine is dark, so they are blocked."
        document = CritDocument("A duct is blocked.", text, facts=self.FACTS)
        floor = floor_of({"x/judge/0": reading(self.NO_FEVER, self.DARK)})
        result = await crit(floor, document, CritSettings(), path="x")
        assert result.contradicted == (self.NO_FEVER["text"],)
        assert result.score == pytest.approx(0.3)
        assert result.weak == (), "what is left is good, and not to be given up"
        assert floor.asks["x/judge/0"].slots["facts"] == self.FACTS

    async def test_one_judge_is_enough_to_list_it(self) -> None:
        unmarked = self.NO_FEVER | {"contradicts_facts": False}
        script = {"x/judge/0": reading(unmarked), "x/judge/1": reading(self.NO_FEVER)}
        result = await crit_of(script, CritDocument("", "There is no fever.", facts=self.FACTS), judges=2)
        assert result.contradicted == (self.NO_FEVER["text"],)
        assert result.by_judge == {"judge/0": 0.9, "judge/1": 0.0}
        assert result.weak == ()


class TestWeak:
    async def test_none_of_good_reasons_however_few_there_are(self) -> None:
        good = reading(
            argument("Strong reason.", 9, 9), argument("Another one.", 8, 9), argument("At the bound.", 5, 9)
        )
        assert (await crit_of({"*": good})).weak == ()
        assert (await crit_of({"*": good}, weak_below=0.85)).weak == ("At the bound.", "Another one.")

    async def test_the_weakest_by_theta_times_gamma_come_first(self) -> None:
        reasons = [argument("Strong reason.", 9, 9), argument("Feeble hint.", 3, 6), argument("Incredible tale.", 4, 1)]
        result = await crit_of({"*": reading(*reasons)})
        assert result.weak == ("Incredible tale.", "Feeble hint.")

    async def test_as_many_as_set_each_once_over_all_judges(self) -> None:
        script = {"x/judge/0": reading(QUICK, CHEAP), "x/judge/1": reading(CHEAP | {"text": "it is CHEAP"})}
        found = {most: (await crit_of(script, judges=2, weak_points=most, weak_below=0.9)).weak for most in (5, 1, 0)}
        assert found == {5: ("It is cheap.", "It is quick."), 1: ("It is cheap.",), 0: ()}

    @pytest.mark.parametrize(("other", "weak"), [(7, ()), (5, ("It is cheap.",))])
    async def test_judges_who_differ_are_averaged(self, other: float, weak: tuple[str, ...]) -> None:
        script = {"x/judge/0": reading(CHEAP), "x/judge/1": reading(CHEAP | {"validity": other})}
        assert (await crit_of(script, judges=2)).weak == weak
