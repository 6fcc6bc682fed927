"""The simulated judge of a debate about a claim: reads the debaters' sides and the evidence, with noise.

It has no answer key. The wording of its summary is planted: it differs by verdict and by how contested the claim was,
so that a classifier of summaries has something to learn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import fmean

from moot.actors.models.simulated.claim_prompt import (
    SeenMessage,
    claim_of,
    covered_words,
    evidence_lean,
    evidence_of,
    judged_messages,
    telling_words,
)
from moot.actors.models.simulated.prompt import SeenPrompt
from moot.actors.models.simulated.turn import Draft, Turn, json_draft
from moot.protocols.ceda.stance import Stance as Side

_LAST_WORD = 0.7
_DEBATE, _EVIDENCE = 0.75, 0.25
_SUREST = 0.99
_TORN_BELIEF = {"1": 0.2, "0": 0.2, "null": 0.6}
_NULL = 0.02
_CITED = re.compile(r"\bE\d{1,4}\b")
_SIGNS: dict[Side, float] = {"supports": 1.0, "denies": -1.0}

_COURSE = {
    "of one mind": (
        "Both debaters took the same side from the start.",
        "There was no dispute to speak of.",
        "The two were of one mind throughout.",
    ),
    "settled": (
        "One debater gave way in the course of the debate.",
        "They began apart and came together.",
        "What was disputed at first was settled in the end.",
    ),
    "open": (
        "The two did not come together.",
        "Each kept to a view of its own.",
        "The dispute stayed open to the last.",
    ),
    "one-sided": (
        "Not both debaters said where they stand.",
        "One view at most was heard.",
        "There was hardly a debate.",
    ),
}
"""What the summary says of the debate, by how contested the claim was."""

_GROUNDS = {
    1: (
        "Names and figures go together with what was cited.",
        "The points that were raised hold up.",
        "The sources carry it.",
    ),
    0: (
        "Some of it goes beyond what was cited.",
        "The points that were raised do not hold up.",
        "The sources do not carry it.",
    ),
    None: (
        "What was cited points neither way.",
        "As much speaks for it as against it.",
        "The sources leave it open.",
    ),
}
_RULINGS = {
    1: ("The claim is supported.", "I find the claim correct.", "So the claim is true."),
    0: ("The claim is hallucinated.", "I find the claim wrong.", "So the claim is false."),
    None: ("I cannot rule on the claim.", "The claim stays undecided.", "So there is no verdict."),
}


def write_ruling(turn: Turn) -> Draft:
    """Rules on a claim by a score in [0, 1]: above one half it is supported, below hallucinated.

    The score is one half, plus .375 times where the debaters stand (from -1 to 1; for each debater its last side counts
    .7, the mean of all its sides .3), plus .125 times how the evidence leans, plus noise, at temperature 0, too, so
    that two judges differ. It abstains where the score comes to exactly .50, and where the debaters' sides cancel out
    and there is no evidence.
    """
    prompt = turn.prompt
    messages, evidence = judged_messages(prompt), evidence_of(prompt)
    standing = _standing(messages)
    reading = 0.5 + 0.5 * (_DEBATE * standing + _EVIDENCE * evidence_lean(claim_of(prompt), evidence))
    score = round(min(_SUREST, max(1.0 - _SUREST, reading + turn.noise())), 2)
    torn = score == 0.5 or (standing == 0.0 and not evidence)
    verdict = None if torn else int(score > 0.5)
    values = {
        "consensus": _agree_at_last(messages),
        "agreed": _agreed(prompt, messages),
        "disputed": _disputed(prompt, messages),
        "summary": _summary(turn, messages, verdict),
        "verdict": verdict,
        "confidence": None if torn else round(max(score, 1.0 - score), 2),
    }
    rest = 1.0 - _NULL
    belief = _TORN_BELIEF if torn else {"1": rest * score, "0": rest * (1.0 - score), "null": _NULL}
    return json_draft(prompt.form, values, "verdict", belief)


def _signs(messages: Sequence[SeenMessage]) -> dict[str, list[float]]:
    """Every debater's known sides, in order; those who never said one are left out."""
    signs: dict[str, list[float]] = {}
    for message in messages:
        if message.side:
            signs.setdefault(message.speaker, []).append(_SIGNS[message.side])
    return signs


def _standing(messages: Sequence[SeenMessage]) -> float:
    """The mean over debaters, from -1 (all deny) to 1 (all support); 0 where nobody said a side."""
    signs = _signs(messages).values()
    return fmean(_LAST_WORD * each[-1] + (1.0 - _LAST_WORD) * fmean(each) for each in signs) if signs else 0.0


def _agree_at_last(messages: Sequence[SeenMessage]) -> bool:
    """Whether the last two messages are of two debaters and on one known side."""
    if len(messages) < 2:
        return False
    first, last = messages[-2:]
    return first.speaker != last.speaker and first.side is not None and first.side == last.side


def _course(messages: Sequence[SeenMessage]) -> str:
    """How contested the claim was: a key of `_COURSE`."""
    signs = _signs(messages)
    if len(signs) < 2:
        return "one-sided"
    if len({each[-1] for each in signs.values()}) > 1:
        return "open"
    return "of one mind" if len({sign for each in signs.values() for sign in each}) == 1 else "settled"


def _agreed(prompt: SeenPrompt, messages: Sequence[SeenMessage]) -> list[str]:
    told = []
    if _agree_at_last(messages):
        holds = "holds" if messages[-1].side == "supports" else "does not hold"
        told.append(f"Both say in the end that the claim {holds}.")
    cited: dict[str, set[str]] = {}
    for fence in prompt.tagged("message"):
        cited.setdefault(fence.attributes.get("speaker", ""), set()).update(_CITED.findall(fence.body))
    shared = set.intersection(*cited.values()) if len(cited) > 1 else set()
    return told + [f"Both go by {number}." for number in sorted(shared, key=lambda number: (len(number), number))]


def _disputed(prompt: SeenPrompt, messages: Sequence[SeenMessage]) -> list[str]:
    told = ["Whether the claim holds."] if _course(messages) == "open" else []
    between = [fence.attributes.get("between", "") for fence in prompt.tagged("conflict")]
    return told + [f"What to make of {each}, which do not go together." for each in between if each]


def _summary(turn: Turn, messages: Sequence[SeenMessage], verdict: int | None) -> str:
    claim, evidence = claim_of(turn.prompt), evidence_of(turn.prompt)
    words = f"{len(covered_words(claim, evidence))} of {len(telling_words(claim))} words that matter"
    conflicts = len(turn.prompt.tagged("conflict"))
    told = [
        turn.pick(_COURSE[_course(messages)]),
        f"{words} stand in the evidence." if evidence else "There was no evidence.",
        *([f"Places that do not go together: {conflicts}."] if conflicts else []),
        turn.pick(_GROUNDS[verdict]),
        turn.pick(_RULINGS[verdict]),
    ]
    return " ".join(told)
