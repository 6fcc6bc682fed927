"""The bound at which a debate stops: what would have been answered, and paid, at each `debate.epsilon`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from moot.actors.record.rows import step_of
from moot.actors.record.schema import CaseKey
from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.calibration.cases import Bools, BothBranches
from moot.deploy.results.record import References, ReplyRow, latest_verdicts, read_as, read_events, read_replies
from moot.deploy.results.summaries.accuracy import PairedComparison, compare_paired, share
from moot.deploy.results.summaries.costs import total_tokens
from moot.deploy.results.text import Interval
from moot.metrics.distribution import Floats
from moot.protocols.selene.events import DebateStopped, RoundEnded

_STEPS = np.linspace(0.0, 1.0, 11)
_DIGITS = 4


class EpsilonPoint(FrozenModel):
    """What a bound comes to on a set of debates.

    Attributes:
        epsilon: the bound.
        rounds: mean rounds until it stops.
        accuracy: of the agents' vote after the last of these rounds.
        cost_vs_run: tokens over those of the same debates as they were held; None when no debate's usage is known.
    """

    epsilon: float
    rounds: float
    accuracy: float
    cost_vs_run: float | None


class EpsilonChoice(FrozenModel):
    """The bound that was chosen, and what it is worth.

    Attributes:
        run_epsilon: of the run; what a smaller one would have done was never seen.
        n_validation, n_held_out: debates that choose and that evaluate.
        grid: every bound on the validation cases.
        chosen: the cheapest whose accuracy is at most the tolerance below that of the run's bound.
        held_out, as_run: the chosen bound and the run's on the held-out cases, with Wilson intervals (95 %).
        vs_run: the chosen bound (first) against the run's (second), on the same held-out cases.
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
    """The debates of a run, one row per case and one column per round; NaN beyond a debate's end.

    Attributes:
        moved: |D(t-1) - D(t)|; infinite after a round that is no sign of stability: D unknown, an agent joined in, or
            no revision came.
        right: 1 where the vote after the round is right, else 0.
        tokens: of all replies of the round; NaN also where unknown.
        rounds: how many were held, per case; 0 where they are not known or cannot be scored.
        epsilon: of the run; the least where its debates had several, as after a resume.
    """

    moved: Floats
    right: Floats
    tokens: Floats
    rounds: Floats
    epsilon: float

    def stops(self, epsilon: float) -> Floats:
        """The number of the round after which each debate stops, from 1."""
        still = self.moved < epsilon
        return np.where(still.any(axis=1), still.argmax(axis=1) + 1.0, self.rounds)


def read_debate_rounds(folder: str | Path, case_ids: Sequence[str]) -> DebateRounds:
    """The rounds of these cases' last attempts, in their order.

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
    held = np.zeros(len(case_ids))
    for i, case_id in enumerate(case_ids):
        verdict = verdicts[case_id]
        told = sorted(rounds.get(verdict.key, ()), key=lambda ended: ended.round)
        scored = [references.correct(case_id, majority_answer(ended), verdict.gold) for ended in told]
        if any(each is None for each in scored):
            continue
        held[i] = len(told)
        moved[i, : len(told)] = [_moved(ended) for ended in told]
        right[i, : len(told)] = [bool(each) for each in scored]
        tokens[i, : len(told)] = [paid.get((verdict.key, ended.round)) for ended in told]
    return DebateRounds(moved, right, tokens, held, min(bounds, default=0.0))


def majority_answer(ended: RoundEnded) -> str:
    """The answer that most agents give after a round; of several the one with the higher mean stated confidence, then
    that of the first agent."""
    votes = Counter(ended.answers.values())

    def strength(answer: str) -> tuple[int, float]:
        stated = [ended.stated[name] for name, given in ended.answers.items() if given == answer]
        return votes[answer], fmean(stated)

    return max(votes, key=strength)


def _moved(ended: RoundEnded) -> float:
    """See `moot.protocols.selene.debate.stop_reason`."""
    silent = ended.answers.keys() <= ended.failed.keys()
    return np.inf if ended.delta is None or ended.joined or silent else abs(ended.delta)


def _paid(replies: Sequence[ReplyRow]) -> dict[tuple[CaseKey, int], float | None]:
    """Tokens by debate and round; None where a reply's are unknown."""
    said: dict[tuple[CaseKey, int], list[ReplyRow]] = {}
    for reply in replies:
        parts = step_of(reply.path).split("/")
        if parts[0] == "round" and not reply.superseded:
            said.setdefault((reply.key, int(parts[1])), []).append(reply)
    return {at: total_tokens(several) for at, several in said.items()}


def choose_epsilon(debates: DebateRounds, cases: BothBranches, held: Bools, tolerance: float) -> EpsilonChoice | None:
    """Choose the bound on the cases that are not `held` out, and evaluate it on those that are.

    The bounds tried are the run's and, above it, the tenths of what D moved by. A debate that stops earlier is answered
    by the agents' vote, for no judge was asked then; so is, to compare like with like, every other.

    Returns:
        None where no debate with known rounds is on one of the two sides.
    """
    known = debates.rounds > 0
    choosing, testing = known & ~held, known & held
    if not choosing.any() or not testing.any():
        return None
    grid = [_point(debates, cases, choosing, epsilon) for epsilon in _bounds(debates, choosing)]
    chosen = min((each for each in grid if each.accuracy >= grid[0].accuracy - tolerance - 1e-9), key=_cheap_first)
    by_choice, by_run = (_right(debates, epsilon)[testing].tolist() for epsilon in (chosen.epsilon, debates.epsilon))
    return EpsilonChoice(
        run_epsilon=debates.epsilon,
        n_validation=int(choosing.sum()),
        n_held_out=int(testing.sum()),
        grid=grid,
        chosen=chosen,
        held_out=_point(debates, cases, testing, chosen.epsilon),
        held_out_interval=share(by_choice)[1],
        as_run=_point(debates, cases, testing, debates.epsilon),
        as_run_interval=share(by_run)[1],
        vs_run=compare_paired(by_choice, by_run),
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
    held = np.arange(1, debates.moved.shape[1] + 1) <= debates.rounds[:, None]
    saved = np.where(after & held, debates.tokens, 0.0).sum(axis=1)
    counted = among & ~np.isnan(saved + cases.debate_tokens)
    whole = float(cases.debate_tokens[counted].sum())
    return EpsilonPoint(
        epsilon=epsilon,
        rounds=float(stops[among].mean()),
        accuracy=float(_right(debates, epsilon)[among].mean()),
        cost_vs_run=1.0 - float(saved[counted].sum()) / whole if whole else None,
    )
