"""Prompt tokens that a server may have computed before, per protocol: the share that begins as an earlier request does.

    python tests/bench/prefixes.py [--json FILE] [--seed N] [--limit N] [--long]

Each protocol on its bundled sample, with the simulated model, in this process. `case`: tokens that equal the beginning
of an earlier request of the same case; `run`: of any case. `shared/words`: `tests/support/shared_prefixes.py`. `--long`
puts 600 words of made-up material before each case's passage, as a user with documents has.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import ReportRows, finish, options, parsed

sys.path[:0] = [str(Path(__file__).parents[1] / "support")]

from shared_prefixes import repeated_tokens  # noqa: E402

import moot  # noqa: E402
from moot.actors.record.rows import DECISION  # noqa: E402
from moot.actors.record.tables import read_table  # noqa: E402


@dataclass(frozen=True)
class Debates:
    """What is run: options of `moot.run`."""

    name: str
    task: str
    options: dict[str, Any] = field(default_factory=dict)


DEBATES = (
    Debates("selene", "sample", {"protocol": "selene"}),
    Debates("selene, preset", "sample", {"preset": "selene"}),
    Debates("evince", "sample-symptoms", {"protocol": "evince"}),
    Debates("evince, preset", "sample-symptoms", {"preset": "evince"}),
    Debates("socrasynth", "sample-subjects", {"protocol": "socrasynth"}),
    Debates("socrasynth, preset", "sample-subjects", {"preset": "socrasynth"}),
    Debates("ceda", "sample-claims", {"protocol": "ceda"}),
    Debates("ceda, preset", "sample-claims", {"preset": "ceda"}),
    Debates("constructor-auditor", "sample-essays", {"protocol": "constructor-auditor"}),
    Debates("constructor-auditor, preset", "sample-problems", {"preset": "confident-liar"}),
    Debates("judge-panel", "sample-replies", {"protocol": "judge-panel"}),
)


def measured(debates: Debates, seed: int, limit: int | None) -> dict[str, Any]:
    """One run; its figures."""
    with tempfile.TemporaryDirectory(prefix="moot-bench-") as scratch:
        run = moot.run(
            task=debates.task, model="simulated", engine="inline", seed=seed, limit=limit, out=f"{scratch}/run",
            **debates.options,
        )
        turns = read_table(run.path, "turns", ["case_id", "reply_id", "messages"]).to_pylist()
    sent = [(row["case_id"], json.loads(row["messages"])) for row in turns if not row["reply_id"].startswith(DECISION)]
    within = repeated_tokens(sent)
    return {
        "protocol": debates.name,
        "cases": len({case for case, _ in sent}),
        "requests": len(sent),
        "tokens": within.count,
        "case": within.share,
        "run": repeated_tokens((None, each) for _, each in sent).share,
    }


def main() -> int:
    """Run the bench."""
    parser = options(__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--only", default="")
    given = parsed(parser)
    rows = ReportRows()
    for debates in DEBATES:
        if given.only in debates.name:
            rows.add(measured(debates, given.seed, given.limit))
    return finish(given, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
