"""One question as a case of its own, and a name for the folder of its debate."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.deploy.running.places import default_out
from moot.protocols.errors import ConfigError

CASE_ID = "question"
"""The id of the only case."""

_LONGEST_SLUG = 40


@dataclass(frozen=True)
class Subject:
    """What one debate is about.

    Attributes:
        question: the subject or question.
        passage: given facts; may be empty.
        labels: the closed set of answers; None for a free-text answer.
    """

    question: str
    passage: str = ""
    labels: Sequence[str] | None = None

    def case(self) -> dict[str, Any]:
        """The case as a task takes it."""
        return {"id": CASE_ID, "question": self.question, "passage": self.passage, "labels": self.labels}

    @property
    def name(self) -> str:
        """The beginning of the question in letters and digits, and a hash of all that is given.

        >>> Subject("Should cities ban cars?").name
        'should-cities-ban-cars-efacaf60'
        """
        words = re.sub(r"[^a-z0-9]+", "-", self.question.casefold()).strip("-")
        slug = words[:_LONGEST_SLUG]
        if len(words) > _LONGEST_SLUG:  # end it with a whole word
            slug = slug.rpartition("-")[0] or slug
        given = json.dumps([self.question, self.passage, list(self.labels) if self.labels is not None else None])
        digest = hashlib.sha256(given.encode()).hexdigest()[:8]
        return f"{slug}-{digest}" if slug else digest


def debate_out(protocol: str, subject: Subject, seed: int, model: str, *, new: bool) -> str:
    """Where the debate of a subject goes unless it is told: the latest one that there is, or a new one beside it."""
    first = default_out(protocol.replace(":", "-"), subject.name, seed, model)
    number = 1
    while Path(_numbered(first, number)).exists():
        number += 1
    return _numbered(first, number if new else max(number - 1, 1))


def _numbered(first: str, number: int) -> str:
    return first if number == 1 else f"{first}-{number}"


def read_facts_file(file: Path) -> str:
    """Given facts from a text file.

    Raises:
        ConfigError: it cannot be read, or is not UTF-8 text.
    """
    try:
        return file.read_text("utf-8").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"--facts {file}: expected UTF-8 text, found other bytes") from None
    except OSError as error:
        raise ConfigError(f"--facts {file}: {(error.strerror or 'cannot be read').lower()}") from None
