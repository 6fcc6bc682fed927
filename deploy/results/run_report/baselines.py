"""Baselines that a run's own record has: the agents' first answers, before they debated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.deploy.results.run_report.answers import opening_votes
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.summaries.accuracy import PairedComparison, compare_paired
from moot.deploy.results.summaries.case_costs import CaseCost, CasePrice
from moot.deploy.results.summaries.summary_rows import paired_sentence
from moot.deploy.results.text import shell_path, times

PartOfCost = Callable[[CaseCost | CasePrice], float | None]

SINGLE_AGENT = "single-agent"
"""Protocol that asks one agent once."""

VOTE = "a vote of the first answers"


class Baseline(NamedTuple):
    """A way to answer the same cases without a debate.

    Attributes:
        right: whether its answer is right, by case that can be scored; an unusable answer counts as wrong.
        cost: its part of a case's cost, in tokens or USD.
        against: the paired comparison of the run's verdicts with it.
        times_tokens: tokens of the verdicts as a multiple of its own, over the cases where both are known.
    """

    name: str
    right: Mapping[str, bool]
    cost: PartOfCost
    against: PairedComparison
    times_tokens: float | None

    @property
    def gain(self) -> str:
        """The comparison in words."""
        found = paired_sentence(self.against, "with the debates", "without")
        at = "" if self.times_tokens is None else f", at {times(self.times_tokens)} its tokens"
        return f"Against {self.name}, on the same cases: {found}{at}."


def baselines(run: RunData) -> list[Baseline]:
    """Agent 0's first answer and the vote of all first answers; none where agents give none before the debate.

    A way that costs as much as the run itself is no baseline of it.
    """
    ways: list[tuple[str, Mapping[str, bool], PartOfCost]] = [
        ("agent 0's first answer", run.answers.first_of(0), lambda cost: cost.single),
        (VOTE, opening_votes(run.answers), lambda cost: cost.openings),
    ]
    found = [_baseline(run, name, right, cost) for name, right, cost in ways if right]
    return [each for each in found if each.times_tokens is None or each.times_tokens > 1.0]


def single_agent_step(run: RunData) -> str | None:
    """Commands that run the same cases with one agent and compare; None where the run has a baseline or no accuracy."""
    summary = run.summary
    if run.once(baselines) or summary.accuracy is None or summary.protocol == SINGLE_AGENT:
        return None
    families = [name for name in summary.models if name != "judge"]
    if not families or summary.task is None:
        return None
    written = read_run_yaml(RunFolder(run.folder))
    out = f"{summary.run.rstrip('/')}-{SINGLE_AGENT}"
    flags: list[tuple[str, object]] = [("protocol", SINGLE_AGENT), ("task", summary.task)]
    flags.append(("model", summary.models["agent" if "agent" in families else families[0]][0]))
    flags += [("docs", path) for path in written.get("docs") or ()]
    flags += [(name, written[name]) for name in ("limit", "seed") if written.get(name)]
    command = " ".join(f"--{name} {shell_path(value)}" for name, value in (*flags, ("out", out)))
    return (
        "What a single agent gets is not in this record. Run it over the same cases, and compare: "
        f"moot run {command}; moot report {shell_path(out)} {shell_path(summary.run)}"
    )


def _baseline(run: RunData, name: str, known: Mapping[str, bool], cost: PartOfCost) -> Baseline:
    scored = {each.case_id: each.correct for each in run.counted if each.correct is not None}
    right = {case_id: bool(known.get(case_id)) for case_id in scored}
    against = compare_paired(list(scored.values()), list(right.values()), list(map(run.references.group, scored)))
    return Baseline(name, right, cost, against, _times_tokens(run, cost))


def _times_tokens(run: RunData, cost: PartOfCost) -> float | None:
    of_cases = (run.costs[verdict.key] for verdict in run.counted)
    known = [(base, own) for each in of_cases if (base := cost(each)) and (own := each.method) is not None]
    return sum(own for _, own in known) / sum(base for base, _ in known) if known else None
