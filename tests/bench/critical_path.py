"""How near debates that are all open at once come to their critical path, on the simulated model with 1 s per call.

    python tests/bench/critical_path.py [--json FILE] [--cases N] [--protocols evince,ceda] [--placements actors,packed]

`evince`: 300 cases of an opening exchange and three rounds (`epsilon=0` lets none rest earlier), two sides and a judge
one after another: 16 calls. `ceda`: 1,000 claims, each with a passage of a few chunks, one in ten with a picture, which
all search a library; the path is that of the longest case, by the record. The wall time runs from the first call to the
last verdict; `session` adds the library, the start and the end of the run. The simulated model itself takes about as
much CPU as everything else. Bar: within 10 % of the critical path.
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench_runs import ray_session
from harness import ReportRows, finish, options, parsed
from PIL import Image as Pillow

import moot
from moot.actors.record.tables import read_table
from moot.protocols.case import Image

BAR = 1.10
LATENCY_MS = 1000.0
CASES = {"evince": 300, "ceda": 1000}
LABELS = ("flu", "common cold", "measles", "mumps", "scarlet fever", "chickenpox", "rubella", "dengue", "malaria")
_SIGNS = ("fever", "rash", "cough", "headache", "sore throat", "chills", "nausea", "itch")
_TOWNS = ("Aldwick", "Bremmer", "Corsby", "Dunholm", "Eastrow", "Fenwell", "Garmoor")


def _patient(number: int) -> dict[str, Any]:
    signs = ", ".join(_SIGNS[(number // by + by) % len(_SIGNS)] for by in (1, 7, 10))
    return {"id": f"case-{number}", "question": f"Patient {number} has {signs}.", "labels": LABELS}


def _claim(number: int) -> dict[str, Any]:
    """About a bridge; half of them are supported by their passage, one in ten has a picture."""
    town, year = f"{_TOWNS[number % len(_TOWNS)]} {number}", 1900 + number % 97
    written = io.BytesIO()
    Pillow.new("RGB", (40 + number % 50, 30), "white").save(written, "PNG")
    told = [
        f"The bridge of {town} opened in {year + 1 - number % 2}. It is {100 + number} metres long.",
        f"Nobody in {town} remembers the ferry, which had {3 + number % 5} boats.",
        f"A toll was paid until {year + 20}; then the town bought it.",
    ]
    return {
        "id": f"case-{number}",
        "claim": f"The bridge of {town} opened in {year}.",
        "label": number % 2,
        "passage": "\n\n".join(told),
        "images": [Image("image/png", written.getvalue())] if number % 10 == 0 else [],
    }


def _options(protocol: str, count: int, scratch: Path) -> dict[str, Any]:
    if protocol == "evince":
        settings = {"epsilon": 0.0, "max_rounds": 3, "follow_ups": "never", "crit.max_depth": 0}
        return {"task": [_patient(number) for number in range(count)], "set": settings}
    towns = scratch / "towns.txt"
    towns.write_text("\n\n".join(f"{_TOWNS[n % 7]} {n} has a bridge, and {n} inhabitants." for n in range(500)))
    return {"task": [_claim(number) for number in range(count)], "docs": str(towns)}


def measured(protocol: str, placement: str, count: int) -> dict[str, Any]:
    """One run; its figures."""
    with tempfile.TemporaryDirectory(prefix="moot-bench-") as scratch:
        options = _options(protocol, count, Path(scratch)) | {"max_open": count, "concurrency": 2 * count}
        options |= {"model": f"simulated?latency_ms={LATENCY_MS:g}", "out": f"{scratch}/run", "placement": placement}
        started = time.perf_counter()
        run = moot.run(protocol=protocol, **options)
        session_s = time.perf_counter() - started
        turns = read_table(run.path, "turns", ["at", "latency_s"]).to_pylist()
        verdicts = read_table(run.path, "verdicts", ["at", "failed"]).to_pylist()
    assert len(verdicts) == count
    assert not any(row["failed"] for row in verdicts), "a case failed"
    steps: Counter[str] = Counter()  # by case: all of its own calls, and the picture's, which stands under no case
    for row in turns:
        steps[row["case_id"]] += 2 if row["path"] == "vision/prompt" else 1
    path_s = max(steps.values()) * LATENCY_MS / 1000.0
    wall_s = max(row["at"] for row in verdicts) - min(row["at"] for row in turns)  # a reply's `at`: when it was asked
    return {
        "protocol": protocol,
        "placement": placement,
        "cases": count,
        "calls": len(turns),
        "critical_path_s": path_s,
        "wall_s": wall_s,
        "ratio": wall_s / path_s,
        "ok": wall_s / path_s <= BAR,
        "mean_latency_s": sum(row["latency_s"] for row in turns) / len(turns),
        "session_s": session_s,
    }


def main() -> int:
    """Run the bench; 1 when the bar is missed."""
    parser = options(__doc__)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--protocols", default="evince,ceda")
    parser.add_argument("--placements", default="actors,packed")
    given = parsed(parser)
    rows = ReportRows()
    with ray_session():
        for protocol in given.protocols.split(","):
            for placement in given.placements.split(","):
                rows.add(measured(protocol, placement, given.cases or CASES[protocol]))
    return finish(given, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
