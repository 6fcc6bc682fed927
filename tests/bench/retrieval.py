"""Searching a library of 100,000 chunks for the passages of 1,000 claims: ours beside one plain matrix product.

    python tests/bench/retrieval.py [--json FILE] [--chunks N] [--claims N] [--repeats R]

Both sides look for the top 5 among the same made-up unit vectors of 384 numbers, with copies among them. The plain side
is `numpy.matmul` and `numpy.argpartition` over the whole table of products; it leaves its few hits unsorted and says
nothing about ties. Ours is exact and the same for every batch, which is checked against products in double precision
for a part of the claims. Each way runs in a process of its own, so that the peak of memory is its own; the vectors lie
on disk and are memory-mapped by all. Times are the best of the repeats, wall seconds on all cores, and the ways take
turns. Exits with 1 when ours, batched, takes more than 1.5 times as long; a claim searched
for alone is shown beside the same done plainly.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from harness import ReportRows, best, finish, options, parsed

from moot.actors.record.files import checksum
from moot.actors.retrieval.library import LibraryChunk, StoredLibrary, digest_of, write_chunks
from moot.actors.retrieval.library_folder import LibraryFolder, LibraryManifest
from moot.actors.retrieval.nearest import nearest
from moot.actors.retrieval.row_checksums import checksums_of_file

DIMENSION = 384
TOP = 5
MOST_RATIO = 1.5
"""Of our time over the plain product's."""

ENCODER = "bench"
CHECKED = 20
ALONE = 100
"""Claims that are searched for one by one."""

WAYS = ("plain", "batched", "library", "plain, one by one", "one by one")
Floats = npt.NDArray[np.float32]


def unit(rows: npt.NDArray[np.float32]) -> Floats:
    """Rows of length 1."""
    scaled: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def make(folder: Path, chunks: int, claims: int) -> None:
    """Write a library and the claims' vectors; a hundredth of the chunks are copies of others."""
    random = np.random.default_rng(1)
    vectors = unit(random.normal(size=(chunks, DIMENSION)).astype(np.float32))
    copies = random.integers(0, chunks, size=(2, chunks // 100))
    vectors[copies[0]] = vectors[copies[1]]
    files = LibraryFolder(folder)
    listed = [LibraryChunk(document="d", chunk=n, page=None, text=f"chunk {n} {'x' * 150}") for n in range(chunks)]
    write_chunks(files.chunks_file, listed)
    vectors.tofile(files.vectors_file)
    files.checksums_file.write_bytes(checksums_of_file(files.vectors_file, 4 * DIMENSION))
    made = LibraryManifest(encoder=ENCODER, digest=digest_of(listed), chunks=chunks, dimension=DIMENSION)
    files.write_manifest(msgspec.structs.replace(made, chunks_crc32=checksum(files.chunks_file)))
    np.save(folder / "claims.npy", unit(random.normal(size=(claims, DIMENSION)).astype(np.float32)))


def plainly(vectors: Floats, claims: Floats) -> npt.NDArray[np.int64]:
    """The places of the top 5, in no order."""
    products = np.matmul(claims, vectors.T)
    found: npt.NDArray[np.int64] = np.argpartition(products, len(vectors) - TOP, axis=1)[:, -TOP:]
    return found


async def through_the_library(library: StoredLibrary, claims: Floats) -> None:
    """All claims at once, as debates search: places become passages."""
    await asyncio.gather(*(library.search(claim, TOP) for claim in claims))


def check(vectors: Floats, claims: Floats) -> None:
    """Ours is what products in double precision give, ties by place."""
    places, _ = nearest(vectors, claims, TOP)
    for found, claim in zip(places[:CHECKED], claims, strict=False):
        exact = (vectors.astype(np.float64) * claim.astype(np.float64)).sum(axis=1)
        np.testing.assert_array_equal(found, np.argsort(-exact, kind="stable")[:TOP])


def measure(folder: Path, way: str) -> dict[str, float]:
    """Times and memory of one way, in this process alone."""
    before = _memory_kb()
    started = time.perf_counter()
    library = StoredLibrary(folder, ENCODER)
    opened_s = time.perf_counter() - started
    opened = {"opening_ms": opened_s * 1e3, "opened_mb": (_memory_kb() - before) / 1024}
    vectors = np.memmap(folder / "vectors.f32", np.float32, "r", shape=(library.note.chunks, DIMENSION))
    claims = np.load(folder / "claims.npy")
    few = claims[:ALONE]
    work: dict[str, Callable[[], Any]] = {
        "plain": lambda: plainly(vectors, claims),
        "plain, one by one": lambda: [plainly(vectors, claim[None]) for claim in few],
        "batched": lambda: nearest(vectors, claims, TOP),
        "one by one": lambda: [nearest(vectors, claim[None], TOP) for claim in few],
        "library": lambda: asyncio.run(through_the_library(library, claims)),
    }
    float(vectors.sum())  # with this all pages are mapped, in both mappings, and count for no way
    asyncio.run(through_the_library(library, claims[:1]))
    mapped_mb = _peak_mb()
    count = len(few) if "one by one" in way else len(claims)
    ms = best(work[way], 2) / count * 1e3
    return {"ms_a_claim": ms, "peak_over_vectors_mb": _peak_mb() - mapped_mb, **opened}


def _memory_kb() -> int:
    """What is in memory of this process alone, shared pages left out."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))


def _peak_mb() -> float:
    """Of this process since it began; `getrusage` would count what its parent held when it was started."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def apart(folder: Path, way: str) -> dict[str, float]:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--measure", way, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(folder: Path, repeats: int) -> ReportRows:
    """Every way, the repeats taking turns, and its time over that of the plain product."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(repeats):
        for way in WAYS:
            runs[way].append(apart(folder, way))
    rows = ReportRows()
    for way, some in runs.items():
        least = {key: min(one[key] for one in some) for key in some[0]}
        ratio = least["ms_a_claim"] / (rows[0] if rows else least)["ms_a_claim"]
        rows.add({"way": way, **least, "over_plain": ratio, "ok": way != "batched" or ratio <= MOST_RATIO})
    return rows


def main() -> int:
    """Run the bench; 1 when ours takes too long."""
    parser = options(__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--claims", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parsed(parser)
    if given.measure:
        print(json.dumps(measure(given.folder, given.measure)))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make(folder, given.chunks, given.claims)
        vectors = np.fromfile(folder / "vectors.f32", np.float32).reshape(-1, DIMENSION)
        check(vectors, np.load(folder / "claims.npy"))
        return finish(given, rows=compare(folder, given.repeats))


if __name__ == "__main__":
    sys.exit(main())
