"""Parts of a document as text and table cells."""

from __future__ import annotations

from collections import Counter

from moot.deploy.results.document.views import DebateDocument, Letter
from moot.deploy.results.text import number
from moot.deploy.results.transcripts.views import VerdictView
from moot.protocols.socrasynth.events import (
    AnswerCompared,
    JudgeScoreSheet,
    LastWordsGiven,
    PanelJudged,
    PersonDecided,
    ProposalNegotiated,
    SocraSynthPayload,
    SocraSynthRoundEnded,
    SocraSynthStopped,
    TopicMerge,
    TopicsFixed,
)
from moot.protocols.socrasynth.scoring import ANSWERS
from moot.protocols.socrasynth.sides import SIDES
from moot.protocols.socrasynth.stopping_rule import stop_reason_text

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
