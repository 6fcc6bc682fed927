"""`moot train-classifier`: training of a classifier on the judges' summaries of finished runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from moot.deploy.cli import options


def train_classifier(
    context: typer.Context,
    runs: options.LabelledRuns,
    out: Annotated[Path, typer.Option(help="The classifier's folder.", show_default=False)],
    setfit: Annotated[
        str | None, typer.Option(help="Fine-tune this encoder, sentence-transformers/NAME; needs the extra setfit.")
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="Encoder of the summaries (default: that of the runs).")] = None,
    folds: Annotated[int, typer.Option(help="Cross-validation folds.")] = 5,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    iterations: Annotated[
        int | None, typer.Option(help="With --setfit: pairs of either kind per summary (default: 160 pairs in total).")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="With --setfit: training epochs (default: 1).")] = None,
    recipe: Annotated[
        str, typer.Option(help="With --setfit: short, or published (SetFit's own defaults, with every pair).")
    ] = "short",
    quiet: options.Quiet = False,
    form: options.Form = "text",
) -> None:
    """Train a classifier of judges' summaries, and evaluate it on held-out cases."""
    from moot.deploy.runs.flag_parsers import flag_of
    from moot.deploy.runs.validation import validate_model
    from moot.deploy.studies.training.report import show_training
    from moot.deploy.studies.training.train import TrainingSettings, train_with_progress

    given = {key: value for key, value in context.params.items() if key in TrainingSettings.model_fields}
    settings = validate_model(TrainingSettings, given, typed={key: flag_of(key) for key in given})
    done = train_with_progress(
        runs, out, settings, lambda line: None if quiet else print(line, file=sys.stderr, flush=True)
    )
    if done.already_trained and not quiet:
        print(f"{out} already contains this classifier", file=sys.stderr)
    show_training(done.card, out, form)
