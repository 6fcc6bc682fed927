"""Worth of the debates: accuracy against baselines in the record, at what cost, and how agents change answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.schema import CaseKey
from moot.deploy.results.figures.accuracy import accuracy_of, share
from moot.deploy.results.figures.costs import CaseCost, CasePrice, costs_of_finished, prices_of_finished
from moot.deploy.results.figures.summary import record_summary
from moot.deploy.results.figures.verdicts import counted_verdicts
from moot.deploy.results.glossary import ending_words
from moot.deploy.results.record import CodedTexts, Flags, Ints, RunRecord, VerdictRow, once_per_record
from moot.deploy.results.report.blocks import Block, Chart, Heading, Note, Series, Table
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.stats import PairedComparison, compare_paired, paired_sentence
from moot.deploy.results.text import Interval, cases, count, mean_of, number, percent, shell_path, times

OPENING = 0
"""The round of the openings."""

_FEWEST_VOTERS = 3

_PATH = re.compile(r"(?:opening|round/(?P<round>\d+))/agent/(?P<agent>\d+)")
_PATTERN = r"^(opening|round/[0-9]+)/agent/[0-9]+$"


class AgentAnswers(NamedTuple):
    """The agents' answers in debates that can be scored, as columns, in order of case, agent and round.

    Attributes:
        cases: ids of the cases.
        case: `(n,)`, the place of each answer's case in them.
        agent: `(n,)`, who gave it.
        round: `(n,)`, when, `OPENING` for a first answer; rounds without a usable answer are missing.
        right: `(n,)`, whether it was right.
        answer: `(n,)`, a number for each distinct answer.
    """

    cases: Sequence[str]
    case: Ints
    agent: Ints
    round: Ints
    right: Flags
    answer: Ints

    def first_of(self, agent: int) -> dict[str, bool]:
        """Whether an agent's first answer was right, by case."""
        rows = (self.agent == agent) & (self.round == OPENING)
        ids = map(self.cases.__getitem__, self.case[rows].tolist())
        return dict(zip(ids, self.right[rows].tolist(), strict=True))


class RoundFlips(FrozenModel):
    """Changes of answers from the previous round.

    Attributes:
        answers: pairs of an agent's answers in both rounds.
        to_right: wrong before, right now.
        to_wrong: right before, wrong now.
    """

    round: int
    answers: int
    to_right: int
    to_wrong: int


@once_per_record
def agent_answers(record: RunRecord) -> AgentAnswers:
    """Answers of the debates whose verdict can be scored; empty where agents give no answer by the round."""
    scored = {verdict.case_id: verdict for verdict in counted_verdicts(record) if verdict.correct is not None}
    table = record.turns.select(["case_id", "attempt", "path", "answer", "superseded"])
    effective = pc.and_(pc.is_valid(table["answer"]), pc.invert(pc.fill_null(table["superseded"], False)))
    table = table.filter(pc.and_(effective, pc.match_substring_regex(table["path"], _PATTERN)))
    case, path = CodedTexts.of(table["case_id"]), CodedTexts.of(table["path"])
    of_case = [scored.get(case_id) for case_id in case.texts]
    replies = (case.codes.tolist(), table["attempt"].to_pylist(), table["answer"].to_pylist())
    outcomes = [
        None
        if (verdict := of_case[code]) is None or verdict.attempt != attempt
        else record.references.correct(verdict.case_id, answer, verdict.gold)
        for code, attempt, answer in zip(*replies, strict=True)
    ]
    known = np.array([outcome is not None for outcome in outcomes], np.bool_)
    places = np.array([_place(text) for text in path.texts], np.int64).reshape(-1, 2)[path.codes[known]]
    right = np.array([outcome for outcome in outcomes if outcome is not None], np.bool_)
    given = CodedTexts.of(table["answer"]).codes[known]
    order = np.lexsort((places[:, 0], places[:, 1], case.codes[known]))
    agent, number = places[order, 1], places[order, 0]
    return AgentAnswers(case.texts, case.codes[known][order], agent, number, right[order], given[order])


