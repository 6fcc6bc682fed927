"""Report of an analysis: in a terminal, as JSON, as Markdown, and as files with tables, figures and an HTML page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from zlib import crc32

import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pydantic import BaseModel
from rich.console import Console

from moot.actors.record.files import checksum, write_whole
from moot.deploy.results.analysis.analysis import Analysis, AnalysisScope
from moot.deploy.results.analysis.table import AnalysisTable
from moot.deploy.results.plotting import has_matplotlib, plot_style, render_figure
from moot.deploy.results.report.blocks import Block, Heading, Items, Note
from moot.deploy.results.report.html import report_html
from moot.deploy.results.report.render import banner, show_report
from moot.deploy.results.summaries.model_replies import replies_words, warnings_of
from moot.deploy.results.text import cases as number_of_cases
from moot.deploy.results.text import visible
from moot.metrics.jackknife import LEAST_CLUSTERS
from moot.protocols.errors import ConfigError, RecordError
from moot.protocols.regular_files import MOST_TEXT_BYTES, read_regular

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
