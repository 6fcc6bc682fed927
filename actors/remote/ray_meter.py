"""A meter on Ray's metrics: each node's agent adds the numbers of its processes up and shows them to Prometheus."""

from __future__ import annotations

from typing import Any

from ray.util.metrics import Counter, Gauge, Histogram

from moot.actors.meter import METRICS, Metric

_PROTOCOL = "protocol"


class RayMeter:
    """The meter of one Ray process; use it where `ray` is initialised.

    The node's agent keeps a series for each process that ever was. So nothing falls back to 0 when an actor is started
    again: the new process has a series of its own, and a sum over all of them is the total.

    Args:
        protocol: of the run; a label of every number.
    """

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._made: dict[str, Any] = {metric.name: _make(metric) for metric in METRICS}
        self._tags: dict[tuple[str, ...], dict[str, str]] = {}

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """See `Meter.add`."""
        counter = self._made[metric.name]
        if amount > 0.0:
            counter.inc(amount, self._tagged(metric, labels))
        else:
            counter._record(0.0, self._tagged(metric, labels))  # `inc` refuses 0, and there is no other way to begin

    def put(self, metric: Metric, value: float, *labels: str) -> None:
        """See `Meter.put`."""
        self._made[metric.name].set(value, self._tagged(metric, labels))

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """See `Meter.observe`."""
        self._made[metric.name].observe(value, self._tagged(metric, labels))

    def _tagged(self, metric: Metric, labels: tuple[str, ...]) -> dict[str, str]:
        key = (metric.name, *labels)
        known = self._tags.get(key)
        if known is None:
            known = self._tags[key] = {_PROTOCOL: self._protocol, **dict(zip(metric.labels, labels, strict=True))}
        return known


def _make(metric: Metric) -> Any:
    tags = (_PROTOCOL, *metric.labels)
    if metric.kind == "histogram":
        return Histogram(metric.name, metric.about, boundaries=list(metric.boundaries), tag_keys=tags)
    return (Counter if metric.kind == "counter" else Gauge)(metric.name, metric.about, tag_keys=tags)
