"""EVINCE in a report: divergences, entropies and contentiousness by round, and the sides' accuracy."""

from __future__ import annotations

from collections.abc import Iterator

from moot.deploy.results.report.blocks import Block, Heading
from moot.deploy.results.rounds.dynamics import change_blocks, truth_blocks
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.run_report.round_charts import round_charts
from moot.protocols.evince.events import EvinceRoundEnded


def evince(run: RunData) -> Iterator[Block]:
    """The rounds of debates whose sides state distributions; nothing for a run without any."""
    if run.dynamics is None or not run.counted_events(EvinceRoundEnded):
        return
    yield Heading("Debates round by round")
    yield from round_charts(run)
    yield from change_blocks(run.dynamics)
    yield from truth_blocks(run.dynamics)
