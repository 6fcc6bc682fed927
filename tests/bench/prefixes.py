"""Prompt tokens that a server may have computed before, per protocol, on bundled cases and on the simulated model.

    python tests/bench/prefixes.py [--json FILE] [--seed N] [--limit N] [--words N] [--protocols NAMES] [--servers N]

`case` is the share of prompt tokens that equal the beginning of an earlier request of the same case, `run` that of any
request of the run; `tests/support/shared_prefixes.py` says what a token is. `--words` puts that many made-up words
before each case's material: bundled cases are short. With `--servers` the run calls a pool of so many simulated
servers, and only a request at the same server counts as an earlier one; `most` is the largest share of requests of a
server. Replies depend on the prompts, and so do the figures of two versions: compare several seeds.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from harness import ReportRows, finish, options, parsed

import moot
from moot.actors.record.rows import DECISION
from moot.actors.record.tables import read_table
from moot.protocols.tasks.sample import bundled

sys.path[:0] = [str(Path(__file__).parents[1] / "support")]

from shared_prefixes import repeated_tokens  # noqa: E402
from simulate_process import serving  # noqa: E402

TASKS = {
    "selene": ("boolq", "sample", "passage"),
    "evince": ("labels", "sample-symptoms", "text"),
    "socrasynth": ("subjects", "sample-subjects", "facts"),
    "ceda": ("claims", "sample-claims", "passage"),
    "constructor-auditor": ("boolq", "sample", "passage"),
}
"""By protocol: its task, the bundled cases, and the field that holds their material."""

PRESETS = {"constructor-auditor": "early-token"}
_NOTES = ("Note {} was taken on a rainy day and says little of the matter.", "Nobody remembers who wrote note {}.")


def lengthened(name: str, field: str, words: int, path: Path) -> None:
    """Write bundled cases, with made-up words before their material."""
    with bundled(name).open() as lines, path.open("w", encoding="utf-8") as file:
        for place, row in enumerate(map(json.loads, lines)):
            if row.get(field):
                notes = (note.format(f"{place}.{number}") for number in range(words) for note in _NOTES)
                row[field] = " ".join([*" ".join(notes).split()[:words], row[field]])
            file.write(json.dumps(row) + "\n")


def measured(protocol: str, preset: str | None, given: Any, scratch: Path) -> dict[str, Any]:
    """One run; its figures."""
    kind, name, field = TASKS[protocol]
    cases = scratch / f"{name}.jsonl"
    lengthened(name, field, given.words, cases)
    task = f"{kind}:{cases}"
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving(task, given.seed, latency_ms=200, jitter_ms=200)) for _ in range(given.servers)
        ]
        ports = ",".join(f"127.0.0.1:{server.port}" for server in servers)
        run = moot.run(
            task=task,
            model=f"http://{ports}/v1#simulated" if servers else "simulated",
            engine="inline",
            seed=given.seed,
            limit=given.limit,
            out=str(scratch / f"{protocol}-{preset}"),
            **({"preset": preset} if preset else {"protocol": protocol}),
        )
    rows = read_table(run.path, "turns", ["case_id", "reply_id", "server", "messages"]).to_pylist()
    rows = [row for row in rows if not row["reply_id"].startswith(DECISION)]
    sent = [json.loads(row["messages"]) for row in rows]
    calls = Counter(row["server"] for row in rows)
    within = repeated_tokens(((row["case_id"], row["server"]), each) for row, each in zip(rows, sent, strict=True))
    anywhere = repeated_tokens((row["server"], each) for row, each in zip(rows, sent, strict=True))
    return {
        "protocol": f"{protocol}, --preset {preset}" if preset else protocol,
        "requests": len(rows),
        "tokens": within.count,
        "case": within.share,
        "run": anywhere.share,
        "most": max(calls.values()) / len(rows),
    }


def main() -> int:
    """Run the bench."""
    parser = options(__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=8)
    parser.add_argument("--words", type=int, default=0)
    parser.add_argument("--servers", type=int, default=0)
    parser.add_argument("--protocols", default=",".join(TASKS))
    given = parsed(parser)
    rows = ReportRows()
    for protocol in given.protocols.split(","):
        for preset in (None, PRESETS.get(protocol, protocol)):
            with tempfile.TemporaryDirectory(prefix="moot-bench-") as scratch:
                rows.add(measured(protocol, preset, given, Path(scratch)))
    return finish(given, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
