"""Replies from a table that the user brings: Parquet, one row for each reply, columns as documented in `COLUMNS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from moot.actors.record.sampling import Sampling
from moot.deploy.analysis.replies import Replies, numbers, texts
from moot.deploy.analysis.tokens import Tokens, content_of
from moot.metrics.signal_divergences import FLAGGED
from moot.protocols.errors import ConfigError, unknown_name

Floats = npt.NDArray[np.float64]

SCORE = "score_"
"""How the name of a dimension's column begins."""

COLUMNS: Mapping[str, str] = {
    "logprob": "list of numbers: natural logarithm of each token's probability; null for a reply without any",
    "token": "list of texts: the tokens, to find where the content starts",
    "alternatives": "whole number K: how many alternatives are listed for each token",
    "alt_logprob": "list of T x K numbers: the alternatives' log-probabilities, token by token",
    "case": "text: what the reply is about; replies with one case are not independent",
    "group": "text: what several cases have in common, such as an essay; the case when missing",
    "reply": "text: names the reply in the lists of cases to read",
    "dataset": "text; replies of different data sets are never pooled",
    "domain": "text",
    "role": "text: who said it",
    "model": "text; replies of different models are never pooled",
    "temperature": "number; replies sampled differently are never pooled",
    "top_p": "number",
    "logprob_stage": "text: `before` or `after` temperature and top-p",
    "correct": "true, false or null: whether the outcome is right",
    "flag": "true, false or null, or the share of judges that flag the reply",
    "quality": "number: Q; when missing the sum of the scores, 0 for a flagged reply",
}
"""What a table may hold, besides a column `score_NAME` for each dimension. One of `logprob` and scores is needed."""


def replies_of_table(path: Path, vocabulary: int | None = None) -> Replies:
    """The replies of a Parquet file.

    Args:
        path: the file.
        vocabulary: tokens in the model's vocabulary; None when unknown.

    Raises:
        ConfigError: one line: the file cannot be read, a column is unknown or of another type, or there is nothing in
            it to analyse.
    """
    table = _read(path)
    _check_names(path, table)
    count = table.num_rows
    tokens = _tokens(path, table)
    scores = {
        name.removeprefix(SCORE): _numeric(path, table, name) for name in table.column_names if name.startswith(SCORE)
    }
    share = _numeric(path, table, "flag")
    flag = np.where(np.isnan(share), np.nan, (share >= FLAGGED).astype(np.float64))
    case = _textual(path, table, "case", lambda row: str(row))
    group = _textual(path, table, "group", lambda row: case[row])
    dataset = _textual(path, table, "dataset", lambda _: path.stem)
    codes = {key: n for n, key in enumerate(dict.fromkeys(zip(dataset, group, strict=True)))}
    role = _textual(path, table, "role", lambda _: "reply")
    model = _textual(path, table, "model", lambda _: "unknown")
    starts, openings = content_of(tokens.heads, list(zip(dataset, role, model, strict=True)))
    return Replies(
        run=texts([path.name] * count),
        case=case,
        reply=_textual(path, table, "reply", lambda row: f"row {row}"),
        group=np.array([codes[key] for key in zip(dataset, group, strict=True)], np.int64),
        dataset=dataset,
        domain=_textual(path, table, "domain", lambda _: ""),
        role=role,
        model=model,
        sampling=_sampling(path, table),
        logprobs=tokens.logprobs,
        has_logprobs=tokens.known,
        content_start=starts,
        opening=openings,
        entropies=tokens.entropies(vocabulary),
        scores=scores,
        quality=_quality(path, table, scores, flag),
        flag=flag,
        correct=_binary(path, table, "correct"),
        assessments=[None] * count,
    )


def _sampling(path: Path, table: pa.Table) -> list[Sampling]:
    temperatures, top_ps = (_numeric(path, table, name).tolist() for name in ("temperature", "top_p"))
    stages = _textual(path, table, "logprob_stage", lambda _: "unknown")
    return [
        Sampling(None if isnan(temperature) else temperature, None if isnan(top_p) else top_p, str(stage))
        for temperature, top_p, stage in zip(temperatures, top_ps, stages, strict=True)
    ]


