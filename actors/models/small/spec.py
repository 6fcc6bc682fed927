"""Name of the small model: its weights, and the number of slots of its server."""

from __future__ import annotations

import re
from dataclasses import dataclass

from moot.protocols.errors import ConfigError

SLOTS = 4
"""Default number of slots: concurrent replies of the server."""

MOST_SLOTS = 8

_FORM = re.compile(r"small(?:@(?P<weights>[0-9a-f]{12}))?(?:\?slots=(?P<slots>\d{1,2}))?")


def is_small(name: str) -> bool:
    """Whether a model's name denotes the small model, well-formed or not."""
    return re.split(r"[@?]", name, maxsplit=1)[0] == "small"


@dataclass(frozen=True, slots=True)
class SmallModelSpec:
    """Parsed name of the small model.

    Attributes:
        weights: first 12 hexadecimal digits of the SHA-256 of the file of weights; empty: the installed ones.
        slots: concurrent replies. With 1 there is no prompt cache, so that a reply is reproducible.
    """

    weights: str = ""
    slots: int = SLOTS

    @classmethod
    def parse(cls, name: str) -> SmallModelSpec:
        """Parse `name`.

        >>> SmallModelSpec.parse("small?slots=1")
        SmallModelSpec(weights='', slots=1)

        Raises:
            ConfigError: it is malformed.
        """
        found = _FORM.fullmatch(name)
        slots = int(found["slots"] or SLOTS) if found else 0
        if found is None or not 1 <= slots <= MOST_SLOTS:
            raise ConfigError(
                f"model {name[:60]!r}: write small, or small?slots=N with 1 to {MOST_SLOTS} replies at once"
            )
        return cls(found["weights"] or "", slots)

    def __str__(self) -> str:
        weights = f"@{self.weights}" if self.weights else ""
        return f"small{weights}{'' if self.slots == SLOTS else f'?slots={self.slots}'}"
