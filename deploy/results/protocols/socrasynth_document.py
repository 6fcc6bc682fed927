"""A debate on a subject as a document: what the sides argued by topic, the panel's marks, the joint proposal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    data = {event.kind: event.data for event in events if event.kind in _ONCE and event.path == event.kind}
    if "topics" not in data:
        return None
    try:
        once = {kind: shape.model_validate(data[kind], extra="ignore") for kind, shape in _ONCE.items() if kind in data}
        return _document(debate, events, once)
    except ValidationError:
        return None


def _document(debate: Transcript, events: Sequence[EventView], once: Mapping[str, Any]) -> DebateDocument:
    turns = {turn.path: turn for section in debate.sections for turn in section.turns if not turn.superseded}
    rounds = [SocraSynthRoundEnded.model_validate(event.data, extra="ignore") for event in _ordered(events, "round")]
    agenda, confirmed, closing = once["topics"], once.get("confirm"), once.get("closing")
    moderation = [
        PersonDecided.model_validate({**event.data, "path": event.path}, extra="ignore")
        for event in _ordered(events, "moderation")
    ]
    edits = [decision.text for decision in moderation if decision.used and decision.action == EDIT_TOPICS]
    listed = _listed_topics(agenda, turns.get("topics/moderator"), edits)
    described = {topic.title: topic for topics in listed for topic in topics}
    final = [topic.title for topic in listed[-1]] if closing is None else closing.topics
    before = [
        *(topic.title for topics in listed[:2] for topic in topics),
        *(t for ended in rounds for t in ended.topics),
    ]
    dropped = [title for title in dict.fromkeys(before) if title not in final]
    common = DebateDocument.model_fields.keys() & Transcript.model_fields.keys()
    copied: dict[str, Any] = {name: getattr(debate, name) for name in common}
    copied |= {name: once.get(name) for name in ("positions", "joint", "panel", "versus", "stop")}
    return DebateDocument(
        **copied,
        subject=debate.question,
        open_answers=_open_answers(debate),
        facts=debate.passage,
        agenda=agenda,
        topics=[described.get(title, Topic(title)) for title in final],
        dropped_topics=[described.get(title, Topic(title)) for title in dropped],
        topics_by="person"
        if edits or agenda.by == "person"
        else "protocol"
        if agenda.by == "protocol"
        else "moderator",
        rounds=rounds,
        confirmed=confirmed,
        closing=closing,
        arguments=list(_arguments(rounds, confirmed, closing, turns)),
        moderation=moderation,
        failures=[
            FailureView(path=turn.path, role=turn.role, failure=turn.failure, error=turn.error)
            for turn in turns.values()
            if turn.outcome == "failed"
        ],
    )


def _ordered(events: Iterable[EventView], kind: str) -> list[EventView]:
    """Events of a kind in order: edits of the topics before the debate, then by round."""
    found = [event for event in events if event.kind == kind]
    return sorted(found, key=lambda event: ("/round/" in event.path, natural_sort_key(event.path)))


def _open_answers(debate: Transcript) -> list[str]:
    case = Case(
        id=debate.case_id,
        question=debate.question,
        labels=tuple(debate.labels) or None,
        choices=tuple(debate.choices),
        aliases=tuple(map(tuple, debate.aliases)),
    )
    return list(open_answers(case))


def _listed_topics(agenda: TopicsFixed, moderator: TurnView | None, edits: Iterable[str]) -> list[list[Topic]]:
    """Lists of topics in order of time: the moderator's, empty if its reply cannot be read; that of the event; those
    after each edit of a person, parsed as the protocol parses it, unchanged if it cannot be parsed."""
    try:
        reply = Agenda.model_validate(moderator.data if moderator is not None else None)
        listed = [list(without_repeats(reply.topics, agenda.wanted)[0]), agenda.topics]
    except ValidationError:
        listed = [[], agenda.topics]
    for text in edits:
        try:
            listed.append(list(read_topics(text, listed[-1])))
        except UnusableInput:
            listed.append(listed[-1])
    return listed


def _arguments(
    rounds: Iterable[SocraSynthRoundEnded],
    confirmed: LastWordsGiven | None,
    closing: SidesClosed | None,
    turns: Mapping[str, TurnView],
) -> Iterator[ArgumentView]:
    """Arguments of the sides, by round; an addition that the protocol did not accept is excluded."""
    steps: list[tuple[str, str, list[str], int | None]]
    steps = [(f"round/{ended.round}", "argument", ended.topics, ended.round) for ended in rounds]
    steps += [] if confirmed is None else [("confirm", "addition", confirmed.topics, confirmed.round)]
    steps += [] if closing is None else [("closing", "statement", closing.topics, None)]
    for step, field, topics, round_number in steps:
        for role, side in SIDE.items():
            turn = turns.get(f"{step}/{role}")
            is_accepted = field != "addition" or (confirmed is not None and role in confirmed.added)
            if turn is None or not is_accepted:
                continue
            for topic, text in _by_topic(turn, field, topics):
                yield ArgumentView(
                    round=round_number,
                    last_word=field == "addition",
                    side=side,
                    topic=topic,
                    text=text,
                    mended=turn.outcome == "repaired",
                )


def _by_topic(turn: TurnView, field: str, topics: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Topic and text of each argument of a reply; `field` is their name in it, in the singular."""
    entries = (turn.data or {}).get(f"{field}s")
    for entry in entries if isinstance(entries, list) else ():
        number, text = (entry.get("topic"), entry.get(field)) if isinstance(entry, dict) else (None, None)
        if isinstance(number, int) and 1 <= number <= len(topics) and isinstance(text, str):
            yield topics[number - 1], text