def _read(path: Path) -> pa.Table:
    try:
        table = pq.read_table(path, partitioning=None)
    except FileNotFoundError:
        raise ConfigError(f"--table {path}: no such file") from None
    except (pa.ArrowException, OSError) as error:
        raise ConfigError(f"--table {path}: cannot be read as Parquet ({str(error).splitlines()[0]})") from None
    if not table.num_rows:
        raise ConfigError(f"--table {path}: has no rows")
    return table.combine_chunks()


def _check_names(path: Path, table: pa.Table) -> None:
    for name in table.column_names:
        if name not in COLUMNS and not name.startswith(SCORE):
            raise ConfigError(f"--table {path}: {unknown_name('column', name, [*COLUMNS, f'{SCORE}NAME'])}")
    if "logprob" not in table.column_names and not any(name.startswith(SCORE) for name in table.column_names):
        raise ConfigError(f"--table {path}: expected a column `logprob`, or scores as `{SCORE}NAME`; found neither")
    if "alt_logprob" in table.column_names and "alternatives" not in table.column_names:
        raise ConfigError(f"--table {path}: `alt_logprob` needs `alternatives`, the number of them for each token")


def _tokens(path: Path, table: pa.Table) -> Tokens:
    count = table.num_rows
    if "logprob" not in table.column_names:
        table = table.append_column("logprob", pa.nulls(count, pa.list_(pa.float32())))
    for name, inner in (("logprob", pa.types.is_floating), ("alt_logprob", pa.types.is_floating), ("token", _is_text)):
        if name in table.column_names:
            kind = table.schema.field(name).type
            if not ((pa.types.is_list(kind) or pa.types.is_large_list(kind)) and inner(kind.value_type)):
                raise ConfigError(f"--table {path}: `{name}` is {kind}, expected a {COLUMNS[name].partition(':')[0]}")
    _check_alternatives(path, table)
    columns = [name for name in ("token", "logprob", "alternatives", "alt_logprob") if name in table.column_names]
    return Tokens.from_arrow(table.select(columns), np.ones(count, np.bool_))


def _check_alternatives(path: Path, table: pa.Table) -> None:
    if "alt_logprob" not in table.column_names:
        return
    lengths = [
        np.nan_to_num(np.asarray(pc.fill_null(pc.list_value_length(table[name]), 0), np.float64))
        for name in ("logprob", "alt_logprob")
    ]
    listed = np.nan_to_num(_numeric(path, table, "alternatives"))
    wrong = np.flatnonzero((lengths[1] > 0) & (lengths[0] * listed != lengths[1]))
    if len(wrong):
        row = int(wrong[0])
        raise ConfigError(
            f"--table {path}: row {row} has {lengths[1][row]:g} alternatives for {lengths[0][row]:g} tokens, "
            f"expected {listed[row]:g} for each"
        )


def _quality(path: Path, table: pa.Table, scores: Mapping[str, Floats], flag: Floats) -> Floats:
    if "quality" in table.column_names:
        return _numeric(path, table, "quality")
    if not scores:
        return np.full(table.num_rows, np.nan)
    return np.where(flag == 1.0, 0.0, np.sum(list(scores.values()), axis=0))


def _numeric(path: Path, table: pa.Table, name: str) -> Floats:
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    kind = table.schema.field(name).type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        wanted = COLUMNS.get(name, "number").partition(":")[0]
        raise ConfigError(f"--table {path}: `{name}` is {kind}, expected {wanted}")
    return numbers(table[name].to_pylist())


def _binary(path: Path, table: pa.Table, name: str) -> Floats:
    values = _numeric(path, table, name)
    if not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        raise ConfigError(f"--table {path}: `{name}`: expected {COLUMNS[name].partition(':')[0]}")
    return values


def _textual(path: Path, table: pa.Table, name: str, missing: Callable[[int], str]) -> npt.NDArray[np.object_]:
    if name not in table.column_names:
        return texts(missing(row) for row in range(table.num_rows))
    kind = table.schema.field(name).type
    if not (_is_text(kind) or pa.types.is_integer(kind)):
        raise ConfigError(f"--table {path}: `{name}` is {kind}, expected text")
    values: list[Any] = table[name].to_pylist()
    return texts(missing(row) if value is None else str(value) for row, value in enumerate(values))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
