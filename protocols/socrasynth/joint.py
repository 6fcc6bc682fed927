"""A proposal that both sides can stand behind: A drafts, B amends, A consents or does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moot.protocols.case import Case, label_in_words
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Event, Failure
from moot.protocols.socrasynth.closing import Statements
from moot.protocols.socrasynth.debater_slots import debater_slots
from moot.protocols.socrasynth.replies import Amendment, Consent, Draft, LabelledAmendment, LabelledDraft
from moot.protocols.socrasynth.rounds import Rounds, decoding_at
from moot.protocols.socrasynth.schedule import CONCILIATION
from moot.protocols.socrasynth.settings import SocraSynthSettings
from moot.protocols.socrasynth.sides import AGAINST, FOR, SIDES, Side

PROPOSAL, CONSENT = "socrasynth/proposal", "socrasynth/consent"


@dataclass(frozen=True, slots=True)
class Joint:
    """A proposal for whoever has to decide.

    Attributes:
        points: what is proposed.
        questions: what should be found out next: questions to ask, tests to order.
        amended: whether B has gone over A's draft.
        consents: by role whether it stands behind these points; None when it did not say.
        reservations: by role, what it does not agree with.
        answer: on a closed list, the label that it names; None on a subject.
    """

    points: tuple[str, ...]
    questions: tuple[str, ...]
    amended: bool
    consents: Mapping[str, bool | None]
    reservations: Mapping[str, tuple[str, ...]]
    answer: str | None = None

    @property
    def consensus(self) -> str | None:
        """The label that it names, if both sides stand behind it."""
        return self.answer if all(self.consents.values()) else None

    def record(self) -> dict[str, Any]:
        """As events and verdicts hold it."""
        return {
            "answer": self.answer,
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

    On a closed list it names an answer, which is not asked for where both sides hold the same one. Paths
    `joint/draft/agent/0`, `joint/amend/agent/1`, `joint/consent/agent/0`. Notes the event `joint`.
    """
    joint, failed = await _negotiate(case, floor, rounds, statements, settings)
    data: dict[str, Any] = {"kappa": CONCILIATION, "failed": failed}
    floor.note(Event("joint", "joint", data | (joint.record() if joint is not None else {"proposal": None})))
    return joint


async def _negotiate(
    case: Case, floor: Floor, rounds: Rounds, statements: Statements, settings: SocraSynthSettings
) -> tuple[Joint | None, dict[str, str]]:
    decoding = decoding_at(CONCILIATION, settings)
    slots = {side: _slots(case, rounds, side, statements) for side in SIDES}
    names = bool(slots[FOR]["labels"])  # whether the answer is still to be found
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
        points, questions = tuple(draft.reply.points), tuple(draft.reply.questions)
        consents: dict[str, bool | None] = {FOR.name: True, AGAINST.name: None}
        return Joint(points, questions, False, consents, {}, agreed or draft.answer), {AGAINST.name: amended.kind}
    final = amended.reply
    shown = slots[FOR] | {"draft": drafted, "amended": _shown(case, final, amended.answer)}
    (consent,) = await floor.ask_all(
        [Request(FOR.name, CONSENT, shown, Consent, f"joint/consent/{FOR.name}", decoding=decoding)]
    )
    heard = None if isinstance(consent, Failure) else consent.reply
    return Joint(
        points=tuple(final.points),
        questions=tuple(final.questions),
        amended=True,
        consents={FOR.name: heard.consents if heard else None, AGAINST.name: final.consents},
        reservations={
            FOR.name: tuple(heard.reservations) if heard else (),
            AGAINST.name: tuple(final.reservations),
        },
        answer=agreed or amended.answer,
    ), {} if heard else {FOR.name: "consent missing"}


def _slots(case: Case, rounds: Rounds, side: Side, statements: Statements) -> dict[str, Any]:
    """What the negotiation reads: the subject and both closing statements, not the whole debate again."""
    words = rounds.positions.in_words(case)
    closings = [
        {"side": each.letter, "stance": words[each], "topic": title, "text": text}
        for each in SIDES
        for title, text in statements[each].items()
    ]
    slots = debater_slots(case, rounds.topics, side, CONCILIATION, (), rounds.positions)
    del slots["transcript"]
    agreed = rounds.positions.agreed
    if agreed is not None:
        slots |= {"labels": [], "own_answer": "", "other_answer": ""}  # neither side has one of its own left
    agreed_words = "" if agreed is None else label_in_words(case, agreed)
    more = {"agreed": agreed_words, "both_conceded": rounds.positions.swapped, "draft": {}}
    return slots | {"closings": closings} | more


def _shown(case: Case, draft: Draft, answer: str | None) -> dict[str, Any]:
    """A draft as the other side reads it."""
    named = "" if answer is None else label_in_words(case, answer)
    return {"answer": named, "points": list(draft.points), "questions": list(draft.questions)}
