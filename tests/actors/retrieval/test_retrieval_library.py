"""Libraries: built in batches, resumed after a kill, guarded by a digest; exact search, batched over its callers."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import counting_encoder
import numpy as np
import numpy.typing as npt
import pytest
from counting_encoder import NAME, TEXTS, Counting, chunks_of_texts
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from moot.actors.encoders.interface import Rows, unit_rows
from moot.actors.retrieval import build
from moot.actors.retrieval import library as library_file
from moot.actors.retrieval.build import build_library
from moot.actors.retrieval.library import SearchBatcher, StoredLibrary
from moot.actors.retrieval.nearest import nearest
from moot.protocols.errors import ConfigError, EncoderFailed, RecordError, RunFolderBusy

KILLED = """
import asyncio, sys
sys.path.insert(0, {here!r})
from counting_encoder import Counting, chunks_of_texts, TEXTS
from moot.actors.retrieval import build
build._BATCH = 5
asyncio.run(build.build_library({folder!r}, chunks_of_texts(TEXTS), Counting()))
"""


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_BATCH", 5)


async def test_a_library_finds_its_passages(tmp_path: Path) -> None:
    encoder, told = Counting(), list[tuple[int, int]]()
    await build_library(tmp_path / "library", chunks_of_texts(TEXTS), encoder, lambda *each: told.append(each))
    assert (encoder.asked, told) == (TEXTS, [(5, 23), (10, 23), (15, 23), (20, 23), (23, 23)])
    library = StoredLibrary(tmp_path / "library", NAME)
    found = await library.search(encoder.rows([TEXTS[13]])[0], 3)
    assert (len(library), len(found)) == (23, 3)
    assert (found[0].document, found[0].chunk, found[0].page, found[0].text) == ("facts.txt", 13, 1, TEXTS[13])
    assert 1.0 >= found[0].similarity > 0.999999 > found[1].similarity
    assert len(await library.search(encoder.rows(["x"])[0], 100)) == 23
    assert await library.search(encoder.rows(["x"])[0], 0) == []
    with pytest.raises(EncoderFailed, match="16"):
        await library.search(np.ones(4, np.float32), 1)
    await library.close()


async def test_what_is_built_is_not_embedded_again_nor_a_text_twice(tmp_path: Path) -> None:
    texts = [*TEXTS[:7], TEXTS[0], TEXTS[1], TEXTS[1], "new", "new", TEXTS[6]]
    encoder = Counting()
    await build_library(tmp_path, chunks_of_texts(texts), encoder)
    assert encoder.asked == [*TEXTS[:7], "new"]
    rows = np.fromfile(tmp_path / "vectors.f32", np.float32).reshape(len(texts), 16)
    assert np.array_equal(rows, encoder.rows(texts))
    again = Counting()
    await build_library(tmp_path, chunks_of_texts(texts), again)
    assert again.asked == []


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a build whose process was killed."""
    folder, marks = tmp_path_factory.mktemp("killed") / "library", tmp_path_factory.mktemp("marks")
    script = KILLED.format(here=str(Path(counting_encoder.__file__).parent), folder=str(folder))
    plan = {"MOOT_FAILPOINTS": "library.appended:2", "MOOT_FAILPOINT_DIR": str(marks)}
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, **plan}, timeout=100, check=False)
    assert done.returncode == -signal.SIGKILL
    return folder


@pytest.mark.parametrize("torn", [b"", b"\x01" * 37], ids=["whole", "torn"])
def test_a_killed_build_resumes_and_pays_nothing_twice(tmp_path: Path, killed: Path, torn: bytes) -> None:
    folder = shutil.copytree(killed, tmp_path / "library")
    with (folder / "vectors.f32").open("ab") as file:
        file.write(torn)
    rest, whole = Counting(), Counting()
    asyncio.run(build_library(folder, chunks_of_texts(TEXTS), rest))
    assert rest.asked == TEXTS[10:]
    assert np.array_equal(np.fromfile(folder / "vectors.f32", np.float32), whole.rows(TEXTS).ravel())


async def test_a_folder_belongs_to_its_documents_and_its_encoder(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    await build_library(folder, chunks_of_texts(TEXTS), Counting())
    other = chunks_of_texts([*TEXTS[:-1], "changed"])
    with pytest.raises(ConfigError, match="other documents"):
        await build_library(folder, other, Counting())
    with pytest.raises(ConfigError, match="encoder counting"):
        await build_library(folder, chunks_of_texts(TEXTS), Counting(name="another"))
    with pytest.raises(ConfigError, match="--encoder counting"):
        StoredLibrary(folder, "another")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"other files \(library\)"):
        await build_library(tmp_path, other, Counting())