@displays(DebateDocument)
def document_blocks(document: DebateDocument) -> list[Block]:
    """Report blocks of a document: subject, verdict, topics, joint proposal, panel, arguments, rounds, cost."""
    parts = (_front, _topics, _joint, _panel, _versus, _by_topics, _rounds, _numbers, _moderation, _end)
    return [block for part in parts for block in part(document)]


def _letter(role: str) -> str:
    return SIDE.get(role, role)


def _listed(items: Sequence[str]) -> Iterable[Block]:
    """Block of a list; none for an empty list."""
    return [Items(items)] if items else []


_FLAGS = {
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

_REACHED = {
    "at once": "both sides named it independently",
    "concession": "a side conceded, so both agree on it",
    "proposal": "both sides propose it together",
}
"""Texts for the ways to consensus."""


def _front(document: DebateDocument) -> Iterable[Block]:
    if document.simulated:
        yield Note("simulated models", "warning")
    yield Heading(document.subject, 1)
    yield Note(f"case {document.case_id}, attempt {document.attempt}, {document.state}", "dim")
    yield Note(_verdict_line(document), "strong")
    yield Note(_sides_line(document))
    verdict = document.verdict
    if verdict is not None and not verdict.failed:
        last = f"round {verdict.rounds}" if verdict.rounds else "the opening"
        yield Note(f"The rounds ended after {last}: {stop_reason_words(document.stop, verdict.how)}.")
        yield from _listed([_FLAGS.get(flag, flag) for flag in verdict.flags])
    if document.facts:
        yield Quote("Given facts", document.facts)
    if document.labels:
        yield Note(f"Possible answers: {', '.join(document.open_answers or document.labels)}.")
    if document.gold is not None:
        yield Note(f"Gold label (no model saw it): {document.gold}.")


def _verdict_line(document: DebateDocument) -> str:
    """The verdict: on a closed list the consensus and its source, else the closing comparison."""
    verdict, panel = document.verdict, document.panel
    if verdict is None:
        states = {"parked": "waits for a person", "withdrawn": "was withdrawn"}
        return f"No verdict yet: the debate {states.get(document.state, 'is not over')}"
    if verdict.failed:
        return f"The debate failed ({verdict.failure}): {verdict.error}"
    winner = None if panel is None else panel.winner
    better = "" if panel is None or winner is None else _closed_better(panel)
    if document.positions is not None and verdict.answer is not None:
        payload = SocraSynthPayload.read(verdict.payload)
        consensus = None if payload is None else payload.consensus
        return f"{verdict.answer}: {_REACHED.get(str(consensus), 'both sides agree on it')}"
    if document.positions is not None:
        return "No answer: the sides reached no consensus" + (f"; {better}" if better else "")
    if winner is None:
        return "No answer: no judgment is known in both orders"
    named = ANSWERS.get(winner, winner)
    answered = "" if verdict.answer == named else f" (answer: {verdict.answer or 'none of the possible ones'})"
    return f"{named}{answered}: {better}"


def _closed_better(panel: PanelJudged) -> str:
    """The closing comparison: winner, margin, how much of it is known, and whether it is too close to call."""
    marks = (panel.totals.A, panel.totals.B) if panel.winner != "B" else (panel.totals.B, panel.totals.A)
    winner = "both sides closed equally well" if panel.winner == "tie" else f"{panel.winner} closed better"
    judges = list(panel.position_bias)
    known = [
        all(sheet.scores[place] is not None for sheet in panel.orders if sheet.judge == judge)
        for judge in judges
        for place in range(len(panel.topics))
    ]
    by = ", ".join(
        f"{n} {what}{'' if n == 1 else 's'}" for n, what in ((len(panel.topics), "topic"), (len(judges), "judge"))
    )
    orders = f"; both orders known for {sum(known)} of {len(known)} pairs of judge and topic"
    reason = too_close(panel)
    return (
        f"{winner}, {number(marks[0])} to {number(marks[1])} marks on average "
        f"({by}{', both orders' if all(known) else orders}){f'; too close to call: {reason}' if reason else ''}"
    )


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
    winners: dict[str, set[str | None]] = {}
    for sheet in panel.orders:
        winners.setdefault(sheet.judge, set()).add(sheet.winner)
    all_change = bool(winners) and all(found == {"A", "B"} for found in winners.values())
    return "every judge's winner changes with the order" if all_change else ""


def _sides_line(document: DebateDocument) -> str:
    """What the sides argue for."""
    if document.positions is not None:
        named = ", ".join(f"{letter} for {document.positions.named.get(role)}" for role, letter in SIDE.items())
        return f"Each side named its own answer and argued for it: {named}."
    if document.open_answers:
        return (
            "A argues for the answer that it finds most probable, B for its strongest rival. Their arguments name the "
            "answers: the record has no field for them."
        )
    return f"A argues for (says yes to) and B against: {document.subject}"


def stop_reason_words(stop: SocraSynthStopped | None, how: str) -> str:
    """Text of the stop reason, on the scale of the rounds' table; the verdict's `how` when no event is recorded."""
    if stop is None:
        return how
    rise = 10.0 * stop.min_delta
    words = stop_reason_text(stop.reason, patience=stop.patience, min_delta=rise, max_rounds=stop.max_rounds)
    return f"{words}, on the scale from 0 to 10" if stop.reason == "plateau" else words


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
        f"{_letter(role)} finds the subject {'balanced' if side.balanced else 'unbalanced'}: {side.why}"
        for role, side in agenda.balance.items()
    ]
    notes += [f"{_merged(merge, agenda)}: merged into {merge.into}" for merge in agenda.merged]
    notes += [f"{title}: dropped, beyond {agenda.wanted} topics" for title in agenda.dropped]
    notes += [f"{topic.title}: removed by a person" for topic in document.dropped_topics]
    if len(agenda.topics) < agenda.wanted and agenda.by == "moderator":
        notes.append(f"only {len(agenda.topics)} of {agenda.wanted} topics were found")
    yield from _listed(notes)


