"""Rounds of a debate: the opening and the refutations, until the stopping rule ends them."""

from __future__ import annotations

from collections.abc import Sequence

from moot.protocols.case import Case
from moot.protocols.errors import QuorumFailed
from moot.protocols.floor import Floor
from moot.protocols.messages import Failure, Turn
from moot.protocols.socrasynth.events import PositionsNamed, SocraSynthContentiousnessSet, SocraSynthRoundEnded
from moot.protocols.socrasynth.moderation import Guidance, moderate
from moot.protocols.socrasynth.quality import ArgumentQuality, OpposedTexts, appraise, read_together, round_texts
from moot.protocols.socrasynth.replies import LabelledOpening, Opening, Speech
from moot.protocols.socrasynth.settings import SocraSynthSettings
from moot.protocols.socrasynth.sides import SIDES, Side, SideTurn, Topic, by_title, open_answers
from moot.protocols.socrasynth.state import SocraSynthRounds
from moot.protocols.socrasynth.stopping_rule import stop_due, stop_event, stop_reason_text
from moot.protocols.text.agreement_language import agreement_share

OPENING, REFUTATION = "socrasynth/opening", "socrasynth/refutation"


def round_report(quality: ArgumentQuality, kappa: float, due: str | None, following: float | None) -> str:
    """Scores of a round, and the next step.

    Args:
        kappa: contentiousness of the round.
        due: reason why no further round follows, as text; None if one does.
        following: contentiousness of the next round; None if the schedule has none.
    """
    scores = quality.scores()
    marks = ", ".join(f"{side.letter} {_out_of_ten(scores[side.name])}" for side in SIDES)
    scored = f"Contentiousness {kappa:.2f}. Quality of the arguments (CRIT, 0 to 10): {marks}."
    if due is not None:
        return f"{scored}\nNext: the closing statements, for {due}."
    return f"{scored}\nNext: another round at contentiousness {following:.2f}."


def _out_of_ten(score: float | None) -> str:
    return "unknown" if score is None else f"{10.0 * score:.1f}"


async def run_rounds(
    case: Case, floor: Floor, topics: Sequence[Topic], settings: SocraSynthSettings
) -> SocraSynthRounds:
    """The opening, then refutations: A, then B, which has seen A's. Paths `round/T/agent/I`, the opening with T = 0.

    On a closed list each side names its own answer in the opening, and they end as soon as both agree.
    Notes per round the events `contentiousness` and `round`, for each concession one `concession` at the turn's path,
    `positions` after the opening of a closed list, and `stop` at the end.

    Raises:
        QuorumFailed: a side gave no opening, or declined to argue its position from the start.
    """
    start = settings.kappa.start
    rounds = SocraSynthRounds(case, floor, settings, tuple(topics), kappa=start, base=start)
    _note_level(rounds, None, "opening")
    await _open(rounds)
    guidance = await _take_stock(rounds, ())
    while rounds.stop is None:
        level = guidance.kappa if guidance.kappa is not None else rounds.scheduled
        before = rounds.kappa
        # A question after the end of the schedule is answered at the last level.
        rounds.kappa = before if level is None else level
        rounds.number += 1
        _note_level(rounds, before, "set by a person" if guidance.kappa is not None else "schedule")
        await _refute(rounds, guidance.questions)
        guidance = await _take_stock(rounds, guidance.questions)
    return rounds


async def _open(rounds: SocraSynthRounds) -> None:
    """Both sides at once, without seeing the other's; or B after A, whose opening it answers."""
    images = rounds.case.images
    reply = LabelledOpening if open_answers(rounds.case) else Opening
    for sides in [SIDES] if rounds.blind else [(side,) for side in SIDES]:
        turns = await rounds.floor.ask_all(
            [rounds.request(side, OPENING, reply, "round/0", images=images) for side in sides]
        )
        for side, turn in zip(sides, turns, strict=True):
            _hear(rounds, side, turn)
    if rounds.failed:
        why = ", ".join(f"{role}: {kind}" for role, kind in rounds.failed.items())
        raise QuorumFailed(f"a debate needs the openings of both sides ({why})")
    if rounds.positions.named:
        at_once = rounds.positions.agreed is not None
        rounds.floor.note(PositionsNamed(path="positions", agreed_at_once=at_once, **dict(rounds.positions.record())))


async def _refute(rounds: SocraSynthRounds, questions: Sequence[str]) -> None:
    rounds.failed = {}
    weak = rounds.quality
    for side in SIDES:
        more = {
            "round": rounds.number,
            "deeper": list(weak.weak(side)),
            "contradicted": list(weak.contradicted(side)),
            "questions": list(questions),
        }
        step, images = f"round/{rounds.number}", rounds.case.images
        request = rounds.request(side, REFUTATION, Speech, step, images=images, more=more)
        (turn,) = await rounds.floor.ask_all([request])
        _hear(rounds, side, turn)
        if side.name in rounds.failed or rounds.positions.agreed is not None:
            return  # the rounds are over: the other side has nothing to answer


