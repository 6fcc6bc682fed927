"""The simulated synthesizer: an answer from two arguments, by what they argue for and how much they quote."""

from __future__ import annotations

import re
from collections.abc import Sequence

from moot.actors.models.simulated.argument import argued_for, as_number, quotations
from moot.actors.models.simulated.belief import Stance, gold, independent, position
from moot.actors.models.simulated.prompt import SeenPrompt, SeenReply
from moot.actors.models.simulated.turn import Draft, Turn, json_draft
from moot.protocols.labels import fold

_SCALE = re.compile(r"a whole number from (-?\d{1,6}) to (-?\d{1,6})")
_NUMBER = "is the number alone"
_MOST_SCORES = 200
_TRUST, _PER_QUOTATION, _MOST_QUOTATIONS = 0.5, 0.1, 3


def write_synthesis(turn: Turn) -> Draft:
    """An answer and a rationale, as JSON, from two arguments.

    What they argue for counts like others' replies in a revision, the more, the more they quote; where they argue for
    an answer, it gives no other. A score is right as often as an answer of the agent's own; otherwise it is off by
    one, upwards if the first argument quotes more.
    """
    prompt = turn.prompt
    arguments = [fence.body for fence in prompt.tagged("argument")]
    quoted = [len(quotations(argument)) for argument in arguments]
    labels = prompt.labels or _scores(prompt)
    turn = turn.about(labels=labels)
    if prompt.tagged("criterion", "passage") and labels and all(re.fullmatch(r"-?\d+", label) for label in labels):
        stance = _scored(turn, sum(quoted[:1]) - sum(quoted[1:2]))
    else:
        found = zip(map(argued_for, arguments), quoted, strict=True)
        heard = [SeenReply(a, _TRUST + _PER_QUOTATION * min(_MOST_QUOTATIONS, n)) for a, n in found if a is not None]
        stance = _among([reply.answer for reply in heard], position(turn.about(others=tuple(heard))))
    if _NUMBER in "\n".join(prompt.sent):
        stance = _numbers(stance, prompt.question)
    rationale = "Both rest on as much of what is given."
    if len(quoted) > 1 and quoted[0] != quoted[1]:
        rationale = f"The {'first' if quoted[0] > quoted[1] else 'second'} argument rests on more of what is given."
    return json_draft(prompt.form, {"answer": stance.answer, "rationale": rationale}, "answer", stance.belief)


def _scored(turn: Turn, lead: int) -> Stance:
    """A score; `lead` is how many quotations more the first argument has."""
    stance, right = independent(turn), gold(turn)
    scores = sorted(turn.prompt.labels, key=int)
    place = scores.index(stance.answer if right not in scores else right)
    if right is None or stance.answer != right:
        up = lead > 0 or (lead == 0 and turn.random.random() < 0.5)
        beside = [each for each in (place + 1, place - 1) if 0 <= each < len(scores)]
        place = (beside if up else beside[::-1])[0] if beside and right is not None else place
    return Stance(scores[place], _around(scores, place, stance.belief[stance.answer]))


def _numbers(stance: Stance, question: str) -> Stance:
    """The same belief over numbers: without a key an agent may believe in words."""
    belief: dict[str, float] = {}
    for answer, share in stance.belief.items():
        number = as_number(answer, question)
        belief[number] = belief.get(number, 0.0) + share
    return Stance(as_number(stance.answer, question), belief)


def _among(argued: Sequence[str], stance: Stance) -> Stance:
    """The stance on the answers that were argued for; as it is where none was."""
    names = {fold(answer) for answer in argued}
    belief = {answer: share for answer, share in stance.belief.items() if fold(answer) in names}
    total = sum(belief.values())
    if not total:
        return stance
    answer = stance.answer if stance.answer in belief else max(belief, key=belief.__getitem__)
    return Stance(answer, {each: share / total for each, share in belief.items()})


def _around(scores: Sequence[str], place: int, belief: float) -> dict[str, float]:
    """The belief at one score, and the rest of it over the others, half as much with every step."""
    weights = {score: 0.5 ** abs(at - place) for at, score in enumerate(scores) if at != place}
    rest = sum(weights.values())
    shares = {score: (1.0 - belief) * weight / rest for score, weight in weights.items()}
    return {score: shares.get(score, belief if weights else 1.0) for score in scores}


def _scores(prompt: SeenPrompt) -> tuple[str, ...]:
    """The scores that the instructions name by their ends."""
    found = _SCALE.search("\n".join(prompt.sent))
    if found is None or not 0 <= int(found[2]) - int(found[1]) < _MOST_SCORES:
        return ()
    return tuple(str(score) for score in range(int(found[1]), int(found[2]) + 1))
