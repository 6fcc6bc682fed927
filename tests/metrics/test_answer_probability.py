"""The answer's probability read from token alternatives: spellings, split tokens, what is not listed."""

import math
import string
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from moot.metrics.answer_probability import (
    MAX_BOUND_SHIFT,
    AnswerProbability,
    answer_probability,
)

YES_NO = {"yes": "Yes", "true": "Yes", "no": "No", "false": "No"}
ABC = {"a": "A", "b": "B", "c": "C"}
Listed = Sequence[tuple[str, float]]


def read(
    token: str,
    listed: Listed,
    forms: Mapping[str, str] = YES_NO,
    *,
    before: str = '{"answer": "',
    after: Sequence[str] = ('", ', '"why"'),
    skip: int = 0,
    own: float | None = None,
) -> AnswerProbability:
    """One reply: `before`, the answer's token, `after`; `listed` are (token, probability)."""
    tokens = [*([before] if before else []), token, *after]
    at = 1 if before else 0
    width = len(listed)
    alt_tokens = [""] * (len(tokens) * width)
    alt_logprob = np.full((len(tokens), width), np.nan, dtype=np.float32)
    alt_tokens[at * width : (at + 1) * width] = [text for text, _ in listed]
    alt_logprob[at] = [math.log(p) if p > 0 else p for _, p in listed]
    logprob = np.zeros(len(tokens), dtype=np.float32)
    known = dict(listed).get(token, math.nan) if own is None else own
    logprob[at] = math.log(known) if known > 0 else known
    return answer_probability(tokens, logprob, alt_tokens, alt_logprob, len(before) + skip, forms)


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-5, abs=1e-6)


def test_spellings_are_summed() -> None:
    yes = [("Yes", 0.4), (" yes", 0.1), ('"YES', 0.05), ("true", 0.05)]
    listed = [*yes, ("No", 0.2), (" no", 0.1), ("Hm", 0.05)]
    found = read("Yes", listed)
    assert found.mass == {"Yes": close(0.6), "No": close(0.3)}
    assert found.raw == close(0.6)
    assert found.printed == close(0.6 / 1.6)
    assert found.normalised == close(2 / 3)
    assert found.bound_shift == 0.0
    assert found.reason == ""


def test_the_chosen_token_counts_once() -> None:
    among = read("Yes", [("Yes", 0.5), ("No", 0.3)])
    apart = read("Yes", [("No", 0.3)], own=0.5)
    assert among.mass == apart.mass == {"Yes": close(0.5), "No": close(0.3)}
    assert among.normalised == apart.normalised == close(0.625)


@pytest.mark.parametrize(
    ("token", "before", "skip"),
    [
        ("Yes", '{"answer": "', 0),
        ('"Yes', '{"answer": ', 1),
        (' "Yes', '{"answer":', 2),
        (':"Yes', '{"answer"', 2),
        ('Yes",', '{"answer": "', 0),
        (" Yes", "Answer:", 0),
        ("is Yes", "It ", 3),
        ("Yes", "", 0),
    ],
)
def test_the_token_that_covers_the_answer(token: str, before: str, skip: int) -> None:
    other = token.replace("Yes", "No")
    found = read(token, [(other, 0.6), (token, 0.3)], before=before, skip=skip)
    assert found.mass == {"Yes": close(0.3), "No": close(0.6)}
    assert found.normalised == close(1 / 3)


def test_an_alternative_with_another_lead() -> None:
    listed = [(':"Yes', 0.5), (': "No', 0.2), ("No", 0.05), (':"', 0.01)]
    found = read(':"Yes', listed, before='{"answer"', skip=2)
    assert found.mass == {"Yes": close(0.5), "No": close(0.25)}
    assert found.bound_shift == close(0.5 / 0.75 - 0.5 / 0.76)  # `:"` may open either answer


def test_space_and_quotes_alone_are_ambiguous() -> None:
    found = read("Yes", [("Yes", 0.6), (" ", 0.2), ('"', 0.1), ("No", 0.1)])
    assert found.bound_shift == close(0.6 / 0.7 - 0.6)
    assert found.normalised is None


