"""Outcome of a run: its record's folder, status, summary and tables."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from moot.protocols.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from moot.actors.record.store.mirror import Mirror
    from moot.deploy.results.summaries.summary import Summary

Status = Literal["finished", "waiting", "stopped", "interrupted"]
"""Status of an ended session; `waiting` when all remaining debates wait for a person, `stopped` by a budget or an
unreachable endpoint."""

EXIT_OK, EXIT_BAD_INPUT, EXIT_SOME_FAILED, EXIT_STOPPED, EXIT_INTERRUPTED = 0, 2, 3, 4, 130
EXIT_HALLUCINATED, EXIT_UNDECIDED = 5, 6


@dataclass(frozen=True)
class Run:
    """Result of a session of a run.

    Attributes:
        path: the record's folder.
        status: how the session ended.
        done: cases with a verdict, failed ones included.
        failed: cases whose latest attempt failed.
        left: cases without a verdict; None when the source cannot be read twice.
        parked: ids of the cases that wait for a person.
        under_way: cases whose debate was interrupted: it resumes from its recorded replies. Known of a stopped or
            interrupted run.
        worked: False when there was nothing to do, so that nothing was started.
        stopped_by: the stop reason as text; empty unless `stopped`.
        mirror: for a run in a store, the owner of `path`, its local copy; else None.
    """

    path: Path
    status: Status
    done: int
    failed: int
    left: int | None
    parked: tuple[str, ...] = ()
    under_way: int = 0
    worked: bool = True
    stopped_by: str = ""
    mirror: Mirror | None = field(default=None, repr=False, compare=False)

    @property
    def exit_code(self) -> int:
        """0 for success, 3 when some cases failed, 4 when a budget or an unreachable endpoint stopped the run, 130 when
        interrupted."""
        if self.status == "interrupted":
            return EXIT_INTERRUPTED
        if self.status == "stopped":
            return EXIT_STOPPED
        return EXIT_SOME_FAILED if self.failed else EXIT_OK

    @cached_property
    def summary(self) -> Summary:
        """The run's figures, as `moot show` gives them."""
        from moot.deploy.results.summaries.summary import summarise

        return summarise(self.path)

    @cached_property
    def commonest_failure(self) -> str:
        """The most frequent reason of failed requests, with its count and remedy; empty when none failed."""
        from moot.deploy.results.summaries.model_replies import commonest_failure

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
        """The same as a pandas DataFrame.

        Raises:
            ConfigError: pandas is not installed, or there is no such table.
        """
        table = self.table(name)
        try:
            importlib.import_module("pandas")
        except ImportError:
            raise ConfigError("pandas is not installed: pip install 'moot[pandas]'") from None
        return table.to_pandas()
