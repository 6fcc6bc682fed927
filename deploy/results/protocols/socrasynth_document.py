"""Data models of a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import PlainSerializer, ValidationError, WrapSerializer

from moot.deploy.results.figures.round_trace import RoundTrace, trace_blocks
from moot.deploy.results.recorded_data import (
    AttemptCost,
    AttemptView,
    EventView,
    Transcript,
    TurnView,
    VerdictView,
    cost_words,
    place_words,
)
from moot.deploy.results.report.blocks import Block, Heading, Items, Note, Quote, Table
from moot.deploy.results.report.display import FrozenModel, displays
from moot.deploy.results.text import natural_sort_key, number, signed
from moot.protocols.case import Case
from moot.protocols.events import DebateEvent
from moot.protocols.socrasynth.agenda import without_repeats
from moot.protocols.socrasynth.events import (
    AnswerCompared,
    JudgeScoreSheet,
    LastWordsGiven,
    PanelJudged,
    PersonDecided,
    PositionsNamed,
    ProposalNegotiated,
    SidesClosed,
    SocraSynthPayload,
    SocraSynthRoundEnded,
    SocraSynthStopped,
    TopicMerge,
    TopicsFixed,
)
from moot.protocols.socrasynth.moderation import EDIT_TOPICS, UnusableInput, read_topics
from moot.protocols.socrasynth.replies import Agenda
from moot.protocols.socrasynth.scoring import ANSWERS
from moot.protocols.socrasynth.sides import SIDES, Topic, open_answers
from moot.protocols.socrasynth.stopping_rule import stop_reason_text

Letter = Literal["A", "B"]


class ArgumentView(FrozenModel):
    """Argument of a side on a topic.

    Attributes:
        round: number of the round, 0 for the opening; None for a closing statement.
        last_word: whether it was added after the last round.
        mended: whether the JSON of its reply was repaired.
    """

    round: int | None
    last_word: bool = False
    side: Letter
    topic: str
    text: str
    mended: bool


class FailureView(FrozenModel):
    """Failed ask: one without a usable reply."""

    path: str
    role: str
    failure: str
    error: str


def _without(*fields: str) -> WrapSerializer:
    """Serializer that excludes fields of an event from the document's JSON, so that its documented keys stay."""

    def serialize(event: Any, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in dump(event).items() if key not in fields}

    return WrapSerializer(serialize)


def _decision(event: PersonDecided) -> dict[str, str]:
    return {"path": event.path, "action": event.action, "text": event.text, "outcome": event.outcome}


class DebateDocument(AttemptView):
    """Document of a debate on a subject.

    Attributes:
        subject: the case's question.
        open_answers: the closed list of answers; empty where the sides argue for and against.
        positions: the answers that the sides named; None where they argue for and against, and in older records.
        facts: given facts; may be empty.
        gold: the gold label, never shown to a model; None without one.
        verdict, stop, closing, joint, panel: None until the debate has reached that step.
        versus: comparison with a single answer; None without one.
        confirmed: None unless both sides were asked whether they had presented all their arguments.
        topics: the final topics, in the panel's order.
        dropped_topics: topics that a person removed.
        topics_by: source of the final topics: the moderator (a model), a person, or the protocol, which has one topic
            for a closed list.
        trace: figures of the rounds; None without any.
        arguments: all arguments, by round, A before B; last words and closing statements are at the end.
        failures: failed asks.
    """

    subject: str
    labels: list[str]
    open_answers: list[str]
    positions: Annotated[PositionsNamed, _without("held")] | None
    facts: str
    gold: str | None
    verdict: VerdictView | None
    agenda: TopicsFixed
    topics: list[Topic]
    dropped_topics: list[Topic]
    topics_by: Literal["moderator", "person", "protocol"]
    joint: Annotated[ProposalNegotiated, _without("drafted_by")] | None
    panel: PanelJudged | None
    versus: Annotated[AnswerCompared, _without("totals", "missing")] | None
    rounds: list[Annotated[SocraSynthRoundEnded, _without("agreement_words", "words")]]
    trace: RoundTrace | None
    confirmed: LastWordsGiven | None
    closing: Annotated[SidesClosed, _without("agreement_words")] | None
    stop: Annotated[SocraSynthStopped, _without("kappa", "finished", "conceded")] | None
    arguments: list[ArgumentView]
    moderation: list[Annotated[PersonDecided, PlainSerializer(_decision)]]
    failures: list[FailureView]
    cost: AttemptCost


