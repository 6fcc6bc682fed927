"""Closing statements, and a proposal that both sides can stand behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moot.protocols.agreement_language import agreement_share
from moot.protocols.case import Case
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Event, Failure
from moot.protocols.socrasynth.quality import appraise, appraise_topics
from moot.protocols.socrasynth.replies import Amendment, Closing, Consent, Draft
from moot.protocols.socrasynth.rounds import Rounds, decoding_at
from moot.protocols.socrasynth.schedule import CONCILIATION, closing_level
from moot.protocols.socrasynth.settings import SocraSynthSettings
from moot.protocols.socrasynth.sides import AGAINST, FOR, SIDES, Side, by_title, debater_slots, last_words

CLOSING = "socrasynth/closing"
DRAFT, AMEND, CONSENT = "socrasynth/draft", "socrasynth/amend", "socrasynth/consent"

Statements = Mapping[Side, Mapping[str, str]]
"""Closing statements by side and title of their topic."""


async def close(case: Case, floor: Floor, rounds: Rounds, settings: SocraSynthSettings) -> tuple[Statements, list[str]]:
    """The closing statements of both sides, and the roles whose last arguments stand in for them.

    Paths `closing/agent/I`; a side that fails or declines is judged by its last argument on each topic. Notes the event
    `closing`: contentiousness, CRIT of each side, of each topic where configured, and who failed why.
    """
    kappa = closing_level(settings.schedule, rounds.kappa)
    turns = await floor.ask_all([_closing_request(case, rounds, side, kappa, settings) for side in SIDES])
    statements: dict[Side, dict[str, str]] = {}
    failed: dict[str, str] = {}
    for side, turn in zip(SIDES, turns, strict=True):
        if isinstance(turn, Failure):
            failed[side.name] = turn.kind
        elif said := by_title([(one.topic, one.statement) for one in turn.reply.statements], rounds.topics):
            statements[side] = said
        else:
            failed[side.name] = "declined" if turn.reply.declined else "off-topic"
        statements.setdefault(side, last_words(rounds.said, side, rounds.topics))
    texts = {side: "\n\n".join(f"{title}: {text}" for title, text in said.items()) for side, said in statements.items()}
    texts = {side: text for side, text in texts.items() if text}
    quality = await appraise(case, floor, texts, settings.crit, "crit/closing")
    by_topic: dict[str, list[float | None]] = {}
    if settings.crit_topics:
        by_topic = await appraise_topics(case, floor, statements, rounds.topics, settings.crit, "crit/closing")
    data: dict[str, Any] = {
        "kappa": kappa,
        "topics": [topic.title for topic in rounds.topics],
        "crit": quality.scores(),
        "crit_by_topic": by_topic,
        "gamma": quality.gamma,
        "agreement_words": agreement_share(texts.values()),
        "failed": failed,
    }
    floor.note(Event("closing", "closing", data))
    return statements, list(failed)


def _closing_request(
    case: Case, rounds: Rounds, side: Side, kappa: float, settings: SocraSynthSettings
) -> Request[Closing]:
    slots = debater_slots(case, rounds.topics, side, kappa, rounds.said)
    decoding = decoding_at(kappa, settings)
    return Request(side.name, CLOSING, slots, Closing, f"closing/{side.name}", decoding=decoding)


@dataclass(frozen=True, slots=True)
class Joint:
    """A proposal for whoever has to decide.

    Attributes:
        points: what is proposed.
        questions: what should be found out next: questions to ask, tests to order.
        amended: whether B has gone over A's draft.
        consents: by role whether it stands behind these points; None when it did not say.
        reservations: by role, what it does not agree with.
    """

    points: tuple[str, ...]
    questions: tuple[str, ...]
    amended: bool
    consents: Mapping[str, bool | None]
    reservations: Mapping[str, tuple[str, ...]]

    def record(self) -> dict[str, Any]:
        """As events and verdicts hold it."""
        return {
            "proposal": list(self.points),
            "questions": list(self.questions),
            "drafted_by": FOR.name,
            "amended_by": AGAINST.name if self.amended else None,
            "consents": dict(self.consents),
            "reservations": {role: list(said) for role, said in self.reservations.items()},
        }


async def propose_jointly(
    case: Case, floor: Floor, rounds: Rounds, statements: Statements, settings: SocraSynthSettings
) -> Joint | None:
    """A's draft, as B amends it, and whether each consents; None when A gave no draft.

    Paths `joint/draft/agent/0`, `joint/amend/agent/1`, `joint/consent/agent/0`. Notes the event `joint`.
    """
    joint, failed = await _negotiate(case, floor, rounds, statements, settings)
    data: dict[str, Any] = {"kappa": CONCILIATION, "failed": failed}
    floor.note(Event("joint", "joint", data | (joint.record() if joint is not None else {"proposal": None})))
    return joint


async def _negotiate(
    case: Case, floor: Floor, rounds: Rounds, statements: Statements, settings: SocraSynthSettings
) -> tuple[Joint | None, dict[str, str]]:
    decoding = decoding_at(CONCILIATION, settings)
    slots = {side: _joint_slots(case, rounds, side, statements) for side in SIDES}
    (draft,) = await floor.ask_all(
        [Request(FOR.name, DRAFT, slots[FOR], Draft, f"joint/draft/{FOR.name}", decoding=decoding)]
    )
    if isinstance(draft, Failure):
        return None, {FOR.name: draft.kind}
    drafted = draft.reply.model_dump()
    amend_slots = slots[AGAINST] | {"draft": drafted}
    (amended,) = await floor.ask_all(
        [Request(AGAINST.name, AMEND, amend_slots, Amendment, f"joint/amend/{AGAINST.name}", decoding=decoding)]
    )
    if isinstance(amended, Failure):
        points, questions = tuple(draft.reply.points), tuple(draft.reply.questions)
        consents: dict[str, bool | None] = {FOR.name: True, AGAINST.name: None}
        return Joint(points, questions, False, consents, {}), {AGAINST.name: amended.kind}
    final = amended.reply
    agreed = slots[FOR] | {"draft": drafted, "amended": final.model_dump(include={"points", "questions"})}
    (consent,) = await floor.ask_all(
        [Request(FOR.name, CONSENT, agreed, Consent, f"joint/consent/{FOR.name}", decoding=decoding)]
    )
    heard = not isinstance(consent, Failure)
    consents = {
        FOR.name: None if isinstance(consent, Failure) else consent.reply.consents,
        AGAINST.name: final.consents,
    }
    reservations = {
        FOR.name: () if isinstance(consent, Failure) else tuple(consent.reply.reservations),
        AGAINST.name: tuple(final.reservations),
    }
    joint = Joint(tuple(final.points), tuple(final.questions), True, consents, reservations)
    return joint, {} if heard else {FOR.name: "consent missing"}


def _joint_slots(case: Case, rounds: Rounds, side: Side, statements: Statements) -> dict[str, Any]:
    """What the negotiation reads: the subject and both closing statements, not the whole debate again."""
    closings = [
        {"side": each.letter, "stance": each.stance, "topic": title, "text": text}
        for each in SIDES
        for title, text in statements[each].items()
    ]
    slots = debater_slots(case, rounds.topics, side, CONCILIATION, ())
    del slots["transcript"]
    return slots | {"closings": closings}
