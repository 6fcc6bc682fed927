"""Replies from a table that the user brings: Parquet, one row for each reply, columns as in `brought_columns`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from moot.actors.record.sampling import Sampling
from moot.deploy.analysis.brought_columns import COLUMNS, SCORE, read_columns
from moot.deploy.analysis.replies import Replies, numbers, texts
from moot.deploy.analysis.tokens import Tokens, content_of
from moot.metrics.signal_divergences import FLAGGED
from moot.protocols.errors import ConfigError

Floats = npt.NDArray[np.float64]


def replies_of_table(path: Path, vocabulary: int | None = None) -> Replies:
    """The replies of a Parquet file.

    Args:
        path: the file.
        vocabulary: tokens in the model's vocabulary; None when unknown.

    Raises:
        ConfigError: one line: the file cannot be read, a column is unknown, of another type or out of its range, or
            there is nothing in it to analyse.
    """
    table = read_columns(path)
    count = table.num_rows
    sampling = _sampling(path, table)
    tokens = _tokens(table).own(sampling)
    scores = {
        name.removeprefix(SCORE): _numbers(path, table, name) for name in table.column_names if name.startswith(SCORE)
    }
    flag = _flag(path, table)
    case = _texts(table, "case", lambda row: str(row))
    group = _texts(table, "group", lambda row: case[row])
    dataset = _texts(table, "dataset", lambda _: path.stem)
    codes = {key: n for n, key in enumerate(sorted(set(zip(dataset, group, strict=True))))}
    role = _texts(table, "role", lambda _: "reply")
    model = _texts(table, "model", lambda _: "unknown")
    starts, openings = content_of(tokens.heads, list(zip(dataset, role, model, strict=True)))
    return Replies(
        run=texts([path.name] * count),
        case=case,
        reply=_texts(table, "reply", lambda row: f"row {row}"),
        group=np.array([codes[key] for key in zip(dataset, group, strict=True)], np.int64),
        slot=_texts(table, "slot", lambda _: ""),
        rubric=_texts(table, "rubric", lambda _: ""),
        dataset=dataset,
        domain=_texts(table, "domain", lambda _: ""),
        role=role,
        model=model,
        sampling=sampling,
        logprobs=tokens.logprobs,
        has_logprobs=tokens.known,
        content_start=starts,
        opening=openings,
        entropies=tokens.entropies(vocabulary),
        scores=scores,
        quality=_quality(path, table, scores, flag),
        flag=flag,
        correct=_binary(path, table, "correct"),
        confidence=_share(path, table, "confidence", "a number from 0 to 1, or null"),
        assessments=[None] * count,
    ).in_order(list(dict.fromkeys(role)))


def _sampling(path: Path, table: pa.Table) -> list[Sampling]:
    temperatures, top_ps = (_numbers(path, table, name).tolist() for name in ("temperature", "top_p"))
    stages = _texts(table, "logprob_stage", lambda _: "unknown")
    return [
        Sampling(None if isnan(temperature) else temperature, None if isnan(top_p) else top_p, str(stage))
        for temperature, top_p, stage in zip(temperatures, top_ps, stages, strict=True)
    ]


def _tokens(table: pa.Table) -> Tokens:
    count = table.num_rows
    if "logprob" not in table.column_names:
        table = table.append_column("logprob", pa.nulls(count, pa.list_(pa.float32())))
    columns = [name for name in ("token", "logprob", "alternatives", "alt_logprob") if name in table.column_names]
    return Tokens.from_arrow(table.select(columns), np.ones(count, np.bool_))


def _quality(path: Path, table: pa.Table, scores: Mapping[str, Floats], flag: Floats) -> Floats:
    if "quality" in table.column_names:
        return _numbers(path, table, "quality")
    if not scores:
        return np.full(table.num_rows, np.nan)
    return np.where(flag == 1.0, 0.0, np.sum(list(scores.values()), axis=0))


def _numbers(path: Path, table: pa.Table, name: str) -> Floats:
    """NaN where there is none."""
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    found = numbers(table[name].to_pylist())
    endless = np.flatnonzero(np.isinf(found))
    if len(endless):
        raise ConfigError(f"--table {path}: `{name}` is {found[endless[0]]:g} in row {endless[0]}, expected a number")
    return found


def _binary(path: Path, table: pa.Table, name: str) -> Floats:
    values = _numbers(path, table, name)
    if not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        raise ConfigError(f"--table {path}: `{name}`: expected {COLUMNS[name].partition(':')[0]}")
    return values


def _share(path: Path, table: pa.Table, name: str, expected: str) -> Floats:
    share = _numbers(path, table, name)
    if ((share < 0.0) | (share > 1.0)).any():
        raise ConfigError(f"--table {path}: `{name}`: expected {expected}")
    return share


def _flag(path: Path, table: pa.Table) -> Floats:
    share = _share(path, table, "flag", "true, false or null, or a share from 0 to 1")
    return np.where(np.isnan(share), np.nan, (share >= FLAGGED).astype(np.float64))


def _texts(table: pa.Table, name: str, missing: Callable[[int], str]) -> npt.NDArray[np.object_]:
    if name not in table.column_names:
        return texts(missing(row) for row in range(table.num_rows))
    values: list[Any] = table[name].to_pylist()
    return texts(missing(row) if value is None else str(value) for row, value in enumerate(values))
