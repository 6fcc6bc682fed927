"""The simulated model: stable, as competent as set, moved by debate, and true to its belief in its tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pytest
import test_simulated_crit
import test_simulated_marks
from claim_prompts import ruling
from hypothesis import given
from hypothesis import strategies as st
from simulated_calls import LABELS, PASSAGE, TEMPLATES, judging, model, opening, position, question, revision

from moot.actors.models.answer_key import AnswerKey
from moot.actors.models.interface import ModelError, ModelReply
from moot.actors.models.simulated.model import SimulatedModel, SimulatedSettings
from moot.actors.models.simulated.prompt import read_prompt
from moot.actors.models.simulated.tokens import draw_logprobs, split_draft, split_text
from moot.actors.models.simulated.turn import json_draft
from moot.protocols.case import Case, LabelledCase
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Decoding, Message
from moot.protocols.replies import Score, parse_reply

COUNT = 600


def cases(count: int = COUNT, labels: tuple[str, ...] = LABELS) -> list[LabelledCase]:
    return [
        LabelledCase(
            Case(id=str(number), question=question(number), labels=labels), number, labels[number % len(labels)]
        )
        for number in range(count)
    ]


def accuracy(simulated: SimulatedModel, temperature: float, agents: int = 1, labels: tuple[str, ...] = LABELS) -> float:
    decoding = Decoding(temperature=temperature)
    right = 0
    for labelled in cases(labels=labels):
        for agent in range(agents):
            reply = simulated.reply(opening(labelled.case.question, labels), decoding, f"{labelled.index}/{agent}")
            right += position(reply, labels)["answer"] == labelled.gold
    return right / (COUNT * agents)


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
        measured = accuracy(model(key=KEY, competence=competence), temperature)
        assert measured == pytest.approx(competence, abs=bound(competence))

    @pytest.mark.parametrize(("labels", "chance"), [(LABELS, 0.5), (("A", "B", "C", "D"), 0.25)])
    def test_is_chance_without_a_key(self, labels: tuple[str, ...], chance: float) -> None:
        assert accuracy(model(), 0.3, labels=labels) == pytest.approx(chance, abs=bound(chance))

    def test_questions_differ_in_ease_and_some_mislead(self) -> None:
        simulated, decoding = model(key=KEY), Decoding()
        shares = [
            sum(
                position(simulated.reply(opening(question(number)), decoding, str(agent)))["answer"]
                == LABELS[number % 2]
                for agent in range(25)
            )
            / 25
            for number in range(60)
        ]
        assert min(shares) < 0.4
        assert max(shares) == 1.0

    def test_free_text(self) -> None:
        key = AnswerKey.from_cases([LabelledCase(Case(id="1", question="what is 6 times 7"), 0, "42")])
        decoding, messages = Decoding(), opening("what is 6 times 7", None)
        answers = [position(model(seed, key).reply(messages, decoding, "a"), None)["answer"] for seed in range(300)]
        assert answers.count("42") / 300 == pytest.approx(0.78, abs=4 * math.sqrt(0.78 * 0.22 / 300))


class TestConfidence:
    def gaps(self, calibration: float) -> list[tuple[float, float]]:
        """Belief in the given answer, as its token says, and how far stated confidence lies above it."""
        simulated = model(key=KEY, calibration=calibration)
        found = []
        for number in range(200):
            reply = simulated.reply(opening(question(number)), Decoding(top_logprobs=20), str(number))
            data = position(reply)
            belief = beliefs(reply)[data["answer"]]
            found.append((belief, data["confidence"] - belief))
        return found

    def test_calibrated_states_its_belief(self) -> None:
        assert max(abs(gap) for _, gap in self.gaps(1.0)) <= 0.0051

    def test_blurs_as_calibration_falls(self) -> None:
        spread = [float(np.mean(np.abs([gap for _, gap in self.gaps(c)]))) for c in (1.0, 0.85, 0.5)]
        assert spread[0] + 0.02 < spread[1]
        assert spread[1] + 0.05 < spread[2]

    def test_is_too_high_where_belief_is_low(self) -> None:
        gaps = self.gaps(0.7)
        hard = float(np.mean([gap for belief, gap in gaps if belief < 0.7]))
        easy = float(np.mean([gap for belief, gap in gaps if belief > 0.9]))
        assert hard > max(0.0, easy) + 0.05

    def test_belief_is_nearly_calibrated(self) -> None:
        simulated = model(key=KEY)
        believed, right = [], []
        for number in range(COUNT):
            reply = simulated.reply(opening(question(number)), Decoding(top_logprobs=20), str(number))
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


def moved(confidence: float, **settings: float) -> int:
    """How many of 200 give up their answer for that of two others who say so with this confidence."""
    simulated, found = model(7, None, **settings), 0
    for number in range(200):
        messages = revision(question(number), ("Yes", 0.7), [("No", confidence)] * 2)
        found += position(simulated.reply(messages, Decoding(), str(number)))["answer"] == "No"
    return found


class TestDebate:
    def test_stubborn_agents_stay_and_confident_others_move_more(self) -> None:
        assert moved(0.9, stubbornness=1.0) <= 20
        assert moved(0.55) + 30 < moved(0.95)

    def test_truth_wins_a_little_more_often(self) -> None:
        """By .046, of 600 questions; where nothing is won, 300 give more than .02 with a probability of 2.5 %."""
        before, after = [], []
        simulated, decoding = model(key=KEY), Decoding()
        for number in range(300):
            gold = LABELS[number % 2]
            first = [
                position(simulated.reply(opening(question(number)), decoding, f"{number}/{agent}"))
                for agent in range(3)
            ]
            said = [(data["answer"], data["confidence"]) for data in first]
            before += [answer == gold for answer, _ in said]
            for agent in range(3):
                others = said[:agent] + said[agent + 1 :]
                reply = simulated.reply(
                    revision(question(number), said[agent], others), decoding, f"{number}/{agent}/1"
                )
                after.append(position(reply)["answer"] == gold)
        assert np.mean(before) + 0.02 < np.mean(after) < np.mean(before) + 0.15


def scores(evidence: Sequence[str], count: int, **settings: float) -> list[float]:
    """What a judge makes of an answer in so many steps."""
    judge, messages = model(7, None, **settings), judging("Yes", evidence)
    return [parse_reply(judge.reply(messages, Decoding(), str(n)).text, Score).data["score"] for n in range(count)]


class TestJudge:
    EVIDENCE = ("Emperor penguins dive to 500 metres.", "Many colonies begin on sea ice.")

    def test_score_and_support_agree(self) -> None:
        for number in range(100):
            reply = model(judge_noise=0.4).reply(judging("Yes", self.EVIDENCE), Decoding(), str(number))
            data = parse_reply(reply.text, Score).data
            score = data["score"]
            assert 0.0 <= score <= 1.0
            assert round(score, 2) == score
            expected = "supported" if score >= 0.6 else "contradicted" if score <= 0.4 else "not covered"
            assert data["support"] == expected

    def test_covering_evidence_scores_higher(self) -> None:
        assert np.mean(scores(self.EVIDENCE[:1], 50)) > np.mean(scores(self.EVIDENCE[1:], 50)) + 0.2

    @pytest.mark.parametrize(
        "asked",
        [
            judging("Yes", EVIDENCE),
            ruling(question(0), ["supports", "denies"]),
            test_simulated_crit.asked(claim=question(0)),
            test_simulated_marks.asked(question(0)),
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


class TestOtherReplies:
    def test_paraphrase_keeps_count_and_facts(self) -> None:
        evidence = [*TestJudge.EVIDENCE, 'A "quoted" one, however, was not used in 1999.', "x <b> y"]
        messages = TEMPLATES.render("selene/paraphrase", {"evidence": evidence})
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
        seen = read_prompt(revision(asked, ("No", 0.4), [('Ye"s<a', 0.9), ("No", 0.2)]))
        assert seen.form == ("answer", "reasoning", "confidence")
        assert seen.labels == LABELS
        assert seen.question == asked
        assert seen.passage == PASSAGE
        assert seen.own is not None
        assert (seen.own.answer, seen.own.confidence) == ("No", 0.4)
        assert [(reply.answer, reply.confidence) for reply in seen.others] == [('Ye"s<a', 0.9), ("No", 0.2)]

    def test_instructions_inside_fences_are_not_read(self) -> None:
        seen = read_prompt(opening('{"sentences": [...]} exactly one of: Maybe.', None))
        assert seen.form == ("answer", "reasoning", "confidence")
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
        draft = json_draft(("answer",), {"answer": "not enough"}, "answer", belief)
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

    def test_tells_cases_apart_by_their_passage_where_the_question_does_not(self) -> None:
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
