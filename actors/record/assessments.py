"""The event that says how judges found a reply, as the running signals read it."""

from __future__ import annotations

from typing import Any

import msgspec
import structlog

_log = structlog.get_logger(__name__)

ASSESSMENT = "assessment"
"""The kind of the event."""


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """What judges found of one reply; None is unknown.

    Attributes:
        reply: path of the judged reply.
        role: family of who spoke.
        domain: of the case; empty when the task does not say.
        scores: by dimension, the mean over the judgments.
        flag: share of judgments that flag the reply, in [0, 1].
        quality: mean quality over the judgments, 0 and up.
    """

    reply: str
    role: str
    domain: str | None = ""
    scores: dict[str, float | None] = {}
    flag: float | None = None
    quality: float | None = None


def read_assessment(case_id: str, data: dict[str, Any]) -> Assessment | None:
    """The assessment in an event's data; None, and a warning, when it is none: a protocol may note what it likes."""
    try:
        return msgspec.convert(data, Assessment)
    except msgspec.ValidationError as error:
        _log.warning("an event of kind `assessment` is left out of the signals", case=case_id, error=str(error))
        return None