def _merged(merge: TopicMerge, agenda: TopicsFixed) -> str:
    """Sources of a merged topic: tags of proposals with their titles, or repeated titles."""
    titles = {
        f"{_letter(role)}{place}": theme.title
        for role, themes in agenda.refined.items()
        for place, theme in enumerate(themes, start=1)
    }
    return ", ".join(f"{tag} ({titles[tag]})" if tag in titles else tag for tag in merge.sources)


def _joint(document: DebateDocument) -> Iterable[Block]:
    joint = document.joint
    if joint is None:
        return
    yield Heading("Joint proposal")
    if joint.proposal is None:
        failed = (f"{_letter(role)} gave no draft ({why})" for role, why in joint.failed.items())
        yield Note(f"None: {'; '.join(failed)}.")
        return
    yield Items(joint.proposal, numbered=True)
    if joint.questions:
        yield Heading("To find out", 3)
        yield Items(joint.questions)
    verbs = {True: "consents", False: "does not consent", None: "did not say whether it consents"}
    consents = ", ".join(f"{_letter(role)} {verbs[consent]}" for role, consent in joint.consents.items())
    named = "" if joint.answer is None else f"It names the answer {joint.answer}. "
    yield Note(f"{named}Drafted by A{', amended by B' if joint.amended_by else ', not amended'}; {consents}.")
    if reserved := [f"{SIDE[role]}: {text}" for role, texts in joint.reservations.items() for text in texts]:
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
    yield Table("", header, [_marks(sheet) for sheet in panel.orders])
    totals = f"Mean totals over complete pairs of orders: A {number(panel.totals.A)}, B {number(panel.totals.B)}."
    bias = ", ".join(f"{judge} {signed(value)}" for judge, value in panel.position_bias.items()) or "unknown"
    yield Note(f"{totals} Position bias, in marks: {bias}.")
    yield from _missing(panel.orders)
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


