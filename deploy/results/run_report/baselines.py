"""Baselines that a run's own record has: the agents' first answers, before they debated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from moot.deploy.results.run_report.answers import opening_votes
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.summaries.accuracy import PairedComparison, compare_paired
from moot.deploy.results.summaries.case_costs import CaseCost, CasePrice
from moot.deploy.results.summaries.summary_rows import paired_words

PartOfCost = Callable[[CaseCost | CasePrice], float | None]

VOTE = "a vote of the first answers"


class Baseline(NamedTuple):
    """A way to answer the same cases without a debate.

    Attributes:
        right: whether its answer is right, by case that can be scored; an unusable answer counts as wrong.
        cost: its part of a case's cost, in tokens or USD.
        against: the paired comparison of the run's verdicts with it.
    """

    name: str
    right: Mapping[str, bool]
    cost: PartOfCost
    against: PairedComparison

    @property
    def gain(self) -> str:
        """The comparison in words."""
        return paired_words(self.against)


def baselines(run: RunData) -> list[Baseline]:
    """Agent 0's first answer and the vote of all first answers; none where agents give none before the debate."""
    ways: list[tuple[str, Mapping[str, bool], PartOfCost]] = [
        ("agent 0's first answer", run.answers.first_of(0), lambda cost: cost.single),
        (VOTE, opening_votes(run.answers), lambda cost: cost.openings),
    ]
    return [_baseline(run, name, right, cost) for name, right, cost in ways if right]


def _baseline(run: RunData, name: str, known: Mapping[str, bool], cost: PartOfCost) -> Baseline:
    scored = {each.case_id: each.correct for each in run.counted if each.correct is not None}
    right = {case_id: bool(known.get(case_id)) for case_id in scored}
    against = compare_paired(
        list(scored.values()), list(right.values()), independent=run.references.independent(scored)
    )
    return Baseline(name, right, cost, against)
