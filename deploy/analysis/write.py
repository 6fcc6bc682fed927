"""The analysis as files: every table as CSV and Parquet, every figure as SVG and PNG, and a page that holds it all."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from moot.actors.record.folder import write_whole
from moot.deploy.analysis.analysis import Analysis
from moot.deploy.analysis.show import analysis_page
from moot.deploy.reading.plotting import has_matplotlib, our_style, rendered
from moot.deploy.reading.text import visible
from moot.protocols.errors import ConfigError, RecordError

MANIFEST = "analysis.json"
"""Names the files of an analysis, what it is over and how it was counted."""

PAGE = "index.html"


def write_analysis(found: Analysis, folder: Path) -> Path:
    """Write everything; files of an earlier analysis in that folder go, other files stay.

    Returns:
        The page's path.

    Raises:
        ConfigError: the folder is a file.
        RecordError: something cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: is a file, not a folder")
    files = dict(_tables(found))
    pictures = _figures(found)
    files |= pictures
    files[PAGE] = analysis_page(
        found, {name: picture for name, picture in pictures.items() if name.endswith(".svg")}
    ).encode()
    manifest = {
        "facts": found.facts.model_dump(),
        "settings": found.settings.model_dump(),
        "files": sorted([*files, MANIFEST]),
    }
    for name in _earlier(folder) - files.keys() - {MANIFEST}:
        _remove(folder / name)
    for name, content in files.items():
        write_whole(folder / name, content)
    write_whole(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    return folder / PAGE


def _tables(found: Analysis) -> Iterable[tuple[str, bytes]]:
    for name, table in found.tables.items():
        rows = table.arrow()
        buffer = io.BytesIO()
        pq.write_table(rows, buffer, compression="zstd")
        yield f"{name}.parquet", buffer.getvalue()
        text = io.BytesIO()
        pyarrow.csv.write_csv(_plain(rows), text)
        yield f"{name}.csv", text.getvalue()


def _plain(rows: pa.Table) -> pa.Table:
    """Fit for CSV, which wants a type for every column, and for the programs that open it.

    Control characters become visible, and a text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    for place, field in enumerate(rows.schema):
        if pa.types.is_null(field.type):
            rows = rows.set_column(place, field.name, rows[field.name].cast(pa.string()))
        elif pa.types.is_string(field.type):
            texts = [text if text is None else _no_formula(visible(text)) for text in rows[field.name].to_pylist()]
            rows = rows.set_column(place, field.name, pa.array(texts, pa.string()))
    return rows


def _no_formula(text: str) -> str:
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) else text


def _figures(found: Analysis) -> dict[str, bytes]:
    """Every figure that has something to show; none without matplotlib."""
    if not has_matplotlib():
        return {}
    files = dict[str, bytes]()
    with our_style():
        for name, draw in found.figures.items():
            drawn = draw()
            if drawn is not None:
                files |= {f"{name}.{form}": rendered(drawn, form) for form in ("svg", "png")}
    return files


def _earlier(folder: Path) -> set[str]:
    """The files of the analysis that lies in the folder, by what its manifest says."""
    try:
        named = msgspec.json.decode((folder / MANIFEST).read_bytes())["files"]
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
        raise RecordError(
            f"{folder / MANIFEST} cannot be read: {error}; take it away or choose another --out"
        ) from None
    return {name for name in named if isinstance(name, str) and Path(name).name == name and (folder / name).is_file()}


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise RecordError(f"cannot remove {file}: {error.strerror}") from error
