"""`moot analyze`: association of confidence signals with judged reasoning, over runs or a user's table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moot.deploy.cli import options


def analyze(
    context: typer.Context,
    runs: options.JudgedRuns = None,
    table: Annotated[
        Path | None,
        typer.Option(help="A Parquet file of replies instead of runs; `moot analyze --columns` lists its columns."),
    ] = None,
    columns: Annotated[bool, typer.Option("--columns", help="List the columns that --table takes, and exit.")] = False,
    ratings: Annotated[
        Path | None,
        typer.Option(help="A CSV or Parquet file of ratings (item, rater, score): measures inter-rater agreement."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Output folder (default: analysis/ in the run; for several runs, in the working folder)."),
    ] = None,
    vocabulary: Annotated[
        int | None, typer.Option(min=2, help="Size of the models' vocabulary, for the upper bound of entropies.")
    ] = None,
    permutations: Annotated[int, typer.Option(min=100, max=100_000, help="Permutations per p-value.")] = 1000,
    resamples: Annotated[
        int, typer.Option(min=50, max=10_000, help="Bootstrap resamples per interval of the sweep.")
    ] = 200,
    quantile: Annotated[
        float, typer.Option(help="Tail share, below 0.5: confidence is low in the lower tail, high in the upper.")
    ] = 0.25,
    low_quality: Annotated[float, typer.Option(help="A reply with at most this quality Q is weak.")] = 5.0,
    high_quality: Annotated[float, typer.Option(help="A reply with at least this quality Q is well reasoned.")] = 8.0,
    keep_truncated: options.KeepTruncated = False,
    seed: Annotated[int, typer.Option(help="Random seed of resamples, permutations and folds.")] = 0,
    form: options.Form = "text",
) -> None:
    """Compare token confidence with judged reasoning and correct answers: tables, figures and an HTML page."""
    if columns:
        _list_columns()
        return
    from moot.actors.record.files import refuse_links
    from moot.actors.record.store.mirror import store_of
    from moot.deploy.results.figures.token_confidence import AnalysisSettings
    from moot.deploy.runs.validation import validate_model
    from moot.deploy.studies.analysis.analyze import analyze as analyzed
    from moot.deploy.studies.analysis.analyze import show_analysis, write_analysis

    if ratings is not None:
        _show_agreement(ratings, runs, table, seed, form)
        return
    given = {key: value for key, value in context.params.items() if key in AnalysisSettings.model_fields}
    settings = validate_model(AnalysisSettings, given, "")
    in_run = runs is not None and len(runs) == 1 and store_of(runs[0]) is None
    if runs and in_run and not out:
        refuse_links(runs[0])
    analysis = analyzed(
        *(runs or ()), table=table, vocabulary=vocabulary, settings=settings, keep_truncated=keep_truncated
    )
    folder = out or (runs[0] / "analysis" if runs and in_run else Path("analysis"))
    show_analysis(analysis, write_analysis(analysis, folder), form)


def _show_agreement(ratings: Path, runs: list[Path] | None, table: Path | None, seed: int, form: str) -> None:
    from moot.deploy.studies.analysis.ratings import rating_agreement, show_ratings
    from moot.protocols.errors import ConfigError

    if runs or table is not None:
        raise ConfigError("--ratings reads its own file: leave out runs and --table")
    show_ratings(rating_agreement(ratings), form)


def _list_columns() -> None:
    from moot.deploy.studies.analysis.imported import COLUMNS

    width = max(map(len, COLUMNS)) + 2
    for name, about in {**COLUMNS, "score_NAME": "number: a dimension's score, one column for each"}.items():
        print(f"{name:{width}}{about}")
