"""Documents in chunks: sentences whole, lists line by line, wrapped lines joined, headings with what follows."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.protocols.text.chunking import LONGEST, chunks_of, located_chunks
from moot.protocols.text.sentences import split_sentences

LONG = "It is a sentence of about sixty characters, which says little."


def folded(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("", []),
        (" \n\n --- \n", []),
        ("One. Two!", ["One. Two!"]),
        ("Cats sleep.\nDogs bark. They bite.\nFish swim.", ["Cats sleep.", "Dogs bark. They bite.", "Fish swim."]),
        ("Cats sleep a lot. They\nhunt at dawn. They\npurr.", ["Cats sleep a lot. They hunt at dawn. They purr."]),
        ("Cats sleep.\n\nDogs bark.", ["Cats sleep.", "Dogs bark."]),
        ("Cats\n\nThey sleep. They purr.", ["Cats\nThey sleep. They purr."]),
        ("Pets\n\nCats\n\nThey sleep.\n\nThey purr.", ["Pets\nCats\nThey sleep.", "They purr."]),
        ("# Why cats?\nThey sleep.", ["Why cats?\nThey sleep."]),
        ("Cats\n====\n\nThey sleep.", ["Cats\nThey sleep."]),
        ("They sleep.\n\nThe end", ["They sleep.", "The end"]),
        ("Needed\n- flour\n- eggs that\n  are fresh\n* milk", ["Needed\nflour", "eggs that are fresh", "milk"]),
        ("1. Mix it. Stir it.\n2. Bake it.", ["1. Mix it. Stir it.", "2. Bake it."]),
        ("Mr. A. Smith came.\r\nHe left.\r\n", ["Mr. A. Smith came.", "He left."]),
        ("是的。不是。", ["是的。不是。"]),
    ],
)  # fmt: skip
def test_chunks(text: str, chunks: list[str]) -> None:
    assert chunks_of(text) == chunks


def test_a_sentence_longer_than_the_bound_stays_whole_unless_it_is_far_longer() -> None:
    longer = f"V{'ery v' * 100}ery long."
    assert chunks_of(f"Short. {longer} Short.") == ["Short.", longer, "Short."]
    far = f"V{'ery v' * 1000}ery long."
    cut = chunks_of(f"Short. {far} Short.")
    assert cut[0] == cut[-1] == "Short."
    assert " ".join(cut[1:-1]) == far
    assert all(LONGEST / 2 < len(piece) <= LONGEST for piece in cut[1:-2])


@given(st.lists(st.sampled_from([LONG, "Cats sleep.", "The U.S. has dogs.", "Why? No."]), min_size=1, max_size=30))
def test_wrapping_does_not_change_what_is_found(sentences: list[str]) -> None:
    text = " ".join(sentences)
    wrapped = textwrap.fill(text, 70)
    assert " ".join(chunks_of(wrapped)) == folded(text)
    whole = set(split_sentences(text))
    assert all(set(split_sentences(chunk)) <= whole for chunk in chunks_of(wrapped))


@given(st.text(alphabet=st.sampled_from("aB .\n#-1!é\t\r·是。"), max_size=300))
def test_chunks_occur_in_the_text_in_order(text: str) -> None:
    chunks = located_chunks(text)
    assert [chunk.text for chunk in chunks] == chunks_of(text)
    starts = [chunk.start for chunk in chunks]
    assert starts == sorted(set(starts))
    for chunk in chunks:
        first = chunk.text.split("\n")[0]
        assert folded(text[chunk.start :]).startswith(first)
        assert len(chunk.text) <= 1000 + 3 * LONGEST
    said = "".join(character for character in "".join(chunks_of(text)) if character.isalnum())
    assert said == "".join(character for character in text if character.isalnum())
