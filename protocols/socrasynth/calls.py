"""How many calls SocraSynth makes for a subject."""

from __future__ import annotations

from moot.protocols.calls import CallPlan, Calls
from moot.protocols.case import Case
from moot.protocols.crit.calls import most_readings
from moot.protocols.socrasynth.agenda import PROPOSE
from moot.protocols.socrasynth.schedule import all_levels
from moot.protocols.socrasynth.settings import SocraSynthSettings
from moot.protocols.socrasynth.sides import subject_slots

_TOPICS = Calls(5, 6)
"""Two proposals, two refinements that read both, and the moderator's list."""

_JOINT = Calls(3, 7)
"""A draft and an amendment that read both closings, and a consent."""


def calls_for(settings: SocraSynthSettings, case: Case, judges: int) -> CallPlan:
    """The fewest and the most calls for one subject, nobody moderating.

    Fewest: one topic, both sides have said all in the opening, and no reason is read as a claim of its own.
    """
    rounds = len(all_levels(settings.schedule, settings.max_rounds, settings.kappa.start, settings.kappa.delta)) - 1
    slots = subject_slots(case, ()) | {"side": "A", "stance": "for", "count": settings.topics.proposed}
    return CallPlan(
        _debate(settings, judges, rounds=0, topics=1, readings=1, confirmed=False),
        _debate(
            settings,
            judges,
            rounds=rounds,
            topics=settings.topics.count,
            readings=most_readings(settings.crit),
            confirmed=True,
        ),
        PROPOSE,
        slots,
    )


def _debate(
    settings: SocraSynthSettings, judges: int, *, rounds: int, topics: int, readings: int, confirmed: bool
) -> Calls:
    turns = 2 * (rounds + 1)
    # A reads every turn before it, B one more; there are none before the openings.
    heard = sum(4 * number + 1 for number in range(1, rounds + 1))
    documents = turns + 2 + (2 * topics if settings.crit_topics else 0)
    total = _TOPICS + Calls(turns, heard) + Calls(2, 2 * turns) + _JOINT
    if confirmed:  # both read all that was said, and what they add is read in the closings
        total += Calls(2, 2 * turns + 2 * 2)
    total += Calls(judges * readings, 2 * judges * readings) * documents
    total += Calls(2 * judges, 4 * judges) * topics
    return total + Calls(1 + 2 * judges, 4 * judges) if settings.versus_qa else total
