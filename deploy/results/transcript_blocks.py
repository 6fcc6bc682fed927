"""One debate in words and blocks: its case, replies, events, verdict and cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from moot.actors.record.rows import (
    FROM_REASONING,
    NO_LOGPROBS,
    OVERLONG,
    PROMPT_CUT,
    has_reading_mark,
    step_of,
)
from moot.deploy.results.distributions import distribution_line
from moot.deploy.results.figures.round_trace import trace_blocks
from moot.deploy.results.glossary import named_ending
from moot.deploy.results.protocol_parts import NamedTexts, first_known, protocol_parts, read_event
from moot.deploy.results.recorded_data import (
    EventView,
    JudgedReplyView,
    Transcript,
    TurnView,
    VerdictView,
    cost_words,
    place_words,
    plain_pairs,
    reply_lines,
)
from moot.deploy.results.report.blocks import Block, Heading, Note, Pairs, Quote
from moot.deploy.results.text import count, number
from moot.protocols.errors import TRUNCATED
from moot.protocols.messages import Form
from moot.protocols.reply_json import MENDED
from moot.protocols.verdict_sources import VerdictSources


def payload_pairs(payload: Mapping[str, Any]) -> NamedTexts:
    """Pairs of name and text of a payload, in the words of its protocol; as recorded if it is no known one's.

    Sources of the verdict's figures are left out: they stand beside the figures.
    """
    pairs = first_known(parts.payload(payload) for parts in protocol_parts())
    recorded = {key: value for key, value in payload.items() if key not in VerdictSources.model_fields}
    return list(plain_pairs(recorded)) if pairs is None else pairs


_PARKED = "parked"
"""Kind of the event of a debate that waits for a person; its data is the form."""


def event_blocks(event: EventView) -> list[Block]:
    """Report blocks of an event; an unknown kind is shown as key-value pairs."""
    if (blocks := known_event(event)) is not None:
        return blocks
    if event.kind == _PARKED and (asked := _form_blocks(event)):
        return asked
    pairs = list(plain_pairs(event.data))
    place = place_words(event.path)
    title = Note(event.kind if place.startswith(event.kind) else f"{event.kind}, {place}", "strong")
    return [title, Pairs(pairs)] if pairs else [title]


def _form_blocks(event: EventView) -> list[Block]:
    """Report blocks of the form that a debate waits for; empty for a form that cannot be read."""
    try:
        form = msgspec.convert(event.data, Form)
    except msgspec.ValidationError:
        return []
    choices = [f"{action}, with a text" if form.takes_text(action) else action for action in form.actions]
    quoted = [Quote("the form", form.body)] if form.body else []
    return [Note(f"a person is asked: {form.title}", "strong"), *quoted, Pairs([("choices", "; ".join(choices))])]


def known_event(event: EventView) -> list[Block] | None:
    """Report blocks of an event of a known kind and form; None for any other."""
    known, data = read_event(event) or (None, None)
    return None if known is None else known.blocks(event, data)


def transcript_blocks(debate: Transcript, *, verbose: bool = False) -> list[Block]:
    """Report blocks of a transcript in reading order: the case, each stage's replies and events, the verdict.

    Args:
        debate: the transcript.
        verbose: whether to show the path of each reply and event in the record.
    """
    blocks: list[Block] = [Note("simulated models", "warning")] if debate.simulated else []
    blocks += [Heading(f"Case {debate.case_id}", 1), Pairs(case_pairs(debate))]
    for section in debate.sections:
        blocks += [Heading(section.title), *section_blocks(section.turns, section.events, verbose=verbose)]
    if debate.trace is not None:
        blocks += [Heading("Round by round"), *trace_blocks(debate.trace)]
    return blocks + ending_blocks(debate)


def section_blocks(turns: Iterable[TurnView], events: Iterable[EventView], *, verbose: bool = False) -> list[Block]:
    """Report blocks of a stage: its replies and events."""
    blocks: list[Block] = []
    for turn in turns:
        blocks += _path(turn.path) if verbose else ()
        blocks.append(Quote(turn_head(turn), turn_body(turn), failed=turn.outcome in ("failed", "invalid")))
    for event in events:
        blocks += [*(_path(event.path) if verbose else ()), *event_blocks(event)]
    return blocks


def _path(path: str) -> list[Block]:
    return [Note(f"at {path}", "dim")]


def ending_blocks(debate: Transcript) -> list[Block]:
    """Report blocks of the verdict, the cost and the record's folder."""
    pairs = [*verdict_pairs(debate.verdict, debate.state), ("cost", cost_words(debate.cost)), ("record", debate.run)]
    return [Heading("Verdict"), Pairs(pairs)]


def case_pairs(debate: Transcript) -> list[tuple[str, str]]:
    """Pairs of name and text of the case."""
    attempts = f" of {', '.join(map(str, debate.attempts))}" if len(debate.attempts) > 1 else ""
    pairs = [
        ("case", f"{debate.case_id} (attempt {debate.attempt}{attempts}, {debate.state})"),
    ]
    if debate.judged is not None:
        return pairs + list(_judged_pairs(debate.judged, debate.passage))
    pairs.append(("question", debate.question))
    if debate.labels:
        pairs.append(("labels", ", ".join(debate.labels)))
    pairs += [
        (f"choice {label}", choice) for label, choice in zip(debate.labels, debate.choices, strict=False) if choice
    ]
    if debate.passage:
        pairs.append(("passage", f"{debate.title}\n{debate.passage}" if debate.title else debate.passage))
    pairs.append(("gold label (no model saw it)", "unknown" if debate.gold is None else debate.gold))
    if also := [answer for answer in debate.accepted if answer != debate.gold]:
        pairs.append(("also accepted", "; ".join(also)))
    if debate.ratings:
        pairs.append(("raters' scores", ", ".join("missing" if s is None else number(s) for s in debate.ratings)))
    if debate.invalid:
        pairs.append(("invalid row", debate.invalid))
    return pairs


