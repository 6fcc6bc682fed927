"""Shows what a training came to: on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.text import Text

from moot.actors.classifiers.card import Card, Figure, Figures
from moot.deploy.calibration.report import left_out_words, table
from moot.deploy.reading.text import (
    cases,
    emit,
    markdown_inline,
    markdown_table,
    number,
    percent,
    safe_json,
    visible_line,
)
from moot.deploy.training.card import JUDGES, MASKED, MASKED_HEAD, OWN

_ANSWERS = ("answers", "accuracy", "F1 hallucinated", "F1 supported", "macro-F1")
_PROBABILITIES = ("p(hallucinated)", "AUROC", "Brier", "ECE", "ECE if perfect")
_FEW = 100


def show_training(card: Card, out: str | Path, form: str = "text", console: Console | None = None) -> None:
    """Write a classifier's held-out figures to the console.

    Args:
        card: of the classifier.
        out: its folder, as it was named.
        form: text, json or md.
    """
    emit(
        form,
        text=lambda: _text(card, out),
        json=lambda: safe_json(card),
        md=lambda: _markdown(card, out),
        console=console,
    )


def _head(card: Card) -> str:
    made = card.training
    own = "" if card.body is None else f", fine-tuned from {card.body.base}"
    return (
        f"{card.kind} classifier on {card.encoder}{own}: {made.n:,} summaries of {cases(made.cases)} in "
        f"{made.groups:,} groups, {made.hallucinated:,} hallucinated, from {', '.join(made.runs)}"
        f"{left_out_words(made.left_out)}"
    )


def _rule(card: Card) -> str:
    return (
        f"Held out: {card.training.folds} folds by group, seed {card.training.seed}; 95 % intervals over resampled "
        "groups. Positive class of AUROC: hallucinated. ECE if perfect: what a perfect forecaster stays below. Without "
        "verdict words: at most so much is the argument's, for not every word of a verdict is found."
    )


def remarks(card: Card) -> list[str]:
    """What a reader must know before using it."""
    found = []
    if card.training.simulated:
        found.append("simulated models: these figures say nothing about any real model")
    if card.training.groups < _FEW:
        found.append(f"only {card.training.groups} groups of cases: the figures are coarse, see their intervals")
    by_name = {each.name: each for each in card.held_out}
    own, masked, judges = (by_name[name] for name in (OWN, MASKED if card.body is None else MASKED_HEAD, JUDGES))
    if (own.accuracy.value or 0.0) <= (judges.accuracy.value or 0.0):
        found.append("it is not right more often than the judges' bare verdict")
    if not _tells(own):
        found.append(f"not shown to tell hallucinated from supported ({_doubt(own)})")
    elif not _tells(masked):
        found.append(f"{masked.name}: not shown to tell anything ({_doubt(masked)})")
    if own.ece is not None and own.ece_null_high is not None and own.ece > own.ece_null_high:
        found.append("its probabilities are off by more than chance: see ECE")
    return found


def _tells(figures: Figures) -> bool:
    low, value = figures.auroc.low, figures.auroc.value
    return (low if low is not None else value or 0.0) > 0.5


def _doubt(figures: Figures) -> str:
    what = "interval of AUROC" if figures.auroc.low is not None else "AUROC"
    return f"{what} reaches 0.5, n = {figures.n:,}"


def _share(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return percent(figure.value)
    return percent(figure.value, (figure.low, figure.high))


def _decimal(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    ends = "" if figure.low is None else f" [{number(figure.low)}, {number(figure.high)}]"
    return f"{number(figure.value)}{ends}"


def _answers(card: Card) -> list[tuple[str, ...]]:
    return [
        (each.name, *map(_share, (each.accuracy, each.f1_hallucinated, each.f1_supported, each.macro_f1)))
        for each in card.held_out
    ]


def _probabilities(card: Card) -> list[tuple[str, ...]]:
    return [
        (each.name, _decimal(each.auroc), _decimal(each.brier), _bare(each.ece), _bare(each.ece_null_high))
        for each in card.held_out
    ]


def _bare(value: float | None) -> str:
    return "-" if value is None else number(value)


def _use(out: str | Path) -> str:
    return f"to use it: moot run --protocol ceda --classifier {out} ..."


def _text(card: Card, out: str | Path) -> RenderableType:
    parts: list[RenderableType] = [Text(remark, style="bold yellow") for remark in remarks(card)]
    parts += [
        Text(visible_line(_head(card))),
        table("", _ANSWERS, _answers(card)),
        table("", _PROBABILITIES, _probabilities(card)),
        Text(_rule(card)),
        Text(visible_line(_use(out)), style="bold", no_wrap=True, overflow="ignore"),
    ]
    return Group(*parts)


def _markdown(card: Card, out: str | Path) -> str:
    blocks = ["# Classifier", *(f"**{markdown_inline(remark)}**" for remark in remarks(card))]
    blocks += [
        markdown_inline(_head(card)),
        markdown_table(_ANSWERS, _answers(card)),
        markdown_table(_PROBABILITIES, _probabilities(card)),
        markdown_inline(_rule(card)),
        markdown_inline(_use(out)),
    ]
    return "\n\n".join(blocks) + "\n"
