"""How moot scales: over nodes, inside Ray Data, behind a web service, and after a node has died.

    python tests/bench/scale.py [--json FILE] [--only nodes,dataset,serve,recovery]

Each part runs in a process of its own, with a Ray of its own, and says in its file what it measures:

- `nodes` (`scale_nodes.py`): throughput on 1, 2 and 4 nodes, which are processes on this machine;
- `dataset` (`scale_dataset.py`): the Ray Data stage against the same cases held by `moot run`;
- `serve` (`scale_serve.py`): what the web service adds to the engine's own time;
- `recovery` (`scale_recovery.py`): from a node's death to the first call that is made again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rig import machine

PARTS = ("nodes", "dataset", "serve", "recovery")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same keys as a Markdown table."""
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *([_shown(row[name]) for name in head] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(value: Any) -> str:
    return "-" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def _in_a_process(part: str) -> list[dict[str, Any]]:
    """The rows of one part; what it prints meanwhile goes to standard error."""
    command = [sys.executable, __file__, "--part", part]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return rows


def main() -> int:
    """Run the parts; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the rows, with the machine, to this file")
    parser.add_argument("--only", default=",".join(PARTS), help="some parts, with commas")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        print(json.dumps(import_module(f"scale_{given.part}").rows()))
        return 0
    found: dict[str, Any] = {"machine": machine(), "parts": {}}
    for part in given.only.split(","):
        rows = found["parts"][part] = _in_a_process(part)
        print(f"\n{part}\n{table(rows)}", flush=True)
        if given.json:
            given.json.write_text(json.dumps(found, indent=1))
    return int(any(row.get("ok") is False for rows in found["parts"].values() for row in rows))


if __name__ == "__main__":
    sys.exit(main())
