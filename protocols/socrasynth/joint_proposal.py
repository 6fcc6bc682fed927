"""Joint proposal of both sides: A drafts, B amends, A consents or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moot.protocols.case import Case, label_in_words
from moot.protocols.floor import Request
from moot.protocols.messages import Failure, Turn
from moot.protocols.socrasynth.debater_slots import debater_slots
from moot.protocols.socrasynth.events import JointProposal, LastWordsGiven, ProposalNegotiated, SidesClosed
from moot.protocols.socrasynth.quality import appraise, appraise_topics, read_together
from moot.protocols.socrasynth.replies import (
    Amendment,
    Closing,
    Consent,
    Draft,
    LabelledAmendment,
    LabelledDraft,
    LastWord,
    TopicAddition,
)
from moot.protocols.socrasynth.schedule import CONCILIATION
from moot.protocols.socrasynth.sides import AGAINST, FOR, SIDES, Side, SideTurn, by_title, latest_arguments
from moot.protocols.socrasynth.state import SocraSynthRounds
from moot.protocols.text.agreement_language import agreement_share

CONFIRM = "socrasynth/confirm"

UNCONFIRMED = frozenset({"plateau", "max_rounds", "schedule-ended"})
"""Ends of the rounds without the sides' agreement: exhaustion, a refusal and a person need no confirmation."""


async def confirm(rounds: SocraSynthRounds) -> None:
    """Ask both sides whether they have presented everything, if the rounds ended without such a statement.

    Paths `confirm/agent/I`. A side's additions are its last arguments in the transcript; no round follows, and CRIT
    does not read it. Additions of a side that has presented all are ignored: a weak model constrained to the schema
    fills the list with repetitions, and later prompts would exceed its context. Notes the event `confirm`:
    confirmations, additions, concessions, failures, and the number of ignored additions; a concession is an
    event, too.
    """
    if rounds.stop not in UNCONFIRMED:
        return
    turns = await rounds.floor.ask_all([rounds.request(side, CONFIRM, LastWord, "confirm") for side in SIDES])
    failed = {turn.role: turn.kind for turn in turns if isinstance(turn, Failure)}
    valid = [(side, turn) for side, turn in zip(SIDES, turns, strict=True) if not isinstance(turn, Failure)]
    added = [_last_word(rounds, side, turn) for side, turn in valid]
    for side, turn in valid:
        if turn.reply.conceded:
            rounds.note_concession(side, turn.path)
    rounds.positions.concede([side for side, turn in valid if turn.reply.conceded])
    rounds.turns += [word for word in added if word.by_topic or word.conceded]
    presented: dict[str, bool | None] = {side.name: None for side in SIDES}
    rounds.floor.note(
        LastWordsGiven(
            path="confirm",
            round=rounds.number,
            topics=[topic.title for topic in rounds.topics],
            presented_all=presented | {side.name: turn.reply.presented_all for side, turn in valid},
            added={word.side.name: list(word.by_topic) for word in added if word.by_topic},
            passed_over={side.name: len(over) for side, turn in valid if (over := _passed_over(turn))},
            conceded=[word.side.name for word in added if word.conceded],
            failed=failed,
        )
    )


def _passed_over(turn: Turn[LastWord]) -> list[TopicAddition]:
    """Ignored additions of a side that states that it has presented everything."""
    return turn.reply.additions if turn.reply.presented_all else []


def _last_word(rounds: SocraSynthRounds, side: Side, turn: Turn[LastWord]) -> SideTurn:
    counted = [] if turn.reply.presented_all else turn.reply.additions
    texts = by_title([(one.topic, one.addition) for one in counted], rounds.topics)
    return SideTurn(side, rounds.number, texts, (), turn.reply.presented_all, turn.reply.conceded)


CLOSING = "socrasynth/closing"

Statements = Mapping[Side, Mapping[str, str]]
"""Closing statements by side and title of their topic."""


async def close(rounds: SocraSynthRounds) -> tuple[Statements, list[str]]:
    """Closing statements of both sides, and the roles whose last arguments replace them.

    Paths `closing/agent/I`; a side that fails or declines is judged by its last argument on each topic. Notes the event
    `closing`: contentiousness, CRIT of each side, of each topic where configured, and the failures.
    """
    case, floor, settings = rounds.case, rounds.floor, rounds.settings
    kappa = rounds.closing_level
    turns = await floor.ask_all([rounds.request(side, CLOSING, Closing, "closing", kappa=kappa) for side in SIDES])
    statements: dict[Side, dict[str, str]] = {}
    failed: dict[str, str] = {}
    for side, turn in zip(SIDES, turns, strict=True):
        if isinstance(turn, Failure):
            failed[side.name] = turn.kind
        elif statement := by_title([(one.topic, one.statement) for one in turn.reply.statements], rounds.topics):
            statements[side] = statement
        else:
            failed[side.name] = "declined" if turn.reply.declined else "off-topic"
        statements.setdefault(side, latest_arguments(rounds.turns, side, rounds.topics))
    texts = {
        side: "\n\n".join(f"{title}: {text}" for title, text in by_topic.items())
        for side, by_topic in statements.items()
    }
    texts = {side: text for side, text in texts.items() if text}
    quality = await appraise(case, floor, read_together(texts), settings.crit, "crit/closing", rounds.positions)
    by_topic: dict[str, list[float | None]] = {}
    if settings.crit_topics:
        by_topic = await appraise_topics(
            case, floor, statements, rounds.topics, settings.crit, "crit/closing", rounds.positions
        )
    floor.note(
        SidesClosed(
            path="closing",
            kappa=kappa,
            topics=[topic.title for topic in rounds.topics],
            crit=quality.scores(),
            crit_by_topic=by_topic,
            gamma=quality.gamma,
            agreement_words=agreement_share(texts.values()),
            failed=failed,
        )
    )
    return statements, list(failed)


