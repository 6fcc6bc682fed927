"""Benefit of the debates against their cost: accuracy against tokens, and changes of answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from moot.actors.record.schema import CaseKey
from moot.deploy.results.endings import ending_words
from moot.deploy.results.record.rows import VerdictRow
from moot.deploy.results.report.blocks import Block, Chart, Heading, Note, Series, Table
from moot.deploy.results.run_report.answers import flips
from moot.deploy.results.run_report.baselines import Baseline, PartOfCost, baselines
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.summaries.accuracy import accuracy_of, share
from moot.deploy.results.summaries.case_costs import CaseCost, CasePrice
from moot.deploy.results.text import Interval, cases, count, mean_of, number, percent

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


def worth(run: RunData) -> Iterator[Block]:
    """Cost and benefit of the debates, by their length; empty for a run without a finished debate."""
    finished = run.counted
    if not finished or run.summary.judging is not None:
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


def _prices(run: RunData, finished: Sequence[VerdictRow]) -> Iterator[Block]:
    ways = (*(_baseline(run, finished, each) for each in run.once(baselines)), _price(run, "all cases", finished))
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


def baseline_blocks(run: RunData) -> Iterator[Block]:
    """Accuracy and cost of the baselines beside those of the debates; empty where no baseline costs less."""
    if run.summary.judging is not None or (whole := _price(run, "all cases", run.counted)) is None:
        return
    priced = [(each, _baseline(run, run.counted, each)) for each in run.once(baselines)]
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


def _price(run: RunData, name: str, verdicts: Sequence[VerdictRow]) -> _Price | None:
    """Accuracy and cost of some cases' verdicts; None where either is unknown."""
    accuracy, interval, n = accuracy_of(verdicts, run.references)
    tokens, usd = _mean(run, run.costs, verdicts, _method), _mean(run, run.prices, verdicts, _method)
    groups = run.references.number_of_groups(each.case_id for each in verdicts if each.correct is not None)
    return None if accuracy is None or tokens is None else _Price(name, tokens, usd, accuracy, interval, n, groups)


def _baseline(run: RunData, finished: Sequence[VerdictRow], baseline: Baseline) -> _Price | None:
    """Accuracy and cost of a baseline; None where its tokens are unknown."""
    accuracy, interval, n = share(baseline.right.items(), run.references.group)
    tokens, usd = _mean(run, run.costs, finished, baseline.cost), _mean(run, run.prices, finished, baseline.cost)
    groups = run.references.number_of_groups(baseline.right)
    if accuracy is None or tokens is None:
        return None
    return _Price(baseline.name, tokens, usd, accuracy, interval, n, groups)


def _method(cost: CaseCost | CasePrice) -> float | None:
    return cost.method


def _mean(
    run: RunData,
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


def _flips(run: RunData) -> Iterator[Block]:
    found = flips(run.answers)
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
