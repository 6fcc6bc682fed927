"""`moot analyze` as a whole: a table of replies in, tables, figures and page out, in a process of its own.

    python tests/bench/analyze.py [--json FILE] [--replies N] [--tokens T]

20,000 made-up replies of 400 tokens on average (half to one and a half times as many), two roles and two data sets,
eight replies to a group, three scores, a flag and correctness. Without and with section labels (which doubles the
features: from token 0 and from content) and with five alternatives for each token (which doubles them again). Seconds
and memory are of the whole command, from its start to its end, permutations and figures included; the bars, 60 s and
2 GB, are for the table without alternatives.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import ReportRows, finish, options, parsed

SECONDS, GIGABYTES = 60.0, 2.0
LABEL = ("**", "Claim", ":**")


def made_up(replies: int, tokens: int, alternatives: int, *, labelled: bool) -> pa.Table:
    """A table as `moot analyze --table` takes it; scores follow the mean log-probability a little."""
    random = np.random.default_rng(0)
    group = np.arange(replies) // 8
    ability = random.normal(size=replies) + random.normal(size=replies // 8 + 1)[group] / 2
    lengths = random.integers(tokens // 2, tokens + tokens // 2, replies)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    drawn = random.exponential(0.45, offsets[-1]) - np.repeat(0.1 * ability, lengths)
    values = -np.maximum(drawn, 1e-4).astype(np.float32)
    quality = ability / 2 + random.normal(size=(3, replies))
    columns: dict[str, Any] = {
        "logprob": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values)),
        "case": [f"{each}-{number % 4}" for number, each in enumerate(group.tolist())],
        "group": [str(each) for each in group.tolist()],
        "role": ["constructor", "auditor"] * (replies // 2),
        "dataset": [f"set-{7 + each % 2}" for each in group.tolist()],
        "domain": ["rubric scoring"] * replies,
        **{f"score_{name}": 1 + (row > 0).astype(int) + (row > -1) for name, row in zip("abc", quality, strict=True)},
        "flag": quality[0] < -2.0,
        "correct": ability + random.normal(size=replies) > -0.5,
    }
    if labelled:
        words = np.tile(np.array([*LABEL, *[f" w{n}" for n in range(61)]], dtype=object), offsets[-1] // 64 + 1)
        names = np.concatenate([words[:length] for length in lengths])
        columns["token"] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(names, pa.string()))
    if alternatives:
        shares = random.dirichlet(np.ones(alternatives - 1), offsets[-1]).astype(np.float32)
        others = np.log(np.maximum(shares * (1.0 - np.exp(values))[:, np.newaxis] * 0.9, 1e-8))
        listed = np.concatenate([values[:, np.newaxis], others], axis=1).ravel()
        columns["alternatives"] = pa.array(np.full(replies, alternatives), pa.int16())
        columns["alt_logprob"] = pa.ListArray.from_arrays(
            pa.array(offsets * alternatives, pa.int32()), pa.array(listed, pa.float32())
        )
    return pa.table(columns)


def measured(name: str, table: pa.Table, folder: Path) -> dict[str, Any]:
    """Seconds and peak memory of one command."""
    file, out = folder / "replies.parquet", folder / "analysis"
    pq.write_table(table, file)
    command = [sys.executable, "-m", "moot", "analyze", "--table", str(file), "--out", str(out)]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"moot analyze ended with {process.returncode}")
    return {
        "what": name,
        "replies": table.num_rows,
        "tokens": len(table["logprob"].combine_chunks().flatten()),
        "features": json.loads((out / "analysis.json").read_text())["facts"]["features"],
        "wall_s": wall_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_gb": used.ru_maxrss * 1024 / 1e9,
    }


def main() -> int:
    """A row for each table; 1 when one without alternatives misses a bar."""
    parser = options(__doc__)
    parser.add_argument("--replies", type=int, default=20_000)
    parser.add_argument("--tokens", type=int, default=400)
    given = parsed(parser)
    kinds = {"log-probabilities alone": (0, False), "with section labels": (0, True), "and 5 alternatives": (5, True)}
    rows = ReportRows()
    with tempfile.TemporaryDirectory() as folder:
        for name, (k, labelled) in kinds.items():
            row = measured(name, made_up(given.replies, given.tokens, k, labelled=labelled), Path(folder))
            rows.add(row | {"ok": bool(k) or (row["wall_s"] <= SECONDS and row["peak_gb"] <= GIGABYTES)})
    return finish(given, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
