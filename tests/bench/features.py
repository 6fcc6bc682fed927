"""The 152 confidence features of many replies: all at once, beside a plain numpy loop over the replies.

    python tests/bench/features.py [--json FILE] [--replies N] [--repeats R] [FOLDER]

All ways compute the same numbers, which is checked. The replies are synthetic: 400 tokens each; lengths spread as
those of prose are, around 400; and, with FOLDER (`truthfulqa_gpt3_logprobs`), copies of recorded short replies with
their own log-probabilities. A hundred replies are looped over, in two ways: as one would write it down, and with
nothing computed twice. Times are the best of the repeats, which take turns, in CPU seconds of one thread, so that a
neighbour on the machine disturbs less. Memory is the most that numpy held beyond the replies.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import numpy.typing as npt
from harness import ReportRows, finish, options, parsed

from moot.metrics.confidence_features import WINDOWS, window_features
from moot.metrics.ragged import RaggedArray

Floats = npt.NDArray[np.float64]

LEAST_TOKENS_PER_SECOND = 5e6
"""Of the whole set, on one core."""

LEAST_RATIO = 20.0
"""How many times faster than the loop."""

LEAST_MEAN_TOKENS = 400
"""The bars are for replies at least so long on average."""

LOOPED = 100


def cut(values: Floats, window: str) -> Floats:
    """A window of a reply's values; empty when there is none."""
    end, _, size = window.partition("-")
    if not size:
        return values
    count = len(values) * int(size[:-1]) // 100 if size.endswith("%") else int(size)
    if count > len(values):
        return values[:0]
    return values[:count] if end == "first" else values[len(values) - count :]


def plain(values: Floats) -> list[float]:
    """The 152 numbers of a reply, as one would write them down."""
    found: list[Any] = []
    for name in WINDOWS:
        window = cut(values, name)
        if not len(window) or not np.isfinite(window).all() or window.min() <= -9000:
            found += [np.nan] * 8
            continue
        slope = np.polyfit(np.arange(len(window)), window, 1)[0] if len(window) > 1 else np.nan
        found += [np.mean(window), np.median(window), np.min(window), np.max(window)]
        found += [np.ptp(window), np.var(window), np.std(window), slope]
    return found


def lean(values: Floats) -> list[float]:
    """The same with what one can spare: the slope in closed form, nothing computed twice."""
    found: list[Any] = []
    for name in WINDOWS:
        window = cut(values, name)
        size = len(window)
        if not size or not np.isfinite(window).all() or window.min() <= -9000:
            found += [np.nan] * 8
            continue
        mean, least, greatest = window.mean(), window.min(), window.max()
        centred = window - mean
        variance = centred @ centred / size
        slope = centred @ np.arange(size) / (size * (size * size - 1) / 12) if size > 1 else np.nan
        found += [mean, np.median(window), least, greatest, greatest - least, variance, variance**0.5, slope]
    return found


def best(ways: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """CPU seconds of the fastest of the repeats of each way, which take turns."""
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, work in ways.items():
            started = time.process_time()
            work()
            seconds[way].append(time.process_time() - started)
    return {way: min(taken) for way, taken in seconds.items()}


def held_mib(replies: RaggedArray) -> float:
    """The most that the features of these replies need at once, the result included."""
    tracemalloc.start()
    window_features(replies)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20


def measure(name: str, replies: RaggedArray, repeats: int) -> dict[str, Any]:
    """Tokens a second of each way, after a check that the numbers are the same."""
    looped = np.linspace(0, len(replies) - 1, LOOPED).astype(np.int64)
    few = [np.asarray(replies.row(i), np.float64) for i in looped.tolist()]
    found = window_features(replies)[looped]
    for one in (plain, lean):
        np.testing.assert_allclose(found, [one(values) for values in few], rtol=1e-7, atol=1e-9)
    ways = {
        "at_once": lambda: window_features(replies),
        "plain": lambda: [plain(values) for values in few],
        "lean": lambda: [lean(values) for values in few],
    }
    looped_tokens = sum(map(len, few))
    tokens = {"at_once": len(replies.values), "plain": looped_tokens, "lean": looped_tokens}
    rates = {f"{way}_tokens_per_s": tokens[way] / taken for way, taken in best(ways, repeats).items()}
    each, rate = len(replies.values) / len(replies), rates["at_once_tokens_per_s"]
    ratio = rate / rates["plain_tokens_per_s"]
    barred = each >= LEAST_MEAN_TOKENS * 0.95
    return {
        "replies": name,
        "count": len(replies),
        "mean_tokens": each,
        **rates,
        "times_the_loop": ratio,
        "times_a_lean_loop": rate / rates["lean_tokens_per_s"],
        "memory_mib": held_mib(replies),
        "ok": (rate >= LEAST_TOKENS_PER_SECOND and ratio >= LEAST_RATIO) if barred else None,
    }


def synthetic(lengths: npt.NDArray[np.int64]) -> RaggedArray:
    """Replies of these lengths: most tokens all but certain, some not, as in recorded replies."""
    random = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return RaggedArray(-random.gamma(0.2, 2.0, size=int(offsets[-1])), offsets)


def recorded(folder: Path, count: int) -> RaggedArray:
    """The replies of four recorded models, again and again until there are `count`."""
    rows = []
    for path in sorted(folder.glob("*_output_labeled.csv")):
        with path.open(encoding="utf-8", newline="") as lines:
            rows += [json.loads(row["logprobs"])["token_logprobs"] for row in csv.DictReader(lines)]
    if not rows:
        raise SystemExit(f"{folder} has no *_output_labeled.csv")
    return RaggedArray.from_lists(rows).take(np.arange(count) % len(rows))


def main() -> int:
    """Run the bench; 1 when a bar is missed."""
    parser = options(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="of recorded replies")
    parser.add_argument("--replies", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parsed(parser)
    spread = np.random.default_rng(2).lognormal(np.log(380), 0.35, given.replies).astype(np.int64)
    kinds = {"400 tokens": np.full(given.replies, 400), "lengths of prose": spread}
    rows = ReportRows()
    for name, lengths in kinds.items():
        rows.add(measure(name, synthetic(lengths), given.repeats))
    if given.folder:
        rows.add(measure("recorded, short", recorded(given.folder, given.replies), given.repeats))
    return finish(given, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
