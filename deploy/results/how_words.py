"""Words for the codes by which a verdict says how it was reached."""

from __future__ import annotations

_WORDS = {
    "skipped": "the gate skipped the debate",
    "unanimous": "all agents gave the same answer",
    "stable-agree": "the agents settled and agree",
    "stable-disagree": "the agents settled and disagree",
    "diverging": "the agents moved apart",
    "t_max": "the last round was reached",
    "max_rounds": "the last round was reached",
    "max turns": "the last message was reached",
    "single": "one agent answered alone",
    "alone": "one agent answered alone",
    "vote": "the majority of independent answers",
    "converged": "the sides settled and agree",
    "stalled": "the sides settled and disagree",
    "printed": "divergences and CRIT hardly changed (the printed rule)",
    "ensemble": "each side answered on its own",
    "plateau": "the arguments no longer improved",
    "schedule-ended": "the contentiousness schedule ended",
    "both-done": "both sides had no more to say",
    "ended-by-person": "a person ended it",
    "consensus": "the debaters agreed",
    "synthesis": "a synthesis was written",
    "judged": "judged",
    "failed": "failed",
}


def how_words(how: str) -> str:
    """A code of `how` in words; one that is not known here as it stands.

    >>> how_words("stable-agree"), how_words("weighed")
    ('the agents settled and agree', 'weighed')
    """
    return _WORDS.get(how, how)
