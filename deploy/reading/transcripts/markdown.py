"""A transcript as Markdown that nothing a model wrote can break out of."""

from __future__ import annotations

from collections.abc import Iterable

from moot.deploy.reading.rounds.trace_text import trace_markdown
from moot.deploy.reading.text import markdown_block, markdown_inline, markdown_table
from moot.deploy.reading.transcripts.events import shown_event
from moot.deploy.reading.transcripts.selene import gate_signals, is_gate, is_judging, judging_words, plain_pairs
from moot.deploy.reading.transcripts.text import (
    JUDGED_HEADER,
    case_pairs,
    cost_words,
    judged_cells,
    turn_body,
    turn_head,
    verdict_pairs,
)
from moot.deploy.reading.transcripts.views import EventView, Transcript


def transcript_markdown(debate: Transcript) -> str:
    """The transcript as Markdown: texts of models and files in fences, everything else escaped."""
    blocks = [f"# Case {markdown_inline(debate.case_id)}"]
    if debate.simulated:
        blocks.append("**simulated models**")
    for name, value in case_pairs(debate):
        long = name in ("question", "passage", "evidence", "reply") or name.startswith("sent, ")
        blocks.append(f"**{markdown_inline(name)}**:" + ("" if long else f" {markdown_inline(value)}"))
        if long:
            blocks.append(markdown_block(value))
    for section in debate.sections:
        blocks.append(f"## {markdown_inline(section.title)}")
        for turn in section.turns:
            blocks.append(f"**{markdown_inline(turn_head(turn))}**")
            if body := turn_body(turn):
                blocks.append(markdown_block(body))
        for event in section.events:
            blocks += _event(event)
    if debate.trace is not None:
        blocks += ["## Round by round", trace_markdown(debate.trace)]
    blocks += ["## Verdict", markdown_table(("", "value"), verdict_pairs(debate.verdict, debate.state))]
    blocks.append(f"Cost: {markdown_inline(cost_words(debate.cost))}. Record: {markdown_inline(debate.run)}")
    return "\n\n".join(blocks) + "\n"


def _event(event: EventView) -> Iterable[str]:
    if is_gate(event):
        yield markdown_table(("signal", "value", "skips if", "test"), [tuple(s) for s in gate_signals(event.data)])
        decision = "skip the debate" if event.data["skip"] else "debate"
        yield f"Decision: {decision} ({markdown_inline(', '.join(map(str, event.data['reasons'])))})"
        return
    if (shown := shown_event(event)) is not None:
        yield f"**{markdown_inline(shown.title)}**"
        if shown.rows:
            yield markdown_table([markdown_inline(name) for name in shown.header], shown.rows)
        if shown.lines:
            yield "\n".join(f"- {markdown_inline(line)}" for line in shown.lines)
        return
    yield f"**{markdown_inline(f'{event.kind} at {event.path}')}**"
    if is_judging(event):
        yield markdown_table(JUDGED_HEADER, judged_cells(event))
        yield "\n".join(f"- {markdown_inline(line)}" for line in judging_words(event.data))
        return
    pairs = list(plain_pairs(event.data))
    if pairs:
        yield markdown_table(("key", "value"), pairs)
