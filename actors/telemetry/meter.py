"""Metrics of a run: the table of all metrics, and the interface of a meter.

Independent of Ray. Labels have few values, to bound the number of series: protocol, role and model are those of the
configuration, all others are from closed sets; no label names a debate or a case.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 30.0, 60.0, 120.0)
_WAITS = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_LONG_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_NATS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
_ROUND_NATS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_DISTANCES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.5, 2.0)

LAST_ROUND_LABEL = 12
_ROUND_LABEL = f"Rounds from {LAST_ROUND_LABEL} on have the label {LAST_ROUND_LABEL}."


def round_label(number: int | None) -> str:
    """Value of the label `round`, of few values; empty outside the rounds.

    >>> round_label(2), round_label(40), round_label(None)
    ('2', '12', '')
    """
    return "" if number is None else str(max(0, min(number, LAST_ROUND_LABEL)))


class Metric(NamedTuple):
    """Metric: its name, kind, labels and description.

    Attributes:
        name: in Prometheus format, unit included; Ray adds the prefix `ray_`.
        kind: a counter only increases, a gauge has the last value set, a histogram counts values by bucket.
        about: description in one line.
        labels: names of its labels; every metric also has the label `protocol`.
        boundaries: upper bounds of a histogram's buckets, above 0.
        detail: for the reference page: label values, what is counted, and which process counts it.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    about: str
    labels: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()
    detail: str = ""


DEBATES_OPEN = Metric("moot_debates_open", "gauge", "Debates in progress.", detail="Counted by moderators.")
DEBATES_DONE = Metric(
    "moot_debates_done_total",
    "counter",
    "Debates with a durable verdict that did not fail.",
    detail="Counted by record writers.",
)
DEBATES_FAILED = Metric(
    "moot_debates_failed_total",
    "counter",
    "Debates durably recorded as failed.",
    ("failure",),
    detail="By kind of failure; errors of a protocol of your own are `other`. Counted by record writers.",
)
DEBATE_SECONDS = Metric(
    "moot_debate_seconds",
    "histogram",
    "Seconds from a debate's last start to its verdict.",
    (),
    _LONG_SECONDS,
    detail="Counted by record writers.",
)
TURNS = Metric(
    "moot_turns_total",
    "counter",
    "Recorded replies that ended an ask.",
    ("role", "outcome"),
    detail="Reused replies included. Counted by record writers.",
)
CALLS = Metric(
    "moot_calls_total",
    "counter",
    "Attempts to call a model that have ended.",
    ("model", "outcome"),
    detail="`answered`, `limited` (429), `broken` (the server failed), `refused` or `cancelled`. Counted by agents.",
)
CALL_SECONDS = Metric(
    "moot_call_seconds",
    "histogram",
    "Latency of answered attempts, in seconds.",
    ("model",),
    _SECONDS,
    detail="Without the wait for the limits. Counted by agents.",
)
RETRIES = Metric(
    "moot_call_retries_total",
    "counter",
    "Further attempts after a failed one.",
    ("model", "kind"),
    detail="By kind of the previous failure. Counted by agents.",
)
TOKENS = Metric(
    "moot_tokens_total",
    "counter",
    "Tokens that servers billed.",
    ("model", "part"),
    detail="`prompt` and `completion`. Counted by agents.",
)
COST = Metric(
    "moot_cost_usd_total",
    "counter",
    "Cost in USD of calls of known price and usage.",
    ("model",),
    detail="Counted by agents.",
)
UNKNOWN_COST = Metric(
    "moot_calls_of_unknown_cost_total",
    "counter",
    "Calls of unknown cost.",
    ("model", "why"),
    detail="Not in any sum of costs: the `price` is unknown, or the server reported no `usage`. Counted by agents.",
)
LIMITER_WAIT = Metric(
    "moot_limiter_wait_seconds",
    "histogram",
    "Seconds that a call waits for admission.",
    ("model",),
    _WAITS,
    detail="By limits of rates, concurrency or budget. Counted by agents.",
)
SURPRISAL = Metric(
    "moot_reply_surprisal_nats",
    "histogram",
    "Mean surprisal (negative log-probability) of a reply's tokens, in nats.",
    ("model", "role", "round"),
    _NATS,
    detail=f"Only log-probabilities that no schema's mask has changed. {_ROUND_LABEL} It is empty for replies outside "
    "the rounds. Counted by agents.",
)
ROUND_NATS = Metric(
    "moot_round_nats",
    "histogram",
    "Divergences and entropies of a debate in a round, in nats.",
    ("measure", "round"),
    _ROUND_NATS,
    detail="`jsd`, `generalised_jsd`, `kl`, `mi`, `ce`, `entropy`, `mixture_entropy`; of several sides or pairs the "
    f"mean. {_ROUND_LABEL} Counted by record writers.",
)
ROUND_RATIO = Metric(
    "moot_round_ratio",
    "histogram",
    "Contentiousness and quality of a debate in a round, and misalignment of its openings, in [0, 1].",
    ("measure", "round"),
    _SHARES,
    detail=f"`kappa`, `crit` (mean over the sides), `gamma`, `nmi`, `m`. {_ROUND_LABEL} Counted by record writers.",
)
ROUND_DISTANCE = Metric(
    "moot_round_distance",
    "histogram",
    "Distance between the answers of a debate in a round.",
    ("measure", "round"),
    _DISTANCES,
    detail=f"`d` (disagreement D, at most 2), `wd` (Wasserstein). {_ROUND_LABEL} Counted by record writers.",
)
JUDGE_DISAGREEMENT = Metric(
    "moot_judge_disagreement",
    "histogram",
    "Range of the judges' scores of one reply, in [0, 1].",
    (),
    _SHARES,
    detail="Of mean scores, with two judges or more. Counted by record writers.",
)
BUDGET_USED = Metric(
    "moot_budget_used_ratio",
    "gauge",
    "Share of a budget that is spent or reserved.",
    ("budget",),
    detail="`usd` or `tokens`. Counted by the limiter.",
)
ACTOR_RESTARTS = Metric(
    "moot_actor_restarts_total",
    "counter",
    "Restarts of dead actors' processes.",
    ("actor",),
    detail="Counted by every process.",
)

METRICS = (
    DEBATES_OPEN,
    DEBATES_DONE,
    DEBATES_FAILED,
    DEBATE_SECONDS,
    TURNS,
    CALLS,
    CALL_SECONDS,
    RETRIES,
    TOKENS,
    COST,
    UNKNOWN_COST,
    LIMITER_WAIT,
    SURPRISAL,
    ROUND_NATS,
    ROUND_RATIO,
    ROUND_DISTANCE,
    JUDGE_DISAGREEMENT,
    BUDGET_USED,
    ACTOR_RESTARTS,
)
"""All metrics of a run."""


class Meter(Protocol):
    """Meter of a process; never blocks. Label values are given in the metric's order."""

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """Increment a counter by `amount`, at least 0; an increment of 0 starts its series, so that a rate includes its
        first increase."""
        ...

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Set a gauge."""
        ...

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Add a value to a histogram."""
        ...


class NoOpMeter:
    """No-op meter."""

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """See `Meter.add`."""

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """See `Meter.set`."""

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """See `Meter.observe`."""


SILENT: Meter = NoOpMeter()
