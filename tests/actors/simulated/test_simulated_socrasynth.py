"""The simulated model in a SocraSynth debate: its replies fit their forms and follow what the prompt says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from simulated_calls import COLD, TEMPLATES, M, says

from moot.actors.simulated.answer_key import AnswerKey
from moot.actors.simulated.words import REGISTERS
from moot.protocols.case import Case, LabelledCase
from moot.protocols.socrasynth.debater_slots import Positions, debater_slots
from moot.protocols.socrasynth.replies import (
    Amendment,
    Comparison,
    Consent,
    Draft,
    LabelledOpening,
    Speech,
    Themes,
)
from moot.protocols.socrasynth.sides import AGAINST, FOR, Side, SideTurn, Topic, subject_slots

CASE = Case(
    id="s",
    question="Should the town ban cars?",
    passage="The town has 900 cars. Its shops are in one street. It is flat.",
)
TOPICS = (Topic("Clean air", "Who breathes it."), Topic("Trade", "Who sells."))
SAID = [SideTurn(side, 0, {topic.title: f"{side.letter} speaks." for topic in TOPICS}) for side in (FOR, AGAINST)]


def reply(kind: type[M], template: str, slots: Mapping[str, Any], step: object = "k", **options: Any) -> M:
    return says(kind, TEMPLATES.render(f"socrasynth/{template}", slots), step, **options)


def debater(side: Side = FOR, level: float = 0.9, said: list[SideTurn] | None = None, **more: Any) -> dict[str, Any]:
    known = {"round": 1, "deeper": [], "contradicted": [], "questions": []}
    return debater_slots(CASE, TOPICS, side, level, SAID if said is None else said, Positions()) | known | more


def shown(draft: Draft, answer: str = "") -> dict[str, Any]:
    return {"answer": answer, "points": draft.points, "questions": draft.questions}


def theme(title: str) -> dict[str, str]:
    return {"title": title, "description": f"About {title}."}


class TestTopics:
    def test_as_many_themes_as_asked_for_and_all_different(self) -> None:
        slots = subject_slots(CASE, ()) | {"side": "A", "stance": "for", "count": 4, "own": [], "others": []}
        titles = [one.title for one in reply(Themes, "themes", slots).themes]
        assert len(titles) == len(set(titles)) == 4
        assert titles != [one.title for one in reply(Themes, "themes", slots, "another").themes]


class TestSpeeches:
    @pytest.mark.parametrize("level", [0.9, 0.3])
    def test_an_argument_per_topic_in_the_register_of_the_level(self, level: float) -> None:
        said = reply(Speech, "refutation", debater(level=level))
        assert [one.topic for one in said.arguments] == [1, 2]
        assert all(one.argument.startswith(REGISTERS[level].openers) for one in said.arguments)
        assert "clean air" in said.arguments[0].argument
        assert not said.declined

    def test_less_contentious_debaters_finish_sooner(self) -> None:
        def finished(level: float) -> int:
            return sum(reply(Speech, "refutation", debater(level=level), n).finished for n in range(200))

        assert finished(0.9) < 25 < 60 < finished(0.1)

    def test_only_the_conciliatory_concede_and_the_stubborn_never(self) -> None:
        def conceded(level: float, **settings: float) -> int:
            slots = debater(level=level)
            return sum(reply(Speech, "refutation", slots, n, **settings).conceded for n in range(150))

        assert conceded(0.9) == 0
        assert conceded(0.1) > 0
        assert conceded(0.1, stubbornness=1.0) == 0


DISEASE = Case(id="d", question="Which disease?", labels=("Flu", "Malaria", "Hepatitis"))
KEY = AnswerKey.from_cases([LabelledCase(DISEASE, 0, "Malaria")])


def on_disease(side: Side = FOR, level: float = 0.9, **more: Any) -> dict[str, Any]:
    """The slots of a side once A has named the flu, and B what is right."""
    positions = Positions()
    positions.name(FOR, "Flu")
    positions.name(AGAINST, "Malaria")
    known = {"round": 1, "deeper": [], "contradicted": [], "questions": []}
    return debater_slots(DISEASE, TOPICS[:1], side, level, SAID, positions) | known | more


class TestClosedLists:
    @pytest.mark.parametrize(("competence", "count"), [(1.0, 40), (0.0, 0)])
    def test_an_opening_names_what_its_competence_gives(self, competence: float, count: int) -> None:
        slots = debater_slots(DISEASE, TOPICS[:1], FOR, 0.9, (), Positions())
        known: dict[str, Any] = {"key": KEY, "labels": DISEASE.labels, "competence": competence}
        named = [reply(LabelledOpening, "opening", slots, n, **known).answer for n in range(40)]
        assert named.count("Malaria") == count

    def test_who_is_wrong_concedes_more_often_and_the_stubborn_less(self) -> None:
        def conceded(side: Side, level: float, **settings: float) -> int:
            slots = on_disease(side, level)
            return sum(reply(Speech, "refutation", slots, n, key=KEY, **settings).conceded for n in range(100))

        assert conceded(FOR, 0.5) > conceded(AGAINST, 0.5)
        assert conceded(FOR, 0.3) > conceded(FOR, 0.9)
        assert conceded(FOR, 0.5, stubbornness=0.2) > conceded(FOR, 0.5, stubbornness=0.9)


class TestProposals:
    def test_a_point_per_topic_then_amended_then_agreed(self) -> None:
        closings = {"closings": [{"side": "A", "stance": "for", "topic": "Trade", "text": "So."}]}
        slots = debater() | closings | {"agreed": "", "both_conceded": False, "draft": {}}
        draft = reply(Draft, "proposal", slots)
        amended = reply(Amendment, "proposal", slots | {"draft": shown(draft)})
        assert len(amended.points) == len(draft.points)
        assert amended.points != draft.points
        assert amended.questions == draft.questions
        both = {"draft": shown(draft), "amended": shown(amended)}
        answers = [reply(Consent, "consent", slots | both, n) for n in range(60)]
        assert {answer.consents for answer in answers} == {True, False}
        assert all(bool(answer.reservations) != answer.consents for answer in answers)


class TestPanel:
    def slots(self, first: str, second: str) -> dict[str, Any]:
        texts = {"first": {"stance": "for", "text": first}, "second": {"stance": "against", "text": second}}
        return subject_slots(CASE, ()) | {"topic": TOPICS[0].record()} | texts

    def test_who_uses_the_facts_is_marked_higher_in_either_place(self) -> None:
        good, bad = "900 cars, and the shops are in one street of a flat town.", "Nonsense."
        one = reply(Comparison, "panel", self.slots(good, bad), decoding=COLD)
        two = reply(Comparison, "panel", self.slots(bad, good), decoding=COLD)
        assert one.first == two.second > one.second == two.first