def _marks(sheet: JudgeScoreSheet) -> tuple[str, ...]:
    """Cells of a judge's marks in one order: who is first, marks by topic and in total, and the winner."""
    marks = ["missing" if pair is None else f"{number(pair[0])}-{number(pair[1])}" for pair in sheet.scores]
    totals = (number(sheet.totals.A), number(sheet.totals.B))
    return (sheet.judge, _first(sheet), *marks, *totals, sheet.winner or "unknown")


def _first(sheet: JudgeScoreSheet) -> Letter:
    return "A" if sheet.order == 1 else "B"


def _missing(sheets: Iterable[JudgeScoreSheet]) -> Iterable[Block]:
    return _listed(
        [
            f"{sheet.judge}, order {sheet.order}, topic {marks.topic}: missing ({marks.why})"
            for sheet in sheets
            for marks in sheet.missing
        ]
    )


_VERSUS = {"A": "debate", "B": "answer", "tie": "tie"}


def _versus(document: DebateDocument) -> Iterable[Block]:
    versus = document.versus
    if versus is None:
        return
    yield Heading("Debate against a single answer", 3)
    yield Note(_versus_words(versus))
    topics = [str(place) for place, _ in enumerate(versus.topics, start=1)]
    rows = []
    for sheet in versus.orders:
        judge, first, *marks, debate, answer, winner = _marks(sheet)
        rows.append((judge, _VERSUS[first], *(marks if topics else ()), debate, answer, _VERSUS.get(winner, winner)))
    if rows:
        yield Table("", ("judge", "first", *topics, "debate", "answer", "better"), rows)
    if topics:
        yield from _missing(versus.orders)
        yield from _listed(
            [
                f"{sheet.judge}, {_VERSUS[_first(sheet)]} first, topic {topic}: {reason}"
                for sheet in versus.orders
                for topic, reason in zip(topics, sheet.rationales, strict=False)
                if reason
            ]
        )


def _versus_words(versus: AnswerCompared) -> str:
    """What the judges prefer, the debate or a single answer; in older records it was the debate's proposal."""
    if versus.winner is None:
        return f"Unknown: {versus.why or 'no judgment is known in both orders'}."
    debate = "the debate's arguments" if versus.topics else "the debate's proposal"
    better = {"debate": debate, "answer": "the single answer", "tie": "neither"}[versus.winner]
    words = ", ".join(f"{name} {count} words" for name, count in versus.words.items())
    counts = Counter(each or "unknown" for each in versus.by_topic)
    listed = ", ".join(f"{name} {counts[name]}" for name in ("debate", "answer", "tie", "unknown") if counts[name])
    by_topic = f"; by topic: {listed}" if listed else ""
    return f"In a blind comparison, the judges prefer {better} ({words}){by_topic}."


def _by_topics(document: DebateDocument) -> Iterable[Block]:
    """Arguments by topic, each topic with the judges' reasons."""
    if document.arguments:
        yield Heading("Arguments")
    for place, topic in enumerate(document.topics, start=1):
        yield Heading(f"{place}. {topic.title}", 3)
        yield from _quotes(document, topic.title)
        yield from _reasons(document.panel, topic.title)
    for topic in document.dropped_topics:
        if quotes := _quotes(document, topic.title):
            yield Heading(f"Removed: {topic.title}", 3)
            yield from quotes


def _quotes(document: DebateDocument, title: str) -> list[Block]:
    return [
        Quote(_who(document, argument), argument.text) for argument in document.arguments if argument.topic == title
    ]


def _who(document: DebateDocument, argument: ArgumentView) -> str:
    """Side of an argument with what it argues for: the answer that it named, else `for` or `against`; and the stage."""
    named = {} if document.positions is None else document.positions.named
    by_letter = {letter: named[role] for role, letter in SIDE.items() if role in named}
    stance = by_letter.get(argument.side, "for" if argument.side == "A" else "against")
    stage = {None: "closing", 0: "opening"}.get(argument.round, f"round {argument.round}")
    stage = "last word" if argument.last_word else stage
    return f"{argument.side} ({stance}), {stage}{', repaired JSON' if argument.mended else ''}"


