"""The nearest rows are those of a plain search in double precision, whatever else is searched for at the same time."""

from __future__ import annotations

import asyncio

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from moot.actors.encoders.interface import Rows, unit_rows
from moot.actors.retrieval import library as library_file
from moot.actors.retrieval.library import Searching
from moot.actors.retrieval.nearest import nearest


def plainly(vectors: Rows, query: npt.NDArray[np.float32], n: int) -> tuple[list[int], list[float]]:
    """Every product in double precision, sorted; ties by place."""
    scores = (vectors.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    best = np.argsort(-scores, kind="stable")[:n]
    return best.tolist(), scores[best].tolist()


def made_rows(count: int, dimension: int, seed: int) -> Rows:
    return unit_rows(np.random.default_rng(seed).normal(size=(count, dimension)))


@st.composite
def libraries(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """Rows and queries with duplicates, exact ties, opposites and zero similarities."""
    dimension = draw(st.integers(1, 6))
    few = st.sampled_from([-1.0, 0.0, 1.0, 1e-4, 0.5])
    pool = draw(arrays.arrays(np.float64, (draw(st.integers(1, 8)), dimension), elements=few))
    pool[~pool.any(axis=1), 0] = 1.0
    rows = unit_rows(pool)
    places = st.integers(0, len(rows) - 1)
    vectors = rows[draw(st.lists(places, min_size=1, max_size=60))]
    return vectors, rows[draw(st.lists(places, min_size=1, max_size=6))]


@given(libraries(), st.integers(1, 70))
def test_exactly_what_a_plain_search_finds(library: tuple[Rows, Rows], n: int) -> None:
    vectors, queries = library
    places, scores = nearest(vectors, queries, n)
    assert places.shape == scores.shape == (len(queries), min(n, len(vectors)))
    for found, similar, query in zip(places.tolist(), scores.tolist(), queries, strict=True):
        assert (found, similar) == plainly(vectors, query, n)


@pytest.mark.parametrize("count", [1, 8191, 8192, 8193, 20_000])
def test_exact_over_several_blocks_with_copies_in_all_of_them(count: int) -> None:
    vectors = made_rows(count, 48, 1)
    vectors[:: max(1, count // 7)] = vectors[0]
    queries = np.concatenate([vectors[:1], made_rows(300, 48, 2)])
    places, scores = nearest(vectors, queries, 5)
    for number in (0, 1, 150, 299, 300):
        assert (places[number].tolist(), scores[number].tolist()) == plainly(vectors, queries[number], 5)


def test_rows_that_single_precision_cannot_tell_apart_come_in_their_true_order() -> None:
    query = unit_rows(np.ones((1, 64)))
    vectors = np.repeat(query, 500, axis=0)
    vectors += np.random.default_rng(3).normal(scale=1e-7, size=vectors.shape).astype(np.float32)
    in_single = vectors @ query[0]
    assert len(set(in_single.tolist())) < 50
    places, scores = nearest(vectors, query, 10)
    assert (places[0].tolist(), scores[0].tolist()) == plainly(vectors, query[0], 10)


async def test_queries_that_come_while_one_is_searched_leave_together(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, queries = made_rows(50, 8, 6), made_rows(20, 8, 7)
    sizes: list[int] = []

    def counted(rows: Rows, some: Rows, n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        sizes.append(len(some))
        return nearest(rows, some, n)

    monkeypatch.setattr(library_file, "nearest", counted)
    search = Searching(vectors)
    first = asyncio.create_task(search.nearest(queries[0], 3))
    while not sizes:  # noqa: ASYNC110 - until the first one is under way
        await asyncio.sleep(0)
    rest = [asyncio.create_task(search.nearest(query, 1 + place)) for place, query in enumerate(queries[1:])]
    rest[4].cancel()
    found = await asyncio.gather(first, *rest, return_exceptions=True)
    assert sizes == [1, 18]
    assert isinstance(found[5], asyncio.CancelledError)
    for place, one in enumerate(found[1:]):
        if place != 4:
            assert not isinstance(one, BaseException)
            assert (one[0].tolist(), one[1].tolist()) == plainly(vectors, queries[1 + place], 1 + place)
    await search.close()
    with pytest.raises(RuntimeError, match="closed"):
        await search.nearest(queries[0], 1)


async def test_a_search_that_fails_tells_all_who_wait_and_the_next_one_works() -> None:
    search = Searching(made_rows(5, 4, 8))
    wrong = made_rows(1, 3, 9)[0]
    failed = await asyncio.gather(*(search.nearest(wrong, 1) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in failed] == [ValueError] * 3
    places, _ = await search.nearest(made_rows(5, 4, 8)[2], 1)
    assert places.tolist() == [2]
    await search.close()
