"""How many calls constructor-auditor makes for a case."""

from __future__ import annotations

from moot.protocols.calls import CallPlan, Calls
from moot.protocols.case import Case
from moot.protocols.constructor_auditor.domains import domain_of, speaker_slots
from moot.protocols.constructor_auditor.settings import ConstructorAuditorSettings

OPENING = "constructor_auditor/constructor"

_DEBATE = Calls(3, 3)
"""The opening, the challenge that reads it, and the synthesis that reads both."""

_JUDGED = Calls(2, 3)
"""One judge on the opening, and on the challenge with what it answers."""


def calls_for(settings: ConstructorAuditorSettings, case: Case, judges: int) -> CallPlan:
    """The calls for one case: always the same number."""
    judgments = settings.judge.passes * judges if settings.judge.when == "always" else 0
    calls = _DEBATE + _JUDGED * judgments
    return CallPlan(calls, calls, OPENING, speaker_slots(case, domain_of(case), settings))