def _reasons(panel: PanelJudged | None, title: str) -> Iterable[Block]:
    if panel is None or title not in panel.topics:
        return []
    place = panel.topics.index(title)
    reasons = [(sheet, sheet.rationales[place]) for sheet in panel.orders if place < len(sheet.rationales)]
    return _listed([_by_judge(sheet, reason) for sheet, reason in reasons if reason])


def _by_judge(sheet: JudgeScoreSheet, text: str) -> str:
    return f"{sheet.judge}, {_first(sheet)} first: {text}"


def _rounds(document: DebateDocument) -> Iterable[Block]:
    """Rounds and closing statements, with scores from 0 to 10."""
    if not document.rounds:
        return
    closing = document.closing
    yield Heading("Rounds")
    yield Note("Contentiousness from 0 to 1; quality of the arguments by CRIT, from 0 to 10; Gamma is their mean.")
    rows = [_round_row(ended) for ended in document.rounds]
    if closing is not None:
        failed = [f"{SIDE[role]}: {why}, judged by its last arguments" for role, why in closing.failed.items()]
        rows.append(_row("closing", number(closing.kappa, 2), closing, failed))
    yield Table("", ("round", "contentiousness", "A", "B", "Gamma", "what happened"), rows)
    notes = []
    for ended in document.rounds:
        where = "opening" if ended.round == 0 else f"round {ended.round}"
        notes += [f"{where}: {_letter(role)} left out {', '.join(titles)}" for role, titles in ended.left_out.items()]
        notes += [f"{where}: both were asked: {question}" for question in ended.asked]
    yield from _listed(notes)
    if document.confirmed is not None:
        said = "; ".join(f"{letter} {_last_word(document.confirmed, role)}" for role, letter in SIDE.items())
        yield Note(f"Asked whether that was all, {said}.")
    if closing is not None and closing.crit_by_topic:
        by_topic = zip(closing.topics, *closing.crit_by_topic.values(), strict=False)
        header = ("closing statements on", *(SIDE[role] for role in closing.crit_by_topic))
        yield Table("", header, [(title, *map(_of_ten, scores)) for title, *scores in by_topic])


def _round_row(ended: SocraSynthRoundEnded) -> tuple[str, ...]:
    happened = [f"{_letter(role)} failed: {why}" for role, why in ended.failed.items()]
    happened += [f"{_letter(role)} concedes" for role in ended.conceded]
    happened += [f"{' and '.join(map(_letter, ended.finished))} finished"] if ended.finished else []
    kappa = number(ended.kappa, 2)
    kappa += "" if ended.temperature is None else f" (temperature {number(ended.temperature, 2)})"
    return _row("opening" if ended.round == 0 else str(ended.round), kappa, ended, happened)


def _row(
    stage: str, kappa: str, scored: SocraSynthRoundEnded | SidesClosed, happened: Sequence[str]
) -> tuple[str, ...]:
    scores = (_of_ten(scored.crit.get(role)) for role in SIDE)
    return (stage, kappa, *scores, _of_ten(scored.gamma), "; ".join(happened) or "-")


def _of_ten(score: float | None) -> str:
    return number(None if score is None else 10.0 * score, 1)


def _last_word(confirmed: LastWordsGiven, role: str) -> str:
    """A side's answer to the question whether it had presented all its arguments."""
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


def _numbers(document: DebateDocument) -> Iterable[Block]:
    return [] if document.trace is None else [Heading("Round by round"), *trace_blocks(document.trace)]


def _moderation(document: DebateDocument) -> Iterable[Block]:
    used = []
    for decision in document.moderation:
        where = decision.path.removeprefix("moderation/").split("/")
        after = "" if where[0] == "topics" else "after the opening" if where[1] == "0" else f"after round {where[1]}"
        if decision.used:
            text = f" ({decision.text})" if decision.text else ""
            used.append(f"{after or 'topics'}: {decision.action}{text}")
    return [Heading("Moderation"), Items(used)] if used else []


def _end(document: DebateDocument) -> Iterable[Block]:
    if document.failures:
        yield Heading("Asks without a usable reply")
        yield Items(
            [f"{ask.role}, {place_words(ask.path, ask.role)}: {ask.failure}: {ask.error}" for ask in document.failures]
        )
    yield Heading("Cost")
    yield Note(f"{cost_words(document.cost)}. Record: {document.run}")
