"""How many calls a case takes, known before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls for one case.

    Attributes:
        count: how many.
        replies_read: earlier replies that stand in their prompts, added up over all calls.
    """

    count: int
    replies_read: int = 0

    def __add__(self, other: Calls) -> Calls:
        return Calls(self.count + other.count, self.replies_read + other.replies_read)

    def __mul__(self, times: int) -> Calls:
        return Calls(self.count * times, self.replies_read * times)


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What a protocol will ask for one case, as long as every reply can be read.

    Attributes:
        least, most: the fewest and the most calls.
        template, slots: of its first prompt, whose length stands for that of every prompt without replies.
    """

    least: Calls
    most: Calls
    template: str
    slots: Mapping[str, Any]