SIDE: dict[str, Letter] = {side.name: side.letter for side in SIDES}
"""Letters of the two sides."""

ROUNDS_HEADER = ("round", "contentiousness", "A", "B", "Gamma", "what happened")
"""Columns of `round_cells`."""

FLAGS = {
    "agreed-at-once": "both sides named the same answer at once, so there was no debate",
    "subject-unbalanced": "a side finds the subject unbalanced",
    "no-consensus": "the sides reached no consensus",
    "conceded": "a side conceded during the debate",
    "both-conceded": "both sides conceded at once: neither had an answer of its own left for its closing statement",
    "closing-failed": "a side gave no closing statements: its last arguments were judged in their place",
    "joint-failed": "there is no joint proposal",
    "reservations": "a side does not consent to the joint proposal",
    "judges-missing": "judgments are missing",
    "judges-not-independent": "a judge is of a model that also debated",
    "fewer-topics": "there are fewer topics than requested",
    "proposal-failed": "a side proposed no topics",
}
"""Explanations of a verdict's flags."""

_REACHED = {
    "at once": "both sides named it independently",
    "concession": "a side conceded, so both agree on it",
    "proposal": "both sides propose it together",
}
"""Texts for the ways to consensus."""


def merged_words(merge: TopicMerge, agenda: TopicsFixed) -> str:
    """Sources of a merged topic: numbers of proposals with their titles, or repeated titles."""
    titles = {
        f"{SIDE.get(role, role)}{place}": theme.title
        for role, themes in agenda.refined.items()
        for place, theme in enumerate(themes, start=1)
    }
    return ", ".join(f"{tag} ({titles[tag]})" if tag in titles else tag for tag in merge.sources)


def verdict_line(document: DebateDocument) -> str:
    """Text of the verdict, one line."""
    verdict, panel = document.verdict, document.panel
    if verdict is None:
        states = {"parked": "waits for a person", "withdrawn": "was withdrawn"}
        return f"No verdict yet: the debate {states.get(document.state, 'is not over')}"
    if verdict.failed:
        return f"The debate failed ({verdict.failure}): {verdict.error}"
    if document.positions is not None:
        return _consensus_line(document, verdict)
    if panel is None or panel.winner is None:
        return "No answer: no judgment is known in both orders"
    winner = ANSWERS.get(panel.winner, panel.winner)
    answered = "" if verdict.answer == winner else f" (answer: {verdict.answer or 'none of the possible ones'})"
    return f"{winner}{answered}: {_closed_better(panel)}"


def _consensus_line(document: DebateDocument, verdict: VerdictView) -> str:
    """Text of the consensus on a closed list and its source; without one, of the closing comparison."""
    panel = document.panel
    if verdict.answer is None:
        better = f"; {_closed_better(panel)}" if panel is not None and panel.winner is not None else ""
        return f"No answer: the sides reached no consensus{better}"
    payload = SocraSynthPayload.read(verdict.payload)
    reached = _REACHED.get(str(payload.consensus if payload is not None else None), "both sides agree on it")
    return f"{verdict.answer}: {reached}"


def _closed_better(panel: PanelJudged) -> str:
    """Text of the closing comparison: winner, margin, and whether it is too close to call."""
    marks = (panel.totals.A, panel.totals.B) if panel.winner != "B" else (panel.totals.B, panel.totals.A)
    by = f"{number(marks[0])} to {number(marks[1])} marks on average"
    winner = "both sides closed equally well" if panel.winner == "tie" else f"{panel.winner} closed better"
    reason = too_close(panel)
    call = f"; too close to call: {reason}" if reason else ""
    return f"{winner}, {by} ({_coverage(panel)}){call}"


