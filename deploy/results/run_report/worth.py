"""Whether the debates are worth their price: accuracy against tokens, and who changed whose answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from moot.deploy.results.report.blocks import Block, Chart, Heading, Series
from moot.deploy.results.run_report.data import RunData


def worth(run: RunData) -> Iterator[Block]:
    """What debates cost and what they bring; nothing for a run without verdicts that can be scored."""
    rounds = Counter(verdict.rounds for verdict in run.verdicts if not verdict.failed)
    if not rounds:
        return
    yield Heading("Is it worth it")
    lengths = sorted(rounds)
    counts = [float(rounds[length]) for length in lengths]
    series = Series("cases", [str(length) for length in lengths], counts, mark="bars")
    yield Chart("rounds", "Debates by number of rounds", [series], x_label="rounds", y_label="cases")
