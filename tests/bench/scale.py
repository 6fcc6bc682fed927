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
from importlib import import_module
from typing import Any

from harness import ReportRows, finish, options, parsed

PARTS = ("nodes", "dataset", "serve", "recovery")


def _in_a_process(part: str) -> list[dict[str, Any]]:
    """The rows of one part; what it prints meanwhile goes to standard error."""
    command = [sys.executable, __file__, "--part", part]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return rows


def main() -> int:
    """Run the parts; 1 when a bar is missed."""
    parser = options(__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="some parts, with commas")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    given = parsed(parser)
    if given.part:
        print(json.dumps(import_module(f"scale_{given.part}").rows()))
        return 0
    parts = {part: ReportRows() for part in given.only.split(",")}
    for part, rows in parts.items():
        print(f"\n{part}")
        for row in _in_a_process(part):
            rows.add(row)
        finish(given, **parts)
    return finish(given, **parts)


if __name__ == "__main__":
    sys.exit(main())