def sides_line(document: DebateDocument) -> str:
    """Text of the sides' positions, one line."""
    if document.positions is not None:
        named = ", ".join(f"{letter} for {document.positions.named.get(role)}" for role, letter in SIDE.items())
        return f"Each side named its own answer and argued for it: {named}."
    if document.open_answers:
        return (
            "A argues for the answer that it finds most probable, B for its strongest rival. Their arguments name the "
            "answers: the record has no field for them."
        )
    return f"A argues for (says yes to) and B against: {document.subject}"


def _coverage(panel: PanelJudged) -> str:
    """Text of the panel's coverage: complete, or the number of pairs of judge and topic with both orders."""
    judges = list(panel.position_bias)
    known = [
        all(sheet.scores[place] is not None for sheet in panel.orders if sheet.judge == judge)
        for judge in judges
        for place in range(len(panel.topics))
    ]
    topics = "1 topic" if len(panel.topics) == 1 else f"{len(panel.topics)} topics"
    by = "1 judge" if len(judges) == 1 else f"{len(judges)} judges"
    if all(known):
        return f"{topics}, {by}, both orders"
    return f"{topics}, {by}; both orders known for {sum(known)} of {len(known)} pairs of judge and topic"


def stop_reason_words(stop: SocraSynthStopped | None, how: str) -> str:
    """Text of the stop reason, on the scale of the rounds' table; the verdict's `how` when no event is recorded."""
    if stop is None:
        return how
    rise = 10.0 * stop.min_delta
    words = stop_reason_text(stop.reason, patience=stop.patience, min_delta=rise, max_rounds=stop.max_rounds)
    return f"{words}, on the scale from 0 to 10" if stop.reason == "plateau" else words


def confirm_words(confirmed: LastWordsGiven) -> str:
    """Text of the sides' answers to the question whether they had presented all their arguments."""
    return "; ".join(f"{letter} {_last_word(confirmed, role)}" for role, letter in SIDE.items())


def _last_word(confirmed: LastWordsGiven, role: str) -> str:
    if role in confirmed.failed:
        return f"did not say ({confirmed.failed[role]})"
    parts = ["conceded"] if role in confirmed.conceded else []
    if role in confirmed.added:
        parts.append(f"added a last argument on {', '.join(confirmed.added[role])}")
    if not parts:
        finished = confirmed.presented_all.get(role)
        parts.append(
            "confirmed that it had presented all" if finished else "had more to say, but on none of the topics"
        )
    skipped = confirmed.passed_over.get(role, 0)
    note = f" (left out: {skipped} more argument{'' if skipped == 1 else 's'} in the same reply)" if skipped else ""
    return " and ".join(parts) + note


def joint_words(joint: ProposalNegotiated) -> str:
    """Text of the joint proposal's authors and of the sides' consent."""
    if joint.proposal is None:
        return "; ".join(f"{SIDE.get(role, role)} gave no draft ({why})" for role, why in joint.failed.items())
    verbs = {True: "consents", False: "does not consent", None: "did not say whether it consents"}
    consents = ", ".join(f"{SIDE.get(role, role)} {verbs[consent]}" for role, consent in joint.consents.items())
    drafted = "" if joint.answer is None else f"It names the answer {joint.answer}. "
    return f"{drafted}Drafted by A{', amended by B' if joint.amended_by else ', not amended'}; {consents}"


def score_sheet_cells(sheet: JudgeScoreSheet) -> tuple[str, ...]:
    """Cells of a score sheet: a judge's marks in one order, by topic and in total, and the winner."""
    marks = ["missing" if pair is None else f"{number(pair[0])}-{number(pair[1])}" for pair in sheet.scores]
    totals = (number(sheet.totals.A), number(sheet.totals.B))
    return (sheet.judge, "A" if sheet.order == 1 else "B", *marks, *totals, sheet.winner or "unknown")


def versus_words(versus: AnswerCompared) -> str:
    """Text of the judges' preference between the debate and a single answer; in older records it was its proposal."""
    if versus.winner is None:
        return f"Unknown: {versus.why or 'no judgment is known in both orders'}."
    debate = "the debate's arguments" if versus.topics else "the debate's proposal"
    better = {"debate": debate, "answer": "the single answer", "tie": "neither"}
    words = ", ".join(f"{name} {count} words" for name, count in versus.words.items())
    return f"In a blind comparison, the judges prefer {better[versus.winner]} ({words}){_topics_in_words(versus)}."