PROPOSAL, CONSENT = "socrasynth/proposal", "socrasynth/consent"


async def propose_jointly(rounds: SocraSynthRounds, statements: Statements) -> JointProposal | None:
    """A's draft as amended by B, and each side's consent; None if A gave no draft.

    On a closed list it names an answer, which is not requested if both sides agree. Paths
    `joint/draft/agent/0`, `joint/amend/agent/1`, `joint/consent/agent/0`. Notes the event `joint`.
    """
    joint, failed = await _negotiate(rounds, statements)
    proposed: dict[str, Any] = {"proposal": None} if joint is None else dict(joint)
    rounds.floor.note(ProposalNegotiated(kappa=CONCILIATION, failed=failed, path="joint", **proposed))
    return joint


async def _negotiate(rounds: SocraSynthRounds, statements: Statements) -> tuple[JointProposal | None, dict[str, str]]:
    case, floor, decoding = rounds.case, rounds.floor, rounds.decoding_at(CONCILIATION)
    slots = {side: _slots(rounds, side, statements) for side in SIDES}
    names = bool(slots[FOR]["labels"])  # whether the answer is still open
    draft_type, amendment_type = (LabelledDraft, LabelledAmendment) if names else (Draft, Amendment)
    (draft,) = await floor.ask_all(
        [Request(FOR.name, PROPOSAL, slots[FOR], draft_type, f"joint/draft/{FOR.name}", decoding=decoding)]
    )
    if isinstance(draft, Failure):
        return None, {FOR.name: draft.kind}
    drafted = _shown(case, draft.reply, draft.answer)
    amend = slots[AGAINST] | {"draft": drafted}
    (amended,) = await floor.ask_all(
        [Request(AGAINST.name, PROPOSAL, amend, amendment_type, f"joint/amend/{AGAINST.name}", decoding=decoding)]
    )
    agreed = rounds.positions.agreed
    if isinstance(amended, Failure):
        return JointProposal(
            answer=agreed or draft.answer,
            proposal=draft.reply.points,
            questions=draft.reply.questions,
            drafted_by=FOR.name,
            amended_by=None,
            consents={FOR.name: True, AGAINST.name: None},
            reservations={},
        ), {AGAINST.name: amended.kind}
    final = amended.reply
    shown = slots[FOR] | {"draft": drafted, "amended": _shown(case, final, amended.answer)}
    (consent,) = await floor.ask_all(
        [Request(FOR.name, CONSENT, shown, Consent, f"joint/consent/{FOR.name}", decoding=decoding)]
    )
    reply = None if isinstance(consent, Failure) else consent.reply
    return JointProposal(
        answer=agreed or amended.answer,
        proposal=final.points,
        questions=final.questions,
        drafted_by=FOR.name,
        amended_by=AGAINST.name,
        consents={FOR.name: reply.consents if reply else None, AGAINST.name: final.consents},
        reservations={FOR.name: reply.reservations if reply else [], AGAINST.name: final.reservations},
    ), {} if reply else {FOR.name: "consent missing"}


def _slots(rounds: SocraSynthRounds, side: Side, statements: Statements) -> dict[str, Any]:
    """Slots of the negotiation: the subject and both closing statements, not the whole debate."""
    case, words = rounds.case, rounds.positions.in_words(rounds.case)
    closings = [
        {"side": each.letter, "stance": words[each], "topic": title, "text": text}
        for each in SIDES
        for title, text in statements[each].items()
    ]
    slots = debater_slots(case, rounds.topics, side, CONCILIATION, (), rounds.positions)
    del slots["transcript"]
    agreed = rounds.positions.agreed
    if agreed is not None:
        slots |= {"labels": [], "own_answer": "", "other_answer": ""}  # neither side has its own one any more
    agreed_words = "" if agreed is None else label_in_words(case, agreed)
    more = {"agreed": agreed_words, "both_conceded": rounds.positions.swapped, "draft": {}}
    return slots | {"closings": closings} | more


def _shown(case: Case, draft: Draft, answer: str | None) -> dict[str, Any]:
    """Text of a draft for the other side."""
    named = "" if answer is None else label_in_words(case, answer)
    return {"answer": named, "points": list(draft.points), "questions": list(draft.questions)}
