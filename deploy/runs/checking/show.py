"""Report of a claim check: on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from moot.deploy.results.protocols.ceda import ruling_words, similarity_words, stance_words
from moot.deploy.results.recorded_data import cost_words
from moot.deploy.results.report.blocks import Block, Heading, Pairs, Quote
from moot.deploy.results.report.render import banner, show_report
from moot.deploy.results.text import number
from moot.deploy.runs.checking.check_result import Checked, DebateMessage, EvidenceItem
from moot.protocols.ceda.events import JudgeRuling


def show_checked(checked: Checked, form: str = "text", console: Console | None = None) -> None:
    """Print a check's result.

    Args:
        form: `text`, `json` or `md`.
        console: standard output when None.

    Raises:
        ConfigError: for an unknown format.
    """
    show_report(checked, lambda: _blocks(checked), form, console)


def headline(checked: Checked) -> str:
    """One-line summary of the outcome."""
    if checked.failure:
        return f"not checked: {checked.failure}: {checked.error}"
    parts: list[str] = [checked.label or "undecided"]
    if checked.confidence is not None:
        parts.append(f"confidence {number(checked.confidence, 2)} ({_confidence_source(checked)})")
    elif checked.label is not None:
        parts.append("confidence unknown")
    if "no-evidence" in checked.flags:
        parts.append("no evidence")
    return ", ".join(parts)


def _confidence_source(checked: Checked) -> str:
    if checked.source == "classifier":
        return "the classifier's"
    return "stated by the judge" if len(checked.judges) == 1 else "stated by the judges"


def _blocks(checked: Checked) -> Iterator[Block]:
    yield Heading(headline(checked), 1)
    yield from banner(checked.simulated)
    yield Pairs(list(facts(checked)))
    if checked.evidence:
        yield Heading("Evidence")
        yield from (Quote(evidence_head(item), item.text) for item in checked.evidence)
        yield from (Quote(line) for line in conflict_lines(checked))
    if checked.messages:
        yield Heading("Debate")
        yield from (Quote(message_head(message), message.text) for message in checked.messages)
    if len(checked.judges) > 1 or checked.source == "classifier" or any(judge.missing for judge in checked.judges):
        yield Heading("Judges")
        yield from (Quote(judge_head(judge), judge.summary) for judge in checked.judges)


def facts(checked: Checked) -> Iterator[tuple[str, str]]:
    """Facts of a check other than evidence and debate, as pairs of name and text."""
    yield "claim", checked.claim
    if checked.rationale:
        yield "rationale", checked.rationale
    if checked.how:
        turns = len(checked.messages)
        yield "debate", f"{checked.how} after {turns} message{'' if turns == 1 else 's'}"
    if checked.flags:
        yield "flags", ", ".join(checked.flags)
    if checked.missing_pictures:
        yield "not described", ", ".join(f"picture {number + 1}" for number in checked.missing_pictures)
    yield "cost", cost_words(checked.cost)
    if checked.record is not None:
        yield "record", checked.record


def evidence_head(item: EvidenceItem) -> str:
    """Heading of a piece of evidence: number, location and similarity to the claim."""
    near = f", similarity {similarity_words(item)}" if item.kind != "picture" else ""
    return f"{item.id}: {item.place}{near}"


def conflict_lines(checked: Checked) -> list[str]:
    """Conflicts in the evidence, one line each."""
    return [
        f"{' and '.join(each.between)} seem to contradict each other ({each.why})"
        f"{f': {each.detail}' if each.detail else ''}"
        for each in checked.conflicts
    ]


def message_head(message: DebateMessage) -> str:
    """Heading of a message: its author and stance."""
    stance = stance_words(message.says, message.of, message.stance)
    return f"{message.turn}. {message.debater} on {message.model} {stance}"


def judge_head(judge: JudgeRuling) -> str:
    """A judge's ruling, or why it is missing."""
    sure = f", confidence {number(judge.confidence, 2)}" if judge.verdict is not None else ""
    return f"{judge.judge}: {ruling_words(judge)}{sure}"