def test_the_longest_form_wins() -> None:
    forms = {"yes, in part": "P", "yes": "Y", "no": "N"}
    found = read("Yes, in part", [("Yes, in part", 0.6), ("no", 0.2)], forms)
    assert found.mass == {"P": close(0.6), "N": close(0.2)}


def test_split_tokens() -> None:
    found = read("N", [("N", 0.6), ("Y", 0.15), ("yes", 0.05), ("t", 0.1)], after=("o", '"'))
    assert found.mass == {"No": close(0.6), "Yes": close(0.3)}
    assert found.raw == close(0.6)
    assert found.normalised == close(2 / 3)


def test_an_ambiguous_beginning_counts_for_none() -> None:
    forms = {"supported": "S", "not covered": "N", "not supported": "C"}
    listed = [("supported", 0.8), ("not", 0.01), ("not c", 0.1), ("not su", 0.08)]
    found = read("supported", listed, forms)
    assert found.mass == {"S": close(0.8), "N": close(0.1), "C": close(0.08)}
    assert found.normalised == close(0.8 / 0.98)
    assert found.bound_shift == close(0.8 / 0.98 - 0.8 / 0.99)
    much = read("supported", [("supported", 0.6), ("not", 0.3), ("not c", 0.05), ("not su", 0.05)], forms)
    assert much.normalised is None
    assert much.bound_shift == close(0.6 / 0.7 - 0.6)
    assert much.raw == close(0.6)


def test_an_ambiguous_chosen_token_is_unknown() -> None:
    forms = {"supported": "S", "not covered": "N", "not supported": "C"}
    found = read("not", [("not", 0.9), ("supported", 0.1)], forms, after=(" covered", '"'))
    assert (found.normalised, found.raw, found.printed) == (None, None, None)
    assert "'not'" in found.reason


def test_a_whole_form_that_another_label_continues() -> None:
    in_word = read("No", [("No", 0.6), ("Yes", 0.2), ("not", 0.2)], {"yes": "Y", "no": "N", "not sure": "U"})
    assert in_word.mass == {"Y": close(0.2), "N": close(0.6), "U": close(0.2)}
    for forms in ({"1": "one", "10": "ten"}, {"1": "one", "1 or 2": "either"}):
        assert read("1", [("1", 0.9), ("10", 0.1)], forms).raw is None
    spaced = read("yes", [("yes", 0.9), ("no ", 0.1)], {"yes": "Y", "no": "N", "no evidence": "E"})
    assert spaced.mass == {"Y": close(0.9)}


def test_the_text_decides_the_label() -> None:
    forms = {"no": "N", "not sure": "U", "yes": "Y"}
    found = read("no", [("no", 0.9), ("yes", 0.1)], forms, after=("t sure", '"'))
    assert found.raw is None
    assert found.mass["Y"] == close(0.1)
    longer = read("Not sure", [("Not sure", 0.9), ("yes", 0.05), ("no", 0.05)], forms)
    assert longer.normalised == close(0.9)


@pytest.mark.parametrize(("token", "rest"), [("N", "othing"), ("Maybe", '"'), ("Yes", "terday")])
def test_text_that_is_no_label(token: str, rest: str) -> None:
    found = read(token, [(token, 0.6), ("Yes", 0.2), ("No", 0.2)], after=(rest, '"'))
    assert (found.normalised, found.printed, found.raw, found.mass) == (None, None, None, {})
    assert "none of the labels" in found.reason


def test_an_unlisted_label_with_a_large_bound() -> None:
    found = read("Yes", [("Yes", 0.5), ("Hm", 0.2), ("Well", 0.15)])
    assert found.bound_shift == close(1 - 0.5 / 0.65)
    assert found.normalised is None
    assert found.raw == close(0.5)
    assert "0.231" in found.reason