def _topics_in_words(versus: AnswerCompared) -> str:
    """Topics by the better text, as the end of a sentence; empty in older records."""
    counts = Counter(better or "unknown" for better in versus.by_topic)
    listed = ", ".join(f"{name} {counts[name]}" for name in ("debate", "answer", "tie", "unknown") if counts[name])
    return f"; by topic: {listed}" if listed else ""


def round_cells(ended: SocraSynthRoundEnded) -> tuple[str, ...]:
    """Cells of a round, see `ROUNDS_HEADER`; scores on the scale from 0 to 10."""
    happened = [f"{SIDE.get(role, role)} failed: {why}" for role, why in ended.failed.items()]
    happened += [f"{SIDE.get(role, role)} concedes" for role in ended.conceded]
    done = [SIDE.get(role, role) for role in ended.finished]
    if done:
        happened.append(f"{' and '.join(done)} finished")
    return (
        "opening" if ended.round == 0 else str(ended.round),
        number(ended.kappa, 2)
        + ("" if ended.temperature is None else f" (temperature {number(ended.temperature, 2)})"),
        *(number(None if (score := ended.crit.get(role)) is None else 10.0 * score, 1) for role in SIDE),
        number(None if ended.gamma is None else 10.0 * ended.gamma, 1),
        "; ".join(happened) or "-",
    )


def moderation_words(one: PersonDecided) -> str:
    """Text of a person's decision, with its step."""
    where = one.path.removeprefix("moderation/").split("/")
    place = "topics" if where[0] == "topics" else "after the opening" if where[1] == "0" else f"after round {where[1]}"
    return f"{place}: {one.action}{f' ({one.text})' if one.text else ''}"


def too_close(panel: PanelJudged) -> str:
    """Reason why the winner is too close to call; empty for a clear winner and for a tie.

    The winner is too close to call if a judge's position bias is at least the margin, or if every judge's winner
    changes with the order.
    """
    if panel.winner not in ("A", "B") or panel.totals.A is None or panel.totals.B is None:
        return ""
    margin = abs(panel.totals.A - panel.totals.B)
    largest = max((abs(bias) for bias in panel.position_bias.values() if bias is not None), default=None)
    if largest is not None and largest >= margin:
        than = "more than" if largest > margin else "as much as"
        return f"position bias ({number(largest)}) is {than} the margin ({number(margin)})"
    return "every judge's winner changes with the order" if _all_winners_change(panel) else ""


def _all_winners_change(panel: PanelJudged) -> bool:
    winners: dict[str, set[str | None]] = {}
    for sheet in panel.orders:
        winners.setdefault(sheet.judge, set()).add(sheet.winner)
    return bool(winners) and all(found == {"A", "B"} for found in winners.values())


_ONCE: dict[str, type[DebateEvent]] = {
    event.kind: event
    for event in (
        TopicsFixed,
        PositionsNamed,
        SocraSynthStopped,
        LastWordsGiven,
        SidesClosed,
        ProposalNegotiated,
        PanelJudged,
        AnswerCompared,
    )
}
"""Events that a debate has once, with their kind as the path."""


def build_document(debate: Transcript) -> DebateDocument | None:
    """Document of a debate; None without SocraSynth's `topics` event.

    It is also None if another protocol recorded events of the same kinds in another form.
    """
    events = [event for section in debate.sections for event in section.events]
    turns = {turn.path: turn for section in debate.sections for turn in section.turns if not turn.superseded}
    data = {event.kind: event.data for event in events if event.kind in _ONCE and event.path == event.kind}
    if "topics" not in data:
        return None
    try:
        once = {kind: shape.model_validate(data[kind], extra="ignore") for kind, shape in _ONCE.items() if kind in data}
        return _document(debate, events, turns, once)
    except ValidationError:
        return None


