"""Simulated debater, judge and context agent for claims; they use the messages' sides and word overlap.

Only the debater has an answer key. The wording of a judge's summary is planted: it depends on the verdict and on how
contested the claim was, so that a classifier of summaries has a signal to learn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from statistics import fmean

from moot.actors.simulated.belief import SimulatedBelief, independent, position
from moot.actors.simulated.judges import content_words
from moot.actors.simulated.prompt import ParsedFence, ParsedPrompt, ParsedReply
from moot.actors.simulated.turn import DraftSignals, SimulatedTurn
from moot.protocols.ceda.stance import Stance as Side
from moot.protocols.ceda.stance import opposite
from moot.protocols.ceda.wording import OPPOSITES, Wording, wording_of
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED
from moot.protocols.text.sentences import split_sentences

AGREE, DENY = "AGREE", "DENY"
"""First word of a message, by its relation to the previous one."""

SIDE_LABELS: dict[Side, str] = {"supports": SUPPORTED, "denies": HALLUCINATED}
"""Label that each side believes in."""

_SIGNS: dict[Side, float] = {"supports": 1.0, "denies": -1.0}
_FRAME = frozenset({"question", "answer", "yes"})
"""Words of a claim about an answer that carry no content."""

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

_LAST_WORD = 0.7
_DEBATE, _EVIDENCE = 0.75, 0.25
_SUREST = 0.99
_TORN_BELIEF = {"1": 0.2, "0": 0.2, "null": 0.6}
_NULL = 0.02

_MOST_STATEMENTS, _MOST_CONFLICTS = 4, 3
_EXACT_WORDS = 20
_FALSE_ALARM = 0.25
_ABOUT_ONE_THING = 0.25
_INVENTED = "as everybody knows"

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
"""Sentence of the summary about the debate, by how contested the claim was."""

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


def claim_of(prompt: ParsedPrompt) -> str:
    """Claim of a prompt; without a marked one, the message that is answered."""
    return prompt.first("claim") or prompt.first("last_message")


def telling_words(claim: str) -> frozenset[str]:
    """Content words for comparing a claim with evidence, in lower case."""
    return content_words(claim) - _FRAME


def covered_words(claim: str, evidence: Iterable[ParsedFence]) -> frozenset[str]:
    """Content words of the claim that occur in any of the evidence."""
    return telling_words(claim) & frozenset().union(*(content_words(each.body) for each in evidence))


def evidence_lean(claim: str, evidence: Sequence[ParsedFence]) -> float:
    """Lean of the evidence, from -1 (none of the claim's content words) to 1 (all of them); 0 without evidence."""
    words = telling_words(claim)
    return 2.0 * len(covered_words(claim, evidence)) / len(words) - 1.0 if words and evidence else 0.0


def _side(message: ParsedFence) -> Side | None:
    """Side of a message on the claim; None when the prompt states none."""
    return next((side for side in SIDE_LABELS if side == message.attributes.get("stance")), None)


def message(turn: SimulatedTurn) -> DraftSignals:
    """Debate message: AGREE or DENY with the last message, the side on the claim, and sentences that cite evidence.

    The prior belief is drawn from the agent and, with a probability of at most one tenth, from the evidence: the
    further the share of the claim's words in it is from one half, the likelier. That belief, or the side last taken,
    and the side of the answered message are weighed as replies in a revision; a side counts as a confidence of .75.
    """
    prompt, random = turn.prompt, turn.random
    claim, evidence, sides = claim_of(prompt), prompt.tagged("evidence"), [_side(m) for m in prompt.tagged("message")]
    stance = _stance(turn, sides, evidence_lean(claim, evidence))
    side: Side = "supports" if stance.answer == SIDE_LABELS["supports"] else "denies"
    spoken_of: Side = (prompt.tagged("last_message") and sides and sides[-1]) or "supports"
    near, reason, words = random.random(), turn.pick(_REASONS[side]), telling_words(claim)
    text, cites = _WITHOUT_EVIDENCE[side], ""
    if evidence:  # mostly the piece with the most words of the claim
        nearest = sorted(evidence, key=lambda each: -len(covered_words(claim, [each])))
        cited = nearest[int(near * near * len(nearest))]
        number, quotation = cited.attributes.get("number", ""), _quotation(cited.body)
        text, cites = reason.format(number, quotation), f' {number} says "{quotation}".'
        if words and random.random() < _COUNTS:
            covered = len(covered_words(claim, evidence))
            text += f" Of the {len(words)} words that matter in it the evidence has {covered}."
    if random.random() < turn.settings.unclear_rate:  # drawn last, so that a rate changes no other message
        return DraftSignals({"says": ..., "text": turn.pick(_UNCLEAR) + cites, "stance": "unclear"})
    shares = {AGREE: stance.belief[SIDE_LABELS[spoken_of]], DENY: stance.belief[SIDE_LABELS[opposite(spoken_of)]]}
    word = AGREE if side == spoken_of else DENY
    return DraftSignals({"says": word, "text": text, "stance": side}, "says", shares)


def _stance(turn: SimulatedTurn, sides: Sequence[Side | None], lean: float) -> SimulatedBelief:
    """Current belief; `sides` are those of all messages, every second one its own."""
    asked = turn.about(question=claim_of(turn.prompt), labels=CLAIM_LABELS, passage="", own=None, others=())
    own = next((side for side in sides[-2::-2] if side), None)
    answered = sides[-1] if sides else None
    alone = _pulled(turn, independent(asked), lean)
    before = _as_reply(own) if own else ParsedReply(alone.answer, alone.belief[alone.answer])
    if answered:
        return position(asked.about(own=before, others=(_as_reply(answered),)))
    if own and before.answer != alone.answer:  # no message changes it, so it keeps its side
        return SimulatedBelief(before.answer, {label: 1.0 - share for label, share in alone.belief.items()})
    return alone


def _as_reply(side: Side) -> ParsedReply:
    return ParsedReply(SIDE_LABELS[side], _HEARD_CONFIDENCE)


def _pulled(turn: SimulatedTurn, stance: SimulatedBelief, lean: float) -> SimulatedBelief:
    """Mixes in a belief in the side that the evidence leans to."""
    share, drawn = _PULL * abs(lean), turn.random.random()
    side = SIDE_LABELS["supports" if lean > 0.0 else "denies"]
    belief = {label: (1.0 - share) * mass + share * (label == side) for label, mass in stance.belief.items()}
    pulled = max(belief, key=belief.__getitem__) == side if turn.greedy else drawn < share
    return SimulatedBelief(side if pulled else stance.answer, belief)


def _quotation(text: str) -> str:
    """First words of a text, printable, on one line, without a final mark."""
    words = [word for word in text.replace('"', "'").split() if word.isprintable()]
    return " ".join(words[:_QUOTED_WORDS])[:_QUOTED_CHARACTERS].rstrip(" .,:;?!") or "nothing to read"


def ruling(turn: SimulatedTurn) -> DraftSignals:
    """Ruling on a claim by a score in [0, 1]: above one half it is supported, below hallucinated.

    The score is one half, plus .375 times the debaters' mean side (from -1 to 1; each debater's last side counts .7,
    the mean of all its sides .3), plus .125 times the lean of the evidence, plus noise, at temperature 0 too, so that
    two judges differ. The judge abstains at exactly .50, and where the debaters' sides cancel out without any evidence.
    """
    prompt = turn.prompt
    claim, evidence, messages = claim_of(prompt), prompt.tagged("evidence"), prompt.tagged("message")
    signs: dict[str, list[float]] = {}
    for each in messages:
        if side := _side(each):
            signs.setdefault(each.attributes.get("speaker", ""), []).append(_SIGNS[side])
    by_debater = signs.values()
    weighted = [_LAST_WORD * one[-1] + (1.0 - _LAST_WORD) * fmean(one) for one in by_debater]
    standing = fmean(weighted) if weighted else 0.0
    reading = 0.5 + 0.5 * (_DEBATE * standing + _EVIDENCE * evidence_lean(claim, evidence))
    score = round(min(_SUREST, max(1.0 - _SUREST, reading + turn.noise())), 2)
    torn = score == 0.5 or (standing == 0.0 and not evidence)
    verdict = None if torn else int(score > 0.5)
    course = _course(list(by_debater))
    last = [(each.attributes.get("speaker"), _side(each)) for each in messages[-2:]]
    agreed = len(last) == 2 and last[0][0] != last[1][0] and last[0][1] is not None and last[0][1] == last[1][1]
    conflicts, words, covered = (
        len(prompt.tagged("conflict")),
        telling_words(claim),
        len(covered_words(claim, evidence)),
    )
    summary = [
        turn.pick(_COURSE[course]),
        f"{covered} of {len(words)} words that matter stand in the evidence." if evidence else "There was no evidence.",
        *([f"Places that do not go together: {conflicts}."] if conflicts else []),
        turn.pick(_GROUNDS[verdict]),
        turn.pick(_RULINGS[verdict]),
    ]
    disputed = "Whether the claim holds."
    values = {
        "consensus": agreed,
        "agreed": [disputed] if agreed else [],
        "disputed": [disputed] if course == "open" else [],
        "summary": " ".join(summary),
        "verdict": verdict,
        "confidence": None if torn else round(max(score, 1.0 - score), 2),
    }
    rest = 1.0 - _NULL
    belief = _TORN_BELIEF if torn else {"1": rest * score, "0": rest * (1.0 - score), "null": _NULL}
    return DraftSignals(values, "verdict", belief)


def _course(signs: Sequence[Sequence[float]]) -> str:
    """How contested the claim was, from every debater's sides: a key of `_COURSE`."""
    if len(signs) < 2:
        return "one-sided"
    if len({each[-1] for each in signs}) > 1:
        return "open"
    return "of one mind" if len({sign for each in signs for sign in each}) == 1 else "settled"


def context(turn: SimulatedTurn) -> DraftSignals:
    """Context analysis: a statement per evidence item with words of the claim, and pairs that look contradictory.

    Two sentences look contradictory if a quarter of the shorter one's content words are in the other and one of these
    holds: only one negates, they have opposite words, or their numbers of one unit, or of none, all differ. These rules
    are looser than those of `moot.protocols.ceda.conflicts`: higher recall, lower precision.

    A pair of items that looks contradictory is reported with the probability of the competence, any other pair on one
    topic with a quarter of one minus it; at temperature 0 all of the former are reported and none of the latter. The
    hallucination rate is the share of quotes with words that are not in the item.
    """
    evidence, claim = turn.prompt.tagged("evidence"), claim_of(turn.prompt)
    statements: list[dict[str, object]] = []
    for each in sorted(evidence, key=lambda each: -len(covered_words(claim, [each])))[:_MOST_STATEMENTS]:
        words = sorted(covered_words(claim, [each]))
        sentence = max(split_sentences(each.body), key=lambda s: len(telling_words(s) & set(words)), default="")
        fact = {"item": each.attributes.get("number", ""), "quote": _exactly(sentence, turn)}
        if words and sentence:
            statements.append({"text": f"{fact['item']} speaks of {', '.join(words[:3])}.", "facts": [fact]})
    competence, conflicts = turn.settings.competence, []
    for items in combinations(evidence, 2):
        drawn = turn.random.random()
        pairs = sorted(_pairs(*items), key=lambda pair: not pair[1])
        for matched, odd in pairs[:1]:
            if odd if turn.greedy else drawn < (competence if odd else _FALSE_ALARM * (1.0 - competence)):
                conflict: dict[str, str] = {}
                for place, (item, sentence) in enumerate(zip(items, matched, strict=True), 1):
                    conflict[f"item_{place}"] = item.attributes.get("number", "")
                    conflict[f"quote_{place}"] = _exactly(sentence, turn)
                conflicts.append(conflict)
    return DraftSignals({"statements": statements, "conflicts": conflicts[:_MOST_CONFLICTS]})


def _exactly(sentence: str, turn: SimulatedTurn) -> str:
    invents = turn.random.random() < turn.settings.hallucination_rate
    quote = " ".join(sentence.split()[:_EXACT_WORDS])
    return f"{quote} {_INVENTED}" if invents else quote


def _pairs(one: ParsedFence, other: ParsedFence) -> Iterator[tuple[tuple[str, str], bool]]:
    """Pairs of sentences on one topic, in order, and whether they look contradictory."""
    for pair in product(split_sentences(one.body), split_sentences(other.body)):
        first, second = wording_of(pair[0]), wording_of(pair[1])
        common = len(first.words & second.words)
        if common and common >= _ABOUT_ONE_THING * min(len(first.words), len(second.words)):
            yield pair, _looks_at_odds(first, second)


def _looks_at_odds(first: Wording, second: Wording) -> bool:
    if first.negated != second.negated:
        return True
    if any(OPPOSITES.get(word, frozenset()) & second.words for word in first.words - second.words):
        return True
    figures = [
        (one, other)
        for unit, ones in first.quantities.items()
        for other_unit, others in second.quantities.items()
        if unit == other_unit or not unit or not other_unit
        for one, other in product(ones, others)
    ]
    return bool(figures) and not any(one.meets(other) for one, other in figures)