def _judged_pairs(judged: JudgedReplyView, evidence: str) -> Iterable[tuple[str, str]]:
    yield from ((f"sent, {speaker}", text) for speaker, text in judged.sent)
    if evidence:
        yield "evidence", evidence
    yield from ((name, text) for name, text in (("from", judged.role), ("kind of task", judged.domain)) if text)
    yield "reply", judged.reply


_WITHOUT = {"parked": "none yet: it waits for a person", "withdrawn": "none: the debate was withdrawn"}
"""Text for a debate without a verdict, by its state."""


def verdict_pairs(verdict: VerdictView | None, state: str) -> list[tuple[str, str]]:
    """Pairs of name and text of the verdict."""
    if verdict is None:
        return [("verdict", _WITHOUT.get(state, "none yet"))]
    if verdict.failed:
        return [("failed", verdict.failure), ("error", verdict.error or "-")]
    whole = first_known(parts.verdict(verdict.payload) for parts in protocol_parts())
    if verdict.answer is None and whole is not None:
        return whole
    right = {True: "right", False: "wrong", None: "not scored"}[verdict.correct]
    sources = VerdictSources.of(verdict.payload)
    source = ", stage ".join(each for each in (sources.confidence_from, sources.confidence_stage) if each)
    if sources.confidence_known is not None:
        source += f", {sources.confidence_known} of {count(sources.confidence_agents)} agents"
    source = f" (from {source})" if source and verdict.confidence is not None else ""
    pairs = [
        ("answer", f"{'none' if verdict.answer is None else verdict.answer} ({right})"),
        ("how", named_ending(verdict.how)),
        ("confidence", number(verdict.confidence) + source),
        ("rounds", str(verdict.rounds)),
    ]
    if verdict.distribution is not None:
        pairs.append(("distribution", distribution_line(verdict.distribution)))
    if verdict.flags:
        pairs.append(("flags", ", ".join(verdict.flags)))
    return pairs + payload_pairs(verdict.payload)


def turn_head(turn: TurnView) -> str:
    """Header of a reply: role, model, answer, confidence, tokens, and anomalies."""
    return ", ".join([*turn_facts(turn), *turn_marks(turn)])


def turn_facts(turn: TurnView) -> list[str]:
    """Facts of a reply: role, model, answer, confidence, tokens."""
    parts = [turn.role + (f" on {turn.model}" if turn.model else "")]
    step = step_of(turn.path)
    if not step.endswith(f"/{turn.role}") or step.startswith("crit/"):
        parts[0] += f", {place_words(step, turn.role)}"
    if turn.answer is not None:
        parts.append(f"answers {turn.answer}")
    if turn.confidence is not None:
        parts.append(f"states {number(turn.confidence)}")
    if turn.p is not None:
        parts.append(f"own probability {number(turn.p)}")
    elif turn.p_reason:
        parts.append(f"own probability unknown ({turn.p_reason})")
    return [*parts, f"{count(turn.tokens)} tokens"]


_TRUNCATED = "truncated at its token limit"


_READINGS = {
    "several": "the same JSON object stood in it several times",
    "wrapped": 'its label was taken out of `\\boxed{}` or from behind "Answer:"',
    "letter": "its label is the letter in front of the answer",
    "prefix": "its label is the start of the answer",
    FROM_REASONING: "returned in the field of hidden reasoning",
    PROMPT_CUT: "the server seems to have cut its prompt",
    OVERLONG: "longer than the requested tokens can be, and cut",
    NO_LOGPROBS: "the server gave no log-probabilities, though they were requested",
}
"""Words for the marks of the column `reading`."""


def turn_marks(turn: TurnView) -> list[str]:
    """Anomalies of a reply, as texts."""
    why = _TRUNCATED if turn.truncated and not turn.error.startswith(TRUNCATED) else turn.error
    marks = {
        "repaired": "its JSON was repaired",
        "reasked": "asked again after an unreadable reply",
        "invalid": f"could not be read: {why}",
        "cut": "stopped early, asked again",
        "failed": f"FAILED ({turn.failure}): {why}",
    }
    found = [marks[turn.outcome]] if turn.outcome in marks else []
    if turn.truncated and turn.outcome not in ("invalid", "failed"):
        found.append(_TRUNCATED)
    if turn.outcome != "repaired" and has_reading_mark(turn.reading, MENDED):
        found.append(marks["repaired"])
    found += [words for mark, words in _READINGS.items() if has_reading_mark(turn.reading, mark)]
    if turn.asked > 1:
        found.append(f"asked {turn.asked} times")
    if turn.superseded:
        found.append("superseded by a later reply")
    if turn.reused:
        found.append("reused from another run")
    return found


def turn_body(turn: TurnView) -> str:
    """Body of a reply: its reasoning with further fields, else the parsed reply, else its text."""
    data = turn.data or {}
    reasoning = data.get("reasoning") or data.get("rationale") or (data.get("text") if len(data) == 1 else None)
    if isinstance(reasoning, str) and turn.outcome != "invalid":
        rest = {k: v for k, v in data.items() if k not in ("answer", "reasoning", "rationale", "confidence", "text")}
        extra = "; ".join(f"{key}: {value}" for key, value in plain_pairs(rest))
        return f"{extra}\n{reasoning}" if extra else reasoning
    if data and turn.outcome != "invalid":
        return "\n".join(reply_lines(data))
    return turn.text
