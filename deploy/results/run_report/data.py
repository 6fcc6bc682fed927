"""What the parts of a report read of one run, beside its record: each figure is computed once."""

from __future__ import annotations

from functools import cached_property

from moot.actors.record.schema import CaseKey
from moot.deploy.results.detection.claims import ids_trained_on, read_claims
from moot.deploy.results.record.rows import VerdictRow
from moot.deploy.results.record.run_record import RunRecord
from moot.deploy.results.rounds.dynamics import Dynamics, round_dynamics
from moot.deploy.results.run_report.answers import AgentAnswers, agent_answers
from moot.deploy.results.summaries.case_costs import CaseCost, CasePrice
from moot.deploy.results.summaries.summary import Summary, costs_of_finished, prices_of_finished, record_summary
from moot.protocols.errors import ConfigError


class RunData(RunRecord):
    """A run as the parts of its report read it.

    Args:
        folder: the run's folder, or its URI.
    """

    @cached_property
    def summary(self) -> Summary:
        """The run in figures, as `moot show` prints them."""
        return record_summary(self)

    @cached_property
    def trained_on(self) -> frozenset[str]:
        """Cases that the run's classifier was trained on: they are in no accuracy."""
        return frozenset(ids_trained_on(read_claims(self)))

    @cached_property
    def counted(self) -> list[VerdictRow]:
        """The verdicts that accuracies are over, as in the summary: not failed, and of no case of `trained_on`."""
        return [each for each in self.verdicts if not each.failed and each.case_id not in self.trained_on]

    @cached_property
    def costs(self) -> dict[CaseKey, CaseCost]:
        """Tokens by debate, of those that did not fail."""
        return self.once(costs_of_finished)

    @property
    def prices(self) -> dict[CaseKey, CasePrice]:
        """USD by debate, of those that did not fail."""
        return self.once(prices_of_finished)

    @cached_property
    def answers(self) -> AgentAnswers:
        """What the agents answered in each round; empty for a protocol whose agents give no answer by the round."""
        return agent_answers(self, self.counted)

    @cached_property
    def dynamics(self) -> Dynamics | None:
        """Numbers of the debates by round; None where no round has any."""
        try:
            return round_dynamics(self)
        except ConfigError:
            return None
