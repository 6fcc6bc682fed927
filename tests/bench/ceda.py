"""CEDA on the simulated model with 1 s per call: how near 1,000 claims at once come to their critical path.

    python tests/bench/ceda.py [--json FILE] [--cases 1000] [--latency-ms 1000] [--placements actors,packed]

Every claim brings a passage of a few chunks, one in ten a picture, too, and all of them search a library. The critical
path is that of the longest case, by the record: what to look for and the picture's description, where there is one,
then the messages, then the judge, one after another. The wall time runs from the first call to the last verdict, with
all cases open at once; `session` adds the library, the start and the end of the run. The simulated model itself takes
about as much CPU as everything else. Bar: within 10 % of the critical path.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, cast

import ray
from PIL import Image as Pillow
from rig import bar, machine, start_ray

import moot
from moot.actors.record.tables import read_table
from moot.actors.spec import Engine, Placement
from moot.protocols.case import Image

BAR = 1.10
_PICTURED = 10
"""One case in so many has a picture."""

_TOWNS = ("Aldwick", "Bremmer", "Corsby", "Dunholm", "Eastrow", "Fenwell", "Garmoor")


def cases(count: int) -> list[dict[str, Any]]:
    """Made-up claims about bridges, half of them supported by their passage."""
    return [
        {
            "id": f"case-{number}",
            "claim": f"The bridge of {_town(number)} opened in {1900 + number % 97}.",
            "label": number % 2,
            "passage": _passage(number, 1900 + number % 97 + 1 - number % 2),
            "images": [_picture(number)] if number % _PICTURED == 0 else [],
        }
        for number in range(count)
    ]


def _town(number: int) -> str:
    return f"{_TOWNS[number % len(_TOWNS)]} {number}"


def _passage(number: int, year: int) -> str:
    told = [
        f"The bridge of {_town(number)} opened in {year}. It is {100 + number} metres long.",
        f"Nobody in {_town(number)} remembers the ferry, which had {3 + number % 5} boats.",
        f"A toll was paid until {year + 20}; then the town bought it.",
    ]
    return "\n\n".join(told)


def _picture(number: int) -> Image:
    written = io.BytesIO()
    Pillow.new("RGB", (40 + number % 50, 30), "white").save(written, "PNG")
    return Image("image/png", written.getvalue())


def documents(folder: Path) -> str:
    """A file that the run makes its library of."""
    file = folder / "towns.txt"
    file.write_text(
        "\n\n".join(f"{_town(n)} has a bridge since {1900 + n % 97}, and {n} inhabitants." for n in range(500))
    )
    return str(file)


def measured(placement: str, count: int, latency_ms: float) -> dict[str, Any]:
    """One run; its figures."""
    inline = placement == "inline"
    engine: Engine = "inline" if inline else "ray"
    with tempfile.TemporaryDirectory(prefix="moot-bench-") as scratch:
        docs = documents(Path(scratch))
        started = time.perf_counter()
        run = moot.run(
            task=cases(count),
            protocol="ceda",
            model=f"simulated?latency_ms={latency_ms:g}",
            engine=engine,
            placement=cast(Placement, "actors" if inline else placement),
            out=f"{scratch}/run",
            docs=docs,
            max_open=count,
            concurrency=2 * count,
        )
        session_s = time.perf_counter() - started
        turns = read_table(run.path, "turns", ["at", "latency_s", "outcome"]).to_pylist()
        verdicts = read_table(run.path, "verdicts", ["at", "failed"]).to_pylist()
    assert len(verdicts) == count
    assert not any(row["failed"] for row in verdicts), "a case failed"
    longest = max(_one_after_another(turns).values())
    wall_s = max(row["at"] for row in verdicts) - min(row["at"] for row in turns)  # a reply's `at`: when it was asked
    path_s = longest * latency_ms / 1000.0
    return {
        "placement": placement,
        "cases": count,
        "calls": len(turns),
        "longest": longest,
        "critical_path_s": path_s,
        "wall_s": wall_s,
        "ratio": wall_s / path_s,
        "mean_latency_s": sum(row["latency_s"] for row in turns) / len(turns),
        "session_s": session_s,
    }


def _one_after_another(turns: list[dict[str, Any]]) -> Counter[str]:
    """By case the calls that wait for each other: all of its own, and the picture's, which stands under no case."""
    found: Counter[str] = Counter()
    for row in turns:
        found[row["case_id"]] += 2 if row["path"] == "vision/prompt" else 1
    return found


def main() -> int:
    """Run the bench; 1 when the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures, with the machine, to this file")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--latency-ms", type=float, default=1000.0)
    parser.add_argument("--placements", default="actors,packed", help="inline, too")
    given = parser.parse_args()
    found: dict[str, Any] = {"machine": machine(), "rows": []}
    print("| placement | cases | calls | longest | critical path s | wall s | ratio | mean latency s | session s |")
    print("|---|---|---|---|---|---|---|---|---|")
    start_ray()
    try:
        for placement in given.placements.split(","):
            row = measured(placement, given.cases, given.latency_ms)
            found["rows"].append(row)
            print(
                f"| {placement} | {row['cases']} | {row['calls']} | {row['longest']} | {row['critical_path_s']:.1f} "
                f"| {row['wall_s']:.1f} | {bar(row['ratio'], BAR, '<=')} | {row['mean_latency_s']:.3f} "
                f"| {row['session_s']:.1f} |",
                flush=True,
            )
    finally:
        ray.shutdown()
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return int(any(row["ratio"] > BAR for row in found["rows"]))


if __name__ == "__main__":
    sys.exit(main())
