"""Message types between the limiter and its clients (holders of permits): one exchange serves hundreds of calls."""

from __future__ import annotations

import msgspec


class BudgetTotals(msgspec.Struct, frozen=True):
    """A holder's totals of one budget.

    Attributes:
        reserved: what its calls in flight may still use. Whatever else was reserved for it is released with each
            report: two holders that each keep too little for a call would wait for each other.
        spent: what its calls have used since it started.
        wanted: what the calls that wait need.
        least: what the first of them needs.
    """

    reserved: float = 0.0
    spent: float = 0.0
    wanted: float = 0.0
    least: float = 0.0


class EndpointReport(msgspec.Struct, frozen=True):
    """Report of a holder on one endpoint.

    Attributes:
        endpoint: its name.
        in_use: requests in flight.
        waiting: calls that wait to start.
        wanted: rate permits to grant, calls that are about to come included.
        first_tokens, wanted_tokens: tokens that the first call that waits, and all wanted ones, may use.
        fine, limited, broken: replies since the last report, of all kinds but 429; 429s; failures of the endpoint.
        round_trips_s: seconds that the `fine` took, together.
        drained: whether headers said that nothing is left of the server's own limits.
        error: one of the failures in words; empty when there was none.
        unused: permits that were not used in time: (lease, requests, tokens).
        corrections: by how many tokens calls used more, or less, than was foreseen: (lease, tokens).
    """

    endpoint: str
    in_use: int = 0
    waiting: int = 0
    wanted: int = 0
    first_tokens: int = 0
    wanted_tokens: int = 0
    fine: int = 0
    limited: int = 0
    broken: int = 0
    round_trips_s: float = 0.0
    drained: bool = False
    error: str = ""
    unused: list[tuple[int, int, int]] = []
    corrections: list[tuple[int, int]] = []


class UsageReport(msgspec.Struct, frozen=True):
    """Report of a holder, and its demand.

    Attributes:
        holder: id of one incarnation of one process.
        endpoints: those with something to report.
        budgets: by budget, `usd` or `tokens`; only those with a cap.
        number: of the holder's report, rising, so that a duplicate is recognised.
    """

    holder: str
    endpoints: list[EndpointReport] = []
    budgets: dict[str, BudgetTotals] = {}
    number: int = 0


class EndpointGrant(msgspec.Struct, frozen=True):
    """Grant to a holder at one endpoint, until the next exchange.

    Attributes:
        endpoint: its name.
        slots: requests that it may have in flight.
        trial: whether the circuit breaker is open: a slot serves one call, not one after the other.
        lease: number of the rate permits; 0 when there are none.
        requests, tokens: the rate permits.
        again_in_s: when to ask for more; 0 for at once.
        down_s: how long the endpoint was seen to fail for everyone; 0 while it works.
    """

    endpoint: str
    slots: int = 0
    trial: bool = False
    lease: int = 0
    requests: int = 0
    tokens: int = 0
    again_in_s: float = 0.0
    down_s: float = 0.0


class Grant(msgspec.Struct, frozen=True):
    """Grant: the limiter's answer to a report.

    Attributes:
        endpoints: one for each endpoint of the report.
        reserved: by budget, what is now reserved on top of what was reported.
        exhausted: the budget in which not even the first waiting call will ever fit; empty otherwise.
        left: what is left of that budget.
    """

    endpoints: list[EndpointGrant] = []
    reserved: dict[str, float] = {}
    exhausted: str = ""
    left: float = 0.0


class EndpointState(msgspec.Struct, frozen=True):
    """State of an endpoint at the limiter.

    Attributes:
        bound: requests that may be in flight.
        in_use, waiting: requests in flight, and calls that wait to start, as last reported.
        down_s: seconds for which it has been failing; None while it works.
    """

    endpoint: str
    bound: int
    in_use: int
    waiting: int
    down_s: float | None = None


class BudgetState(msgspec.Struct, frozen=True):
    """State of a budget: its cap, and what is spent or reserved of it."""

    name: str
    cap: float
    used: float


class LimiterState(msgspec.Struct, frozen=True):
    """State of a limiter."""

    endpoints: list[EndpointState] = []
    budgets: list[BudgetState] = []
