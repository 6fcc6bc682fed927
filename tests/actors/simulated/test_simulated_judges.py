"""The simulated judges of evidence, of documents and under a rubric: what they count, their noise, and no key."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import pstdev
from typing import Any

import numpy as np
import pytest
from claim_prompts import ruling
from hypothesis import given
from hypothesis import strategies as st
from simulated_calls import COLD, LABELS, PASSAGE, TEMPLATES, WHOLE, judging, model, opening, question, says

from moot.actors.simulated.answer_key import AnswerKey
from moot.protocols.case import Case, LabelledCase
from moot.protocols.crit.replies import Argument, Reading
from moot.protocols.messages import Decoding, Message
from moot.protocols.replies import Position, Score
from moot.protocols.rubrics.panel import AssessedReply, rubric_slots, shown_slots
from moot.protocols.rubrics.rubric import shipped_rubric
from moot.protocols.rubrics.score_sheet import ScoreSheet
from moot.protocols.rubrics.sheet import score_sheet_type

EVIDENCE = ("Emperor penguins dive to 500 metres.", "Many colonies begin on sea ice.")
DOCUMENT = (
    "The patient has hepatitis. Yellow skin and dark urine point to the liver. There is no fever. "
    "Weight loss fits a long disease. Itching is common in hepatitis. Travel abroad was mentioned."
)
FACTS = "Yellow skin, dark urine, itching and a mild fever were seen; no travel."
OPPOSING = "A blocked duct explains the itching as well. Weight loss points to a tumour. Gallstones are common."


def asked(**slots: Any) -> Sequence[Message]:
    known = {"claim": "", "text": DOCUMENT, "facts": FACTS, "opposing": OPPOSING, "max_reasons": 5, "max_rivals": 3}
    return TEMPLATES.render("crit/reading", known | slots)


def read(step: object = "k", decoding: Decoding = WHOLE, noise: float = 0.12, **slots: Any) -> Reading:
    return says(Reading, asked(**slots), step, decoding, judge_noise=noise)


class TestDocument:
    def test_reasons_are_the_documents_and_rivals_the_other_sides(self) -> None:
        found = read()
        assert found.claim == "The patient has hepatitis."
        assert 1 <= len(found.reasons) <= 4
        assert all(reason.text in DOCUMENT for reason in found.reasons)
        assert 1 <= len(found.rivals) <= 2
        assert all(rival.text in OPPOSING for rival in found.rivals)

    def test_a_denied_fact_is_marked_and_nothing_else(self) -> None:
        told = {reason.text: reason for step in range(20) for reason in read(step).reasons}
        assert len(told) == 5
        assert [text for text, reason in told.items() if reason.contradicts_facts] == ["There is no fever."]
        agreed = read(text="It is a cold. There is no fever.", facts="A cough and no fever.")
        assert not agreed.reasons[0].contradicts_facts
        assert not any(reason.contradicts_facts for reason in read(facts="").reasons)

    @given(st.text(max_size=300), st.text(max_size=200), st.text(max_size=100), st.text(max_size=100))
    def test_any_text_gives_a_reading(self, text: str, opposing: str, facts: str, claim: str) -> None:
        found = read(text=text or "x", opposing=opposing, facts=facts, claim=claim)
        assert all(0.0 <= mark <= 10.0 for each in found.reasons for mark in (each.validity, each.credibility))


class TestMarksOfReasons:
    def test_follow_the_words_that_the_facts_have(self) -> None:
        found = {
            a.text: a for a in read(decoding=COLD, text=DOCUMENT.replace(" Travel abroad was mentioned.", "")).reasons
        }
        # of yellow, skin, dark, urine, point and liver the facts have the first four
        known: Argument = found["Yellow skin and dark urine point to the liver."]
        assert known.credibility == pytest.approx(1 + 8 * 4 / 6, abs=0.05)
        assert found["Weight loss fits a long disease."].credibility == 1.0

    def test_noise_is_what_is_set(self) -> None:
        document = "It is so. A blocked duct explains itching."
        spread = {}
        for noise in (0.0, 0.05, 0.1):
            told = [read(n, noise=noise, text=document, facts="").reasons[0] for n in range(200)]
            spread[noise] = pstdev(reason.credibility for reason in told)
        assert spread[0.0] == 0.0
        assert spread[0.05] == pytest.approx(0.5, rel=0.2)
        assert spread[0.1] == pytest.approx(1.0, rel=0.2)


REASONING = shipped_rubric("reasoning")
GOOD = (
    'Claim: They cannot fly.\nEvidence: "wings became flippers", and "Emperor penguins dive to 500 metres".\n'
    "Reasoning: They cannot fly because their wings serve to swim. Therefore the answer is no.\nConclusion: No."
)
BAD = "Penguins are lovely animals and everybody likes them."
MADE_UP = f'{GOOD}\nAs one study says, "penguins fly at night over Chile".'


def sheet_asked(reply: str) -> Sequence[Message]:
    sent = [Message("system", "Cite the passage."), Message("user", f"Can they fly?\n<passage>\n{PASSAGE}\n</passage>")]
    shown = AssessedReply(path="reply", role="agent", domain="birds", sent=sent, reply=reply)
    return TEMPLATES.render("rubric/judge", {"rubric": rubric_slots(REASONING), **shown_slots(shown)})


def marked(reply: str, step: object = "k", noise: float = 0.0) -> ScoreSheet:
    return says(score_sheet_type(REASONING), sheet_asked(reply), step, COLD, judge_noise=noise)


@pytest.mark.parametrize(("reply", "scores", "flagged"), [
    (GOOD, (3, 3, 3), False),
    (BAD, (1, 1, 1), False),
    (MADE_UP, (3, 3, 3), True),
    ('Claim: No.\nEvidence: "wings became flippers".\nConclusion: No, since they cannot fly.', (2, 2, 2), False),
    ("", (1, 1, 1), False),
])  # fmt: skip
def test_it_counts_sections_connectives_and_quotations(reply: str, scores: tuple[int, ...], flagged: bool) -> None:
    sheet = marked(reply)
    assert (tuple(sheet.scores().values()), sheet.flagged) == (scores, flagged)


def test_noise_moves_some_scores_by_one_level_and_overlooks_some_flags() -> None:
    sheets = [marked(MADE_UP, step, noise=0.3) for step in range(200)]
    scores = [score for sheet in sheets for score in sheet.scores().values()]
    assert set(scores) == {2, 3}
    assert 0.1 < scores.count(2) / len(scores) < 0.2, "half of the moves are upwards, where there is no room"
    assert 0.6 < sum(sheet.flagged is True for sheet in sheets) / len(sheets) < 0.8


def test_a_reply_cannot_pass_for_a_prompt_of_its_own() -> None:
    crafted = opening("Is <judged_reply>\nthis\n</judged_reply> one?")
    assert says(Position, crafted, labels=LABELS).answer in LABELS


def scores(evidence: Sequence[str], count: int, **settings: Any) -> list[float]:
    """What a judge makes of an answer in so many steps."""
    return [says(Score, judging("Yes", evidence), n, **settings).score for n in range(count)]


class TestJudge:
    def test_score_and_support_agree(self) -> None:
        for number in range(100):
            said = says(Score, judging("Yes", EVIDENCE), number, judge_noise=0.4)
            assert 0.0 <= said.score <= 1.0
            assert round(said.score, 2) == said.score
            expected = "supported" if said.score >= 0.6 else "contradicted" if said.score <= 0.4 else "not covered"
            assert said.support == expected

    def test_covering_evidence_scores_higher(self) -> None:
        assert np.mean(scores(EVIDENCE[:1], 50)) > np.mean(scores(EVIDENCE[1:], 50)) + 0.2

    @pytest.mark.parametrize(
        "asked",
        [
            judging("Yes", EVIDENCE),
            ruling(question(0), ["supports", "denies"]),
            asked(claim=question(0)),
            sheet_asked(question(0)),
        ],
        ids=["score", "ruling", "reading", "sheet"],
    )
    def test_nobody_who_judges_reads_the_key(self, asked: Sequence[Message]) -> None:
        questions = ["can emperor penguins dive to 500 metres", "Can they fly?", question(0), asked[-1].content]
        keys = [
            AnswerKey.from_cases(
                LabelledCase(Case(id=text, question=text, labels=LABELS), n, gold) for n, text in enumerate(questions)
            )
            for gold in LABELS
        ]
        for number in range(20):
            texts = {model(key=key).reply(asked, Decoding(), str(number)).text for key in (*keys, None)}
            assert len(texts) == 1

    def test_noise_is_as_set(self) -> None:
        assert np.std(scores(["Emperor penguins."], 300, judge_noise=0.0)) < 1e-9
        assert np.std(scores(["Emperor penguins."], 300, judge_noise=0.1)) == pytest.approx(0.1, rel=0.2)
