"""SocraSynth: topics, rounds of falling contentiousness, closing statements, a joint proposal, and a panel."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from moot.protocols.base import CaseField, DebateProtocol
from moot.protocols.case import Case
from moot.protocols.crit.replies import Reading
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict
from moot.protocols.replies import Reply
from moot.protocols.socrasynth.agenda import Topics, fix_topics
from moot.protocols.socrasynth.events import JointProposal, SocraSynthPayload
from moot.protocols.socrasynth.joint_proposal import Statements, close, confirm, propose_jointly
from moot.protocols.socrasynth.panel import PanelRuling, judge_closings
from moot.protocols.socrasynth.replies import (
    Agenda,
    Amendment,
    AnswerComparison,
    Balance,
    Closing,
    Comparison,
    Consent,
    Draft,
    LabelledAmendment,
    LabelledDraft,
    LabelledOpening,
    LastWord,
    Opening,
    SingleAnswer,
    Speech,
    Themes,
    WholeComparison,
)
from moot.protocols.socrasynth.rounds import run_rounds
from moot.protocols.socrasynth.scoring import ANSWERS, totals_record
from moot.protocols.socrasynth.settings import SocraSynthSettings
from moot.protocols.socrasynth.sides import SIDES, answer_of, latest_arguments, open_answers
from moot.protocols.socrasynth.state import SocraSynthRounds
from moot.protocols.socrasynth.versus import compare_with_answer


class SocraSynth(DebateProtocol):
    """Two sides debate a subject topic by topic; judges compare their closing statements in both orders.

    Args:
        settings: see `SocraSynthSettings`.

    Attributes:
        roles: `agent` (0 argues for, 1 against), `moderator` (fixes the topics), `judge` (the panel).
        reply_tokens: one reply of a side speaks on every topic.
    """

    name = "socrasynth"
    Settings = SocraSynthSettings
    settings: SocraSynthSettings
    sample = "sample-subjects"
    roles = ("agent", "moderator", "judge")
    prompt_folders = frozenset({"socrasynth", "crit"})
    reads = frozenset[CaseField]({"passage", "choices", "images"})
    judges_apart = True
    most_members = MappingProxyType({"agent": 2, "moderator": 1})

    def __init__(self, settings: SocraSynthSettings | None = None) -> None:
        self.settings = settings if settings is not None else SocraSynthSettings()
        longest = self.settings.max_tokens
        self.reply_tokens = {"agent": longest, "moderator": longest, "judge": longest}
        kinds = [_asked(self.settings, listed=listed) for listed in (True, False)]
        self.replies = {
            family: tuple(dict.fromkeys(reply for each in kinds for reply in each[family])) for family in self.roles
        }

    def replies_for(self, case: Case) -> Mapping[str, tuple[type[Reply], ...]]:
        """Reply types for a case; they differ between a closed list and a subject."""
        return _asked(self.settings, listed=bool(open_answers(case)))

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one subject.

        On a closed list the answer is the label that both sides agree on, or propose together, and None without
        one; on a subject it is the panel's. Notes the events `topics`, `contentiousness`, `positions` (closed lists),
        `round`, `concession`, `stop`, `confirm`, `closing`, `joint`, `panel`, CRIT's, `moderation` for a person's
        actions, and `versus` if configured.

        Raises:
            AskFailed: the moderator gave no valid list of topics.
            QuorumFailed: neither side proposed a topic, or a side gave no opening or declined to argue its side.
        """
        topics = await fix_topics(case, floor, self.settings.topics)
        rounds = await run_rounds(case, floor, topics.topics, self.settings)
        await confirm(rounds)
        settled = rounds.positions.agreed is not None or rounds.positions.swapped
        unclosed = False
        if settled:  # no side has its own answer to close for, and the panel has nothing to compare
            statements: Statements = {side: latest_arguments(rounds.turns, side, rounds.topics) for side in SIDES}
        else:
            statements, failed = await close(rounds)
            unclosed = bool(failed)
        joint = await propose_jointly(rounds, statements)
        ruling = None
        whole = self.settings.panel == "whole"
        if not settled:
            ruling = await judge_closings(
                case, floor, rounds.topics, statements, rounds.models, rounds.positions, whole=whole
            )
        compared: dict[str, Any] = {}
        if self.settings.versus_qa:
            found = await compare_with_answer(case, floor, rounds.topics, statements, whole=whole)
            compared = {"versus": found.winner, "versus_topics": found.by_topic}
        flags = _flags(topics, rounds, unclosed, joint, ruling)
        return _verdict(case, rounds, joint, ruling, flags, compared)


