"""Texts for the codes of the columns `how` and `failure`, which state how a debate ended."""

from __future__ import annotations

_ENDINGS = {
    "skipped": "the gate skipped the debate",
    "single": "one agent answered alone",
    "alone": "one agent answered alone",
    "vote": "the agents voted",
    "unanimous": "all agents agreed in the last round",
    "stable-agree": "the distance between answers stopped changing; they agree",
    "stable-disagree": "the distance between answers stopped changing; they differ",
    "diverging": "the answers moved apart until the last round",
    "t_max": "the last round was reached",
    "max_rounds": "the last round was reached",
    "max turns": "the last turn was reached",
    "converged": "the sides' distributions converged",
    "stalled": "the distance between the sides' distributions stopped changing",
    "printed": "the stopping rule as printed in the paper",
    "ensemble": "one round, as an ensemble",
    "agreed": "both sides gave the same answer",
    "consensus": "the debaters agreed",
    "plateau": "the arguments stopped improving",
    "schedule-ended": "the schedule of contentiousness ended",
    "both-done": "both sides had no more to say",
    "ended-by-person": "a person ended it",
    "declined": "a side declined to argue",
    "turn-failed": "a side gave no usable reply",
    "synthesis": "a third agent answered after both sides",
    "judged": "the judges scored the reply",
    "failed": "the case failed",
    "unknown": "not recorded",
}


_FAILURES = {
    "ask_failed": "a reply that the debate needs was not usable",
    "bug": "an error in moot or in the protocol",
    "case_unfit": "the protocol cannot debate such a case",
    "deadline": "the debate exceeded its deadline",
    "encoder_failed": "texts could not be embedded",
    "invalid_case": "the case itself is not valid",
    "path_reused": "the protocol used one path for two steps",
    "quorum_failed": "too few usable replies to continue",
    "replay_diverged": "the replay made an ask that the record does not have",
}


def failure_words(kind: str) -> str:
    """Text for a kind of failure, followed by its code; a kind of a user's own protocol is unchanged.

    >>> failure_words("deadline"), failure_words("mine")
    ('failed: the debate exceeded its deadline (deadline)', 'failed: mine')
    """
    return f"failed: {_FAILURES[kind]} ({kind})" if kind in _FAILURES else f"failed: {kind}"


def code_meaning(code: str) -> str | None:
    """Meaning of a code of either column; None for an unknown code."""
    return _ENDINGS.get(code) or _FAILURES.get(code)


def ending_words(how: str) -> str:
    """Text for a code; a code of a user's own protocol is unchanged.

    >>> ending_words("skipped"), ending_words("mine")
    ('the gate skipped the debate', 'mine')
    """
    return _ENDINGS.get(how, how)


def named_ending(how: str) -> str:
    """Text of a code, followed by the code as in the record.

    >>> named_ending("vote"), named_ending("mine")
    ('the agents voted (vote)', 'mine')
    """
    words = ending_words(how)
    return words if words == how else f"{words} ({how})"
