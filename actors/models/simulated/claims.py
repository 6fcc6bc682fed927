"""The simulated debater of a claim: which side it believes in, and a message that says AGREE or DENY and why."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from moot.actors.models.simulated.belief import Stance, independent, position
from moot.actors.models.simulated.claim_prompt import (
    AGREE,
    DENY,
    SIDE_LABELS,
    SeenEvidence,
    claim_of,
    covered_words,
    evidence_lean,
    evidence_of,
    heard_sides,
    telling_words,
)
from moot.actors.models.simulated.prompt import SeenReply
from moot.actors.models.simulated.turn import Draft, Turn, json_draft
from moot.protocols.ceda.stance import Stance as Side
from moot.protocols.ceda.stance import opposite
from moot.protocols.claims import CLAIM_LABELS

SAYS, TEXT, STANCE = "says", "text", "stance"
"""The keys of a message."""

_PULL = 0.1
_HEARD_CONFIDENCE = 0.75
_COUNTS = 0.6
_QUOTED_WORDS, _QUOTED_CHARACTERS = 12, 90

_REASONS: dict[Side, tuple[str, ...]] = {
    "supports": (
        '{} bears the claim out: "{}".',
        'The claim keeps to {}, which says "{}".',
        'For the claim speaks {}: "{}".',
    ),
    "denies": (
        '{} does not carry the claim: "{}".',
        'The claim goes beyond {}, which says "{}".',
        'Against the claim stands {}: "{}".',
    ),
}
_WITHOUT_EVIDENCE: dict[Side, str] = {
    "supports": "No evidence was given, and nothing that is known speaks against the claim.",
    "denies": "No evidence was given that would carry the claim.",
}
_UNCLEAR = ("It is hard to say.", "Both readings are open to me.", "This may be read either way.")


def write_message(turn: Turn) -> Draft:
    """AGREE or DENY of the last message, and one or two sentences, the first of which cites a piece of evidence.

    Before it has spoken, what it believes is drawn from the agent, and with a probability of at most one tenth from the
    evidence that it was shown: the further the share of the claim's words in it is from one half, the likelier. What it
    believes, or the side that it last said, and the side of the message it answers are weighed as replies in a
    revision; a side that was said counts as if stated with a confidence of .75.
    """
    prompt, random = turn.prompt, turn.random
    claim, evidence, heard = claim_of(prompt), evidence_of(prompt), heard_sides(prompt)
    stance = _stance(turn, heard, evidence_lean(claim, evidence))
    side: Side = "supports" if stance.answer == SIDE_LABELS["supports"] else "denies"
    spoken_of: Side = (prompt.tagged("last_message") and heard and heard[-1]) or "supports"
    cited = _cited(claim, evidence, random)
    reason = turn.pick(_REASONS[side])
    said = reason.format(cited.number, _quotation(cited.text)) if cited else _WITHOUT_EVIDENCE[side]
    words = telling_words(claim)
    if cited and words and random.random() < _COUNTS:
        said += f" Of the {len(words)} words that matter in it the evidence has {len(covered_words(claim, evidence))}."
    if random.random() < turn.settings.unclear_rate:  # drawn after all else, so that a rate changes no other message
        unclear = turn.pick(_UNCLEAR)
        text = f'{unclear} {cited.number} says "{_quotation(cited.text)}".' if cited else unclear
        return turn.filled({TEXT: text, STANCE: "unclear"})
    shares = {AGREE: stance.belief[SIDE_LABELS[spoken_of]], DENY: stance.belief[SIDE_LABELS[opposite(spoken_of)]]}
    word = AGREE if side == spoken_of else DENY
    return json_draft(prompt.form, {SAYS: word, TEXT: said, STANCE: side}, SAYS, shares)


def _stance(turn: Turn, heard: Sequence[Side | None], lean: float) -> Stance:
    """What it believes now; `heard` are the sides of all messages, every second one its own."""
    asked = turn.about(question=claim_of(turn.prompt), labels=CLAIM_LABELS, passage="", own=None, others=())
    own = next((side for side in heard[-2::-2] if side), None)
    answered = heard[-1] if heard else None
    alone = _pulled(turn, independent(asked), lean)
    before = _as_reply(own) if own else SeenReply(alone.answer, alone.belief[alone.answer])
    if answered:
        return position(asked.about(own=before, others=(_as_reply(answered),)))
    if own and before.answer != alone.answer:  # nothing that was said moves it, so it stays where it was
        return Stance(before.answer, {label: 1.0 - share for label, share in alone.belief.items()})
    return alone


def _as_reply(side: Side) -> SeenReply:
    return SeenReply(SIDE_LABELS[side], _HEARD_CONFIDENCE)


def _pulled(turn: Turn, stance: Stance, lean: float) -> Stance:
    """Mixed with a belief in the side that the evidence leans to."""
    share, drawn = _PULL * abs(lean), turn.random.random()
    side = SIDE_LABELS["supports" if lean > 0.0 else "denies"]
    belief = {label: (1.0 - share) * mass + share * (label == side) for label, mass in stance.belief.items()}
    pulled = max(belief, key=belief.__getitem__) == side if turn.greedy else drawn < share
    return Stance(side if pulled else stance.answer, belief)


def _cited(claim: str, evidence: Sequence[SeenEvidence], random: Random) -> SeenEvidence | None:
    """Mostly the piece that has the most words of the claim; None without evidence."""
    drawn = random.random()
    if not evidence:
        return None
    nearest = sorted(evidence, key=lambda each: -len(covered_words(claim, [each])))
    return nearest[int(drawn * drawn * len(nearest))]


def _quotation(text: str) -> str:
    """The first words of a text, printable, in one line, and without a mark at the end."""
    words = [word for word in text.replace('"', "'").split() if word.isprintable()]
    return " ".join(words[:_QUOTED_WORDS])[:_QUOTED_CHARACTERS].rstrip(" .,:;?!") or "nothing to read"
