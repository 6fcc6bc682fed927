"""A pilot's debates, made of the rows of its record: which rows are one call, when it was asked, and what it took."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from moot.deploy.planning.order import Timed, waits_for
from moot.deploy.planning.pilot import Debate, Step

Row = dict[str, Any]

_GIVEN_AWAY = 0.1


class Reading:
    """Makes debates of rows of `turns`.

    Args:
        models: names, in the order in which steps number them.
        asked_at: when each step was asked, by case and path.
        marks: when something broke into the run: a new session, a person's decision.

    Attributes:
        models: names.
        waits_unknown, interrupted: see `Pilot`.
    """

    def __init__(self, models: list[str], asked_at: Mapping[tuple[str, str], list[float]], marks: list[float]) -> None:
        self.models = models
        self._numbers = {model: n for n, model in enumerate(models)}
        self._asked_at, self._marks = asked_at, marks
        self.waits_unknown = self.interrupted = 0

    def began_at(self, rows: Iterable[Row]) -> float:
        """When the first of a case's calls was asked; infinity for a case without any."""
        return min((self._times(row)[0].asked_at for row in rows), default=float("inf"))

    def debates(
        self,
        rows: Mapping[str, list[Row]],
        verdicts: Mapping[str, Row],
        shared: list[Row],
        begins: Mapping[str, float],
    ) -> tuple[Debate, ...]:
        """The debates of some cases, in order, each with the shared replies that it was the last to begin before.

        Args:
            rows: of the cases that are taken.
            verdicts: of these, at least.
            shared: replies that cases share.
            begins: of every case of the run, so that what fell to others is not put on those that are taken.
        """
        calls = {case: self._calls(found) for case, found in rows.items()}
        orders = waits_for([[timed for timed, _, _ in found] for found in calls.values()])
        extra = _adopted(self._calls(shared), begins)
        return tuple(
            self._debate(case, found, order, extra.get(case, []), verdicts[case])
            for (case, found), order in zip(calls.items(), orders, strict=True)
        )

    def _calls(self, rows: list[Row]) -> list[tuple[Timed, float, Row]]:
        """Each call's times, its seconds under way, and its row, by when its reply came; an ask that made several, the
        first of them unreadable or stopped early, is as many calls one after another."""
        asks: defaultdict[tuple[str, float], list[Row]] = defaultdict(list)
        for row in rows:
            asks[row["case_id"] + "/" + row["path"].partition("~")[0], row["at"] or 0.0].append(row)
        calls = []
        for chain in asks.values():
            chain.sort(key=lambda row: row["latency_s"] or 0.0)
            before: Timed | None = None
            waited_before = latency_before = 0.0
            for row in chain:
                timed, latency = self._times(row)
                if before is not None:
                    timed = timed._replace(asked_at=before.ended_at, began_at=before.ended_at)
                self.waits_unknown += row["waited_s"] is None
                waited = row["waited_s"] or 0.0
                busy = max(0.0, (latency - latency_before) - (waited - waited_before))
                calls.append((timed, busy, row))
                before, waited_before, latency_before = timed, waited, latency
        calls.sort(key=lambda call: call[0].ended_at)
        return calls

    def _times(self, row: Row) -> tuple[Timed, float]:
        at = row["at"] or 0.0
        asked = [each for each in self._asked_at.get((row["case_id"], row["path"].partition("~")[0]), ()) if each <= at]
        asked_at = max(asked, default=at)
        if row["latency_s"] is None:  # written down when it was given up, by who had asked
            return Timed(row["path"], asked_at, asked_at, at), at - asked_at
        return Timed(row["path"], asked_at, at, at + row["latency_s"]), row["latency_s"]

    def _debate(
        self,
        case: str,
        calls: list[tuple[Timed, float, Row]],
        order: list[tuple[int, ...]],
        extra: list[tuple[Timed, float, Row]],
        verdict: Row,
    ) -> Debate:
        begin = min((timed.asked_at for timed, _, _ in calls), default=0.0)
        steps = []
        for (timed, busy, row), after in zip(calls, order, strict=True):
            ready = max((calls[n][0].ended_at for n in after), default=begin)
            steps.append(self._step(row, after, self._gap(ready, timed.began_at), busy))
        end = max((timed.ended_at for timed, _, _ in calls), default=0.0)
        steps += [self._step(row, (), max(0.0, timed.began_at - begin), busy) for timed, busy, row in extra]
        return Debate(
            case_id=case,
            steps=tuple(steps),
            closing_s=max(0.0, (verdict["wall_s"] or 0.0) - (end - begin)),
            failed=bool(verdict["failed"]),
            skipped=verdict["how"] == "skipped",
            unconfirmed_tokens=sum(row["unconfirmed_tokens_max"] or 0 for _, _, row in [*calls, *extra]),
        )

    def _gap(self, ready: float, began: float) -> float:
        if any(ready < mark < began for mark in self._marks):
            self.interrupted += 1
            return 0.0
        return max(0.0, began - ready)

    def _step(self, row: Row, after: tuple[int, ...], gap_s: float, busy_s: float) -> Step:
        requests = (row["http_attempts"] or 0) or (row["unconfirmed_attempts"] or 0) or 1
        prompt, completion = row["prompt_tokens"], row["completion_tokens"]
        reserved = (prompt or 0) + max(row["max_tokens"] or 0, completion or 0)
        return Step(self._numbers[row["model"]], after, gap_s, busy_s, requests, prompt, completion, reserved)


def most_under_way(rows: Iterable[Row]) -> int:
    """Most calls that were under way at once; 0 where no row says how long it took.

    An ask has one call after another under way: from when it has waited for leave as long as it did to its last reply.
    The last tenth of that does not count: a call gives its place away before all that its latency includes is over.
    """
    asks: dict[tuple[str, str, float], tuple[float, float]] = {}
    for row in rows:
        if row["latency_s"] is not None:
            key = (row["case_id"], row["path"].partition("~")[0], row["at"] or 0.0)
            latency, waited = asks.get(key, (0.0, 0.0))
            asks[key] = max(latency, row["latency_s"]), max(waited, row["waited_s"] or 0.0)
    changes = [(at + min(waited, latency), 1) for (_, _, at), (latency, waited) in asks.items()]
    changes += [
        (at + latency - _GIVEN_AWAY * max(0.0, latency - waited), -1) for (_, _, at), (latency, waited) in asks.items()
    ]
    return max(accumulate(change for _, change in sorted(changes)), default=0)  # an end comes before a begin


def _adopted(
    shared: list[tuple[Timed, float, Row]], begins: Mapping[str, float]
) -> dict[str, list[tuple[Timed, float, Row]]]:
    """Shared calls by the case that was opened last before each."""
    found: dict[str, list[tuple[Timed, float, Row]]] = {}
    cases = sorted((case for case in begins if begins[case] < float("inf")), key=lambda case: begins[case])
    opened = [begins[case] for case in cases]
    for call in shared if cases else ():
        last = max(0, bisect_right(opened, call[0].asked_at) - 1)
        found.setdefault(cases[last], []).append(call)
    return found
