"""Planted hallucinations of the simulated model: as many as set, made up for certain, and nothing else changed."""

from __future__ import annotations

import math
import re
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from simulated_calls import LABELS, PASSAGE, judging, model, opening, position, question

from moot.actors.models.interface import ModelReply
from moot.actors.simulated.answer_key import AnswerKey
from moot.actors.simulated.invention import find_invention
from moot.protocols.case import Case, LabelledCase
from moot.protocols.messages import Decoding, Message
from moot.protocols.replies import Score
from moot.protocols.reply_parsing import parse_reply
from moot.protocols.seeds import stable_digest

COUNT = 400
KEY = AnswerKey.from_cases(
    LabelledCase(Case(id=str(n), question=question(n), labels=LABELS), n, LABELS[n % 2]) for n in range(COUNT)
)
WORDS = re.compile(r"\w+")


@cache
def reply(number: int, rate: float, seed: int = 7, alternatives: int | None = None, **settings: float) -> ModelReply:
    simulated = model(seed, KEY, hallucination_rate=rate, **settings)
    return simulated.reply(opening(question(number)), Decoding(top_logprobs=alternatives), str(number))


def made_up(rate: float, seed: int = 7) -> list[int]:
    """The numbers of the questions whose reply hallucinates."""
    return [number for number in range(COUNT) if find_invention(reply(number, rate, seed).text)]


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_the_rate_is_recovered(rate: float) -> None:
    four_deviations = 4.0 * math.sqrt(rate * (1.0 - rate) / COUNT)
    assert len(made_up(rate)) / COUNT == pytest.approx(rate, abs=four_deviations)


def test_invented_words_occur_nowhere_else_and_the_rest_comes_from_the_passage() -> None:
    """Found without knowing the claims: by words that neither the passage nor a reply without a claim has."""
    read = set(WORDS.findall(PASSAGE))
    framing = {word for n in range(COUNT) for word in WORDS.findall(position(reply(n, 0.0))["reasoning"])} - read
    kinds = set()
    for number in range(COUNT):
        text = position(reply(number, 1.0))["reasoning"]
        particular = find_invention(text)
        assert particular is not None
        assert particular in text
        for word in WORDS.findall(particular):
            assert word.casefold() not in f"{PASSAGE} {question(number)}".casefold()
            assert word not in framing
        kinds.add("name" if particular.replace(" ", "").isalpha() else "date" if " " in particular else "number")
    assert kinds == {"name", "number", "date"}


def test_a_judge_that_is_shown_the_claim_scores_lower() -> None:
    for number in range(20):
        shown = [position(reply(number, rate))["reasoning"] for rate in (0.0, 1.0)]
        honest, inventive = (
            parse_reply(model(judge_noise=0).reply(judging("Yes", [PASSAGE], text), Decoding(), "a").text, Score).data
            for text in shown
        )
        assert inventive["score"] < honest["score"]


def test_answer_confidence_and_length_are_those_of_the_same_reply_without_it() -> None:
    """So the accuracy, which is the answers', is the same at every rate."""
    for number in range(COUNT):
        honest, inventive = position(reply(number, 0.0)), position(reply(number, 1.0))
        assert (honest["answer"], honest["confidence"]) == (inventive["answer"], inventive["confidence"])
        assert len(honest["reasoning"].split()) == len(inventive["reasoning"].split()) == 40


@given(st.text(alphabet="0123456789 abcdefgh.JanuryFebMch", max_size=2_000))
@example("00J0b00u0144.0f0314")  # so many tokens that the default length cuts the claim
def test_any_passage_leaves_something_to_make_up(passage: str) -> None:
    text = f'{{"answer": ..., "reasoning": ...}}\n<passage>\n{passage}\n</passage>\n<question>\nwhy\n</question>'
    whole = Decoding(max_tokens=10_000)
    said = model(hallucination_rate=1.0).reply([Message("user", text)], whole, stable_digest(passage).hex()).text
    particular = find_invention(said)
    assert particular is not None
    assert particular not in passage


class TestTokens:
    def split(self, number: int) -> tuple[list[float], list[float]]:
        """Probabilities of the made-up words' tokens, and of the other words' tokens but the answer's."""
        one = reply(number, 1.0, alternatives=3)
        assert one.tokens is not None
        particular = find_invention(one.text)
        assert particular is not None
        begin, at = one.text.index(particular), 0
        invented: list[float] = []
        supported: list[float] = []
        for place, (token, logprob) in enumerate(zip(one.tokens.tokens, one.tokens.logprob.tolist(), strict=True)):
            at += len(token)
            if not token[-1].isalnum() or place == 4:
                continue
            inside = begin < at <= begin + len(particular)
            (invented if inside else supported).append(math.exp(logprob))
        return invented, supported

    def test_made_up_words_are_less_probable_than_any_other_and_follow_the_belief(self) -> None:
        beliefs, means = [], []
        for number in range(150):
            invented, supported = self.split(number)
            assert max(invented) < min(supported)
            stated = position(reply(number, 1.0, calibration=1.0))["confidence"]  # the belief itself
            assert all(0.1 * (stated - 0.006) <= probability <= 0.45 * (stated + 0.006) for probability in invented)
            beliefs.append(stated)
            means.append(np.mean(invented))
        assert np.corrcoef(beliefs, means)[0, 1] > 0.3
