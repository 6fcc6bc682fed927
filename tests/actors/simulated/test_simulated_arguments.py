"""Simulated speakers of constructor-auditor: the parts of an argument, and what its tokens reveal about it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import spearmanr
from simulated_calls import TEMPLATES, model

from moot.actors.simulated.answer_key import AnswerKey
from moot.actors.simulated.argument import argued_for, quotations
from moot.protocols.case import Case, Criterion, LabelledCase
from moot.protocols.constructor_auditor.domains import domain_of, speaker_slots, synthesis_slots
from moot.protocols.constructor_auditor.replies import synthesis_for
from moot.protocols.constructor_auditor.settings import ConstructorAuditorSettings
from moot.protocols.messages import Decoding, Message
from moot.protocols.reply_parsing import parse_reply
from moot.protocols.rubrics.panel import AssessedReply, rubric_slots, shown_slots
from moot.protocols.rubrics.rubric import shipped_rubric
from moot.protocols.rubrics.sheet import score_sheet_type
from moot.protocols.tasks import open_task

WHOLE = Decoding(max_tokens=900, top_logprobs=3)
RUBRIC = shipped_rubric("reasoning")
SAMPLE = [labelled.case for labelled in open_task("sample").cases()]
ESSAY = Case(
    id="e",
    question="Which score does the essay deserve?",
    labels=("0", "1", "2", "3"),
    passage="We waited for the bus for two long hours. My sister told me that patience is a kind of strength.",
    criterion=Criterion(trait="Ideas", lowest=0, highest=3, guide="3: focused ideas. 0: none."),
)
PROBLEM = Case(id="p", question="Ann has 3 boxes with 12 eggs in each of them. How many?", domain="mathematics")
SECTIONS = {
    "constructor": ["Claim", "Evidence", "Reasoning", "Conclusion"],
    "auditor": ["Challenge", "Counter-Evidence", "Reasoning", "Conclusion"],
}
DERIVED = {
    "constructor": ["Evidence", "Reasoning", "Claim", "Conclusion"],
    "auditor": ["Counter-Evidence", "Reasoning", "Challenge", "Conclusion"],
}


def sent(
    role: str, case: Case, *arguments: str, sections: str = "by-domain", answer_first: bool = False
) -> tuple[Message, ...]:
    domain = domain_of(case)
    settings = ConstructorAuditorSettings.model_validate({"sections": sections, "answer_first": answer_first})
    slots = synthesis_slots(case, domain) if role == "synthesizer" else speaker_slots(case, domain, settings)
    heard = dict(zip(("argument", "challenge"), arguments, strict=False))
    return TEMPLATES.render(f"constructor_auditor/{role}", slots | heard)


def said(role: str, case: Case, *arguments: str, step: str = "k", key: AnswerKey | None = None, **settings: Any) -> str:
    return model(7, key, **settings).reply(sent(role, case, *arguments), WHOLE, step).text


def key_for(case: Case, gold: str) -> AnswerKey:
    return AnswerKey.from_cases([LabelledCase(case, 0, gold)])


@cache
def judged_q(messages: tuple[Message, ...], role: str, text: str, step: str) -> int:
    """Q as a simulated judge without noise has it; equal texts of two worlds have the same."""
    shown = AssessedReply(path=step, role=role, domain="", sent=messages, reply=text)
    asked = TEMPLATES.render("rubric/judge", {"rubric": rubric_slots(RUBRIC), **shown_slots(shown)})
    reply = model(7, None, judge_noise=0.0).reply(asked, Decoding(max_tokens=500, temperature=0.0), step)
    sheet = parse_reply(reply.text, score_sheet_type(RUBRIC)).data
    return RUBRIC.total({name: sheet[name] for name in RUBRIC.dimensions}, bool(sheet["critical_flag"]))


@cache
def world(signal: float, words: int) -> npt.NDArray[np.float64]:
    """Q, mean, first ten's mean, least, spread and number of the log-probabilities of each reply; shape (n, 6)."""
    rows = []
    speaker = model(11, None, confidence_signal=signal, reasoning_words=words)
    for number in range(6):
        for case in SAMPLE:
            step = f"{case.id}/{number}"
            messages = sent("constructor", case)
            reply = speaker.reply(messages, WHOLE, step)
            assert reply.tokens is not None
            told = reply.tokens.logprob
            q = judged_q(messages, "constructor", reply.text, step)
            rows.append((q, told.mean(), told[:10].mean(), told.min(), told.std(), len(told)))
    return np.array(rows)


def with_q(signal: float, words: int = 40) -> list[float]:
    """Spearman's rank correlation of Q with each of the others."""
    found = world(signal, words)
    return [float(spearmanr(found[:, 0], column).statistic) for column in found[:, 1:].T]


