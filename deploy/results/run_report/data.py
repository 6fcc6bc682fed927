"""What the parts of a report read of one run: each table of its record is read once, when a part first asks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from moot.actors.record.schema import CaseKey
from moot.actors.record.store.mirror import record_path
from moot.deploy.results.detection.claims import ids_trained_on, read_claims
from moot.deploy.results.record.readers import latest_verdicts, read_as, read_events, read_replies
from moot.deploy.results.record.references import References
from moot.deploy.results.record.rows import EventRow, ReplyRow, VerdictRow
from moot.deploy.results.record.run_info import RunInfo, read_run_info
from moot.deploy.results.rounds.dynamics import Dynamics, round_dynamics
from moot.deploy.results.run_report.answers import AgentAnswers, agent_answers
from moot.deploy.results.summaries.costs import CaseCost, case_costs
from moot.deploy.results.summaries.judges import verdict_sources
from moot.deploy.results.summaries.summary import Summary, summarise
from moot.protocols.errors import ConfigError
from moot.protocols.events import DebateEvent
from moot.protocols.selene.events import BranchesCompared, SkipAudited

E = TypeVar("E", bound=DebateEvent)


class RunData:
    """A run as the parts of its report read it.

    Args:
        folder: the run's folder, or its URI.

    Attributes:
        folder: the local folder that is read.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = record_path(folder)
        self._events: dict[str, list[EventRow]] = {}

    @cached_property
    def info(self) -> RunInfo:
        """Content of run.yaml."""
        return read_run_info(self.folder, self.replies)

    @cached_property
    def summary(self) -> Summary:
        """The run in figures, as `moot show` prints them."""
        return summarise(self.folder)

    @cached_property
    def verdicts(self) -> list[VerdictRow]:
        """The verdict of each case's latest attempt."""
        return latest_verdicts(self.folder)

    @cached_property
    def by_case(self) -> dict[str, VerdictRow]:
        """The same by case id."""
        return {verdict.case_id: verdict for verdict in self.verdicts}

    @cached_property
    def trained_on(self) -> frozenset[str]:
        """Cases that the run's classifier was trained on: they are in no accuracy."""
        return frozenset(ids_trained_on(read_claims(self.folder, self.verdicts, self.references)))

    @cached_property
    def counted(self) -> list[VerdictRow]:
        """The verdicts that accuracies are over, as in the summary: not failed, and of no case of `trained_on`."""
        return [each for each in self.verdicts if not each.failed and each.case_id not in self.trained_on]

    @cached_property
    def replies(self) -> list[ReplyRow]:
        """Every paid or reused reply."""
        return read_replies(self.folder)

    @cached_property
    def costs(self) -> dict[CaseKey, CaseCost]:
        """Tokens by debate, of those that did not fail."""
        finished = {verdict.key for verdict in self.verdicts if not verdict.failed}
        branches = [row for kind in (BranchesCompared, SkipAudited) for row, _ in self.events(kind)]
        return case_costs(self.replies, finished, verdict_sources(branches))

    @cached_property
    def answers(self) -> list[AgentAnswers]:
        """What the agents answered in each round; empty for a protocol whose agents give no answer by the round."""
        return agent_answers(self.folder, self.counted, self.references)

    @cached_property
    def dynamics(self) -> Dynamics | None:
        """Numbers of the debates by round; None where no round has any."""
        try:
            return round_dynamics(self.folder)
        except ConfigError:
            return None

    @cached_property
    def references(self) -> References:
        """How the answers of the cases are scored."""
        return References.of(self.folder)

    def events(self, event_type: type[E]) -> Iterator[tuple[EventRow, E]]:
        """The events of a type in the latest attempt of each case, as such."""
        kind = event_type.kind
        if kind not in self._events:
            self._events[kind] = [row for row in read_events(self.folder, [kind]) if self._is_latest(row)]
        return read_as(self._events[kind], event_type)

    def _is_latest(self, row: EventRow) -> bool:
        verdict = self.by_case.get(row.case_id)
        return verdict is None or verdict.attempt == row.attempt
