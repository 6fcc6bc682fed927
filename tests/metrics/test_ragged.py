"""Ragged rows against plain lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from moot.metrics.ragged import RaggedArray

rows_of_numbers = st.lists(st.lists(st.floats(-20.0, 0.0), max_size=6), max_size=8)


def lists(ragged: RaggedArray) -> list[list[float]]:
    return [ragged.row(i).tolist() for i in range(len(ragged))]


@given(rows_of_numbers)
def test_rows_come_back_as_they_were(rows: list[list[float]]) -> None:
    ragged = RaggedArray.from_lists(rows)
    assert lists(ragged) == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert ragged.positions().tolist() == [place for row in rows for place in range(len(row))]


@given(rows_of_numbers.filter(bool), st.data())
def test_take_is_indexing(rows: list[list[float]], data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
    assert lists(RaggedArray.from_lists(rows).take(wanted)) == [rows[i] for i in wanted]


@given(rows_of_numbers, st.data())
def test_from_starts_is_slicing(rows: list[list[float]], data: st.DataObject) -> None:
    starts = data.draw(st.lists(st.integers(0, 9), min_size=len(rows), max_size=len(rows)))
    found = RaggedArray.from_lists(rows).from_starts(np.array(starts, np.int64))
    assert lists(found) == [row[start:] for row, start in zip(rows, starts, strict=True)]


@given(st.lists(rows_of_numbers, max_size=4))
def test_concatenate_is_adding(parts: list[list[list[float]]]) -> None:
    assert lists(RaggedArray.concatenate([RaggedArray.from_lists(part) for part in parts])) == [
        row for part in parts for row in part
    ]


def test_none_is_not_a_number() -> None:
    assert np.isnan(RaggedArray.from_lists([[-1.0, None]]).values).tolist() == [False, True]  # type: ignore[list-item]


def test_a_record_s_narrow_floats_are_kept() -> None:
    narrow = RaggedArray(np.array([-1.0, -2.0], np.float32), np.array([0, 1, 2]))
    assert narrow.take([1]).values.dtype == narrow.from_starts([1, 0]).values.dtype == np.float32


@pytest.mark.parametrize("offsets", [[0, 1], [1, 2], [0, 2, 1, 2], [0, 3], []])
def test_offsets_that_do_not_fit_are_refused(offsets: list[int]) -> None:
    refuses("offsets", RaggedArray, np.zeros(2), np.array(offsets, np.int64))


def test_other_kinds_of_arrays_are_refused() -> None:
    refuses("flat array of floats", RaggedArray, np.zeros(2, np.int64), np.array([0, 2]))
    refuses("flat array of floats", RaggedArray, np.zeros((2, 1)), np.array([0, 2]))
    refuses("int64", RaggedArray, np.zeros(2), np.array([0.0, 2.0]))
    refuses("flat sequence", RaggedArray.from_lists, [[[1.0]]])


def test_rows_and_starts_that_are_not_there_are_refused() -> None:
    ragged = RaggedArray.from_lists([[1.0], [2.0]])
    for i in (-1, 2):
        with pytest.raises(IndexError):
            ragged.row(i)
        with pytest.raises(IndexError):
            ragged.take([0, i])
    refuses("2 numbers of at least 0", ragged.from_starts, [0, -1])
    refuses("2 numbers of at least 0", ragged.from_starts, [0])
