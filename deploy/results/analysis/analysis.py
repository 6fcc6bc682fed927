"""Analysis of token confidence: tables and figures from judged replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from moot.actors.record.store.mirror import display_name, record_path
from moot.deploy.results.analysis.charts import (
    band_charts,
    divergence_charts,
    position_charts,
    score_charts,
    signal_charts,
    strength_charts,
)
from moot.deploy.results.analysis.correctness import correctness_table, signal_pairs_table, stated_confidence_table
from moot.deploy.results.analysis.divergences import divergence_tables
from moot.deploy.results.analysis.features import ablation_table, associations_table, top_features_table
from moot.deploy.results.analysis.imported import replies_of_table
from moot.deploy.results.analysis.judges import consistency_table, score_distributions_table
from moot.deploy.results.analysis.recorded import replies_of_runs
from moot.deploy.results.analysis.replies import Replies, ReplyFeatures, extract_features, strata
from moot.deploy.results.analysis.role_comparison import role_comparison_tables, strata_table
from moot.deploy.results.analysis.settings import AnalysisSettings
from moot.deploy.results.analysis.sweep import run_sweep
from moot.deploy.results.analysis.table import AnalysisTable
from moot.deploy.results.analysis.trajectories import entropies_table, openings_table, trajectories, trajectory_tables
from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.record.run_info import read_run_info
from moot.deploy.results.report.blocks import Chart
from moot.deploy.results.report.chart_figures import draw_charts
from moot.deploy.results.summaries.model_replies import ModelReplies, model_replies
from moot.protocols.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[], "Figure | None"]


class AnalysisScope(FrozenModel):
    """Scope of an analysis: counts of its replies, and of excluded ones.

    Attributes:
        sources: the analysed runs, or the file.
        replies: number of replies.
        cases, groups: number of cases and of groups; replies of one group are not independent.
        with_logprobs: replies with log-probabilities; figures about confidence exclude the others, figures about scores
            include them.
        judged: replies with a score, a Q or a flag.
        scored: replies whose case's answer can be compared with a gold label.
        empty: replies with log-probabilities of no token.
        one_token: replies of a single token, which have no slope.
        features: number of features extracted from each reply.
        unknown_tokens: tokens with an invalid log-probability (not finite, or a vendor's -9999); windows with one
            are excluded.
        left_out: excluded replies by reason.
        simulated: whether any reply is from a simulated model.
        model_replies: reply counts of the runs by role and template; empty for a table.
    """

    sources: list[str]
    replies: int
    cases: int
    groups: int
    with_logprobs: int
    judged: int
    scored: int
    empty: int
    one_token: int
    features: int
    unknown_tokens: int
    left_out: dict[str, int]
    simulated: bool
    model_replies: list[ModelReplies]


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """Result of an analysis: tables and figures.

    Attributes:
        facts: the scope.
        settings: the settings.
        tables: tables by name, in display order.
        charts: charts by name of the figure; empty without data.
    """

    facts: AnalysisScope
    settings: AnalysisSettings
    tables: Mapping[str, AnalysisTable]
    charts: Mapping[str, Sequence[Chart]]

    @property
    def figures(self) -> Mapping[str, Draw]:
        """Functions that draw the figures, by name; each returns None without data."""
        return {name: partial(draw_charts, several) for name, several in self.charts.items()}

    def table(self, name: str) -> pa.Table:
        """Arrow table of a table's rows (`.to_pandas()` where pandas is installed).

        Raises:
            ConfigError: there is no such table.
        """
        if name not in self.tables:
            raise unknown_name("table", name, self.tables)
        return self.tables[name].arrow()

    def figure(self, name: str) -> Figure | None:
        """Figure for a notebook; None without data.

        Raises:
            ConfigError: there is no such figure, or matplotlib is not installed.
        """
        from moot.deploy.results.plotting import plot_style, require_matplotlib

        if name not in self.figures:
            raise unknown_name("figure", name, self.figures)
        require_matplotlib(f"the figure {name!r}")
        with plot_style():
            return self.figures[name]()


def analyze(
    *runs: str | Path,
    table: str | Path | None = None,
    vocabulary: int | None = None,
    settings: AnalysisSettings | None = None,
    keep_truncated: bool = False,
) -> Analysis:
    """Compares token confidence with judged reasoning and correctness, over runs or over a table of your own.

    Args:
        runs: folders of runs with judged replies.
        table: a Parquet file instead of runs, one row for each reply, with the columns of
            `moot.deploy.results.analysis.imported.COLUMNS`.
        vocabulary: size of the models' vocabulary, for the upper bound of the entropies; None when unknown.
        settings: settings of the analysis.
        keep_truncated: whether to include replies of runs that were truncated at their token limit.

    Raises:
        ConfigError: neither runs nor a table, or both; a run is named twice; the vocabulary is smaller than the
            number of listed alternatives; or the table cannot be used.
        RecordError: a run cannot be read, or no reply was judged in any.
    """
    if bool(runs) == (table is not None):
        raise ConfigError("expected the folders of runs, or a table with --table: one of the two")
    runs = tuple(record_path(run) for run in runs)
    simulated = any(read_run_info(run).simulated for run in runs)
    replies = (
        replies_of_table(Path(table), vocabulary)
        if table is not None
        else replies_of_runs(runs, vocabulary, keep_truncated=keep_truncated)
    )
    sources = [display_name(source) for source in runs] if table is None else [str(table)]
    return analyze_replies(
        replies, sources, settings or AnalysisSettings(), simulated=simulated, reply_counts=model_replies(*runs)
    )


def analyze_replies(
    replies: Replies,
    sources: Sequence[str],
    settings: AnalysisSettings,
    *,
    simulated: bool,
    reply_counts: Sequence[ModelReplies] = (),
) -> Analysis:
    """Analysis of these replies.

    Args:
        replies: the replies.
        sources: names of the runs, or of the file.
        settings: the settings.
        simulated: whether any reply is from a simulated model.
        reply_counts: reply counts of the runs.
    """
    measured = extract_features(replies)
    named, by_domain = strata(replies), strata(replies, "domain")
    by_dataset = [stratum for stratum in named if len(stratum.rows) >= settings.too_few]
    sweeps = run_sweep(measured, by_dataset, settings)
    found = trajectories(replies, by_dataset)
    divergences, cases = divergence_tables(measured, by_domain, settings)
    tables = [
        strata_table(measured, named, sweeps, settings),
        top_features_table(measured, sweeps, settings),
        signal_pairs_table(measured, by_dataset, settings),
        *role_comparison_tables(measured, by_dataset, sweeps, settings),
        correctness_table(measured, by_dataset, settings),
        stated_confidence_table(replies, named, settings),
        divergences,
        consistency_table(replies, by_dataset),
        score_distributions_table(replies, by_dataset),
        openings_table(replies, by_dataset),
        entropies_table(replies, by_dataset),
        *trajectory_tables(found),
        ablation_table(sweeps, settings),
        cases,
        associations_table(sweeps),
    ]
    charts = {
        "bands": band_charts(found),
        "trajectories": position_charts(found),
        "strengths": strength_charts(sweeps),
        "score_distributions": score_charts(replies, by_dataset),
        "divergences": divergence_charts(divergences.rows),
        "signals": signal_charts(measured, by_domain, settings),
    }
    return Analysis(
        _facts(measured, sources, simulated, reply_counts),
        settings,
        {each.name: each for each in tables},
        {name: list(several) for name, several in charts.items()},
    )


def _facts(
    measured: ReplyFeatures, sources: Sequence[str], simulated: bool, reply_counts: Sequence[ModelReplies]
) -> AnalysisScope:
    replies = measured.replies
    lengths = replies.logprobs.lengths[replies.has_logprobs]
    return AnalysisScope(
        sources=list(sources),
        replies=len(replies),
        cases=len(set(zip(replies.dataset, replies.case, strict=True))),
        groups=len(np.unique(replies.group)),
        with_logprobs=int(replies.has_logprobs.sum()),
        judged=int(_judged(replies).sum()),
        scored=int(np.isfinite(replies.correct).sum()),
        empty=int((lengths == 0).sum()),
        one_token=int((lengths == 1).sum()),
        features=len(measured.features),
        unknown_tokens=measured.unknown_tokens,
        left_out=dict(replies.left_out),
        simulated=simulated,
        model_replies=list(reply_counts),
    )


def _judged(replies: Replies) -> npt.NDArray[np.bool_]:
    """Whether each reply has any mark, shape `(R,)`."""
    marks = [*replies.scores.values(), replies.quality, replies.flag]
    return np.asarray(np.isfinite(marks).any(axis=0))
