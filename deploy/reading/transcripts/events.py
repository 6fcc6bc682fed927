"""The one list of protocols whose events are shown in words of their own."""

from __future__ import annotations

from moot.deploy.reading.transcripts.assessment import assessment_event
from moot.deploy.reading.transcripts.ceda import ceda_event
from moot.deploy.reading.transcripts.evince import evince_event
from moot.deploy.reading.transcripts.selene import vote_event
from moot.deploy.reading.transcripts.shown import Shown
from moot.deploy.reading.transcripts.views import EventView


def shown_event(event: EventView) -> Shown | None:
    """An event in words; None for one that nothing here knows."""
    return evince_event(event) or assessment_event(event) or ceda_event(event) or vote_event(event)