def test_the_unlisted_mass_limits_the_bound() -> None:
    assert read("Yes", [("Yes", 0.5), ("yes", 0.49)]).bound_shift == close(1 - 0.99)
    forms = {**ABC, "d": "D", "e": "E"}
    many = read("A", [("A", 0.8), ("a", 0.17)], forms)  # four unlisted labels share the 0.03 that is left
    assert many.bound_shift == close(1 - 0.97)


def test_a_chosen_token_appended_to_the_list_is_no_bound() -> None:
    found = read("Yes", [("Hm", 0.3), ("Well", 0.2), ("Yes", 0.01)])
    assert found.bound_shift == close(1 - 0.01 / 0.21)


@pytest.mark.parametrize("unknown", [math.nan, -math.inf, -9999.0])
def test_unknown_log_probabilities_do_not_poison(unknown: float) -> None:
    clean = read("Yes", [("Yes", 0.6), ("No", 0.3), ("Hm", 0.05)])
    noisy = [("Yes", 0.6), ("", unknown), ("No", 0.3), (" no", unknown), ("Hm", 0.05)]
    assert read("Yes", noisy) == clean
    assert read("Yes", noisy, own=unknown) == clean
    assert read("Yes", [("Yes", unknown), *noisy[1:]], own=0.6) == clean
    without = read("Yes", [("Yes", 0.97), ("yes", 0.02), ("No", unknown)])
    assert without.mass == {"Yes": close(0.99)}
    assert without.bound_shift == close(0.01)


@pytest.mark.parametrize("unknown", [math.nan, -math.inf, -9999.0])
def test_a_chosen_token_of_unknown_probability(unknown: float) -> None:
    small = read("No", [("Yes", 0.98), ("true", 0.01)], own=unknown)
    assert (small.raw, small.printed) == (None, None)
    assert small.normalised == 0.0
    assert small.bound_shift == close(0.01)
    large = read("No", [("Yes", 0.5), ("true", 0.2)], own=unknown)
    assert large.normalised is None
    assert large.bound_shift == close(0.2 / 0.9)
    nothing = read("No", [("Hm", 0.9)], own=unknown)
    assert (nothing.raw, nothing.normalised, nothing.mass) == (None, None, {})
    assert math.isnan(nothing.bound_shift)
    assert nothing.reason


def test_no_alternatives() -> None:
    found = read("Yes", [], own=0.99)
    assert found.raw == close(0.99)
    assert found.printed == close(0.99 / 1.99)
    assert found.normalised is None
    assert found.reason == "no alternatives listed"
    padded = read("Yes", [("", math.nan), ("", math.nan)], own=0.99)
    assert (padded.raw, padded.normalised, padded.reason) == (found.raw, None, found.reason)
    flat = np.zeros(0, dtype=np.float32)
    assert answer_probability(["Yes"], np.zeros(1, np.float32), [], flat, 0, YES_NO).raw == 1.0


spelled = st.sampled_from(["A", "a", " A", '"A', "B", "b", " B", "C", "c", " C", "c ", "The", "Answer", "D"])
distributions = st.lists(
    st.tuples(spelled, st.integers(1, 1000)), min_size=1, max_size=12, unique_by=lambda pair: pair[0]
).map(lambda pairs: [(t, w / (1 + sum(v for _, v in pairs))) for t, w in pairs])


@given(distributions, st.sampled_from(["A", "B", " C"]), st.floats(1e-6, 1.0), st.data())
def test_ranges_and_order(listed: Listed, token: str, own: float, data: st.DataObject) -> None:
    found = read(token, listed, ABC, own=own)
    shuffled = data.draw(st.permutations(listed))
    assert read(token, shuffled, ABC, own=own) == found
    assert found.raw is not None
    assert 0.0 < found.raw <= 1.0
    assert found.printed == found.raw / (1 + found.raw)
    assert 0.0 <= found.bound_shift <= 1.0
    assert (found.normalised is None) == (found.bound_shift > MAX_BOUND_SHIFT) == bool(found.reason)
    if found.normalised is not None:
        assert 0.0 < found.normalised <= 1.0