def _document(
    debate: Transcript, events: Iterable[EventView], turns: Mapping[str, TurnView], once: Mapping[str, Any]
) -> DebateDocument:
    rounds = [SocraSynthRoundEnded.model_validate(event.data, extra="ignore") for event in _ordered(events, "round")]
    agenda, closing = once["topics"], once.get("closing")
    moderation = [
        PersonDecided.model_validate({**event.data, "path": event.path}, extra="ignore")
        for event in _ordered(events, "moderation")
    ]
    argued = [ended.topics for ended in rounds]
    closed = closing.topics if closing is not None else None
    topics, dropped, edited = final_topics(agenda, turns.get("topics/moderator"), argued, closed, moderation)
    failed = [turn for turn in turns.values() if turn.outcome == "failed"]
    common = DebateDocument.model_fields.keys() & Transcript.model_fields.keys()
    copied: dict[str, Any] = {name: getattr(debate, name) for name in common}
    copied |= {name: once.get(name) for name in ("positions", "joint", "panel", "versus", "stop")}
    return DebateDocument(
        **copied,
        subject=debate.question,
        open_answers=_open_answers(debate),
        facts=debate.passage,
        agenda=agenda,
        topics=topics,
        dropped_topics=dropped,
        topics_by="person" if edited else "protocol" if agenda.by == "protocol" else "moderator",
        rounds=rounds,
        confirmed=once.get("confirm"),
        closing=closing,
        arguments=list(_arguments(rounds, once.get("confirm"), closing, turns)),
        moderation=moderation,
        failures=[FailureView(path=t.path, role=t.role, failure=t.failure, error=t.error) for t in failed],
    )


def _open_answers(debate: Transcript) -> list[str]:
    case = Case(
        id=debate.case_id,
        question=debate.question,
        labels=tuple(debate.labels) or None,
        choices=tuple(debate.choices),
        aliases=tuple(map(tuple, debate.aliases)),
    )
    return list(open_answers(case))


def _ordered(events: Iterable[EventView], kind: str) -> list[EventView]:
    """Events of a kind in order: edits of the topics before the debate, then by round."""
    found = [event for event in events if event.kind == kind]
    return sorted(found, key=lambda event: ("/round/" in event.path, natural_sort_key(event.path)))


def _arguments(
    rounds: Iterable[SocraSynthRoundEnded],
    confirmed: LastWordsGiven | None,
    closing: SidesClosed | None,
    turns: Mapping[str, TurnView],
) -> Iterable[ArgumentView]:
    """Arguments of the sides, by round; an addition that the protocol did not accept is excluded."""
    steps = [(f"round/{ended.round}", "argument", ended.topics, ended.round, SIDE) for ended in rounds]
    if confirmed is not None:
        added = {role: letter for role, letter in SIDE.items() if role in confirmed.added}
        steps.append(("confirm", "addition", confirmed.topics, confirmed.round, added))
    for step, field, topics, round_number, sides in steps:
        for role, letter in sides.items():
            yield from _argued(turns.get(f"{step}/{role}"), letter, field, topics, round_number)
    for role, letter in SIDE.items() if closing is not None else ():
        assert closing is not None
        yield from _argued(turns.get(f"closing/{role}"), letter, "statement", closing.topics, None)


def _argued(
    turn: TurnView | None, side: Letter, field: str, topics: list[str], round_number: int | None
) -> Iterable[ArgumentView]:
    """Arguments of a reply, by topic; `field` is their name in the reply, in the singular."""
    if turn is None:
        return
    entries = (turn.data or {}).get(f"{field}s")
    common = {
        "round": round_number,
        "last_word": field == "addition",
        "side": side,
        "mended": turn.outcome == "repaired",
    }
    for one in entries if isinstance(entries, list) else ():
        number, text = (one.get("topic"), one.get(field)) if isinstance(one, dict) else (None, None)
        if isinstance(number, int) and 1 <= number <= len(topics) and isinstance(text, str):
            yield ArgumentView.model_validate({**common, "topic": topics[number - 1], "text": text})


