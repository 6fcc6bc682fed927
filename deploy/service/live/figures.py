"""Running figures of a run, from what is added to its record."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.prices import price_of
from moot.actors.models.usage_totals import UsageTotals, add_usage, cost_usd, total_of
from moot.actors.record.follow import Added
from moot.actors.record.progress import REPLY_COLUMNS, Counts
from moot.actors.record.rows import usage_by_model
from moot.deploy.results.figures.costs import CALL_COLUMNS, USED, has_known_tokens, lacks_usage, paid_calls
from moot.deploy.results.record import decode_json
from moot.deploy.results.references import GROUP_COLUMNS
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.report.render import SIMULATED
from moot.deploy.results.run_info import RunInfo, asks_a_model
from moot.deploy.results.text import Interval
from moot.deploy.service.live.open_debates import OpenDebates
from moot.deploy.service.live.scored import ScoredVerdicts
from moot.deploy.service.live.series import RecentRate, TimeBins
from moot.protocols.events import GATE, lacks_values

READ: dict[str, list[str]] = {
    "cases": ["case_id", *GROUP_COLUMNS, "gold"],
    "turns": [
        "case_id",
        "attempt",
        "path",
        "at",
        *CALL_COLUMNS,
    ],
    "events": ["case_id", "attempt", "kind", "path", "data", "at"],
    "verdicts": ["case_id", "attempt", "answer", "how", "confidence", "failed", "failure", "correct", "rounds", "at"],
}
"""Columns to read, by table."""

READ_OF_JOURNAL = list(REPLY_COLUMNS)
"""Further columns of replies from the journal: for readers of one debate."""


class LiveFigures(FrozenModel):
    """Figures of a run in progress; None is unknown.

    Attributes:
        total: cases of the run.
        failed: cases whose latest attempt failed.
        has_gold: whether any case so far has a right answer.
        accuracy_interval: Wilson's; none where several cases are of one group, which the summary counts as one.
        untested: debates whose gate could not make a test, because a value was unknown.
        tokens, cost_usd: paid for here, lower bounds if `calls_without_usage` is not 0.
        debates_per_s, tokens_per_s: over the last half minute.
        left_s: seconds until the end at that rate.
        simulated: warning about results of the simulated model, if any reply is one, or may still be; else empty.
        open, waiting: debates in progress, and those of them that wait for a person.
    """

    total: int | None
    finished: int
    failed: int
    scored: int
    has_gold: bool
    accuracy: float | None
    accuracy_interval: Interval | None
    skipped: int
    untested: int
    rounds: int
    replies: int
    tokens: int | None
    calls_without_usage: int
    cost_usd: float | None
    debates_per_s: float | None
    tokens_per_s: float | None
    left_s: float | None
    simulated: str
    open: int
    waiting: int


class RunningFigures:
    """Figures of a run so far. Not for several threads at once.

    Args:
        info: of the run.

    Attributes:
        accuracy, debates_by_time, debates: sources of the charts; the writers aggregate the rest.
        columns: what is read of the record, by table.
    """

    def __init__(self, info: RunInfo) -> None:
        self._info = info
        self._counts = Counts()
        self._usage: dict[str, UsageTotals] = {}
        self._knows_tokens = self._asked_a_model = self._has_gold = False
        self._failed: set[str] = set()
        self._debate_pace, self._token_pace = RecentRate(), RecentRate()
        self._scored, self.debates_by_time = ScoredVerdicts(info.path), TimeBins()
        self.accuracy = self._scored.accuracy
        self.debates = OpenDebates()
        self._session = info.owners  # an owner's number is how many there have been
        verdicts = list(dict.fromkeys([*READ["verdicts"], *self._scored.columns]))
        self.columns = {**READ, "verdicts": verdicts}

    def add(self, added: Added) -> None:
        """Add rows of the record; those of earlier sessions begin no debate."""
        if added.epoch > self._session:
            self._session = added.epoch
            self.debates.end_session()
        if added.epoch == self._session and added.table == "turns":
            self.debates.add_replies(added.rows)
        elif added.epoch == self._session and added.table == "events":
            self.debates.add_events(added.rows)
        getattr(self, f"_add_{added.table}")(added.rows)

    def _add_cases(self, cases: pa.Table) -> None:
        self._scored.add_cases(cases)
        self._has_gold |= cases["gold"].null_count < cases.num_rows

    def _add_turns(self, turns: pa.Table) -> None:
        self.debates.add_decisions(turns)
        self._asked_a_model |= asks_a_model(turns["role"])
        calls = paid_calls(turns)
        columns = calls.select(["model", *USED]).append_column("calls_without_usage", lacks_usage(calls))
        add_usage(self._usage, usage_by_model(columns))
        self._knows_tokens |= bool(pc.any(has_known_tokens(calls)).as_py())

    def _add_events(self, events: pa.Table) -> None:
        for data in events.filter(pc.equal(events["kind"], GATE))["data"].to_pylist():
            self._counts.untested += lacks_values(GATE, decode_json(data))
        for row in events.filter(pc.equal(events["kind"], "parked")).to_pylist():
            self.debates.wait((row["case_id"], row["attempt"]), row["path"], row["at"])

    def _add_verdicts(self, verdicts: pa.Table) -> None:
        finished = verdicts.filter(pc.invert(pc.fill_null(verdicts["failed"], False)))
        counts = self._counts
        counts.finished += finished.num_rows
        counts.skipped += pc.sum(pc.equal(finished["how"], "skipped")).as_py() or 0
        counts.rounds += pc.sum(finished["rounds"]).as_py() or 0
        self._scored.add(finished)
        keys = list(zip(*(verdicts[name].to_pylist() for name in ("case_id", "attempt")), strict=True))
        for (case_id, _), failed in zip(keys, verdicts["failed"].to_pylist(), strict=True):
            if failed:
                self._failed.add(case_id)
            else:
                self._failed.discard(case_id)
        self.debates.end(keys)
        at = verdicts["at"].drop_null().to_numpy()
        self.debates_by_time.add(at, np.ones(len(at)))

    @property
    def done(self) -> int:
        """Cases with a verdict."""
        return self._counts.finished + len(self._failed)

    @property
    def tokens(self) -> int | None:
        """Tokens paid for so far; None while no call says what it used."""
        return total_of(self._usage).tokens if self._knows_tokens or not self._usage else None

    def figures(self) -> LiveFigures:
        """Current figures."""
        now = time.monotonic()
        self._debate_pace.update(now, self.done)
        self._token_pace.update(now, self.tokens or 0)
        counts, accuracy, paid = self._counts, self.accuracy, total_of(self._usage)
        rate = self._debate_pace.per_s()
        total = self._info.cases
        left = None if total is None else max(0, total - self.done)
        return LiveFigures(
            total=total,
            finished=counts.finished,
            failed=len(self._failed),
            scored=accuracy.scored,
            has_gold=self._has_gold,
            accuracy=accuracy.correct / accuracy.scored if accuracy.scored else None,
            accuracy_interval=self._scored.interval(),
            skipped=counts.skipped,
            untested=counts.untested,
            rounds=counts.rounds,
            replies=paid.calls,
            tokens=self.tokens,
            calls_without_usage=paid.calls_without_usage,
            cost_usd=self._cost(),
            debates_per_s=rate,
            tokens_per_s=None if self.tokens is None else self._token_pace.per_s(),
            left_s=None if left is None or not rate else left / rate,
            simulated=SIMULATED if self._info.binds_simulated and (self._asked_a_model or not self.done) else "",
            open=len(self.debates),
            waiting=self.debates.waiting,
        )

    def _cost(self) -> float | None:
        known = {model: price_of(model, self._info.prices) for model in self._usage}
        prices = {model: price for model, price in known.items() if price is not None}
        return cost_usd(self._usage, prices)
