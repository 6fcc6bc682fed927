"""Report of a training: on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from moot.actors.classifiers.card import ClassifierCard, HeldOutMetrics, MetricEstimate
from moot.deploy.results.report.blocks import Block, Heading, Note, Table
from moot.deploy.results.report.render import show_report
from moot.deploy.results.text import cases, number, percent, shell_path
from moot.deploy.studies.calibration.report import left_out_words
from moot.deploy.studies.training.card import JUDGES, MASKED, MASKED_HEAD, OWN

_ANSWERS = ("answers", "accuracy", "F1 hallucinated", "F1 supported", "macro-F1")
_PROBABILITIES = ("p(hallucinated)", "AUROC", "Brier", "ECE", "ECE if calibrated")
_FEW = 100


def show_training(card: ClassifierCard, out: str | Path, form: str = "text", console: Console | None = None) -> None:
    """Print the held-out figures of a classifier.

    Args:
        card: card of the classifier.
        out: its folder, as the user gave it.
        form: text, json or md.
        console: output; None for the standard output.
    """
    show_report(card, lambda: _blocks(card, out), form, console)


def _blocks(card: ClassifierCard, out: str | Path) -> Iterator[Block]:
    training = card.training
    own = "" if card.body is None else f", fine-tuned from {card.body.base}"
    yield Heading("Classifier", 1)
    yield from (Note(remark, "warning") for remark in caveats(card))
    yield Note(
        f"{card.kind} classifier on {card.encoder}{own}: {training.n:,} summaries of {cases(training.cases)} in "
        f"{training.groups:,} groups, {training.hallucinated:,} hallucinated, from {', '.join(training.runs)}"
        f"{left_out_words(training.left_out)}"
    )
    answers = [
        (each.name, *map(_share, (each.accuracy, each.f1_hallucinated, each.f1_supported, each.macro_f1)))
        for each in card.held_out
    ]
    probabilities = [
        (each.name, _decimal(each.auroc), _decimal(each.brier), _bare(each.ece), _bare(each.ece_null_high))
        for each in card.held_out
    ]
    yield Table("", _ANSWERS, answers)
    yield Table("", _PROBABILITIES, probabilities)
    yield Note(
        f"Held out: {training.folds} folds by group, seed {training.seed}; 95 % intervals over resampled groups. "
        "Positive class of AUROC: hallucinated. ECE if calibrated: a calibrated forecaster stays below. Without "
        "verdict words: an upper bound of what the argument adds, because some verdict words are missed."
    )
    yield Note(f"to use it: moot run --protocol ceda --classifier {shell_path(out)} ...", "strong")


def caveats(card: ClassifierCard) -> list[str]:
    """Caveats of using the classifier."""
    remarks = []
    if card.training.simulated:
        remarks.append("simulated models: these figures say nothing about any real model")
    if card.training.groups < _FEW:
        remarks.append(f"only {card.training.groups} groups of cases: the figures are imprecise, see their intervals")
    by_name = {each.name: each for each in card.held_out}
    own, masked, judges = (by_name[name] for name in (OWN, MASKED if card.body is None else MASKED_HEAD, JUDGES))
    if (own.accuracy.value or 0.0) <= (judges.accuracy.value or 0.0):
        remarks.append("it is not more accurate than the judges' bare verdict")
    if not _distinguishes(own):
        remarks.append(f"not shown to distinguish hallucinated from supported ({_doubt(own)})")
    elif not _distinguishes(masked):
        remarks.append(f"{masked.name}: not shown to distinguish them ({_doubt(masked)})")
    if own.ece is not None and own.ece_null_high is not None and own.ece > own.ece_null_high:
        remarks.append("its probabilities are miscalibrated by more than chance: see ECE")
    return remarks


def _distinguishes(figures: HeldOutMetrics) -> bool:
    low, value = figures.auroc.low, figures.auroc.value
    return (low if low is not None else value or 0.0) > 0.5


def _doubt(figures: HeldOutMetrics) -> str:
    what = "interval of AUROC" if figures.auroc.low is not None else "AUROC"
    return f"{what} reaches 0.5, n = {figures.n:,}"


def _share(figure: MetricEstimate) -> str:
    ends = None if figure.low is None or figure.high is None else (figure.low, figure.high)
    return percent(figure.value, ends)


def _decimal(figure: MetricEstimate | None) -> str:
    if figure is None:
        return "-"
    ends = "" if figure.low is None else f" [{number(figure.low)}, {number(figure.high)}]"
    return f"{number(figure.value)}{ends}"


def _bare(value: float | None) -> str:
    return "-" if value is None else number(value)