def _hear(rounds: SocraSynthRounds, side: Side, turn: Turn[Opening] | Turn[Speech] | Failure) -> None:
    if isinstance(turn, Failure):
        rounds.failed[side.name] = turn.kind
        return
    speech = turn.reply
    rounds.models.add(turn.model)
    finished, conceded = (speech.finished, speech.conceded) if isinstance(speech, Speech) else (False, False)
    if conceded:
        rounds.note_concession(side, turn.path)
        rounds.positions.concede([side])
    arguments = (
        {} if speech.declined else by_title([(one.topic, one.argument) for one in speech.arguments], rounds.topics)
    )
    if speech.declined:
        rounds.failed[side.name] = "declined"
    elif not arguments and not conceded:
        rounds.failed[side.name] = "off-topic"
    elif isinstance(speech, LabelledOpening):
        assert turn.answer is not None, "a reply with an answer has been read as one of the labels"
        rounds.positions.name(side, turn.answer)
    if arguments or conceded:
        left_out = tuple(topic.title for topic in rounds.topics if arguments and topic.title not in arguments)
        rounds.turns.append(SideTurn(side, rounds.number, arguments, left_out, finished, conceded))


async def _take_stock(rounds: SocraSynthRounds, asked: Sequence[str]) -> Guidance:
    """Score the round, note it, let a person moderate, and decide whether to stop."""
    floor, settings = rounds.floor, rounds.settings
    path = f"crit/round/{rounds.number}"
    rounds.quality = await appraise(rounds.case, floor, _texts(rounds), settings.crit, path, rounds.positions)
    rounds.gammas.append(rounds.quality.gamma)
    floor.note(_round_ended(rounds, asked))
    due = stop_due(rounds)
    final = bool(rounds.failed) or rounds.positions.agreed is not None or rounds.number >= settings.max_rounds
    guidance = Guidance(rounds.topics, rounds.topics)
    if not final:  # after the last round a person cannot change anything
        why = due and stop_reason_text(
            due, patience=settings.patience, min_delta=settings.min_delta, max_rounds=settings.max_rounds
        )
        report = round_report(rounds.quality, rounds.kappa, why, rounds.scheduled)
        guidance = await moderate(floor, rounds.topics, report, rounds.number)
    rounds.topics = guidance.topics
    if guidance.kappa is not None:
        rounds.base = guidance.kappa
    if guidance.ended:
        rounds.stop = "ended-by-person"
    elif not guidance.wants_more:
        rounds.stop = due
    if rounds.stop is not None:
        floor.note(stop_event(rounds, rounds.stop))
    return guidance


def _texts(rounds: SocraSynthRounds) -> OpposedTexts:
    """What CRIT reads after a round, with the same knowledge for both sides' turns; see `round_texts`.

    Openings that were written at once are read against each other. Where B's answers A's, both are read alone: A's has
    nothing before it.
    """
    if rounds.number > 0:
        return round_texts(rounds.turns, rounds.number, rounds.settings.crit_scope)
    openings = {one.side: one.text() for one in rounds.latest if one.by_topic}
    return read_together(openings) if rounds.blind else {side: (text, "") for side, text in openings.items()}


def _note_level(rounds: SocraSynthRounds, before: float | None, why: str) -> None:
    rounds.floor.note(
        SocraSynthContentiousnessSet(
            path=f"round/{rounds.number}",
            before=before,
            after=rounds.kappa,
            schedule=rounds.settings.schedule,
            why=why,
        )
    )


def _round_ended(rounds: SocraSynthRounds, asked: Sequence[str]) -> SocraSynthRoundEnded:
    latest = rounds.latest
    decoding = rounds.decoding_at(rounds.kappa)
    return SocraSynthRoundEnded(
        path=f"round/{rounds.number}",
        round=rounds.number,
        kappa=rounds.kappa,
        temperature=None if decoding is None else decoding.temperature,
        topics=[topic.title for topic in rounds.topics],
        crit=rounds.quality.scores(),
        gamma=rounds.quality.gamma,
        agreement_words=agreement_share(one.text() for one in latest),
        words=sum(len(one.text().split()) for one in latest),
        finished=[one.side.name for one in latest if one.finished],
        conceded=[one.side.name for one in latest if one.conceded],
        asked=list(asked),
        left_out={one.side.name: list(one.left_out) for one in latest if one.left_out},
        failed=dict(rounds.failed),
    )
