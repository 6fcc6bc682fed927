"""How many calls SocraSynth makes for a subject."""

from __future__ import annotations

from moot.protocols.calls import CallPlan, Calls
from moot.protocols.case import Case
from moot.protocols.crit.calls import most_readings
from moot.protocols.socrasynth.agenda import THEMES
from moot.protocols.socrasynth.debater_slots import ANSWER_TOPIC, Positions, debater_slots
from moot.protocols.socrasynth.rounds import OPENING
from moot.protocols.socrasynth.schedule import all_levels
from moot.protocols.socrasynth.settings import SocraSynthSettings
from moot.protocols.socrasynth.sides import FOR, open_answers, subject_slots

_TOPICS = Calls(5, 6)
"""Two proposals, two refinements that read both, and the moderator's list."""

_JOINT = Calls(3, 7)
"""A draft and an amendment that read both closings, and a consent."""


def calls_for(settings: SocraSynthSettings, case: Case, judges: int) -> CallPlan:
    """The fewest and the most calls for one subject, nobody moderating.

    Fewest: one topic, both sides have said all in the first round, and no reason is read as a claim of its own. On a
    closed list: both sides name the same answer at once.
    """
    rounds = len(all_levels(settings.schedule, settings.max_rounds, settings.kappa.start, settings.kappa.delta)) - 1
    listed, readings = bool(open_answers(case)), most_readings(settings.crit)
    topics = 1 if listed else settings.topics.count
    most = _debate(settings, judges, rounds=rounds, topics=topics, readings=readings, confirmed=True)
    if listed:
        slots = debater_slots(case, (ANSWER_TOPIC,), FOR, settings.kappa.start, (), Positions())
        return CallPlan(_agreed_at_once(settings, judges), most, OPENING, slots)
    fewest = _debate(settings, judges, rounds=min(1, rounds), topics=1, readings=1, confirmed=not rounds)
    more = {"side": "A", "stance": "for", "count": settings.topics.proposed, "own": [], "others": []}
    return CallPlan(_agenda(settings) + fewest, _agenda(settings) + most, THEMES, subject_slots(case, ()) | more)


def _agenda(settings: SocraSynthSettings) -> Calls:
    return _TOPICS + Calls(2) if settings.topics.ask_balance else _TOPICS


def _agreed_at_once(settings: SocraSynthSettings, judges: int) -> Calls:
    total = Calls(2) + Calls(judges, 2 * judges) * 2 + _JOINT
    return total + _versus(judges) if settings.versus_qa else total


def _versus(judges: int) -> Calls:
    return Calls(1 + 2 * judges, 4 * judges)


def _debate(
    settings: SocraSynthSettings, judges: int, *, rounds: int, topics: int, readings: int, confirmed: bool
) -> Calls:
    turns = 2 * (rounds + 1)
    # A reads every turn before it, B one more; there are none before the openings.
    heard = sum(4 * number + 1 for number in range(1, rounds + 1))
    documents = turns + 2 + (2 * topics if settings.crit_topics else 0)
    total = Calls(turns, heard) + Calls(2, 2 * turns) + _JOINT
    if confirmed:  # both read all that was said, and what they add is read in the closings
        total += Calls(2, 2 * turns + 2 * 2)
    total += Calls(judges * readings, 2 * judges * readings) * documents
    sheets = topics if settings.panel == "topics" else 1
    total += Calls(2 * judges, 4 * judges) * sheets
    return total + _versus(judges) if settings.versus_qa else total
