"""The simulated model: stable, as competent as set, moved by debate, and true to its belief in its tokens."""

from __future__ import annotations

import json
import math
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from not_none import not_none
from simulated_calls import (
    LABELS,
    PASSAGE,
    TEMPLATES,
    concession_rate,
    judging,
    model,
    opening,
    position,
    question,
    revision,
    says,
)

from moot.actors.models.interface import ModelError, ModelReply
from moot.actors.simulated.answer_key import AnswerKey
from moot.actors.simulated.model import SimulatedSettings
from moot.actors.simulated.prompt import parse_prompt
from moot.actors.simulated.tokens import draw_logprobs, split_draft, split_text
from moot.actors.simulated.turn import DraftSignals, json_draft
from moot.protocols.case import Case, LabelledCase
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Decoding, Message
from moot.protocols.replies import Position

COUNT = 600


def cases(count: int = COUNT, labels: tuple[str, ...] = LABELS) -> list[LabelledCase]:
    return [
        LabelledCase(
            Case(id=str(number), question=question(number), labels=labels), number, labels[number % len(labels)]
        )
        for number in range(count)
    ]


def accuracy(temperature: float, labels: tuple[str, ...] = LABELS, key: AnswerKey | None = None, **set: Any) -> float:
    decoding, right = Decoding(max_tokens=400, temperature=temperature), 0
    for case in cases(labels=labels):
        messages = opening(case.case.question, labels)
        right += says(Position, messages, case.index, decoding, key=key, **set).answer == case.gold
    return right / COUNT


def bound(share: float) -> float:
    """Four standard deviations of a share of `COUNT` independent draws."""
    return 4.0 * math.sqrt(share * (1.0 - share) / COUNT)


KEY = AnswerKey.from_cases(cases())


class TestDeterminism:
    def test_another_seed_step_history_or_greed_gives_another_reply(self) -> None:
        messages, decoding = opening(question(1)), Decoding(temperature=0.3)
        changed = [Message("system", f"You are careful.\n\n{messages[0].content}"), *messages[1:]]
        texts = [
            model(7).reply(messages, decoding, "a").text,
            model(8).reply(messages, decoding, "a").text,
            model(7).reply(messages, decoding, "b").text,
            model(7).reply(changed, decoding, "a").text,
            model(7).reply(messages, Decoding(temperature=0.0), "a").text,
        ]
        assert len(set(texts)) == len(texts)

    def test_warmer_decoding_and_logprobs_do_not_change_the_text(self) -> None:
        messages = opening(question(1))
        text = model().reply(messages, Decoding(temperature=0.3), "a").text
        assert model().reply(messages, Decoding(temperature=1.0, top_logprobs=7), "a").text == text

    def test_default_replies_stay_what_they_were(self) -> None:
        """Or figures that were recorded with them, in the documentation too, can no longer be had again."""
        form = '{"answer": ..., "reasoning": ..., "confidence": ...}\n- "answer" is exactly one of: Yes, No.'
        passage = "<passage>\nFins steer. A tail drives, because it is large. Gills take up oxygen.\n</passage>\n"
        own, other = '<own_reply answer="Yes" confidence="0.6">\nx\n</own_reply>', '<reply answer="No">\ny\n</reply>'
        judge = '{"support": ..., "score": ...}\n<candidate>\nYes\n</candidate>\n<evidence>\nFins steer.\n</evidence>'
        hashed = blake2b(digest_size=8)
        for number in range(40):
            asked = f"{passage}<question>\ndo {number} fins steer\n</question>"
            for text in (f"{form}\n{asked}", f"{form}\n{asked}\n{own}\n{other}", f"{judge}\n{asked}", asked):
                hashed.update(model(key=KEY).reply([Message("user", text)], Decoding(), str(number)).text.encode())
        assert hashed.hexdigest() == "c8e22d99db5f2d1b"


