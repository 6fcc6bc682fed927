"""What every bench does around its work: its options, the machine, rows of figures beside their bars, and the file."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import psutil


def options(doc: str | None) -> argparse.ArgumentParser:
    """The command line of a bench, with `--json FILE`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures, with the machine, to this file")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options given, after a line about the machine, whose facts are added as `machine`."""
    given = parser.parse_args()
    given.machine = facts = machine()
    print(f"{facts['cores']} cores, {facts['cpu']}, Python {facts['python']}, Ray {facts['versions']['ray']}")
    print(f"load before the start: {facts['load_at_start']:.2f}")
    return given


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    names = ("ray", "aiohttp", "msgspec", "pydantic", "pyarrow", "uvloop")
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    cpu = models[0].split(":")[1].strip() if models else platform.processor()
    return {
        "cores": os.cpu_count(),
        "cpu": cpu,
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
        "load_at_start": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }


class ReportRows(list[dict[str, Any]]):
    """Rows with the same keys; each is printed when it is added. A row whose `ok` is False has missed a bar."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Print a row, under the keys where it is the first."""
        if not self:
            print(f"\n| {' | '.join(row)} |\n|{'---|' * len(row)}")
        print(f"| {' | '.join(map(_shown, row.values()))} |", flush=True)
        self.append(dict(row))


def _shown(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def finish(given: argparse.Namespace, **tables: list[dict[str, Any]]) -> int:
    """Write the figures where `--json` asks for it; 1 when a bar is missed."""
    if given.json:
        given.json.write_text(json.dumps({"machine": given.machine, **tables}, indent=1))
    return int(any(row.get("ok") is False for rows in tables.values() for row in rows))


def best(work: Callable[[], Any], repeats: int) -> float:
    """Wall seconds of the fastest of the repeats: others use the machine, too."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def median(values: list[float]) -> float:
    """The median; NaN of nothing."""
    return statistics.median(values) if values else float("nan")


def bar(value: float, bound: float, kind: Literal["<=", ">="]) -> str:
    """A value beside its bar: `2.400 (<= 3 ok)`."""
    ok = value <= bound if kind == "<=" else value >= bound
    return f"{value:.3f} ({kind} {bound:g} {'ok' if ok else 'MISS'})"
