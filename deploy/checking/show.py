"""Shows how a check ended: on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from moot.deploy.checking.checked import Checked, DebateMessage
from moot.deploy.reading.ceda_events import EvidenceItem, JudgeRuling
from moot.deploy.reading.simulated import SIMULATED
from moot.deploy.reading.text import (
    emit,
    markdown_block,
    markdown_inline,
    markdown_table,
    number,
    safe_json,
    visible,
    visible_line,
)
from moot.deploy.reading.transcripts.blocks import cost_words
from moot.deploy.reading.transcripts.ceda import ruled, said_in_words, similarity

_COLOURS = {"supported": "bold green", "hallucinated": "bold red"}


def show_checked(checked: Checked, form: str = "text", console: Console | None = None) -> None:
    """Write how a check ended to the console.

    Args:
        form: `text`, `json` or `md`.
        console: standard output when None.

    Raises:
        ConfigError: for an unknown format.
    """
    emit(
        form,
        text=lambda: checked_text(checked),
        json=lambda: safe_json(checked),
        md=lambda: checked_markdown(checked),
        console=console,
    )


def headline(checked: Checked) -> str:
    """The outcome in a line."""
    if checked.failure:
        return f"not checked: {checked.failure}: {checked.error}"
    parts: list[str] = [checked.label or "undecided"]
    if checked.confidence is not None:
        parts.append(f"confidence {number(checked.confidence, 2)} ({_stated_by(checked)})")
    elif checked.label is not None:
        parts.append("confidence unknown")
    if "no-evidence" in checked.flags:
        parts.append("no evidence")
    return ", ".join(parts)


def _stated_by(checked: Checked) -> str:
    if checked.source == "classifier":
        return "the classifier's"
    return "the judge's own word" if len(checked.judges) == 1 else "the judges' own word"


def checked_text(checked: Checked) -> RenderableType:
    """The check for a terminal; whatever models and documents say is plain text."""
    parts: list[RenderableType] = []
    if checked.simulated:
        parts.append(Text(SIMULATED, style="bold yellow"))
    parts.append(Text(visible_line(headline(checked)), style=_COLOURS.get(checked.label or "", "bold")))
    parts.append(_pairs(checked))
    for title, said in sections(checked):
        parts.append(Rule(Text(title), align="left"))
        for head, body in said:
            parts.append(Text(visible_line(head), style="bold"))
            if body:
                parts.append(Padding(Text(visible(body)), (0, 0, 0, 4)))
    return Group(*parts)


def sections(checked: Checked) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Evidence, debate and judges, those that there are: heads in a line each, with the text that stands under them."""
    if checked.evidence:
        conflicts = [(line, "") for line in conflict_lines(checked)]
        yield "Evidence", [(evidence_head(item), item.text) for item in checked.evidence] + conflicts
    if checked.messages:
        yield "Debate", [(message_head(message), message.text) for message in checked.messages]
    if len(checked.judges) > 1 or checked.source == "classifier" or any(judge.missing for judge in checked.judges):
        yield "Judges", [(judge_head(judge), judge.summary) for judge in checked.judges]


def _pairs(checked: Checked) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts(checked):
        table.add_row(Text(visible_line(name)), Text(visible(value)))
    return table


def facts(checked: Checked) -> Iterator[tuple[str, str]]:
    """What there is to say beside evidence and debate, as pairs of a name and a text."""
    yield "claim", checked.claim
    if checked.rationale:
        yield "rationale", checked.rationale
    if checked.how:
        turns = len(checked.messages)
        yield "debate", f"{checked.how} after {turns} message{'' if turns == 1 else 's'}"
    if checked.flags:
        yield "flags", ", ".join(checked.flags)
    if checked.missing_pictures:
        yield "not seen", ", ".join(f"picture {number + 1}" for number in checked.missing_pictures)
    yield "cost", cost_words(checked.cost)
    if checked.record is not None:
        yield "record", checked.record


def evidence_head(item: EvidenceItem) -> str:
    """A piece of evidence by its number, with its place and how near it is to the claim."""
    near = f", similarity {similarity(item)}" if item.kind != "picture" else ""
    return f"{item.id}: {item.place}{near}"


def conflict_lines(checked: Checked) -> list[str]:
    """The conflicts in the evidence, a line each."""
    return [
        f"{' and '.join(each.between)} seem to be at odds ({each.why}){f': {each.detail}' if each.detail else ''}"
        for each in checked.conflicts
    ]


def message_head(message: DebateMessage) -> str:
    """Who speaks, and where that leaves the claim."""
    said = said_in_words(message.says, message.of, message.stance)
    return f"{message.turn}. {message.debater} on {message.model} {said}"


def judge_head(judge: JudgeRuling) -> str:
    """What a judge ruled, or why it is missing."""
    sure = f", confidence {number(judge.confidence, 2)}" if judge.verdict is not None else ""
    return f"{judge.judge}: {ruled(judge)}{sure}"


def checked_markdown(checked: Checked) -> str:
    """The check as Markdown: texts of models and documents in fences and cells that they cannot break out of."""
    blocks = [f"# {markdown_inline(headline(checked))}"]
    if checked.simulated:
        blocks.append(f"**{SIMULATED}**")
    blocks.append(markdown_table(("", "value"), list(facts(checked))))
    for title, said in sections(checked):
        blocks.append(f"## {title}")
        for head, body in said:
            blocks.append(f"**{markdown_inline(head)}**")
            if body:
                blocks.append(markdown_block(body))
    return "\n\n".join(blocks) + "\n"
