"""Report of a run: its parts in the order in which they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from moot.deploy.results.case_table import case_columns, cases_data
from moot.deploy.results.figures.comparison import run_names
from moot.deploy.results.figures.confidence import calibration
from moot.deploy.results.figures.judged_reasoning import judged_reasoning
from moot.deploy.results.figures.judges import judges
from moot.deploy.results.figures.summary import Summary, record_summary
from moot.deploy.results.figures.worth import worth
from moot.deploy.results.glossary import explain
from moot.deploy.results.protocol_parts import protocol_parts
from moot.deploy.results.record import RunRecord
from moot.deploy.results.report.blocks import Block, Heading
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.report.html import report_html
from moot.deploy.results.report.render import blocks_data
from moot.deploy.results.run_report.debates import several_transcripts, transcripts_data
from moot.deploy.results.run_report.overview import overview
from moot.deploy.results.run_report.pairs import pairs, side_by_side

_SUBSECTION = 3
"""Level of a heading that begins no part."""

Part = Callable[[RunRecord], Iterable[Block]]


def _parts() -> list[Part]:
    """The parts of a run's report; one that the run has nothing for gives no block."""
    of_protocols = (parts.report for parts in protocol_parts())
    return [overview, worth, *of_protocols, judged_reasoning, calibration, judges]


class ReportPart(FrozenModel):
    """A part of a report.

    Attributes:
        blocks: in the order in which they are read, each named by its first key: `heading`, `note`, `table`, `pairs`,
            `items`, `quote`, `code` or `chart`.
    """

    title: str
    blocks: list[dict[str, Any]]


class ReportDocument(FrozenModel):
    """A report as data.

    Attributes:
        runs: that it is over, the first one being the baseline of the others.
        simulated: whether any answer comes from the simulated model.
        summaries: the figures of each run, as numbers.
        parts: what a page shows, under its headings.
    """

    schema_version: int
    runs: list[str]
    simulated: bool
    summaries: list[Summary]
    parts: list[ReportPart]


@dataclass(frozen=True)
class RunReport:
    """A report, for every form of output.

    Attributes:
        runs: that it is over, the first one being the baseline of the others.
    """

    runs: Sequence[RunRecord]

    @property
    def simulated(self) -> bool:
        """Whether any answer comes from the simulated model."""
        return any(run.info.simulated for run in self.runs)

    @property
    def title(self) -> str:
        """The page's title."""
        return f"moot report: {', '.join(run.info.name for run in self.runs)}"

    @cached_property
    def blocks(self) -> list[Block]:
        """The report in the order in which it is read."""
        several = len(self.runs) > 1
        blocks = pairs(self.runs) if several else (block for part in _parts() for block in part(self.runs[0]))
        return [*blocks, explain()._replace(folded=True)]

    def document(self) -> ReportDocument:
        """The report as a document, for JSON."""
        parts = [ReportPart(title=title, blocks=blocks_data(blocks)) for title, blocks in _by_part(self.blocks)]
        return ReportDocument(
            schema_version=self.runs[0].info.schema_version,
            runs=[run.info.name for run in self.runs],
            simulated=self.simulated,
            summaries=[record_summary(run) for run in self.runs],
            parts=parts,
        )

    def data(self) -> Mapping[str, Any]:
        """Data of the page's scripts beside the charts."""
        run, *others = self.runs
        columns = side_by_side(self.runs) if others else case_columns(run)
        transcripts = several_transcripts(self.runs, columns) if others else transcripts_data(run, columns)
        cases = cases_data(columns)
        if others:
            cases["runs"] = run_names([each.info.name for each in self.runs])
        else:
            cases["of_run"] = run.info.cases
        return {"cases": cases, "transcripts": transcripts}

    def html(self) -> str:
        """The page."""
        for run in self.runs:
            run.read_ahead()
        with ThreadPoolExecutor(1) as beside:  # the transcripts' tables are unpacked while blocks are computed
            data = beside.submit(self.data)
            return report_html(self.title, self.blocks, data.result())


def _by_part(blocks: Iterable[Block]) -> list[tuple[str, list[Block]]]:
    """Blocks by the headings of the report and its sections; blocks before the first one have none."""
    parts: list[tuple[str, list[Block]]] = []
    for block in blocks:
        if isinstance(block, Heading) and block.level < _SUBSECTION:
            parts.append((block.text, []))
        else:
            parts = parts or [("", [])]
            parts[-1][1].append(block)
    return parts


def build_report(*runs: str | Path) -> RunReport:
    """Report of one run, or of several over the same cases.

    Raises:
        RecordError: when there is no run in a folder or it cannot be read.
    """
    return RunReport([RunRecord(run) for run in runs])
