"""Where the content starts, in replies of odd shapes."""

from __future__ import annotations

import csv
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import DATA

from moot.metrics.content_start import content_start, shared_prefixes

SLICE = DATA / "truthfulqa_gpt3_logprobs"

OPENINGS = [
    "Claim:",
    "**Claim:**",
    "**Claim**:",
    "*Claim*:",
    "__Claim:__",
    "### Claim:",
    "### **Claim**\n",
    "## 1. Claim\n",
    "1. Claim:",
    "1) **Claim:**",
    "**1. Claim:**",
    "(ii) Claim:",
    "Claim 1:",
    "Challenge -",
    "Challenge \u2013",
    "**Challenge** \u2014",
    "[Claim]",
    "**[Claim]**",
    "> Claim:",
    "CLAIM:",
    "Counter-Evidence:",
    "Counterevidence:",
    "Final answer:",
    "Claim\n",
    "\n\nClaim:",
    "## Argument\n\n**Claim:**",
    "Solution:\nStep 1:",
    '{"claim": "',
    '{ "claim" : "',
    '{\n  "claim": "',
    '```json\n{"claim": "',
    '[{"claim": "',
    '{"sections": [{"claim": "',
    '{"score":',
    '{"argument": "**Claim:**',
]

CONTENT_ONLY = [
    "The essay shows patience.",
    "Claims like this one need support.",
    "Claim that the essay is good.",
    "Evidence-based reasoning: a start",
    "Evidence -based reasoning, badly typed",
    "**Evidence** is what this lacks.",
    "1. The essay shows patience.",
    "My claim: the essay is good.",
    "Behauptung: Der Aufsatz zeigt Geduld.",
    "**Affirmation :** L'essai montre de la patience.",
    "\u4e3b\u5f20\uff1a\u8fd9\u7bc7\u6587\u7ae0\u5f88\u597d",
    "# Patience\nClaim: it is shown.",
    "   The essay",
    "***",
    "{",
    "{curly} words",
    '"claim": "x"',
    "12:30 is the time",
]


def words(text: str) -> list[str]:
    """Tokens as of most models: words with the space before them, and single marks."""
    return re.findall(r" ?\w+|\s|[^\w\s]", text)


@pytest.mark.parametrize("text", OPENINGS)
@pytest.mark.parametrize("content", ["The essay shows patience.", "42"])
def test_content_starts_after_an_opening(text: str, content: str) -> None:
    space = "" if text.endswith('"') else " "
    tokens = words(f"{text}{space}{content}")
    start = content_start(tokens)
    assert "".join(tokens[start:]).strip() == content
    assert "".join(tokens[:start]).strip() == text.strip()


@pytest.mark.parametrize("text", OPENINGS)
def test_a_reply_of_an_opening_only_has_no_content(text: str) -> None:
    tokens = words(text)
    assert content_start(tokens) == len(tokens)


@pytest.mark.parametrize("text", CONTENT_ONLY)
def test_a_reply_without_an_opening_is_content_from_its_first_token(text: str) -> None:
    assert content_start(words(text)) == 0


@pytest.mark.parametrize("tokens", [[], [""], ["", ""], [" "], ["\n", "\n"]])
def test_a_reply_that_says_nothing_has_no_opening(tokens: list[str]) -> None:
    assert content_start(tokens) == 0


@given(st.sampled_from(OPENINGS), st.data())
def test_the_opening_is_the_same_however_it_is_cut_into_tokens(text: str, data: st.DataObject) -> None:
    whole = f"{text} The essay shows patience."
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1))))
    tokens = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    start = content_start(tokens)
    assert len("".join(tokens[:start])) <= whole.index("The essay") < len("".join(tokens[: start + 1]))


def test_a_token_that_ends_the_opening_and_begins_the_content_is_content() -> None:
    assert content_start(["Claim", ": The", " essay"]) == 1
    assert content_start(["Claim: The", " essay"]) == 0


def test_empty_tokens_are_counted() -> None:
    assert content_start(["", "Claim", "", ":", " The"]) == 4


@given(st.lists(st.text(st.sampled_from('#*_[]{}": \n1.Claim-'), max_size=8), max_size=60))
def test_any_text_has_a_start_within_it(tokens: list[str]) -> None:
    start = content_start(tokens)
    assert 0 <= start <= len(tokens)


@pytest.mark.parametrize("run", ["#*", "[*", " \n", '{"a":', "Claim\n", '{"a":[ [ ', "Claim:**"])
def test_endless_runs_of_marks_are_read_to_an_end(run: str) -> None:
    assert 0 <= content_start([run * 20_000]) <= 1
    assert 0 <= content_start([run] * 20_000) <= 129


def test_what_nearly_all_replies_begin_with_is_an_opening_in_any_language() -> None:
    replies = [words(f"Behauptung: Satz {number}.") for number in range(18)]
    odd = [words("Behauptung - anders"), words("Kein Wort davon")]
    assert shared_prefixes([*replies, *odd]) == [*[3] * 18, 1, 0]
    assert shared_prefixes([*replies, *odd, words("Noch eins")]) == [*[1] * 19, 0, 0]  # 19 of 21, then 18
    assert shared_prefixes([*replies, *odd, []]) == [*[3] * 18, 1, 0, 0]  # what says nothing does not count


def test_replies_that_share_all_they_say_have_no_content() -> None:
    assert shared_prefixes([["A", ":"], ["A", ":"]]) == [2, 2]
    assert shared_prefixes([["A", ":"], ["A", ":", " x"]]) == [2, 2]


def test_one_reply_shares_nothing() -> None:
    assert shared_prefixes([["A", ":"]]) == shared_prefixes([["A", ":"], []])[:1] == [0]
    assert shared_prefixes([]) == []
    assert shared_prefixes([["A"], ["B"]]) == [0, 0]


@pytest.mark.needs("data/truthfulqa_gpt3_logprobs")
@pytest.mark.parametrize("model", ["ada", "babbage", "curie", "davinci"])
def test_recorded_replies_share_their_prompts_mark(model: str) -> None:
    with (SLICE / f"{model}_output_labeled.csv").open(encoding="utf-8", newline="") as lines:
        replies = [json.loads(row["logprobs"])["tokens"] for row in csv.DictReader(lines)]
    starts = shared_prefixes(replies)
    assert {"".join(tokens[:start]).strip() for tokens, start in zip(replies, starts, strict=True)} == {"A:"}
