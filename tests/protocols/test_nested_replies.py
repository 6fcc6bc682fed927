"""Replies of brackets that never close: mending them takes a long time, so that they are not mended."""

from __future__ import annotations

import pytest

from moot.protocols.replies import InvalidReply, Position, parse_reply

LABELS = ("Yes", "No")


@pytest.mark.timeout(30)  # milliseconds; mended, they take half a minute each
@pytest.mark.parametrize("opened", ["{", "[", "(", "[{", "{ "])
def test_deep_brackets_are_not_mended(opened: str) -> None:
    for begin in ("", '{"answer": '):
        for times in (150, 16_000 // len(opened)):
            with pytest.raises(InvalidReply, match=r"nested too deeply|holds no JSON"):
                parse_reply(begin + opened * times, Position, LABELS)


def test_many_brackets_that_close_are_mended() -> None:
    text = '{"answer": "Yes", "reasoning": "' + "f(x) [1] {2} " * 200 + '", "confidence": 0.5,'
    assert parse_reply(text, Position, LABELS).answer == "Yes"