def _place(path: str) -> tuple[int, int]:
    """Round and agent of a path."""
    place = _PATH.fullmatch(path)
    assert place is not None, "of `_PATTERN`"
    return int(place["round"] or OPENING), int(place["agent"])


def opening_votes(answers: AgentAnswers) -> dict[str, bool]:
    """Whether the most frequent first answer is right, by case; a tie counts as wrong.

    Empty with fewer than three agents, whose votes decide nothing.
    """
    if len(np.unique(answers.agent)) < _FEWEST_VOTERS:
        return {}
    openings = answers.round == OPENING
    several = int(answers.answer.max(initial=0)) + 1
    ballots = answers.case[openings] * several + answers.answer[openings]
    options, first, votes = np.unique(ballots, return_index=True, return_counts=True)
    right = answers.right[openings][first]
    order = np.lexsort((-votes, options // several))
    case, votes, right = (options // several)[order], votes[order], right[order]
    leads = np.flatnonzero(np.diff(case, prepend=-1))
    following = np.minimum(leads + 1, len(case) - 1)
    tied = (following > leads) & (case[following] == case[leads]) & (votes[following] == votes[leads])
    ids = map(answers.cases.__getitem__, case[leads].tolist())
    return dict(zip(ids, (right[leads] & ~tied).tolist(), strict=True))


def flips(answers: AgentAnswers) -> list[RoundFlips]:
    """Changes by round, in order; a round without a pair of answers is left out."""
    same = (np.diff(answers.case) == 0) & (np.diff(answers.agent) == 0) & (np.diff(answers.round) == 1)
    before, now, at = answers.right[:-1][same], answers.right[1:][same], answers.round[1:][same]
    return [
        RoundFlips(
            round=number,
            answers=int((at == number).sum()),
            to_right=int((now & ~before)[at == number].sum()),
            to_wrong=int((before & ~now)[at == number].sum()),
        )
        for number in np.unique(at).tolist()
    ]


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


def baselines(run: RunRecord) -> list[Baseline]:
    """Agent 0's first answer and the vote of all first answers; none where agents give none before the debate.

    A way that costs as much as the run itself is no baseline of it.
    """
    ways: list[tuple[str, Mapping[str, bool], PartOfCost]] = [
        ("agent 0's first answer", agent_answers(run).first_of(0), lambda cost: cost.single),
        (VOTE, opening_votes(agent_answers(run)), lambda cost: cost.openings),
    ]
    found = [_baseline(run, name, right, cost) for name, right, cost in ways if right]
    return [each for each in found if each.times_tokens is None or each.times_tokens > 1.0]


def single_agent_step(run: RunRecord) -> str | None:
    """Commands that run the same cases with one agent and compare; None where the run has a baseline or no accuracy."""
    summary = record_summary(run)
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


def _baseline(run: RunRecord, name: str, known: Mapping[str, bool], cost: PartOfCost) -> Baseline:
    scored = {each.case_id: each.correct for each in counted_verdicts(run) if each.correct is not None}
    right = {case_id: bool(known.get(case_id)) for case_id in scored}
    against = compare_paired(list(scored.values()), list(right.values()), list(map(run.references.group, scored)))
    return Baseline(name, right, cost, against, _times_tokens(run, cost))


def _times_tokens(run: RunRecord, cost: PartOfCost) -> float | None:
    of_cases = (costs_of_finished(run)[verdict.key] for verdict in counted_verdicts(run))
    known = [(base, own) for each in of_cases if (base := cost(each)) and (own := each.method) is not None]
    return sum(own for _, own in known) / sum(base for base, _ in known) if known else None


_SKIPPED = "skipped"
"""Code in `how` of a case whose debate a gate skipped."""


class _Mean(NamedTuple):
    """Mean cost of a case, over the `n` of its row's `of` cases whose costs are known."""

    value: float
    n: int
    of: int

    def text(self, value: str) -> str:
        return value if self.n == self.of else f"{value} (n = {self.n:,})"


class _Price(NamedTuple):
    """Accuracy of a way to answer, with its cost; `groups` is None if the cases are independent."""

    name: str
    tokens: _Mean
    usd: _Mean | None
    accuracy: float
    interval: Interval | None
    n: int
    groups: int | None


def worth(run: RunRecord) -> Iterator[Block]:
    """Cost and benefit of the debates, by their length; empty for a run without a finished debate."""
    finished = counted_verdicts(run)
    if not finished or record_summary(run).judging is not None:
        return
    yield Heading("Is it worth it")
    yield from _prices(run, finished)
    yield from _flips(run)
    ended = [verdict for verdict in run.verdicts if not verdict.failed]
    debated = [verdict for verdict in ended if verdict.how != _SKIPPED]
    if len({verdict.rounds for verdict in debated}) > 1:
        yield _lengths(debated, len(ended) - len(debated))
    endings = Counter(verdict.how or "unknown" for verdict in ended)
    rows = [(ending_words(how), how, count(n), percent(n / len(ended))) for how, n in endings.most_common()]
    yield Table("How the cases ended", ("ended because", "recorded as", "cases", "share"), rows)


def _prices(run: RunRecord, finished: Sequence[VerdictRow]) -> Iterator[Block]:
    ways = (
        *(_baseline_price(run, finished, each) for each in run.once(baselines)),
        _price(run, "all cases", finished),
    )
    found = [price for price in ways if price is not None]
    rounds = sorted({verdict.rounds for verdict in finished})
    by_rounds = [
        price
        for n in rounds
        if (price := _price(run, _rounds_words(of_n := [v for v in finished if v.rounds == n]), of_n)) is not None
    ]
    found += by_rounds if len(rounds) > 1 else []
    if len(found) > 1:
        yield _price_chart(found, by_rounds)
    if found:
        yield _price_table(found)


def baseline_blocks(run: RunRecord) -> Iterator[Block]:
    """Accuracy and cost of the baselines beside those of the debates; empty where no baseline costs less."""
    if record_summary(run).judging is not None or (whole := _price(run, "all cases", counted_verdicts(run))) is None:
        return
    priced = [(each, _baseline_price(run, counted_verdicts(run), each)) for each in run.once(baselines)]
    cheaper = [(each, price) for each, price in priced if price is not None and price.tokens.value < whole.tokens.value]
    if cheaper:
        table = _price_table([*(price for _, price in cheaper), whole])
        yield table._replace(title="Baselines beside the debates")
        yield from (Note(each.gain) for each, _ in cheaper)


def _price_table(found: Sequence[_Price]) -> Table:
    """Table of the ways to answer; with USD where a model costs any."""
    header = ["", "tokens per case"]
    costs = [[price.tokens.text(count(round(price.tokens.value)))] for price in found]
    if any(price.usd and price.usd.value for price in found):
        header.append("USD per case")
        in_usd = [price.usd.text(number(price.usd.value, 6)) if price.usd else number(None) for price in found]
        costs = [[*row, usd] for row, usd in zip(costs, in_usd, strict=True)]
    accuracies = [percent(price.accuracy, price.interval, price.n, price.groups) for price in found]
    rows = [(price.name, *row, text) for price, row, text in zip(found, costs, accuracies, strict=True)]
    return Table("", (*header, "accuracy"), rows)


def _price_chart(found: Sequence[_Price], by_rounds: Sequence[_Price]) -> Chart:
    longer = " Cases of different lengths are different cases: a long debate is a hard one."
    return Chart(
        "worth",
        "Accuracy against tokens per case",
        [_point(place, price) for place, price in enumerate(found)],
        x_label="tokens per case, mean",
        y_label="accuracy",
        y_range=(0.0, 1.0),
        note="Higher is better, further left is cheaper. Bars are 95 % intervals; there are none for fewer "
        f"than ten groups of dependent cases.{longer if len(by_rounds) > 1 else ''}",
    )


def _rounds_words(verdicts: Sequence[VerdictRow]) -> str:
    """Name of a row of verdicts that have equally many rounds."""
    if all(verdict.how == _SKIPPED for verdict in verdicts):
        return "skipped by the gate"
    rounds = verdicts[0].rounds
    return f"{rounds} round{'' if rounds == 1 else 's'}"


def _point(place: int, price: _Price) -> Series:
    low, high = price.interval or (None, None)
    return Series(price.name, [price.tokens.value], [price.accuracy], low=[low], high=[high], style=place)


def _price(run: RunRecord, name: str, verdicts: Sequence[VerdictRow]) -> _Price | None:
    """Accuracy and cost of some cases' verdicts; None where either is unknown."""
    accuracy, interval, n = accuracy_of(verdicts, run.references)
    tokens, usd = (
        _mean(run, costs_of_finished(run), verdicts, _method),
        _mean(run, prices_of_finished(run), verdicts, _method),
    )
    groups = run.references.number_of_groups(each.case_id for each in verdicts if each.correct is not None)
    return None if accuracy is None or tokens is None else _Price(name, tokens, usd, accuracy, interval, n, groups)


def _baseline_price(run: RunRecord, finished: Sequence[VerdictRow], baseline: Baseline) -> _Price | None:
    """Accuracy and cost of a baseline; None where its tokens are unknown."""
    accuracy, interval, n = share(baseline.right.items(), run.references.group)
    tokens, usd = (
        _mean(run, costs_of_finished(run), finished, baseline.cost),
        _mean(run, prices_of_finished(run), finished, baseline.cost),
    )
    groups = run.references.number_of_groups(baseline.right)
    if accuracy is None or tokens is None:
        return None
    return _Price(baseline.name, tokens, usd, accuracy, interval, n, groups)


def _method(cost: CaseCost | CasePrice) -> float | None:
    return cost.method


def _mean(
    run: RunRecord,
    costs: Mapping[CaseKey, CaseCost | CasePrice],
    verdicts: Sequence[VerdictRow],
    part: PartOfCost,
) -> _Mean | None:
    """Mean of a part of the verdicts' costs; None where none is known.

    It is over the cases of which all ways to answer have a known cost, so that rows compare the same cases: a call of
    unknown usage is likelier in a long debate.
    """
    ways = [_method, *(each.cost for each in run.once(baselines))]
    priced = [way for way in ways if any(way(each) is not None for each in costs.values())]
    shared = [cost for cost in (costs[each.key] for each in verdicts) if all(way(cost) is not None for way in priced)]
    mean = mean_of(map(part, shared))
    return None if mean is None else _Mean(mean, len(shared), len(verdicts))


def _flips(run: RunRecord) -> Iterator[Block]:
    found = flips(agent_answers(run))
    if not found:
        return
    rounds = [f"round {each.round}" for each in found]
    to_right = Series("wrong to right", rounds, [float(each.to_right) for each in found], mark="bars", style=0)
    to_wrong = Series("right to wrong", rounds, [float(each.to_wrong) for each in found], mark="bars", style=1)
    yield Chart(
        "flips",
        "Who changes whose answer: agents' answers that changed, by round",
        [to_right, to_wrong],
        y_label="answers",
        note="Each answer is compared with the same agent's in the round before. More answers should become right "
        "than wrong.",
    )
    rows = [(f"round {each.round}", count(each.answers), count(each.to_right), count(each.to_wrong)) for each in found]
    yield Table("", ("", "answers", "wrong to right", "right to wrong"), rows)


def _lengths(debated: Sequence[VerdictRow], skipped: int) -> Chart:
    rounds = Counter(verdict.rounds for verdict in debated)
    lengths = sorted(rounds)
    series = Series("cases", [str(n) for n in lengths], [float(rounds[n]) for n in lengths], mark="bars")
    note = f"Left out: {cases(skipped)} whose debate the gate skipped." if skipped else ""
    return Chart("rounds", "Debates by number of rounds", [series], x_label="rounds", y_label="cases", note=note)
