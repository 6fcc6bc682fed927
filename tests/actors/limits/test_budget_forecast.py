"""How many debates a budget lets be open: by what those that ended have used, and by the plan before any has."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from fake_runtime import FakeModeratorHandle, FakeRuntime, _cases
from manual_runtime import ManualRuntime as Places
from manual_runtime import case, open_dispatcher, until, until_open

from moot.actors.debate.moderator import Assignment, AssignmentOutcome, ModeratorReport
from moot.actors.dispatch.completed_cases import CompletedCases
from moot.actors.dispatch.dispatcher import Dispatcher
from moot.actors.limits.budget_forecast import UNBOUNDED, BudgetForecast, DebateCostBound
from moot.actors.limits.limiter_client import ArrivalOrder
from moot.actors.models.prices import Price
from moot.actors.models.usage_totals import UsageTotals
from moot.actors.record.debate_result import DebateResult


def use(tokens: int, unknown: int = 0) -> dict[str, UsageTotals]:
    return {"m": UsageTotals(tokens // 2, tokens - tokens // 2, 1, unknown)}


def of_tokens(left: float, bound: DebateCostBound | None = None) -> BudgetForecast:
    return BudgetForecast({"tokens": left}, {} if bound is None else {"tokens": bound}, {})


def test_before_a_debate_has_ended_its_bound_counts_and_then_the_mean() -> None:
    found = of_tokens(1000, DebateCostBound(300, 100))
    assert found.most_open == 3
    found.settle(use(100), whole=True)
    assert found.most_open == (900 - 100) // ((300 + 100) / 2)
    for _ in range(7):
        found.settle(use(50), whole=True)
    assert found.most_open == (1000 - 450 - 100) // ((300 + 450) / 9)


def test_a_protocol_that_does_not_say_what_it_asks_opens_one_debate_first() -> None:
    found = of_tokens(1000)
    assert found.most_open == 1
    found.settle(use(100), whole=True)
    assert found.most_open == 9


def test_one_debate_may_always_be_open_and_without_a_cost_all_may() -> None:
    assert of_tokens(0, DebateCostBound(300, 100)).most_open == 1
    assert BudgetForecast({"usd": 0.0}, {"usd": DebateCostBound(0.0, 0.0)}, {}).most_open == UNBOUNDED
    assert BudgetForecast({}, {}, {}).most_open == UNBOUNDED


def test_the_tightest_budget_counts_and_money_is_counted_with_prices() -> None:
    bounds = {"tokens": DebateCostBound(100, 0), "usd": DebateCostBound(1.0, 0.0)}
    found = BudgetForecast({"tokens": 1e9, "usd": 4.0}, bounds, {"m": Price(input=1e6, output=0.0)})
    assert found.most_open == 4
    found.settle({"m": UsageTotals(2, 5)}, whole=True)
    assert found.most_open == (4 - 2) // ((1 + 2) / 2)


def test_a_debate_of_unknown_use_has_used_its_bound_and_says_nothing_of_others() -> None:
    found = of_tokens(1000, DebateCostBound(300, 0))
    found.settle(use(10, unknown=1), whole=True)
    assert found.most_open == 700 // 300


def test_a_debate_that_paid_nothing_says_nothing_of_others() -> None:
    found = of_tokens(1000)
    found.settle({}, whole=True)
    assert found.most_open == 1, "as of a case that cannot be debated: nothing is known yet of what others use"
    found = of_tokens(1000, DebateCostBound(300, 0))
    for _ in range(200):
        found.settle({}, whole=True)
    assert found.most_open == 3


def test_a_debate_that_rests_on_recorded_replies_says_nothing_of_what_a_new_one_uses() -> None:
    assert AssignmentOutcome("c", 0, "finished", paid=use(10)).is_whole
    assert not AssignmentOutcome("c", 0, "finished", paid=use(10), used_recorded=True).is_whole
    assert not AssignmentOutcome("c", 0, "parked", paid=use(10)).is_whole
    ended = DebateResult(case_id="c", attempt=0, answer="Yes", how="told", usage=use(30))
    assert (ended.used_more_than(use(10)), ended.used_more_than({}), ended.used_more_than(use(30))) == (
        True,
        True,
        False,
    )


class CostlyHandle(FakeModeratorHandle):
    """Its debates use 100 tokens each."""

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> ModeratorReport:
        report = await super().exchange(assignments, wait=wait)
        for outcome in report.done:
            outcome.paid.update(use(100))
        await asyncio.sleep(0)
        return report


@pytest.mark.parametrize("moderators", [1, 3])
async def test_the_dispatcher_opens_what_the_budget_covers_and_continues_as_debates_end(moderators: int) -> None:
    made = [CostlyHandle() for _ in range(moderators)]
    covered = of_tokens(1000, DebateCostBound(300, 100))
    most = [0]

    class Watched(Dispatcher):
        def _room(self, number: int) -> int:
            most.append(sum(self._assigned))
            return super()._room(number)

    async with asyncio.timeout(10):
        await Watched(FakeRuntime(made, max_open=100), iter(_cases(9)), CompletedCases({}, {}), None, covered).run()
    assert sorted(case_id for moderator in made for case_id in moderator.held) == [f"c{n}" for n in range(9)]
    assert max(most) <= 4, "3 by the bound; then 4 by the mean of few"


async def test_the_reception_hands_over_what_the_budget_covers_and_the_rest_as_debates_end() -> None:
    runtime = Places(2)
    async with open_dispatcher(runtime, forecast=of_tokens(1200, DebateCostBound(400, 0))) as found:
        held = [asyncio.create_task(found.run_case(case(number))) for number in range(5)]
        for ended in range(5):
            covered = max(1, 3 - ended)
            await until_open(runtime, covered)
            for _ in range(20):
                await asyncio.sleep(0)
            assert sum(len(moderator.open) for moderator in runtime.places) == covered
            moderator = next(each for each in runtime.places if each.open)
            moderator.finish(next(iter(moderator.open)))
            moderator._done[-1].paid.update(use(400))
            await until(lambda ended=ended: sum(each.done() for each in held) > ended)  # type: ignore[misc]


def test_ages_rise_and_the_longest_quiet_debate_is_forgotten_first() -> None:
    ages = ArrivalOrder(kept=2)
    assert (ages.of(""), ages.of("a"), ages.of("b"), ages.of("a")) == (0, 1, 2, 1)
    assert ages.of("c") == 3
    assert (ages.of("a"), ages.of("b")) == (1, 4)
