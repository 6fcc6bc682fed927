"""The simulated debater of a subject: its themes, an argument per topic, and a proposal.

It argues without understanding: it quotes the facts and names the topic. What contentiousness changes is the register,
and how soon a debater has said all: at level k it has in (1 - k)/2 of its turns after the opening; at 0.3 or less it
concedes in one tenth of them, the less so the more stubborn it is.

On a closed list it does know something: it names what its agent believes on its own, and it weighs its answer and the
other's as that agent does, which pulls towards the truth and is the harder to move the more contentious it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from moot.actors.models.simulated.belief import independent, weighed
from moot.actors.models.simulated.prompt import SeenFence
from moot.actors.models.simulated.text import Trace, frame, sentences_of
from moot.actors.models.simulated.turn import Draft, Turn, json_draft, json_reply
from moot.protocols.labels import fold

_CONCERNS = (
    ("What it costs", "Who pays for it, and whether what comes of it is worth that."),
    ("Who is protected, who is burdened", "Which groups gain, which lose, and whether that is fair."),
    ("Freedom against safety", "How far one may be limited for the sake of the other."),
    ("The evidence so far", "What is known, what is only assumed, and who has looked."),
    ("Putting it into practice", "Whether it can be done with the means that there are."),
    ("Effects in the long run", "What it leads to in ten years, wanted or not."),
    ("If nothing is done", "What happens without it, and how soon."),
    ("Trust and accountability", "Who answers for mistakes, and to whom."),
    ("Room for exceptions", "Whether one rule can fit everybody."),
    ("Local or common rules", "Who should decide: those on the spot, or all together."),
)
_MOST = 20
_BALANCED = 0.9
_COUNT = re.compile(r"(\d+)\s+(?:themes|of them)")
_SECOND = re.compile(r"\bYou are debater B\b")
_LOW, _CONCEDES = 0.3, 0.1
_ADDS = 0.2
"""Share of last words before the closings that add an argument."""
_WAYS = (
    "begin on a small scale, publish what is found, and let both sides look at it after a year",
    "leave it to those concerned, within limits that are written down beforehand",
    "spend on it only as long as what comes of it is measured",
    "name somebody who answers for it, and let the exceptions be few and public",
)
_UNKNOWN = (
    "How would one see within a year that it went wrong?",
    "What do those say who would have to live with it?",
    "Which of the figures given were checked by somebody else?",
)
_DOUBTS = ("The first point still asks too much at once.", "Who pays remains open.")


def write_balance(turn: Turn) -> Draft:
    """Mostly that the subject is balanced."""
    balanced = turn.random.random() < _BALANCED
    why = "Both sides have something to bring." if balanced else "One side has little to bring."
    return json_reply({"balanced": balanced, "why": why})


def write_themes(turn: Turn) -> Draft:
    """As many themes as the prompt asks for: drawn concerns, or one list of what is shown."""
    shown = [*turn.prompt.tagged("own_theme"), *turn.prompt.tagged("theme")]
    if shown:
        listed = [(_title(each), each.body) for each in _first_of_each(shown)[: _count(turn)]]
    else:
        listed = turn.random.sample(_CONCERNS, min(_count(turn), len(_CONCERNS)))
    return json_reply({"themes": [{"title": title, "description": text} for title, text in listed]})


def write_agenda(turn: Turn) -> Draft:
    """As many of the proposed themes as the prompt asks for, those of both sides first; equal titles are merged."""
    themes = turn.prompt.tagged("theme")
    topics = []
    for first in _first_of_each(themes):
        tags = [each.attributes.get("number", "") for each in themes if fold(_title(each)) == fold(_title(first))]
        topics.append({"title": _title(first), "description": first.body, "merges": tags})
    topics.sort(key=lambda topic: -len(topic["merges"]))
    return json_reply({"topics": topics[: _count(turn)]})


def _title(theme: SeenFence) -> str:
    return theme.attributes.get("title", "")


def _first_of_each(themes: Iterable[SeenFence]) -> Sequence[SeenFence]:
    first: dict[str, SeenFence] = {}
    for theme in themes:
        first.setdefault(fold(_title(theme)), theme)
    return list(first.values())


def _count(turn: Turn) -> int:
    found = _COUNT.search("\n".join(turn.prompt.sent))
    return max(1, min(_MOST, int(found[1]))) if found else len(_CONCERNS) // 2


def write_speech(turn: Turn) -> Draft:
    """One argument per topic; in an opening its own answer, where one is asked for; later, whether that is all."""
    prompt = turn.prompt
    if prompt.labels:
        stance = independent(turn)
        values: dict[str, object] = {"answer": stance.answer, "declined": False}
        values["arguments"] = _told(turn, "argument", f'"{stance.answer}"')
        return json_draft(tuple(values), values, "answer", stance.belief)
    said: dict[str, object] = {"declined": False, "arguments": _told(turn, "argument", _answer(turn))}
    if "finished" in prompt.instructions:
        level = 1.0 if prompt.contentiousness is None else prompt.contentiousness
        said["finished"] = turn.random.random() < (1.0 - level) / 2.0
        said["conceded"] = _yields(turn)
    return json_reply(said)


def write_last_word(turn: Turn) -> Draft:
    """Mostly that all has been presented; else one more argument on one topic."""
    number, topic = turn.pick(list(enumerate(turn.prompt.tagged("topic"), 1)))
    adds = turn.random.random() < _ADDS
    told = [{"topic": number, "addition": _on(topic, turn, _answer(turn))}] if adds else []
    conceded = bool(turn.prompt.tagged("own_answer")) and _yields(turn)
    return json_reply({"presented_all": not adds, "additions": told, "conceded": conceded})


def write_closing(turn: Turn) -> Draft:
    """One closing statement per topic."""
    return json_reply({"declined": False, "statements": _told(turn, "statement", _answer(turn))})


def write_proposal(turn: Turn) -> Draft:
    """A point per topic, and what to find out; of a draft that is shown, the same points with one made narrower."""
    points = [fence.body for fence in turn.prompt.tagged("point")]
    asked = [fence.body for fence in turn.prompt.tagged("open_question")]
    if points:
        place = turn.pick(range(len(points)))
        points[place] = f"{points[place].rstrip('.')}, and stop where it does not help."
    else:
        points = [f"{_title(topic)}: {turn.pick(_WAYS)}." for topic in turn.prompt.tagged("topic")]
    values: dict[str, object] = {"points": points, "questions": asked or turn.random.sample(_UNKNOWN, 2)}
    if "consents" in turn.prompt.form:
        values |= _consent(turn, holds=True)
    if "answer" in turn.prompt.form:
        values = {"answer": _weighed(turn), **values}
    return json_reply(values)


def write_consent(turn: Turn) -> Draft:
    """Mostly yes; no to an answer that it does not hold. A side that does not consent says why."""
    named = turn.prompt.first("amended_answer")
    return json_reply(_consent(turn, holds=not named or named == _weighed(turn)))


def _consent(turn: Turn, *, holds: bool) -> dict[str, object]:
    agrees = holds and turn.random.random() < 0.85
    doubt = turn.pick(_DOUBTS)
    return {"consents": agrees, "reservations": [] if agrees else [doubt]}


def _yields(turn: Turn) -> bool:
    """On a closed list, whether the other's answer convinces it; on a subject, now and then at a low level."""
    drawn = turn.random.random() < _CONCEDES * 2.0 * (1.0 - turn.settings.stubbornness)
    if turn.prompt.tagged("own_answer"):
        return _weighed(turn) == turn.prompt.first("other_answer")
    return drawn and turn.prompt.contentiousness is not None and turn.prompt.contentiousness <= _LOW