def final_topics(
    agenda: TopicsFixed,
    moderator: TurnView | None,
    argued: Sequence[Sequence[str]],
    closed: Sequence[str] | None,
    moderation: Iterable[PersonDecided],
) -> tuple[list[Topic], list[Topic], bool]:
    """Final topics in the panel's order, topics that a person removed, and whether a person decided last.

    Args:
        agenda: the event of the topics.
        moderator: the moderator's reply with its list of topics; None without one.
        argued: titles by round.
        closed: titles of the closing statements; None without any.
        moderation: a person's decisions, in order.
    """
    edits = [one for one in moderation if one.used and one.action == EDIT_TOPICS]
    listed = [_before_edits(moderator, agenda.wanted), agenda.topics]
    for edit in edits:
        listed.append(_edited(edit.text, listed[-1]))
    described = {topic.title: topic for topics in listed for topic in topics}
    titles = list(closed) if closed is not None else [topic.title for topic in listed[-1]]
    all_titles = dict.fromkeys(
        [*(topic.title for topics in listed[:2] for topic in topics), *(t for each in argued for t in each)]
    )
    final = [described.get(title, Topic(title)) for title in titles]
    dropped = [described.get(title, Topic(title)) for title in all_titles if title not in titles]
    return final, dropped, bool(edits) or agenda.by == "person"


def _before_edits(moderator: TurnView | None, wanted: int) -> list[Topic]:
    """Topics of the moderator before a person's edits; empty if its reply cannot be read."""
    try:
        reply = Agenda.model_validate(moderator.data if moderator is not None else None)
    except ValidationError:
        return []
    return list(without_repeats(reply.topics, wanted)[0])


def _edited(text: str, before: list[Topic]) -> list[Topic]:
    """Topics after an edit, parsed as the protocol parses it; unchanged if it cannot be parsed."""
    try:
        return list(read_topics(text, before))
    except UnusableInput:
        return before


@displays(DebateDocument)
def document_blocks(document: DebateDocument) -> list[Block]:
    """Report blocks of a document: subject, verdict, topics, joint proposal, panel, arguments, rounds, cost."""
    numbers = () if document.trace is None else (Heading("Round by round"), *trace_blocks(document.trace))
    return [
        *_front(document),
        *_topics(document),
        *_joint(document),
        *_panel(document),
        *_versus(document),
        *_arguments_blocks(document),
        *_rounds(document),
        *numbers,
        *_moderation(document),
        *_end(document),
    ]


def _front(document: DebateDocument) -> Iterable[Block]:
    if document.simulated:
        yield Note("simulated models", "warning")
    yield Heading(document.subject, 1)
    yield Note(f"case {document.case_id}, attempt {document.attempt}, {document.state}", "dim")
    yield Note(verdict_line(document), "strong")
    yield Note(sides_line(document))
    verdict = document.verdict
    if verdict is not None and not verdict.failed:
        last = f"round {verdict.rounds}" if verdict.rounds else "the opening"
        yield Note(f"The rounds ended after {last}: {stop_reason_words(document.stop, verdict.how)}.")
        if verdict.flags:
            yield Items([FLAGS.get(flag, flag) for flag in verdict.flags])
    if document.facts:
        yield Quote("Given facts", document.facts)
    if document.labels:
        yield Note(f"Possible answers: {', '.join(document.open_answers or document.labels)}.")
    if document.gold is not None:
        yield Note(f"Gold label (no model saw it): {document.gold}.")


def _topics(document: DebateDocument) -> Iterable[Block]:
    agenda = document.agenda
    yield Heading("Topics")
    titled = [f"{topic.title}: {topic.description}" if topic.description else topic.title for topic in document.topics]
    yield Items(titled, numbered=True)
    proposed = sum(len(themes) for themes in agenda.proposed.values())
    whose = {"moderator": "the moderator's, a model", "person": "a person's"}.get(document.topics_by)
    if whose is not None:
        yield Note(f"{proposed} themes were proposed; the last word was {whose}.")
    notes = [
        f"{SIDE.get(role, role)} finds the subject {'balanced' if one.balanced else 'unbalanced'}: {one.why}"
        for role, one in agenda.balance.items()
    ]
    notes += [f"{merged_words(merge, agenda)}: merged into {merge.into}" for merge in agenda.merged]
    notes += [f"{title}: dropped, beyond {agenda.wanted} topics" for title in agenda.dropped]
    notes += [f"{topic.title}: removed by a person" for topic in document.dropped_topics]
    if len(agenda.topics) < agenda.wanted and agenda.by == "moderator":
        notes.append(f"only {len(agenda.topics)} of {agenda.wanted} topics were found")
    yield from _listed(notes)


