"""Sums of what calls used: unknown usage is counted and never a number, and what may have been billed is a bound."""

from __future__ import annotations

import msgspec
import pytest

from moot.actors.models.prices import Price
from moot.actors.models.usage_totals import UsageTotals, add_usage, budget_use, cost_usd, total_of
from moot.protocols.messages import Usage

PRICE = Price(input=1.0, output=2.0)


@pytest.mark.parametrize(
    ("prompt", "completion", "complete", "expected"),
    [
        (10, 5, True, UsageTotals(10, 5, 1)),
        (0, 0, True, UsageTotals(0, 0, 1)),
        (10, None, True, UsageTotals(10, 0, 1, 1)),
        (None, None, True, UsageTotals(0, 0, 1, 1)),
        (10, 5, False, UsageTotals(10, 5, 1, 1)),
    ],
)
def test_a_call_counts_once_and_is_without_usage_where_a_part_is_unknown(
    prompt: int | None, completion: int | None, complete: bool, expected: UsageTotals
) -> None:
    used = UsageTotals()
    used.add(prompt, completion, complete=complete)
    assert used == expected
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(used), type=UsageTotals) == used


def test_a_sum_adds_every_field_and_changes_neither_side() -> None:
    one, other = UsageTotals(1, 2, 3, 4, 5, 6), UsageTotals(10, 20, 30, 40)
    other.add_unconfirmed(60)
    assert one + other == UsageTotals(11, 22, 33, 44, 6, 66)
    usage = {"a": one}
    add_usage(usage, {"a": other, "b": other})
    assert (usage["b"], total_of(usage)) == (UsageTotals() + other, one + other + other)
    assert one == UsageTotals(1, 2, 3, 4, 5, 6)


def test_the_usage_of_two_calls_is_unknown_where_that_of_one_is() -> None:
    both = Usage(10, 5, 1) + Usage(7, None, 2)
    assert (both, both.tokens, Usage(10, 5).tokens) == (Usage(17, None, 3), None, 15)


def test_a_cost_needs_every_price() -> None:
    used = UsageTotals(1_000_000, 500_000)
    assert cost_usd({"a": used}, {"a": PRICE}) == 2.0
    assert cost_usd({"a": used, "b": used}, {"a": PRICE}) is None


def test_a_budget_is_used_at_most_by_known_tokens_and_unconfirmed_attempts() -> None:
    usage = {"a": UsageTotals(1_000_000, 500_000, unconfirmed_tokens_max=250_000), "b": UsageTotals(7, 3)}
    assert budget_use(usage, {"a": PRICE}) == {"tokens": 1_750_010.0, "usd": 2.5}
    assert budget_use({}, {}) == {"tokens": 0.0, "usd": 0.0}