def _weighed(turn: Turn) -> str:
    return weighed(turn, turn.prompt.first("own_answer"), turn.prompt.first("other_answer"))


def _told(turn: Turn, what: str, answer: str) -> list[dict[str, object]]:
    topics = enumerate(turn.prompt.tagged("topic"), 1)
    return [{"topic": number, what: _on(topic, turn, answer)} for number, topic in topics]


def _on(topic: SeenFence, turn: Turn, answer: str) -> str:
    sentences = sentences_of(turn.prompt.passage or turn.prompt.question)
    opener, closer = frame(turn, answer)
    trace = Trace(opener, sentences, turn.pick(range(len(sentences))), closer)
    claims = [f"On {_title(topic).lower()} that is what counts."]
    if turn.prompt.tagged("moderator_question") and turn.random.random() < 0.5:
        claims.append("That also answers the moderator's question.")
    if turn.prompt.tagged("weak_point") and turn.random.random() < 0.5:
        claims.append("What was found weak rests on this as well.")
    return trace.written(turn.settings.reasoning_words, " ".join(claims))


def _answer(turn: Turn) -> str:
    """What a side stands for: its own answer, else yes or no."""
    second = _SECOND.search("\n".join(turn.prompt.sent)) is not None
    return f'"{turn.prompt.first("own_answer") or ("no" if second else "yes")}"'