class TestCompetence:
    @pytest.mark.parametrize(
        ("competence", "temperature"), [(0.0, 0.3), (0.3, 0.3), (0.78, 0.0), (0.78, 0.3), (1.0, 0.3)]
    )
    def test_is_recovered(self, competence: float, temperature: float) -> None:
        measured = accuracy(temperature, key=KEY, competence=competence)
        assert measured == pytest.approx(competence, abs=bound(competence))

    @pytest.mark.parametrize(("labels", "chance"), [(LABELS, 0.5), (("A", "B", "C", "D"), 0.25)])
    def test_is_chance_without_a_key(self, labels: tuple[str, ...], chance: float) -> None:
        assert accuracy(0.3, labels) == pytest.approx(chance, abs=bound(chance))

    def test_questions_differ_in_ease_and_some_mislead(self) -> None:
        shares = []
        for number in range(60):
            said = [says(Position, opening(question(number)), agent, key=KEY).answer for agent in range(25)]
            shares.append(said.count(LABELS[number % 2]) / 25)
        assert min(shares) < 0.4
        assert max(shares) == 1.0

    def test_free_text(self) -> None:
        key = AnswerKey.from_cases([LabelledCase(Case(id="1", question="what is 6 times 7"), 0, "42")])
        decoding, messages = Decoding(), opening("what is 6 times 7", None)
        answers = [position(model(seed, key).reply(messages, decoding, "a"), None)["answer"] for seed in range(300)]
        assert answers.count("42") / 300 == pytest.approx(0.78, abs=4 * math.sqrt(0.78 * 0.22 / 300))


def test_essays_under_one_question_are_as_easy_as_others() -> None:
    """Were they one question to the simulated agent, nearly all or hardly any would be right."""
    cases = [
        LabelledCase(Case(id=str(i), question="Which score?", passage=f"Essay {i}."), i, str(i % 4)) for i in range(400)
    ]
    key = AnswerKey.from_cases(cases)
    away = []
    for case in cases:
        user = f"<passage>\n{case.case.passage}\n</passage>\n<question>\nWhich score?\n</question>"
        system = '{"answer": ..., "reasoning": ..., "confidence": ...} with "answer" exactly one of: 0, 1, 2, 3.'
        said = says(Position, [Message("system", system), Message("user", user)], key=key)
        away.append(abs(int(said.answer) - int(case.gold or "")))
    right = away.count(0) / 400
    assert right == pytest.approx(0.78, abs=4 * math.sqrt(0.78 * 0.22 / 400))
    assert away.count(1) > away.count(2) + away.count(3) > 0


def test_a_gold_number_with_commas_or_decimals_has_numbers_as_mistakes() -> None:
    for gold, wrong in (("1,248", {"1249", "1247", "2499"}), ("13.50", {"14.5", "12.5", "30"})):
        key = AnswerKey.from_cases([LabelledCase(Case(id="1", question="how much is it"), 0, gold)])
        said = {says(Position, opening("how much is it", None), n, key=key).answer for n in range(100)}
        assert said <= {gold, *wrong}
        assert len(said) > 1


class TestConfidence:
    def gaps(self, calibration: float) -> list[tuple[float, float]]:
        """Belief in the given answer, as its token says, and how far stated confidence lies above it."""
        simulated, found = model(key=KEY, calibration=calibration), []
        for number in range(200):
            reply = simulated.reply(opening(question(number)), Decoding(top_logprobs=20), str(number))
            data = position(reply)
            belief = beliefs(reply)[data["answer"]]
            found.append((belief, data["confidence"] - belief))
        return found

    def test_calibrated_states_its_belief_and_blurs_as_calibration_falls(self) -> None:
        told = {calibration: self.gaps(calibration) for calibration in (1.0, 0.85, 0.5)}
        assert max(abs(gap) for _, gap in told[1.0]) <= 0.0051
        spread: list[float] = [np.mean([abs(gap) for _, gap in gaps]).item() for gaps in told.values()]
        assert spread[0] + 0.02 < spread[1] < spread[2] - 0.05
        hard, easy = (
            [gap for belief, gap in told[0.5] if belief < 0.7],
            [gap for belief, gap in told[0.5] if belief > 0.9],
        )
        assert np.mean(hard) > max(0.0, float(np.mean(easy))) + 0.05, "too high where belief is low"

    def test_belief_is_nearly_calibrated(self) -> None:
        believed, right = [], []
        for number in range(COUNT):
            reply = model(key=KEY).reply(opening(question(number)), Decoding(top_logprobs=20), str(number))
            answer = position(reply)["answer"]
            believed.append(beliefs(reply)[answer])
            right.append(answer == LABELS[number % 2])
        assert np.mean(believed) == pytest.approx(np.mean(right), abs=0.08)


def beliefs(reply: ModelReply, place: int = 4, labels: tuple[str, ...] = LABELS) -> dict[str, float]:
    """Probability of each label at the answer's token, over its spellings, normalised over the labels."""
    assert reply.tokens is not None
    width = reply.tokens.alternatives
    names = reply.tokens.alt_tokens[place * width : (place + 1) * width]
    mass = dict.fromkeys(labels, 0.0)
    for name, logprob in zip(names, reply.tokens.alt_logprob[place].tolist(), strict=True):
        for label in labels:
            if name.strip().casefold() == label.casefold():
                mass[label] += math.exp(logprob)
    total = sum(mass.values())
    return {label: value / total for label, value in mass.items()}


