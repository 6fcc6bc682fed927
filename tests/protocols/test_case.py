"""A case's content hash: what it covers, and that records from before a field came still fit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moot.protocols.case import Case, Image, JudgedReply

FULL = Case(
    id="b",
    question="q",
    labels=("A", "B"),
    choices=("x", "y"),
    passage="p",
    title="t",
    images=(Image("image/png", b"1"),),
)
JUDGED = JudgedReply(reply="Yes.", sent=(("user", "Is it?"),), role="assistant", domain="weather")


def test_hashes_are_those_of_records_without_aliases_and_documents() -> None:
    assert Case(id="a", question="q").content_hash() == "d2b945bc8c8eaaaf0b2be11eb6c39c9c"
    assert FULL.content_hash() == "44a8dae2ddb5ed2ae3ce2b2a6fa2eec3"


@pytest.mark.parametrize(
    "change",
    [
        {"question": "r"},
        {"labels": ("B", "A")},
        {"passage": ""},
        {"images": ()},
        {"aliases": (("a",), ())},
        {"aliases": ((), ("a",))},
        {"documents": ("d",)},
        {"documents": ("d", "e")},
        {"documents": ("a",), "aliases": ()},
        {"judged": JUDGED},
    ],
)
def test_every_field_but_the_id_is_hashed(change: dict[str, Any]) -> None:
    assert msgspec.structs.replace(FULL, **change).content_hash() != FULL.content_hash()
    assert msgspec.structs.replace(FULL, id="z").content_hash() == FULL.content_hash()


@pytest.mark.parametrize("change", [{"reply": "No."}, {"sent": ()}, {"role": "critic"}, {"domain": ""}])
def test_what_a_judge_reads_is_hashed(change: dict[str, Any]) -> None:
    one, other = (
        Case(id="r", question="q", judged=each) for each in (JUDGED, msgspec.structs.replace(JUDGED, **change))
    )
    assert one.content_hash() != other.content_hash()


def test_how_answers_are_compared_is_no_part_of_what_is_debated() -> None:
    plain = Case(id="c", question="What does the house cost?")
    scored = msgspec.structs.replace(plain, scoring="number")
    assert (scored.content_hash(), scored.characters()) == (plain.content_hash(), plain.characters())
    assert scored.content_hash() == "3fc6b3be76aebe204048976c959f08b4"