@given(st.lists(st.integers(1, 100), min_size=5, max_size=5), st.integers(1, 4))
def test_the_bound_holds(weights: list[int], kept: int) -> None:
    """Of a known full distribution only the top K are listed: the truth lies within the bound."""
    names = ["A", "B", "C", "x", "y"]
    full = sorted(zip(names, (w / sum(weights) for w in weights), strict=True), key=lambda pair: -pair[1])
    listed = full[:kept]
    labels = {name: p for name, p in full if name in "ABC"}
    for token in labels:
        found = read(token, listed, ABC, own=labels[token])
        assert found.raw == close(labels[token])
        share = found.mass[token] / sum(found.mass.values())
        truth = labels[token] / sum(labels.values())
        assert abs(share - truth) <= found.bound_shift + 1e-6


def test_only_the_answers_position_is_read() -> None:
    tokens = ['{"a": "', "Yes", '", "', "no"]
    alt = ["No", "Yes", "Yes", "No", "No", "no", "no", "Yes"]
    p = np.log(np.array([[0.9, 0.1], [0.6, 0.2], [0.5, 0.5], [0.99, 0.01]], dtype=np.float32))
    at_yes = answer_probability(tokens, p[:, 0], alt, p, 7, YES_NO)
    assert at_yes.normalised == pytest.approx(0.75, rel=1e-5)
    at_no = answer_probability(tokens, p[:, 0], alt, p, 14, YES_NO)
    assert at_no.normalised == pytest.approx(0.99, rel=1e-5)


def test_a_token_of_space_and_quotes_is_skipped() -> None:
    tokens = ["answer:", " ", "No", "."]
    p = np.log(np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.2], [0.5, 0.5]], dtype=np.float32))
    alt = ["x", "y", " ", "Yes", "No", "yes", ".", ","]
    assert answer_probability(tokens, p[:, 0], alt, p, 7, YES_NO).normalised == pytest.approx(0.75, rel=1e-5)


@pytest.mark.parametrize("answer_start", [-1, 8, 500])
def test_no_answer_there(answer_start: int) -> None:
    p = np.zeros((2, 1), dtype=np.float32)
    found = answer_probability(["Yes", " and "], p[:, 0], ["Yes", "x"], p, answer_start, YES_NO)
    assert (found.normalised, found.printed, found.raw) == (None, None, None)
    assert math.isnan(found.bound_shift)
    assert "no answer" in found.reason


def test_refuses_bad_input() -> None:
    p = np.zeros((1, 2), dtype=np.float32)
    refuses("1 tokens", answer_probability, ["Yes"], np.zeros(2, np.float32), ["Yes", "no"], p, 0, YES_NO)
    refuses("do not fit", answer_probability, ["Yes"], p[:, 0], ["Yes"], p, 0, YES_NO)
    refuses("do not fit", answer_probability, ["Yes"], p[:, 0], ["Yes", "no"], p[0], 0, YES_NO)
    for forms in ({}, {"": "Yes"}):
        refuses("forms", answer_probability, ["Yes"], p[:, 0], ["Yes", "no"], p, 0, forms)


@given(st.integers(0, 3), st.text(string.ascii_letters + " {:", max_size=12))
def test_where_the_tokens_are_cut_does_not_move_the_answer(cut: int, before: str) -> None:
    """The same answer, whether its token starts before, at or after the quote's neighbours."""
    text = before + '": "'
    at = len(text) - cut
    tokens = [text[:at], text[at:] + "No", '"}']
    p = np.log(np.array([[0.5, 0.5], [0.75, 0.25], [0.5, 0.5]], dtype=np.float32))
    alt = ["", "", tokens[1], text[at:] + "Yes", "", ""]
    found = answer_probability(tokens, p[:, 0], alt, p, len(text), YES_NO)
    assert found.normalised == pytest.approx(0.75, rel=1e-5)
