"""A crude count of words: what it counts, and what it does not."""

from __future__ import annotations

import pytest

from moot.protocols.text.agreement_language import agreement_share


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("I agree. We share common ground.", 1.0),
        ("That is wrong, and I reject it.", 0.0),
        ("I cannot agree with that.", 0.0),
        ("This is not wrong.", None),
        ("I do not fully agree, but the rest is reasonable.", 0.5),
        ("The rash is red and itches.", None),
        ("", None),
        ("I DISAGREE", 0.0),
    ],
)
def test_share(text: str, share: float | None) -> None:
    assert agreement_share([text]) == share


def test_texts_are_counted_together() -> None:
    assert agreement_share(["I agree.", "I agree.", "You are mistaken."]) == pytest.approx(2 / 3)
    assert agreement_share([]) is None
