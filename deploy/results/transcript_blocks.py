"""Pairs of name and text of a verdict's payload: formatted for known protocols, else as recorded."""

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
from moot.deploy.results.protocols import ceda, evince, selene
from moot.deploy.results.protocols.ceda import check_pairs
from moot.deploy.results.protocols.evince import consensus_pairs
from moot.deploy.results.protocols.selene import gate_pairs
from moot.deploy.results.recorded_data import EventView, Kinds, place_words, plain_pairs, reply_lines, titled_blocks
from moot.deploy.results.report.blocks import Block, Heading, Note, Pairs, Quote
from moot.deploy.results.text import calls, count, number, percent
from moot.deploy.results.transcript import AttemptCost, JudgedReplyView, Transcript, TurnView, VerdictView
from moot.protocols.constructor_auditor.events import ConstructorAuditorPayload
from moot.protocols.errors import TRUNCATED
from moot.protocols.judge_panel.payload import PanelPayload
from moot.protocols.messages import Form
from moot.protocols.reply_json import MENDED
from moot.protocols.rubrics.events import JudgeMark, ReplyAssessed
from moot.protocols.rubrics.score_sheet import FLAG
from moot.protocols.verdict_sources import VerdictSources

_YES = {True: "yes", False: "no", None: "unknown"}


def payload_pairs(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Pairs of name and text of a payload, without the sources of the verdict's figures."""
    for pairs_of in (consensus_pairs, check_pairs, gate_pairs, panel_pairs, _assessment_pairs):
        if (pairs := pairs_of(payload)) is not None:
            return pairs
    return list(plain_pairs({key: v for key, v in payload.items() if key not in VerdictSources.model_fields}))


def panel_pairs(payload: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """Pairs of name and text of a judge panel's result on one reply; None for any other payload."""
    if (panel := PanelPayload.read(payload)) is None:
        return None
    missing = ", ".join(f"{kind} {n}" for kind, n in panel.abstentions.items())
    pairs = [
        ("rubric", panel.rubric),
        ("Q (quality, mean)", number(panel.quality, 2)),
        ("flagged", _YES[panel.flagged] + ("" if panel.flag is None else f", by {percent(panel.flag)} of the marks")),
    ]
    for name, marks in panel.dimensions.items():
        spread = "unknown" if marks.spread is None else str(marks.spread)
        words = f"mean {number(marks.mean, 2)}, median {number(marks.median, 2)}, highest less lowest {spread}"
        pairs.append((name.replace("_", " "), words))
    absent = f", and {panel.missing} missing" if panel.missing else ""
    return [*pairs, ("marks", f"{panel.judgments}{absent}{f' ({missing})' if missing else ''}")]


def _assessment_pairs(payload: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """Pairs of name and text of the judged replies of constructor and auditor; None for any other payload."""
    if "domain" not in payload or (found := ConstructorAuditorPayload.read(payload)) is None:
        return None
    pairs: list[tuple[str, str]] = [("domain", found.domain)]
    for role, quality in found.quality.items():
        flagged = {True: ", flagged", False: "", None: ", flag unknown"}[found.flagged.get(role)]
        pairs.append((f"Q of the {role}", f"{number(quality, 2)}{flagged}"))
    return pairs


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
    for event_type, show in _KINDS:
        if event_type.kind == event.kind and (data := event_type.read(event.data, event.path)) is not None:
            return show(event, data)
    return None


def _assessment(event: EventView, data: ReplyAssessed) -> list[Block]:
    names = data.dimensions
    flag = ("flag",) if _flags(data) else ()
    header = ("judge", "pass", *(name.replace("_", " ") for name in names), "Q", *flag)
    rows = [tuple(_marks(mark, names, data)) for mark in data.judges]
    if len(data.judges) > 1:
        share = (percent(data.flag),) if flag else ()
        means = (number(data.scores[name], 2) for name in names)
        rows.append(("panel", "", *means, number(data.quality, 2), *share))
    lines = [
        f"{mark.judge}, pass {mark.pass_index}, is missing: {mark.missing}" for mark in data.judges if mark.missing
    ]
    author = f" by the {data.role}" if data.role != data.reply else ""
    return titled_blocks(f"judged under the rubric {data.rubric}: the {data.reply}{author}", header, rows, lines)


def _flags(data: ReplyAssessed) -> bool:
    return FLAG in data.ends or not data.scales


def _marks(mark: JudgeMark, names: Iterable[str], data: ReplyAssessed) -> Iterable[str]:
    yield from (mark.judge, str(mark.pass_index))
    scores = mark.scores or {}
    yield from ("missing" if mark.scores is None else str(scores.get(name, "-")) for name in names)
    yield "missing" if mark.total is None else str(mark.total)
    if _flags(data):
        yield {True: "FLAGGED", False: "-", None: "missing"}[mark.flag]


_KINDS: Kinds = ((ReplyAssessed, _assessment), *evince.KINDS, *ceda.KINDS, *selene.KINDS)


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
    if verdict.answer is None and (panel := panel_pairs(verdict.payload)) is not None:
        return panel
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


def cost_words(cost: AttemptCost) -> str:
    """Text of the cost."""
    without_usage = cost.calls_without_usage
    at_least = "at least " if without_usage and cost.tokens is not None else ""
    words = f"{at_least}{count(cost.tokens)} tokens in {calls(cost.calls)}"
    if without_usage:
        words += f", {without_usage} of them with unknown usage"
    return words + (f"; {count(cost.tokens_reused)} tokens reused" if cost.tokens_reused != 0 else "")


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
