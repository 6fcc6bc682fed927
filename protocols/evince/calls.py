"""How many calls EVINCE makes for a case."""

from __future__ import annotations

from moot.protocols.calls import CallPlan, Calls
from moot.protocols.case import Case, case_slots
from moot.protocols.crit.calls import most_readings
from moot.protocols.evince.settings import EvinceSettings
from moot.protocols.evince.talk import OPENING


def calls_for(settings: EvinceSettings, case: Case, judges: int, *, library: bool = False) -> CallPlan:
    """The fewest and the most calls for one case: a debate that rests after one round, and one that never does.

    A single side makes one.

    Args:
        library: whether the run has documents to search.
    """
    slots = case_slots(case) | {"top_k": settings.top_k, "answer_first": settings.answer_first, "evidence": []}
    if settings.agents == 1:
        return CallPlan(Calls(1), Calls(1), OPENING, slots)
    again = bool(settings.retrieve and (case.documents or library))
    least = _debate(settings, judges, 1, ends=1, deep=False)
    times = 2 if again else 1
    most = _debate(settings, judges, settings.max_rounds * times, ends=times, deep=True)
    follow_ups = Calls(settings.agents, settings.agents * settings.agents)
    if settings.follow_ups == "always":
        least += follow_ups
    if settings.follow_ups != "never":
        most += follow_ups
    return CallPlan(least, most, OPENING, slots)


def _debate(settings: EvinceSettings, judges: int, rounds: int, *, ends: int, deep: bool) -> Calls:
    """So many rounds after the opening exchange, in which the sides come to an end so often."""
    agents = settings.agents
    if not settings.debates:
        return Calls(agents) + (_reading(settings, judges, deep=deep) * agents if settings.judged else Calls(0))
    turns = agents * (rounds + 1)
    shown = turns * (turns - 1) // 2 if settings.history == "full" else turns * (agents - 1) + rounds * agents
    read = {"every": turns, "last": agents * ends, "none": 0}[settings.crit_turns]
    return Calls(turns, shown) + _reading(settings, judges, deep=deep) * read


def _reading(settings: EvinceSettings, judges: int, *, deep: bool) -> Calls:
    """The panel on one turn: it reads the turn and the others' last ones."""
    each = most_readings(settings.crit) if deep else 1
    return Calls(judges * each, judges * each * settings.agents)