async def test_one_process_builds(tmp_path: Path) -> None:
    (tmp_path / "vectors.f32").touch()
    with (tmp_path / "vectors.f32").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(RunFolderBusy, match="another process"):
            await build_library(tmp_path, chunks_of_texts(TEXTS), Counting())


READ = """
import json, sys, asyncio
import numpy as np
sys.path.insert(0, {here!r})
from counting_encoder import Counting
from moot.actors.retrieval.library import StoredLibrary
async def main():
    library = StoredLibrary({folder!r}, "counting")
    found = await library.search(Counting().rows(["fact number 7"])[0], 4)
    vectors = library._searching._vectors
    print(json.dumps([[p.text for p in found], vectors.flags.writeable, type(vectors).__name__]))
    sys.stdin.read()
asyncio.run(main())
"""


def test_processes_share_one_library_that_none_of_them_can_write(tmp_path: Path) -> None:
    asyncio.run(build_library(tmp_path, chunks_of_texts(TEXTS), Counting()))
    script = READ.format(here=str(Path(counting_encoder.__file__).parent), folder=str(tmp_path))
    command = [sys.executable, "-c", script]
    both = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        told = [json.loads(each.stdout.readline()) for each in both if each.stdout is not None]
        maps = [Path(f"/proc/{each.pid}/maps").read_text().splitlines() for each in both]
    finally:
        for each in both:
            each.communicate("", timeout=60)
    assert told[0] == told[1] == [told[0][0], False, "memmap"]
    assert told[0][0][0] == "fact number 7"
    for lines in maps:
        (mapped,) = [line.split() for line in lines if line.endswith("vectors.f32")]
        assert mapped[1] == "r--s", "read-only and shared: one copy in the page cache"


def test_a_damaged_library_is_refused(tmp_path: Path) -> None:
    asyncio.run(build_library(tmp_path, chunks_of_texts(TEXTS), Counting()))
    whole = (tmp_path / "chunks.arrow").read_bytes()
    (tmp_path / "chunks.arrow").write_bytes(whole[:100])
    with pytest.raises(RecordError, match=r"chunks.arrow is damaged"):
        StoredLibrary(tmp_path, NAME)
    (tmp_path / "library.json").write_text("{}")
    with pytest.raises(ConfigError, match="is not of a library"):
        StoredLibrary(tmp_path, NAME)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"dimension": 0}, "`int` >= 1"),
        ({"dimension": -1}, "`int` >= 1"),
        ({"dimension": 2**62}, "`int` <= 65536"),
        ({"dimension": None}, r"is not finished \(0 of 23 chunks\)"),
        ({"dimension": 15}, "vectors.f32 has 1,472 bytes, expected 1,380"),
        ({"dimension": 17}, r"is not finished \(21 of 23 chunks\)"),
        ({"chunks": 0}, "`int` >= 1"),
        ({"chunks": 22}, "vectors.f32 has 1,472 bytes, expected 1,408"),
        ({"chunks": 2**70}, "is not of a library"),
        ({"digest": "x"}, "matching regex"),
        ({"format": 2}, "Invalid enum value 2"),
    ],
)
def test_a_note_that_does_not_fit_is_refused_in_one_line(tmp_path: Path, changed: dict[str, object], why: str) -> None:
    asyncio.run(build_library(tmp_path, chunks_of_texts(TEXTS), Counting()))
    note = json.loads((tmp_path / "library.json").read_bytes().partition(b"\n")[0])
    (tmp_path / "library.json").write_text(json.dumps({**note, **changed}))
    with pytest.raises(ConfigError, match=why) as found:
        StoredLibrary(tmp_path, NAME)
    assert "\n" not in str(found.value)


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


def test_rows_equal_in_single_precision_come_in_their_true_order() -> None:
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
    search = SearchBatcher(vectors)
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


async def test_a_failed_search_fails_all_waiting_queries_and_the_next_one_works() -> None:
    search = SearchBatcher(made_rows(5, 4, 8))
    wrong = made_rows(1, 3, 9)[0]
    failed = await asyncio.gather(*(search.nearest(wrong, 1) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in failed] == [ValueError] * 3
    places, _ = await search.nearest(made_rows(5, 4, 8)[2], 1)
    assert places.tolist() == [2]
    await search.close()