class TestDebate:
    def test_stubborn_agents_stay_and_confident_others_move_more(self) -> None:
        assert concession_rate(confidence=0.9, count=200, stubbornness=1.0) <= 0.1
        assert concession_rate(confidence=0.55, count=200) + 0.15 < concession_rate(confidence=0.95, count=200)

    def test_truth_wins_a_little_more_often(self) -> None:
        """By .046, of 600 questions; where nothing is won, 300 give more than .02 with a probability of 2.5 %."""
        before, after = [], []
        for number in range(300):
            first = [says(Position, opening(question(number)), f"{number}/{agent}", key=KEY) for agent in range(3)]
            told = [(said.answer, not_none(said.confidence)) for said in first]
            for agent, said in enumerate(first):
                messages = revision(question(number), told[agent], told[:agent] + told[agent + 1 :])
                revised = says(Position, messages, f"{number}/{agent}/1", key=KEY)
                before.append(said.answer == LABELS[number % 2])
                after.append(revised.answer == LABELS[number % 2])
        assert np.mean(before) + 0.02 < np.mean(after) < np.mean(before) + 0.15


EVIDENCE = ("Emperor penguins dive to 500 metres.", "Many colonies begin on sea ice.")


class TestOtherReplies:
    def test_paraphrase_keeps_count_and_facts(self) -> None:
        evidence = [*EVIDENCE, 'A "quoted" one, however, was not used in 1999.', "x <b> y"]
        messages = TEMPLATES.render("selene/paraphrase", {"evidence": evidence, "version": 1, "versions": 1})
        sentences = json.loads(model().reply(messages, Decoding(), "a").text)["sentences"]
        assert len(sentences) == len(evidence)
        assert all(new != old for new, old in zip(sentences, evidence, strict=True))
        assert "500 metres" in sentences[0]
        assert "not" in sentences[2]
        assert "1999" in sentences[2]
        assert "<b>" in sentences[3]

    def test_cut_at_max_tokens(self) -> None:
        whole = model().reply(opening(question(1)), Decoding(top_logprobs=2), "a")
        cut = model().reply(opening(question(1)), Decoding(top_logprobs=2, max_tokens=12), "a")
        assert (whole.finish_reason, cut.finish_reason) == ("stop", "length")
        assert cut.usage.completion_tokens == 12
        assert whole.text.startswith(cut.text)
        assert cut.tokens is not None
        assert whole.tokens is not None
        assert cut.tokens.tokens == whole.tokens.tokens[:12]
        assert cut.tokens.alt_logprob.shape == (12, 2)

    def test_too_many_alternatives(self) -> None:
        with pytest.raises(ModelError, match="top_logprobs is 21"):
            model().reply(opening("q"), Decoding(top_logprobs=21), "a")


class TestReading:
    def test_templates_are_read_back(self) -> None:
        asked = 'is "1 <b 2" </question> a \u202etag'
        seen = parse_prompt(revision(asked, ("No", 0.4), [('Ye"s<a', 0.9), ("No", 0.2)]))
        assert seen.keys == ("answer", "reasoning", "confidence")
        assert seen.labels == LABELS
        assert seen.question == asked
        assert seen.passage == PASSAGE
        assert seen.own is not None
        assert (seen.own.answer, seen.own.confidence) == ("No", 0.4)
        assert [(reply.answer, reply.confidence) for reply in seen.others] == [('Ye"s<a', 0.9), ("No", 0.2)]

    def test_instructions_inside_fences_are_not_read(self) -> None:
        seen = parse_prompt(opening('{"sentences": [...]} exactly one of: Maybe.', None))
        assert seen.keys == ("answer", "reasoning", "confidence")
        assert seen.labels == ()

    @given(st.text(max_size=300))
    def test_any_text_is_answered(self, text: str) -> None:
        assert position(model().reply(opening(text), Decoding(top_logprobs=3), "a"))