@pytest.mark.parametrize("words", [1, 40])
def test_without_the_signal_no_statistic_predicts_quality(words: int) -> None:
    """|rho| of 432 independent pairs is below .13 with a probability of 99 %."""
    assert max(map(abs, with_q(0.0, words))) < 0.13


def test_in_the_planted_world_sure_replies_are_good_ones() -> None:
    mean, first, least, spread, length = with_q(1.0)
    assert mean > 0.5
    assert first > 0.35
    assert least > 0.2
    assert spread < -0.5
    assert abs(length) < 0.13, "the signal is in the probabilities, not in how many there are"


def test_the_signal_rises_with_the_setting_and_changes_no_word() -> None:
    means = [with_q(signal)[0] for signal in (0.0, 0.25, 1.0)]
    assert means == sorted(means)
    null, planted = world(0.0, 40), world(1.0, 40)
    assert (null[:, 0] == planted[:, 0]).all()
    gained = (planted - null).mean(axis=0)
    assert gained[2] > 1.2 * gained[1] > 0.0, "the first ten tokens show it most"
    assert said("constructor", ESSAY, confidence_signal=0.0) == said("constructor", ESSAY, confidence_signal=1.0)


def test_replies_are_of_every_quality_and_mostly_good() -> None:
    q = world(0.0, 40)[:, 0]
    assert set(q) >= {0.0, 5.0, 6.0, 7.0, 8.0, 9.0}
    assert (q == 0.0).mean() < 0.15
    assert (q == 9.0).mean() > 0.35


def labels_of(text: str) -> list[str]:
    return re.findall(r"^([A-Z][a-z]+(?:-[A-Z][a-z]+)?): ", text, re.MULTILINE)


@pytest.mark.parametrize("role", SECTIONS)
@pytest.mark.parametrize(("case", "asked"), [(PROBLEM, DERIVED), (SAMPLE[0], SECTIONS)], ids=["problem", "question"])
def test_the_sections_that_are_asked_for_are_written(role: str, case: Case, asked: dict[str, list[str]]) -> None:
    texts = [said(role, case, "Claim: x.", step=str(n)) for n in range(40)]
    labels = [labels_of(text) for text in texts]
    assert all(found[0] == asked[role][0] for found in labels)
    assert sum(found == asked[role] for found in labels) > 20
    assert sum(found != asked[role] for found in labels) > 0


def test_quotations_are_word_for_word_but_for_a_few_that_are_invented() -> None:
    texts = [said("constructor", case, step=str(n)) for case in SAMPLE[:20] for n in range(10)]
    given = [f"{case.passage}\n{case.question}" for case in SAMPLE[:20] for _ in range(10)]
    invented = [any(span not in known for span in quotations(text)) for text, known in zip(texts, given, strict=True)]
    assert 0 < sum(invented) < 0.2 * len(texts)
    assert {len(quotations(text)) for text in texts} == {0, 1, 2, 3}
    assert all(len(span.split()) >= 4 for text in texts for span in quotations(text))


def test_a_challenger_argues_for_another_answer_and_a_verifier_for_its_own() -> None:
    question, agreed = SAMPLE[0], 0
    for n in range(30):
        first, answer = said("constructor", question, step=str(n)), said("constructor", PROBLEM, step=str(n))
        assert argued_for(said("auditor", question, first, step=str(n))) != argued_for(first)
        agreed += argued_for(said("auditor", PROBLEM, answer, step=str(n))) == argued_for(answer)
        assert answer.splitlines()[-1] == f"Final answer: {argued_for(answer)}"
    assert 0 < agreed < 30


def synthesised(case: Case, first: str, second: str, step: str = "k", **more: Any) -> str | None:
    text = said("synthesizer", case, first, second, step=step, **more)
    parsed = parse_reply(text, synthesis_for(case, domain_of(case)), case.labels)
    assert not parsed.repaired
    assert parsed.data["rationale"]
    return parsed.answer


@pytest.mark.parametrize("case", [ESSAY, PROBLEM, SAMPLE[0], Case(id="n", question="who wrote the long poem")])
def test_a_synthesis_can_always_be_read_without_a_key_too(case: Case) -> None:
    for n in range(20):
        first = said("constructor", case, step=str(n))
        assert synthesised(case, first, said("auditor", case, first, step=str(n)), step=str(n)) is not None


def test_a_score_is_near_the_gold_one_and_leans_to_who_quotes_more() -> None:
    quoting, bare = 'Evidence: It says "for the bus for two".', "Evidence: none."
    known: dict[str, Any] = {"key": key_for(ESSAY, "2"), "competence": 0.3}
    steps = [str(n) for n in range(60)]
    up = [synthesised(ESSAY, quoting, bare, step=step, **known) for step in steps]
    down = [synthesised(ESSAY, bare, quoting, step=step, **known) for step in steps]
    assert set(up) <= {"2", "3"}
    assert set(down) <= {"1", "2"}
    assert len(set(up)) == len(set(down)) == 2
