"""Import of replies from a user's Parquet table: one row for each reply, columns as in `COLUMNS`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.sampling import Sampling
from moot.actors.record.parts import PartReader
from moot.deploy.results.figures.judged_replies import Replies, Tokens, content_starts, numbers, texts
from moot.metrics.distribution import Floats
from moot.metrics.signal_divergences import FLAGGED
from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.near_paths import near_path
from moot.protocols.regular_files import open_regular

SCORE = "score_"
"""Prefix of a dimension's column name."""

COLUMNS: Mapping[str, str] = {
    "logprob": "list of numbers: natural logarithm of each token's probability; null for a reply without any",
    "token": "list of texts: the tokens, to find where the content starts",
    "alternatives": "whole number K: how many alternatives are listed for each token",
    "alt_logprob": "list of T x K numbers: the alternatives' log-probabilities, token by token",
    "case": "text: the subject of the reply; replies with one case are not independent",
    "group": "text: the group of dependent cases, such as those on one essay; the case when missing",
    "slot": "text: the position of a case in its group, such as the trait; permutations exchange equal slots only",
    "reply": "text: name of the reply in the lists of cases to read",
    "dataset": "text; replies of different data sets are never pooled",
    "domain": "text",
    "role": "text: the role that wrote the reply",
    "model": "text; replies of different models are never pooled",
    "rubric": "text; scores given under different rubrics are never pooled",
    "temperature": "number; replies sampled differently are never pooled",
    "top_p": "number",
    "logprob_stage": "text: `before` or `after` temperature and top-p; `raw` or `masked`, before or after a schema",
    "correct": "true, false or null: whether the outcome is right",
    "confidence": "number from 0 to 1: the stated probability that the answer is right",
    "flag": "true, false or null, or the share of judges that flag the reply",
    "quality": "number: Q; when missing the sum of the scores, 0 for a flagged reply",
}
"""Columns of a table, besides `score_NAME` for each dimension. `logprob`, scores or `confidence` are required."""

ROUNDING = 1e-3
"""Largest rounding error of a log-probability above 0; a larger value is not a log-probability."""

_INDEX = re.compile(r"__index_level_\d+__")
"""Name of the column that pandas writes for an index."""

_LISTS = {"logprob": pa.list_(pa.float32()), "alt_logprob": pa.list_(pa.float32()), "token": pa.list_(pa.string())}
_NUMBERS = ("alternatives", "temperature", "top_p", "correct", "confidence", "flag", "quality")
"""Columns of one number or truth value for each reply, as scores are; the others are text."""


def read_columns(path: Path) -> pa.Table:
    """Reads a user's Parquet table and checks the names, types and lists of its columns.

    A column of nulls gets its documented type; categories are read as text.

    Raises:
        ConfigError: the file cannot be read or has no rows, a column is unknown or of another type, the lists of a row
            have different lengths, or a log-probability is above 0. The message is one line.
    """
    table = read_user_table(f"--table {path}", "Parquet", lambda: read_parquet(path)).combine_chunks()
    table = table.drop_columns([name for name in table.column_names if _INDEX.fullmatch(name)])
    _check_names(path, table)
    for place, name in enumerate(table.column_names):
        table = table.set_column(place, name, _typed(path, name, table[name]))
    _check_lists(path, table)
    return table


def read_parquet(path: Path) -> pa.Table:
    """Reads a user's Parquet file. Raises what `read_user_table` converts."""
    with open_regular(path) as stream:
        return PartReader(stream).read()


def read_user_table(where: str, form: str, read: Callable[[], pa.Table]) -> pa.Table:
    """Reads a table from a user's file.

    Args:
        where: the flag and the file, for error messages.
        form: the expected format, for error messages.

    Raises:
        ConfigError: the file cannot be read, or has no rows.
    """
    try:
        table = read()
    except FileNotFoundError:
        raise ConfigError(f"{where}: no such file{near_path(where.partition(' ')[2])}") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).splitlines()[0]
        raise ConfigError(f"{where}: cannot be read as {form} ({reason})") from None
    if not table.num_rows:
        raise ConfigError(f"{where}: has no rows")
    return table