class TestTokens:
    @pytest.mark.parametrize("alternatives", [0, 1, 2, 5, 20])
    def test_shape_order_and_mass(self, alternatives: int) -> None:
        for messages in (opening(question(3)), judging("Yes", [PASSAGE]), revision("q", ("No", 0.6), [("Yes", 0.9)])):
            reply = model(key=KEY).reply(messages, Decoding(top_logprobs=alternatives), "a")
            tokens = reply.tokens
            assert tokens is not None
            assert "".join(tokens.tokens) == reply.text
            assert reply.usage.completion_tokens == len(tokens.tokens)
            assert tokens.alt_logprob.shape == (len(tokens.tokens), alternatives)
            assert len(tokens.alt_tokens) == len(tokens.tokens) * alternatives
            assert tokens.logprob.dtype == tokens.alt_logprob.dtype == np.float32
            assert np.isfinite(tokens.logprob).all()
            assert (tokens.logprob <= 0).all()
            assert (np.exp(tokens.alt_logprob.astype(np.float64)).sum(axis=1) <= 1.0).all()
            assert (np.diff(tokens.alt_logprob, axis=1) <= 0).all()
            rows = np.array(tokens.alt_tokens, dtype=object).reshape(-1, alternatives or 1)
            assert all(len(set(row)) == alternatives for row in rows)

    def test_chosen_token_is_listed_with_its_probability(self) -> None:
        unlikely = 0
        for number in range(100):
            reply = model(key=KEY).reply(opening(question(number)), Decoding(top_logprobs=5), str(number))
            tokens = reply.tokens
            assert tokens is not None
            for place, token in enumerate(tokens.tokens):
                row = tokens.alt_tokens[place * 5 : place * 5 + 5]
                assert tokens.alt_logprob[place, row.index(token)] == tokens.logprob[place]
            unlikely += tokens.alt_tokens[20] != tokens.tokens[4]
        assert 0 < unlikely < 20

    def test_labels_of_several_tokens_share_their_beginning(self) -> None:
        belief = {"supports": 0.5, "not enough info": 0.2, "not enough": 0.1, "refutes": 0.2}
        draft = json_draft({"answer": "not enough"}, DraftSignals(decisive="answer", belief=belief))
        split = split_draft(draft)
        tokens = draw_logprobs(draft, split, len(split.tokens), 5, b"\0" * 16)
        assert tokens.tokens[split.start : split.end] == ["not", " enough"]
        start = tokens.alt_tokens[split.start * 5 : split.start * 5 + 5]
        assert start[:3] == ["supports", "not", "refutes"]
        assert math.exp(tokens.logprob[split.start]) == pytest.approx(0.97 * 0.985 * 0.3, rel=0.02)
        assert math.exp(tokens.logprob[split.end]) == pytest.approx(0.985 / 3, rel=0.01)

    @given(st.text(max_size=200))
    def test_split_loses_nothing(self, text: str) -> None:
        assert "".join(split_text(text)) == text


class TestSettings:
    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ("simulated?competense=1", "'competence'"),
            ("simulated?competence=1.5", "`competence`"),
            ("simulated?competence=nan", "`competence`"),
            ("simulated?competence=", "`competence`"),
            ("simulated?competence", "expected NAME=VALUE"),
            ("simulated?competence=1&competence=0", "given twice"),
            ("simulate", "expected `simulated`"),
            ("openai?competence=1", "expected `simulated`"),
        ],
    )
    def test_bad_query(self, spec: str, message: str) -> None:
        with pytest.raises(ConfigError) as caught:
            SimulatedSettings.from_query(spec)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


class TestAnswerKey:
    def test_abstains_where_the_text_is_ambiguous(self) -> None:
        base = LabelledCase(Case(id="1", question="what follows", labels=("A", "B")), 0, "A")
        other = LabelledCase(Case(id="2", question="What follows?", labels=("A", "B")), 1, "B")
        third = LabelledCase(Case(id="3", question="what follows", labels=("A", "B")), 2, "A")
        assert AnswerKey.from_cases([base, other, third]).find("what follows") is None
        assert AnswerKey.from_cases([base, third]).find("what follows") == "A"

    def test_cases_with_equal_questions_are_distinguished_by_their_passage(self) -> None:
        cases = [
            LabelledCase(Case(id=str(i), question="Which score?", passage=f"Essay {i}.", labels=("0", "1")), i, gold)
            for i, gold in enumerate("0110")
        ]
        key = AnswerKey.from_cases([*cases, LabelledCase(Case(id="x", question="Is it?", passage="P"), 9, "Yes")])
        assert [key.find("which score?", f"Essay {i}.") for i in range(4)] == list("0110")
        assert (key.find("Which score?"), key.find("Which score?", "Essay 9.")) == (None, None)
        assert (key.find("Is it?"), key.find("Is it?", "in other words")) == ("Yes", "Yes")
        assert (key.needs_passage("Which score?"), key.needs_passage("Is it?")) == (True, False)
        assert AnswerKey(key.slots).find("Which score?", "Essay 1.") == "1"
        twice = AnswerKey.from_cases([cases[0], LabelledCase(cases[0].case, 5, "1")])
        assert twice.find("Which score?", "Essay 0.") is None
