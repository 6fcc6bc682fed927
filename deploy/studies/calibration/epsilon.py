"""Calibration of `debate.epsilon`, the convergence threshold of a debate, from the rounds of a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from moot.actors.record.rows import step_of
from moot.actors.record.schema import CaseKey
from moot.deploy.results.figures.costs import total_tokens
from moot.deploy.results.record import ReplyRow, latest_verdicts, read_as, read_events, read_replies
from moot.deploy.results.references import References
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.stats import PairedComparison
from moot.deploy.results.text import Interval
from moot.deploy.studies.calibration.branches import Bools, BothBranches
from moot.metrics.distribution import Floats
from moot.protocols.selene.events import DebateStopped, RoundEnded

_STEPS = np.linspace(0.0, 1.0, 11)
_DIGITS = 4


class EpsilonPoint(FrozenModel):
    """Figures of a value of epsilon on a set of debates.

    Attributes:
        epsilon: the value.
        rounds: mean number of rounds until a debate stops.
        accuracy: accuracy of the agents' vote after the last of these rounds.
        cost_vs_run: tokens relative to the same debates as they ran; None when no debate's usage is known.
    """

    epsilon: float
    rounds: float
    accuracy: float
    cost_vs_run: float | None


class EpsilonChoice(FrozenModel):
    """Chosen epsilon with its evaluation.

    Attributes:
        run_epsilon: the run's value; a smaller one cannot be evaluated from the record.
        n_validation, n_held_out: debates of the validation split, and held-out debates.
        grid: every value on the validation cases.
        chosen: the cheapest value whose accuracy is at most the tolerance below that of the run's value.
        held_out, as_run: the chosen value and the run's on the held-out cases, with 95 % intervals.
        vs_run: the chosen value (first) against the run's (second), on the same held-out cases.
    """

    run_epsilon: float
    n_validation: int
    n_held_out: int
    grid: list[EpsilonPoint]
    chosen: EpsilonPoint
    held_out: EpsilonPoint
    held_out_interval: Interval | None
    as_run: EpsilonPoint
    as_run_interval: Interval | None
    vs_run: PairedComparison


@dataclass(frozen=True, slots=True)
class DebateRounds:
    """Rounds of a run's debates: arrays with a row for each case and a column for each round, NaN after the last one.

    Attributes:
        moved: |D(t-1) - D(t)|; infinite after a round without evidence of convergence: D is unknown, an agent joined,
            or no agent revised its answer.
        right: 1 where the vote after the round is right, else 0.
        tokens: tokens of all replies of the round; NaN where unknown.
        rounds: number of rounds by case, shape `(cases,)`; 0 where they are unknown or cannot be scored.
        epsilon: the run's value; the smallest if its debates had several, as after a resume.
    """

    moved: Floats
    right: Floats
    tokens: Floats
    rounds: Floats
    epsilon: float

    def stops(self, epsilon: float) -> Floats:
        """Number of the round after which each debate stops, from 1, shape `(cases,)`."""
        is_converged = self.moved < epsilon
        return np.where(is_converged.any(axis=1), is_converged.argmax(axis=1) + 1.0, self.rounds)


def read_debate_rounds(folder: str | Path, case_ids: Sequence[str]) -> DebateRounds:
    """Rounds of these cases' latest attempts with a verdict, in the order of the ids.

    Raises:
        RecordError: the record cannot be read.
    """
    verdicts = {verdict.case_id: verdict for verdict in latest_verdicts(folder)}
    references, rounds = References.of(folder), dict[CaseKey, list[RoundEnded]]()
    events = read_events(folder, (RoundEnded.kind, DebateStopped.kind))
    bounds = {stopped.epsilon for _, stopped in read_as(events, DebateStopped) if stopped.epsilon is not None}
    for event, ended in read_as(events, RoundEnded):
        rounds.setdefault(event.key, []).append(ended)
    paid = _paid(read_replies(folder))
    longest = max(map(len, rounds.values()), default=0)
    moved, right, tokens = (np.full((len(case_ids), longest), np.nan) for _ in range(3))
    run = np.zeros(len(case_ids))
    for i, case_id in enumerate(case_ids):
        verdict = verdicts[case_id]
        ended_rounds = sorted(rounds.get(verdict.key, ()), key=lambda ended: ended.round)
        scored = [references.correct(case_id, majority_answer(ended), verdict.gold) for ended in ended_rounds]
        if any(each is None for each in scored):
            continue
        run[i] = len(ended_rounds)
        moved[i, : len(ended_rounds)] = [_moved(ended) for ended in ended_rounds]
        right[i, : len(ended_rounds)] = [bool(each) for each in scored]
        tokens[i, : len(ended_rounds)] = [paid.get((verdict.key, ended.round)) for ended in ended_rounds]
    return DebateRounds(moved, right, tokens, run, min(bounds, default=0.0))


def majority_answer(ended: RoundEnded) -> str:
    """Majority answer after a round; of ties that with the higher mean stated confidence, then the first agent's."""
    votes = Counter(ended.answers.values())

    def strength(answer: str) -> tuple[int, float]:
        stated = [ended.stated[name] for name, given in ended.answers.items() if given == answer]
        known = [confidence for confidence in stated if confidence is not None]
        return votes[answer], fmean(known) if known else -1.0

    return max(votes, key=strength)