def _asked(settings: SocraSynthSettings, *, listed: bool) -> dict[str, tuple[type[Reply], ...]]:
    """Reply types of a debate by role family, on a closed list or on a subject."""
    balance = (Balance,) if settings.topics.ask_balance else ()
    opening = (LabelledOpening,) if listed else (*balance, Themes, Opening)
    speech = (Speech,) if settings.max_rounds else ()
    named = (LabelledDraft, LabelledAmendment) if listed else ()
    answer = (SingleAnswer,) if settings.versus_qa else ()
    panel: tuple[type[Reply], ...] = (Comparison,)
    if settings.panel == "whole":
        panel = (WholeComparison, AnswerComparison) if settings.versus_qa else (WholeComparison,)
    return {
        "agent": (*opening, *speech, LastWord, Closing, Draft, Amendment, *named, Consent, *answer),
        "moderator": () if listed else (Agenda,),
        "judge": (Reading, *panel),
    }


def _consensus(rounds: SocraSynthRounds, joint: JointProposal | None) -> str | None:
    """On a closed list, the label on which both sides agree, or else propose together."""
    return rounds.positions.agreed or (joint.consensus if joint is not None else None)


def _reached(
    rounds: SocraSynthRounds, joint: JointProposal | None
) -> Literal["at once", "concession", "proposal"] | None:
    """How both sides reached one answer; None if they did not."""
    if rounds.positions.agreed is not None:
        return "concession" if rounds.conceded else "at once"
    return None if _consensus(rounds, joint) is None else "proposal"


def _flags(
    topics: Topics, rounds: SocraSynthRounds, unclosed: bool, joint: JointProposal | None, ruling: PanelRuling | None
) -> tuple[str, ...]:
    missing = ruling is not None and (bool(ruling.outcome.missing) or not ruling.outcome.position_bias)
    raised = {
        "agreed-at-once": _reached(rounds, joint) == "at once",
        "conceded": bool(rounds.conceded),
        "both-conceded": rounds.positions.swapped,
        "closing-failed": unclosed,
        "joint-failed": joint is None,
        "reservations": joint is not None and not all(joint.consents.values()),
        "no-consensus": bool(rounds.positions.named) and _reached(rounds, joint) is None,
        "judges-missing": missing,
        "judges-not-independent": ruling is not None and bool(ruling.not_independent),
    }
    return (*topics.flags, *(flag for flag, is_so in raised.items() if is_so))


def _verdict(
    case: Case,
    rounds: SocraSynthRounds,
    joint: JointProposal | None,
    ruling: PanelRuling | None,
    flags: tuple[str, ...],
    compared: Mapping[str, Any],
) -> Verdict:
    outcome = None if ruling is None else ruling.outcome
    winner = None if outcome is None or outcome.winner is None else ANSWERS[outcome.winner]
    listed = rounds.positions.named
    payload = SocraSynthPayload(
        winner=winner,
        totals=None if outcome is None or outcome.totals is None else totals_record(outcome.totals),
        position_bias={} if outcome is None else dict(outcome.position_bias),
        topics=[topic.title for topic in rounds.topics],
        conceded=rounds.conceded,
        gammas=rounds.gammas,
        joint=joint,
    )
    named = {"positions": rounds.positions.record(), "consensus": _reached(rounds, joint)} if listed else {}
    payload = payload.model_copy(update={**named, **compared})
    assert rounds.stop is not None, "the rounds have ended"
    return Verdict(
        answer=_consensus(rounds, joint) if listed else answer_of(case, winner),
        how=rounds.stop,
        rounds=rounds.number,
        flags=flags,
        payload=payload.model_dump(exclude_unset=True),
    )
