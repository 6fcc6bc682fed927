"""Shows how a check ended: on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from moot.deploy.checking.checked import Checked, DebateMessage
from moot.deploy.reading.simulated import SIMULATED
from moot.deploy.reading.text import (
    count,
    emit,
    markdown_block,
    markdown_inline,
    markdown_table,
    number,
    safe_json,
    visible,
    visible_line,
)
from moot.deploy.reading.transcripts.ceda import ruled

_EVIDENCE = ("", "place", "similarity")
_JUDGES = ("judge", "verdict", "confidence", "summary")
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
    if checked.evidence:
        parts += [Rule(Text("Evidence"), align="left"), _table(_EVIDENCE, evidence_rows(checked))]
        parts += [Padding(Text(visible_line(f"{item.id}: {item.text}")), (0, 0, 0, 4)) for item in checked.evidence]
        parts += [Text(visible_line(line)) for line in conflict_lines(checked)]
    if checked.messages:
        parts.append(Rule(Text("Debate"), align="left"))
        for message in checked.messages:
            parts.append(Text(visible_line(message_head(message)), style="bold"))
            parts.append(Padding(Text(visible(message.text)), (0, 0, 0, 4)))
    if len(checked.judges) > 1 or any(judge.missing for judge in checked.judges):
        parts += [Rule(Text("Judges"), align="left"), _table(_JUDGES, judge_rows(checked))]
    return Group(*parts)


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
    yield "cost", f"{count(checked.tokens)} tokens in {checked.calls} calls"
    if checked.record is not None:
        yield "record", checked.record


def evidence_rows(checked: Checked) -> list[tuple[str, ...]]:
    """The evidence as rows of words, with its place."""
    return [(item.id, item.place, number(item.similarity, 2)) for item in checked.evidence]


def conflict_lines(checked: Checked) -> list[str]:
    """The conflicts in the evidence, a line each."""
    return [
        f"{' and '.join(each.between)} seem to be at odds ({each.why}){f': {each.detail}' if each.detail else ''}"
        for each in checked.conflicts
    ]


def message_head(message: DebateMessage) -> str:
    """Who speaks, and where that leaves the claim."""
    said = message.says or "neither AGREE nor DENY"
    held = f"{message.stance} the claim" if message.stance else "stance unknown"
    return f"{message.turn}. {message.debater} on {message.model}: {said} with the {_of(message)}; {held}"


def _of(message: DebateMessage) -> str:
    return "claim" if message.of == "claim" else "message before"


def judge_rows(checked: Checked) -> list[tuple[str, ...]]:
    """What each judge ruled, as rows of words."""
    return [(each.judge, ruled(each), number(each.confidence, 2), each.summary) for each in checked.judges]


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    table = Table(*header)
    for row in rows:
        table.add_row(*(Text(visible_line(cell)) for cell in row))
    return table


def checked_markdown(checked: Checked) -> str:
    """The check as Markdown: texts of models and documents in fences and cells that they cannot break out of."""
    blocks = [f"# {markdown_inline(headline(checked))}"]
    if checked.simulated:
        blocks.append(f"**{SIMULATED}**")
    blocks.append(markdown_table(("", "value"), list(facts(checked))))
    if checked.evidence:
        blocks += ["## Evidence", markdown_table(_EVIDENCE, evidence_rows(checked))]
        blocks += [f"{item.id}:\n\n{markdown_block(item.text)}" for item in checked.evidence]
        blocks += [f"- {markdown_inline(line)}" for line in conflict_lines(checked)]
    if checked.messages:
        blocks.append("## Debate")
        for message in checked.messages:
            blocks += [f"**{markdown_inline(message_head(message))}**", markdown_block(message.text)]
    if checked.judges:
        blocks += ["## Judges", markdown_table(_JUDGES, judge_rows(checked))]
    return "\n\n".join(blocks) + "\n"
