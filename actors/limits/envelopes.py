"""Message types between the limiter and its clients (holders of permits): one exchange serves hundreds of calls."""

from __future__ import annotations

import msgspec


class BudgetTotals(msgspec.Struct, frozen=True):
    """A holder's totals of one budget.

    Attributes:
        reserved: upper bound of what its calls in flight still use. Each report releases every other reservation: two
            holders that each keep too little for a call would otherwise wait for each other.
        spent: what its calls have used since it started.
        wanted: what the waiting calls need.
        least: what the first waiting call needs.
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
        wanted: rate permits requested, prefetch included.
        first_tokens, wanted_tokens: upper bounds of tokens of the first waiting call, and of all requested ones.
        fine, limited, broken: since the last report, replies other than 429; 429s; failures of the endpoint.
        round_trips_s: seconds that the `fine` replies took in total.
        drained: whether headers said that the server's own limits are used up.
        asked_wait_s: longest wait that the server requested since the last report; 0 when it requested none.
        error: message of one of the failures or 429s; empty when there was none.
        unused: expired permits: (lease, requests, tokens).
        corrections: tokens that calls used beyond, or below, their estimate: (lease, tokens).
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
    asked_wait_s: float = 0.0
    error: str = ""
    unused: list[tuple[int, int, int]] = []
    corrections: list[tuple[int, int]] = []


class UsageReport(msgspec.Struct, frozen=True):
    """Report of a holder, and its demand.

    Attributes:
        holder: id of one incarnation of one process.
        endpoints: those with something to report.
        budgets: by budget, `usd` or `tokens`; only those with a cap.
        number: sequence number of the holder's report, for deduplication.
    """

    holder: str
    endpoints: list[EndpointReport] = []
    budgets: dict[str, BudgetTotals] = {}
    number: int = 0


class EndpointGrant(msgspec.Struct, frozen=True):
    """Grant to a holder at one endpoint, until the next exchange.

    Attributes:
        endpoint: its name.
        slots: most requests that it may have in flight.
        trial: whether the circuit breaker is open: a slot then serves a single call.
        lease: id of the rate permits; 0 when there are none.
        requests, tokens: the rate permits.
        again_in_s: seconds after which to request more; 0 for at once.
        down_s: how long the endpoint has failed for all holders; 0 while it works.
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
        exhausted: the budget that can never cover the first waiting call; empty otherwise.
        left: what is left of that budget.
    """

    endpoints: list[EndpointGrant] = []
    reserved: dict[str, float] = {}
    exhausted: str = ""
    left: float = 0.0


class EndpointState(msgspec.Struct, frozen=True):
    """State of an endpoint at the limiter.

    Attributes:
        bound: most requests in flight.
        in_use, waiting: requests in flight and waiting calls, as last reported.
        down_s: seconds for which it has failed; None while it works.
        asked_wait_s: seconds left of a long wait that its server requested; None without one.
        long_waits: number of such waits so far; one that is requested before another is over does not count.
        wait_error: message of the latest of them.
    """

    endpoint: str
    bound: int
    in_use: int
    waiting: int
    down_s: float | None = None
    asked_wait_s: float | None = None
    long_waits: int = 0
    wait_error: str = ""


class BudgetState(msgspec.Struct, frozen=True):
    """State of a budget: its cap, and what is spent or reserved of it."""

    name: str
    cap: float
    used: float


class LimiterState(msgspec.Struct, frozen=True):
    """State of a limiter."""

    endpoints: list[EndpointState] = []
    budgets: list[BudgetState] = []