def _listed(items: Sequence[str]) -> Iterable[Block]:
    """Block of a list; none for an empty list."""
    if items:
        yield Items(items)


def _joint(document: DebateDocument) -> Iterable[Block]:
    joint = document.joint
    if joint is None:
        return
    yield Heading("Joint proposal")
    if joint.proposal is None:
        yield Note(f"None: {joint_words(joint)}.")
        return
    yield Items(joint.proposal, numbered=True)
    if joint.questions:
        yield Heading("To find out", 3)
        yield Items(joint.questions)
    yield Note(f"{joint_words(joint)}.")
    reserved = [f"{SIDE[role]}: {text}" for role, texts in joint.reservations.items() for text in texts]
    if reserved:
        yield Heading("Reservations", 3)
        yield Items(reserved)


def _panel(document: DebateDocument) -> Iterable[Block]:
    panel = document.panel
    if panel is None:
        return
    yield Heading("The panel")
    yield Note("Marks of A and B from 0 to 10 on the closing statements, by number of the topic.")
    yield Items(panel.topics, numbered=True)
    header = ("judge", "first", *(str(place) for place, _ in enumerate(panel.topics, start=1)), "A", "B", "winner")
    yield Table("", header, [score_sheet_cells(sheet) for sheet in panel.orders])
    totals = f"Mean totals over complete pairs of orders: A {number(panel.totals.A)}, B {number(panel.totals.B)}."
    bias = ", ".join(f"{judge} {signed(value)}" for judge, value in panel.position_bias.items()) or "unknown"
    yield Note(f"{totals} Position bias, in marks: {bias}.")
    yield from _listed(_missing(panel.orders))
    yield from _listed([_by_judge(sheet, sheet.overall) for sheet in panel.orders if sheet.overall])
    yield from _listed(
        [
            f"{sheet.judge}, order {sheet.order}, topic {one.topic}: not written as numbers: {', '.join(one.marks)}"
            for sheet in panel.orders
            for one in sheet.repairs
        ]
    )
    if panel.not_independent:
        yield Note(f"On a model that also debated: {', '.join(panel.not_independent)}.")


def _missing(sheets: Iterable[JudgeScoreSheet]) -> list[str]:
    return [
        f"{sheet.judge}, order {sheet.order}, topic {one.topic}: missing ({one.why})"
        for sheet in sheets
        for one in sheet.missing
    ]


def _versus(document: DebateDocument) -> Iterable[Block]:
    versus = document.versus
    if versus is None:
        return
    yield Heading("Debate against a single answer", 3)
    yield Note(versus_words(versus))
    if not versus.orders:
        return
    topics = [str(place) for place, _ in enumerate(versus.topics, start=1)]
    header = ("judge", "first", *topics, "debate", "answer", "better")
    yield Table("", header, [_versus_cells(sheet, by_topic=bool(topics)) for sheet in versus.orders])
    if topics:
        yield from _listed(_missing(versus.orders))
        yield from _listed(
            [
                f"{sheet.judge}, {_VERSUS[_first(sheet)]} first, topic {topic}: {reason}"
                for sheet in versus.orders
                for topic, reason in zip(topics, sheet.rationales, strict=False)
                if reason
            ]
        )


_VERSUS = {"A": "debate", "B": "answer", "tie": "tie"}


def _versus_cells(sheet: JudgeScoreSheet, *, by_topic: bool) -> tuple[str, ...]:
    judge, first, *marks, debate, answer, winner = score_sheet_cells(sheet)
    return (judge, _VERSUS[first], *(marks if by_topic else ()), debate, answer, _VERSUS.get(winner, winner))


def _first(sheet: JudgeScoreSheet) -> Letter:
    return "A" if sheet.order == 1 else "B"


