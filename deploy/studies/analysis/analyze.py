"""Analysis of token confidence: its tables, figures and files, from the judged replies of runs or of a table."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pydantic import BaseModel
from rich.console import Console

from moot.actors.record.files import checksum, write_whole
from moot.actors.record.store.mirror import display_name, record_path
from moot.deploy.results.figures.confidence_trajectories import (
    band_charts,
    divergence_charts,
    entropies_table,
    openings_table,
    position_charts,
    score_charts,
    signal_charts,
    trajectories,
    trajectory_tables,
)
from moot.deploy.results.figures.judged_replies import Replies, ReplyFeatures, extract_features, replies_of_runs, strata
from moot.deploy.results.figures.replies import ModelReplies, model_replies, replies_words, warnings_of
from moot.deploy.results.figures.token_confidence import (
    AnalysisSettings,
    AnalysisTable,
    correctness_table,
    divergence_tables,
    signal_pairs_table,
    stated_confidence_table,
)
from moot.deploy.results.report.blocks import Block, Chart, Heading, Items, Note
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.report.html import report_html
from moot.deploy.results.report.plots import draw_charts, has_matplotlib, plot_style, render_figure
from moot.deploy.results.report.render import banner, show_report
from moot.deploy.results.run_info import read_run_info
from moot.deploy.results.text import cases as number_of_cases
from moot.deploy.results.text import visible
from moot.deploy.studies.analysis.imported import replies_of_table
from moot.deploy.studies.analysis.judges import consistency_table, score_distributions_table
from moot.deploy.studies.analysis.sweep import (
    ablation_table,
    associations_table,
    role_comparison_tables,
    run_sweep,
    strata_table,
    strength_charts,
    top_features_table,
)
from moot.metrics.jackknife import LEAST_CLUSTERS
from moot.protocols.errors import ConfigError, RecordError, unknown_name
from moot.protocols.regular_files import MOST_TEXT_BYTES, read_regular

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
        from moot.deploy.results.report.plots import plot_style, require_matplotlib

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
            `moot.deploy.studies.analysis.imported.COLUMNS`.
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


MOST_ROWS = 200
"""Rows of a table that the page shows at most; the files contain all."""

TITLE = "Confidence signals against judged reasoning"

_NO_FIGURES = "need matplotlib (pip install 'moot[plot]')"


class AnalysisView(BaseModel):
    """JSON form of an analysis.

    Attributes:
        tables: rows by table; NaN is null.
        files: the folder of the analysis' files.
    """

    facts: AnalysisScope
    settings: dict[str, object]
    tables: dict[str, list[dict[str, object]]]
    files: str


def show_analysis(found: Analysis, written: Path, form: str = "text", console: Console | None = None) -> None:
    """Shows an analysis on the console.

    Args:
        found: the analysis.
        written: the path of its page.
        form: `text`, `json` or `md`.

    Raises:
        ConfigError: the format is unknown.
    """
    tables = {each.name: each.arrow().to_pylist() for each in _tables(found, folded=False)}
    data = AnalysisView(
        facts=found.facts, settings=found.settings.model_dump(), tables=tables, files=str(written.parent)
    )
    exception = "" if has_matplotlib() else f" (as files, figures {_NO_FIGURES})"
    end = Note(f"page with all tables and figures{exception}: {written}")
    show_report(data, lambda: [*_front(found), *_read(found), end], form, console)


def analysis_page(found: Analysis) -> str:
    """Self-contained HTML page of an analysis."""
    counted = "; ".join(f"{name} = {value}" for name, value in found.settings.model_dump().items())
    more = [block for table in _tables(found, folded=True) for block in _blocks(table, table.title)]
    how = "Intervals are 95 %, over cases, or over groups of cases that share one."
    blocks = [
        *_front(found),
        *_figures(found),
        *_read(found, MOST_ROWS),
        *([Heading("More"), *more] if more else []),
        Note(f"Settings: {counted}. {how}", "dim"),
    ]
    return report_html(TITLE, blocks)


def _tables(found: Analysis, *, folded: bool) -> list[AnalysisTable]:
    return [table for table in found.tables.values() if table.rows and table.in_files_only == folded]


def _front(found: Analysis) -> list[Block]:
    return [Heading(TITLE, 1), *banner(found.facts.simulated), Items(list(scope_words(found.facts)))]


def _figures(found: Analysis) -> Iterable[Block]:
    yield Heading("Figures")
    if not has_matplotlib():
        yield Note(f"No figures were written as files: they {_NO_FIGURES}.", "dim")
    for name, charts in found.charts.items():
        yield from charts
        if charts and has_matplotlib():
            yield Note(f"As files: {name}.svg, {name}.png.", "dim")


def _read(found: Analysis, most: int | None = None) -> Iterator[Block]:
    for table in _tables(found, folded=False):
        yield Heading(table.title)
        yield from _blocks(table, "", most)


def _blocks(table: AnalysisTable, title: str, most: int | None = MOST_ROWS) -> Iterator[Block]:
    yield table.block(title, most)
    yield from (Note(note, "dim") for note in table.notes)
    if most is not None and (left := len(table.rows) - most) > 0:
        yield Note(f"{left:,} more rows are in {table.name}.csv and {table.name}.parquet.", "dim")


def scope_words(facts: AnalysisScope) -> Iterator[str]:
    """Scope of an analysis as lines of text, without counts of 0."""
    groups = f" in {facts.groups:,} groups" if facts.groups != facts.cases else ""
    replies = _count(facts.replies, "reply", "replies")
    yield f"{', '.join(facts.sources)}: {replies} on {number_of_cases(facts.cases)}{groups}"
    with_logprobs = f"{facts.with_logprobs:,} with token log-probabilities"
    yield f"{facts.judged:,} judged, {facts.scored:,} on cases that can be scored, {with_logprobs}"
    if facts.groups < LEAST_CLUSTERS:
        independent = _count(facts.groups, "independent case", "independent cases")
        yield f"{independent}: there are intervals from {LEAST_CLUSTERS} on"
    if without := facts.replies - facts.with_logprobs:
        yield (
            f"{_count(without, 'reply', 'replies')} without log-probabilities: left out of every figure about "
            "confidence, kept in the others"
        )
    if facts.empty:
        yield f"{_count(facts.empty, 'reply', 'replies')} without a token: no features"
    if facts.one_token:
        yield f"{_count(facts.one_token, 'reply', 'replies')} of one token: no slope"
    if facts.unknown_tokens:
        yield (
            f"{_count(facts.unknown_tokens, 'token', 'tokens')} without a valid log-probability (not finite, or a "
            "vendor's -9999): windows with one are left out"
        )
    if facts.model_replies:
        yield f"replies in these runs: {replies_words(facts.model_replies)}"
    for warning in warnings_of(facts.model_replies):
        yield f"warning: {warning}"
    for reason, count in facts.left_out.items():
        yield f"{_count(count, 'reply', 'replies')} {reason}: left out"


def _count(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


MANIFEST = "analysis.json"
"""Manifest of an analysis: its files, scope and settings."""

PAGE = "index.html"

_FORMULA = re.compile(r"^[=+\-@\t]")


def write_analysis(found: Analysis, folder: Path) -> Path:
    """Writes an analysis as files, and removes those of an earlier analysis in the folder that are as it wrote them.

    Returns:
        The page's path.

    Raises:
        ConfigError: the folder is a file.
        RecordError: something cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: is a file, not a folder")
    files = dict(_table_files(found))
    files |= _figure_files(found)
    files[PAGE] = analysis_page(found).encode()
    manifest = {
        "facts": found.facts.model_dump(),
        "settings": found.settings.model_dump(),
        "files": sorted([*files, MANIFEST]),
        "checksums": {name: crc32(content) for name, content in sorted(files.items())},
    }
    for name in _earlier(folder) - files.keys() - {MANIFEST}:
        _remove(folder / name)
    for name, content in files.items():
        write_whole(folder / name, content)
    write_whole(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    return folder / PAGE


def _table_files(found: Analysis) -> Iterable[tuple[str, bytes]]:
    for name, table in found.tables.items():
        rows = table.arrow()
        buffer = io.BytesIO()
        pq.write_table(rows, buffer, compression="zstd")
        yield f"{name}.parquet", buffer.getvalue()
        text = io.BytesIO()
        pyarrow.csv.write_csv(_plain(rows), text)
        yield f"{name}.csv", text.getvalue()


def _plain(rows: pa.Table) -> pa.Table:
    """Rows that are safe for CSV, which needs a type for every column, and for spreadsheets.

    Control characters are escaped; a text that a spreadsheet would read as a formula gets a leading apostrophe.
    """
    for place, field in enumerate(rows.schema):
        if pa.types.is_null(field.type):
            rows = rows.set_column(place, field.name, rows[field.name].cast(pa.string()))
        elif pa.types.is_string(field.type):
            texts = [text and _FORMULA.sub(r"'\g<0>", visible(text)) for text in rows[field.name].to_pylist()]
            rows = rows.set_column(place, field.name, pa.array(texts, pa.string()))
    return rows


def _figure_files(found: Analysis) -> dict[str, bytes]:
    """Figure files with content, by name; empty without matplotlib."""
    if not has_matplotlib():
        return {}
    files = dict[str, bytes]()
    with plot_style():
        for name, draw in found.figures.items():
            drawn = draw()
            if drawn is not None:
                files |= {f"{name}.{form}": render_figure(drawn, form) for form in ("svg", "png")}
    return files


def _earlier(folder: Path) -> set[str]:
    """Files of an earlier analysis in the folder, from its manifest, whose content is the one that it wrote.

    Raises:
        RecordError: the manifest cannot be read.
    """
    try:
        manifest = msgspec.json.decode(read_regular(folder / MANIFEST, MOST_TEXT_BYTES), type=_Manifest)
        return {name for name, crc in manifest.checksums.items() if _is_as_written(folder, name, crc)}
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"{folder / MANIFEST} cannot be read: {error}; remove it or choose another --out") from None


class _Manifest(msgspec.Struct):
    """What is read of a manifest; those of earlier versions have no checksums, and their files stay."""

    checksums: dict[str, int] = {}


def _is_as_written(folder: Path, name: str, crc: int) -> bool:
    return Path(name).name == name and (folder / name).is_file() and checksum(folder / name) == crc


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise RecordError(f"cannot remove {file}: {error.strerror}") from error