def _check_names(path: Path, table: pa.Table) -> None:
    for name in table.column_names:
        if name not in COLUMNS and not name.startswith(SCORE):
            raise ConfigError(f"--table {path}: {unknown_name('column', name, [*COLUMNS, f'{SCORE}NAME'])}")
    enough = {"logprob", "confidence"} & set(table.column_names)
    if not enough and not any(name.startswith(SCORE) for name in table.column_names):
        raise ConfigError(
            f"--table {path}: expected a column `logprob` or `confidence`, or scores as `{SCORE}NAME`; found none"
        )
    if "alt_logprob" in table.column_names and "alternatives" not in table.column_names:
        raise ConfigError(f"--table {path}: `alt_logprob` needs `alternatives`, the number of them for each token")


def _typed(path: Path, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Column with its type checked; a column of nulls is cast to its documented type.

    Raises:
        ConfigError: the column has another type.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if name in _LISTS:
        fits, wanted = _is_list_like(kind, _LISTS[name]), _LISTS[name]
    elif name in _NUMBERS or name.startswith(SCORE):
        fits, wanted = _is_number(kind) or pa.types.is_boolean(kind), pa.float64()
    else:
        fits, wanted = _is_text(kind) or pa.types.is_integer(kind), pa.string()
    if pa.types.is_null(getattr(kind, "value_type", kind) if name in _LISTS else kind):
        return column.cast(wanted)
    if not fits:
        expected = re.split("[:;]", COLUMNS.get(name, "number"))[0]
        raise ConfigError(f"--table {path}: `{name}` is {kind}, expected {'a ' * (name in _LISTS)}{expected}")
    return column


def _is_list_like(kind: pa.DataType, wanted: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        return False
    return _is_text(kind.value_type) if _is_text(wanted.value_type) else _is_number(kind.value_type)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _check_lists(path: Path, table: pa.Table) -> None:
    for name in ("logprob", "alt_logprob"):
        if name in table.column_names:
            _check_logprobs(path, name, table[name])
    if "alt_logprob" in table.column_names:
        _check_alternatives(path, table)
    if "token" in table.column_names and "logprob" in table.column_names:
        tokens, logprobs = (_lengths(table[name]) for name in ("token", "logprob"))
        wrong = np.flatnonzero((tokens > 0) & (logprobs > 0) & (tokens != logprobs))
        if len(wrong):
            row = int(wrong[0])
            raise ConfigError(
                f"--table {path}: row {row} has {tokens[row]:g} tokens and {logprobs[row]:g} log-probabilities, "
                "expected as many of both"
            )


def _check_logprobs(path: Path, name: str, column: pa.ChunkedArray) -> None:
    highest = pc.max(pc.list_flatten(column).cast(pa.float32())).as_py()
    if highest is not None and highest > ROUNDING:
        raise ConfigError(f"--table {path}: `{name}` contains {highest:g}, expected natural logarithms, at most 0")


def _check_alternatives(path: Path, table: pa.Table) -> None:
    if "logprob" not in table.column_names:
        raise ConfigError(f"--table {path}: `alt_logprob` needs `logprob`, those of the chosen tokens")
    tokens, listed = (_lengths(table[name]) for name in ("logprob", "alt_logprob"))
    each = np.nan_to_num(np.asarray(pc.fill_null(table["alternatives"], 0), np.float64))
    wrong = np.flatnonzero((listed > 0) & (tokens * each != listed))
    if len(wrong):
        row = int(wrong[0])
        raise ConfigError(
            f"--table {path}: row {row} has {listed[row]:g} alternatives for {tokens[row]:g} tokens, expected "
            f"{each[row]:g} for each"
        )


def _lengths(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Length of each row's list; 0 without a list."""
    return np.asarray(pc.fill_null(pc.list_value_length(column), 0), np.float64)


def replies_of_table(path: Path, vocabulary: int | None = None) -> Replies:
    """Reads the replies of a Parquet file.

    Args:
        path: the file.
        vocabulary: size of the model's vocabulary; None when unknown.

    Raises:
        ConfigError: the file cannot be read, has no rows or none of the required columns, or a column is unknown, of
            another type or out of its range. The message is one line.
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
    starts, openings = content_starts(tokens.heads, list(zip(dataset, role, model, strict=True)))
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
    """Numbers of a column; NaN for a missing one."""
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    found = numbers(table[name].to_pylist())
    infinite = np.flatnonzero(np.isinf(found))
    if len(infinite):
        raise ConfigError(f"--table {path}: `{name}` is {found[infinite[0]]:g} in row {infinite[0]}, expected a number")
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