def _arguments_blocks(document: DebateDocument) -> Iterable[Block]:
    if document.arguments:
        yield Heading("Arguments")
    for place, topic in enumerate(document.topics, start=1):
        yield Heading(f"{place}. {topic.title}", 3)
        yield from _quotes(document, topic.title)
        yield from _reasons(document, topic.title)
    for topic in document.dropped_topics:
        if quotes := list(_quotes(document, topic.title)):
            yield Heading(f"Removed: {topic.title}", 3)
            yield from quotes


def _quotes(document: DebateDocument, title: str) -> Iterable[Block]:
    return (
        Quote(_who(document, argument), argument.text) for argument in document.arguments if argument.topic == title
    )


def _who(document: DebateDocument, argument: ArgumentView) -> str:
    stage = {None: "closing", 0: "opening"}.get(argument.round, f"round {argument.round}")
    stage = "last word" if argument.last_word else stage
    repaired = ", repaired JSON" if argument.mended else ""
    return f"{argument.side} ({_stance(document, argument.side)}), {stage}{repaired}"


def _stance(document: DebateDocument, side: Letter) -> str:
    """Position of a side: the answer that it named, else `for` or `against`."""
    named = {} if document.positions is None else document.positions.named
    by_letter = {letter: named[role] for role, letter in SIDE.items() if role in named}
    return by_letter.get(side, "for" if side == "A" else "against")


def _by_judge(sheet: JudgeScoreSheet, text: str) -> str:
    return f"{sheet.judge}, {_first(sheet)} first: {text}"


def _reasons(document: DebateDocument, title: str) -> Iterable[Block]:
    panel = document.panel
    if panel is None or title not in panel.topics:
        return
    place = panel.topics.index(title)
    rationales = [(sheet, sheet.rationales[place]) for sheet in panel.orders if place < len(sheet.rationales)]
    yield from _listed([_by_judge(sheet, reason) for sheet, reason in rationales if reason])


def _rounds(document: DebateDocument) -> Iterable[Block]:
    if not document.rounds:
        return
    yield Heading("Rounds")
    yield Note("Contentiousness from 0 to 1; quality of the arguments by CRIT, from 0 to 10; Gamma is their mean.")
    yield Table("", ROUNDS_HEADER, [*map(round_cells, document.rounds), *_closing_row(document)])
    yield from _listed([note for each in document.rounds for note in _round_notes(each)])
    if document.confirmed is not None:
        yield Note(f"Asked whether that was all, {confirm_words(document.confirmed)}.")
    closing = document.closing
    if closing is not None and closing.crit_by_topic:
        by_topic = zip(closing.topics, *closing.crit_by_topic.values(), strict=False)
        rows = [(title, *(number(_ten(score), 1) for score in scores)) for title, *scores in by_topic]
        yield Table("", ("closing statements on", *(SIDE[role] for role in closing.crit_by_topic)), rows)


def _closing_row(document: DebateDocument) -> list[tuple[str, ...]]:
    closing = document.closing
    if closing is None:
        return []
    failed = "; ".join(f"{SIDE[role]}: {why}, judged by its last arguments" for role, why in closing.failed.items())
    scores = [number(_ten(closing.crit.get(role)), 1) for role in SIDE]
    return [("closing", number(closing.kappa, 2), *scores, number(_ten(closing.gamma), 1), failed or "-")]


def _ten(score: float | None) -> float | None:
    return None if score is None else 10.0 * score


def _round_notes(ended: SocraSynthRoundEnded) -> Iterable[str]:
    where = "opening" if ended.round == 0 else f"round {ended.round}"
    for role, titles in ended.left_out.items():
        yield f"{where}: {SIDE.get(role, role)} left out {', '.join(titles)}"
    for question in ended.asked:
        yield f"{where}: both were asked: {question}"


def _moderation(document: DebateDocument) -> Iterable[Block]:
    used = [moderation_words(one) for one in document.moderation if one.used]
    if used:
        yield Heading("Moderation")
        yield Items(used)


def _end(document: DebateDocument) -> Iterable[Block]:
    if document.failures:
        yield Heading("Asks without a usable reply")
        yield Items(
            [f"{one.role}, {place_words(one.path, one.role)}: {one.failure}: {one.error}" for one in document.failures]
        )
    yield Heading("Cost")
    yield Note(f"{cost_words(document.cost)}. Record: {document.run}")
