"""Outcome of a run: its record's folder, status, summary and tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from moot.deploy.results.report.display import DisplayMixin

if TYPE_CHECKING:
    import pyarrow as pa

    from moot.actors.record.store.mirror import Mirror
    from moot.deploy.results.case_table import CaseList
    from moot.deploy.results.figures.summary import Summary
    from moot.deploy.results.recorded_data import Transcript
    from moot.deploy.results.report.blocks import Block

Status = Literal["finished", "waiting", "stopped", "interrupted"]
"""Status of an ended session; `waiting` if all remaining debates wait for a person, `stopped` if by a budget, the time
limit, first asks without a usable reply, an unreachable endpoint or a lost limiter."""

RunStatus = Literal["finished", "waiting", "stopped", "interrupted", "failed", "live", "killed", "unknown"]
"""Status of a recorded run: that of its last session; `failed` after an error, `live` while a process owns the folder,
`killed` if no process does and the end was not recorded, `unknown` if run.yaml does not state it."""

STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)

EXIT_OK, EXIT_BAD_INPUT, EXIT_SOME_FAILED, EXIT_STOPPED, EXIT_INTERRUPTED = 0, 2, 3, 4, 130
EXIT_HALLUCINATED, EXIT_UNDECIDED = 5, 6


@dataclass(frozen=True, repr=False)
class Run(DisplayMixin):
    """Result of a session of a run, or a recorded run opened with `moot.open_run`; every function that accepts a folder
    accepts it.

    Attributes:
        path: the record's folder.
        status: how the session ended; for an opened run also `failed`, `live`, `killed` or `unknown`.
        done: number of cases with a verdict, including failed ones.
        failed: number of cases whose latest attempt failed.
        left: number of cases without a verdict; None if the source cannot be read twice.
        parked: ids of the cases that wait for a person.
        under_way: number of cases in progress (live run), or with an interrupted debate that resumes from its recorded
            replies (stopped or interrupted run).
        worked: False if nothing was started: there was nothing to do, or the run was only opened.
        stopped_by: the stop reason as text; empty unless `stopped`.
        mirror: for a run in a store, the owner of `path`, its local copy; else None.
    """

    path: Path
    status: RunStatus
    done: int
    failed: int
    left: int | None
    parked: tuple[str, ...] = ()
    under_way: int = 0
    worked: bool = True
    stopped_by: str = ""
    mirror: Mirror | None = field(default=None, repr=False, compare=False)

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def exit_code(self) -> int:
        """Exit code of a command with this result: 0 for success, 3 if cases failed, 4 if the run was stopped (see
        `stopped_by`), 130 if it was interrupted or killed."""
        if self.status in ("interrupted", "killed"):
            return EXIT_INTERRUPTED
        if self.status == "stopped":
            return EXIT_STOPPED
        return EXIT_SOME_FAILED if self.failed else EXIT_OK

    @cached_property
    def summary(self) -> Summary:
        """Figures of the run, as `moot show` prints them."""
        from moot.deploy.results.figures.summary import summarise

        return summarise(self.path)

    @cached_property
    def cases(self) -> CaseList:
        """Its cases as rows, as `moot show RUN --wrong` lists them: `cases["sample-007"]` is one of them,
        `cases.only("wrong", "debated")` some, and `cases.to_pandas()` a DataFrame.

        Raises:
            RecordError: the record cannot be read.
        """
        from moot.deploy.results.case_table import case_list

        return case_list(self.path)

    def transcript(self, case_id: str, attempt: int | None = None) -> Transcript:
        """Transcript of one debate, finished or not, as `moot show RUN CASE` prints it.

        Args:
            case_id: id of the case.
            attempt: number of the attempt; None for the latest one with a verdict, or the latest if none has one.

        Raises:
            ConfigError: there is no such case (the message names the nearest) or attempt.
            RecordError: the record cannot be read.
        """
        from moot.deploy.results.transcript import build_transcript

        return build_transcript(self.path, case_id, attempt)

    @cached_property
    def commonest_failure(self) -> str:
        """The most frequent reason of failed requests, with its count and remedy; empty if none failed."""
        from moot.deploy.results.figures.replies import commonest_failure

        return commonest_failure(self.path)

    def table(self, name: str) -> pa.Table:
        """A table of the record: `cases`, `turns`, `tokens`, `judgments`, `events`, `verdicts`, `embeddings`.

        Raises:
            ConfigError: there is no such table.
            RecordError: the record cannot be read.
        """
        from moot.actors.record.tables import read_table

        return read_table(self.path, name)

    def to_pandas(self, name: str) -> Any:
        """A table of the record as a pandas DataFrame.

        Raises:
            ConfigError: pandas is not installed, or there is no such table.
        """
        from moot.deploy.results.record import data_frame

        return data_frame(self.table(name))

    def display_name(self) -> str:
        """See `DisplayMixin`."""
        return f"{self.path}: {self.status}, {self.done:,} done, {self.failed:,} failed"

    def report_blocks(self) -> list[Block]:
        """See `DisplayMixin`: what `moot show RUN` shows, below the state of an unfinished run."""
        from moot.deploy.results.record import RunRecord
        from moot.deploy.results.report.blocks import Note
        from moot.deploy.results.show import run_blocks

        left = "" if self.left is None else f", {self.left:,} cases without a verdict"
        note = Note(f"this run is {self.status}{left}", "warning")
        return [*([] if self.status == "finished" else [note]), *run_blocks(RunRecord(self.path))]