def _moved(ended: RoundEnded) -> float:
    """Change of D as in `moot.protocols.selene.debate.stop_reason`; infinite without evidence of convergence."""
    all_failed = ended.answers.keys() <= ended.failed.keys()
    return np.inf if ended.delta is None or ended.joined or all_failed else abs(ended.delta)


def _paid(replies: Sequence[ReplyRow]) -> dict[tuple[CaseKey, int], float | None]:
    """Tokens by debate and round; None where those of a reply are unknown."""
    by_round: dict[tuple[CaseKey, int], list[ReplyRow]] = {}
    for reply in replies:
        parts = step_of(reply.path).split("/")
        if parts[0] == "round" and not reply.superseded:
            by_round.setdefault((reply.key, int(parts[1])), []).append(reply)
    return {at: total_tokens(several) for at, several in by_round.items()}


def choose_epsilon(
    debates: DebateRounds, cases: BothBranches, held_out: Bools, tolerance: float
) -> EpsilonChoice | None:
    """Chooses epsilon on the validation cases and evaluates it on the held-out ones.

    The candidates are the run's epsilon and, above it, the deciles of the changes of D. The answer of every debate is
    the agents' vote, because the record has no judgment after an earlier round.

    Returns:
        None where one of the two splits has no debate with known rounds.
    """
    known = debates.rounds > 0
    choosing, testing = known & ~held_out, known & held_out
    if not choosing.any() or not testing.any():
        return None
    grid = [_point(debates, cases, choosing, epsilon) for epsilon in _bounds(debates, choosing)]
    chosen = min((each for each in grid if each.accuracy >= grid[0].accuracy - tolerance - 1e-9), key=_cheap_first)
    by_choice, by_run = (_right(debates, epsilon) for epsilon in (chosen.epsilon, debates.epsilon))
    return EpsilonChoice(
        run_epsilon=debates.epsilon,
        n_validation=int(choosing.sum()),
        n_held_out=int(testing.sum()),
        grid=grid,
        chosen=chosen,
        held_out=_point(debates, cases, testing, chosen.epsilon),
        held_out_interval=cases.share_right(by_choice, testing)[1],
        as_run=_point(debates, cases, testing, debates.epsilon),
        as_run_interval=cases.share_right(by_run, testing)[1],
        vs_run=cases.compared(by_choice, by_run, testing),
    )


def _cheap_first(point: EpsilonPoint) -> tuple[float, float, float]:
    cost = point.rounds if point.cost_vs_run is None else round(point.cost_vs_run, 9)
    return (cost, -point.accuracy, point.epsilon)


def _bounds(debates: DebateRounds, among: Bools) -> list[float]:
    moved = debates.moved[among]
    moved = moved[np.isfinite(moved)]
    if not moved.size:
        return [debates.epsilon]
    above = np.ceil(np.quantile(moved, _STEPS) * 10**_DIGITS + 1.0) / 10**_DIGITS
    return [debates.epsilon, *np.unique(above[above > debates.epsilon]).tolist()]


def _right(debates: DebateRounds, epsilon: float) -> Bools:
    last = np.maximum(debates.stops(epsilon).astype(np.intp) - 1, 0)
    right: Bools = np.take_along_axis(debates.right, last[:, None], axis=1)[:, 0] == 1.0
    return right


def _point(debates: DebateRounds, cases: BothBranches, among: Bools, epsilon: float) -> EpsilonPoint:
    stops = debates.stops(epsilon)
    after = np.arange(1, debates.moved.shape[1] + 1) > stops[:, None]
    ran = np.arange(1, debates.moved.shape[1] + 1) <= debates.rounds[:, None]
    saved = np.where(after & ran, debates.tokens, 0.0).sum(axis=1)
    counted = among & ~np.isnan(saved + cases.debate_tokens)
    whole = float(cases.debate_tokens[counted].sum())
    return EpsilonPoint(
        epsilon=epsilon,
        rounds=float(stops[among].mean()),
        accuracy=float(_right(debates, epsilon)[among].mean()),
        cost_vs_run=1.0 - float(saved[counted].sum()) / whole if whole else None,
    )
