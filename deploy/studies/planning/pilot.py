"""Pilot runs: time and use of each debate, read from the record."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from moot.actors.models.prices import Price, PriceTable
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.store.mirror import record_path
from moot.actors.record.tables import read_table
from moot.deploy.results.run_info import read_run_info
from moot.protocols.case import is_shared_id
from moot.protocols.errors import UNSENT, UserError

FEW = 20
"""Minimum number of debates without a caveat: fewer say little about rare long debates."""

MOST_DEBATES = 5_000
"""Maximum number of debates; a larger pilot is sampled, because more would hardly improve the plan."""

_COLUMNS = [
    "role",
    "model",
    "max_tokens",
    "prompt_tokens",
    "completion_tokens",
    "latency_s",
    "waited_s",
    "http_attempts",
    "unconfirmed_attempts",
    "unconfirmed_tokens_max",
    "reused_from",
    "failure",
    "at",
]
_UNATTENDED = "unattended"

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Pilot:
    """Debates of a pilot run. Arrays are by debate, `(n,)` or `(n, models)`.

    Attributes:
        name: folder or URI of the record.
        models: model names.
        prices: price of each model; None if unknown.
        calls, requests, tokens, busy_s: calls; by model: requests sent, tokens used and seconds in flight, including
            retries, without rate-limit waits.
        alone_s: duration of each debate in seconds, without rate-limit waits and interruptions.
        prompt_tokens, completion_tokens: of the calls with known usage.
        cost_usd: of the calls with known usage and price.
        calls_without_usage, calls_without_price: number of calls without known usage, and without a known price.
        unconfirmed_tokens: upper bound of additional tokens, in attempts that the server may have billed.
        failed, skipped: how the debates ended.
        log_probabilities: whether any were requested.
        simulated: whether a model was simulated.
        in_process: whether all models ran in the run's own processes.
        sampled_from: number of usable debates, of which these are all or a sample.
        unfinished, with_reused, later_attempts: debates left out: without a verdict, with replies of another run, and
            second attempts at failed cases.
        shared: number of replies shared by several cases, which count in proportion for each debate.
        waits_unknown: number of calls without recorded rate-limit waits (older records).
        interrupted: gaps in debates ended by a new session or a person's decision; not counted in `alone_s`.
        under_way: maximum number of calls in flight, over all models.
    """

    name: str
    protocol: str
    task: str
    engine: str
    placement: str
    max_open: int | None
    models: tuple[str, ...]
    prices: tuple[Price | None, ...]
    calls: Floats
    requests: Floats
    tokens: Floats
    busy_s: Floats
    alone_s: Floats
    prompt_tokens: Floats
    completion_tokens: Floats
    cost_usd: Floats
    calls_without_usage: Floats
    calls_without_price: Floats
    unconfirmed_tokens: Floats
    failed: Bools
    skipped: Bools
    log_probabilities: bool
    simulated: bool
    in_process: bool
    sampled_from: int
    unfinished: int
    with_reused: int
    later_attempts: int
    shared: int
    waits_unknown: int
    interrupted: int
    under_way: int

    @property
    def debates(self) -> int:
        """Number of debates."""
        return len(self.calls)


def read_pilot(folder: str | Path, *, prices: PriceTable | None = None, seed: int = 0) -> Pilot:
    """Read a finished or stopped run as a pilot.

    Args:
        folder: folder or URI of the run.
        prices: prices that override those of the run.
        seed: random seed of the sample of a large pilot.

    Raises:
        ConfigError: pyarrow does not support the URI, or its store is unreachable.
        RecordError: there is no run in the folder, or it cannot be read.
        UserError: the run cannot be planned from: fewer than two debates have a verdict from calls of their own.
    """
    folder = record_path(folder)
    facts, content = read_run_info(folder), read_run_yaml(RunFolder(folder))
    rows = [row for row in read_table(folder, "turns", _COLUMNS).to_pylist() if not row["superseded"]]
    verdicts = read_table(folder, "verdicts", ["failed", "how", "wall_s"]).to_pylist()
    first = {row["case_id"]: row for row in verdicts if row["attempt"] == 0}
    of_case: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["attempt"] == 0:
            of_case[row["case_id"]].append(row)
    reused = {case for case in first if any(row["reused_from"] for row in of_case[case])}
    usable = sorted(first.keys() - reused)
    if not usable:
        raise UserError(_no_basis(facts.name, len(reused), content.get("reuse")))
    if len(usable) == 1:
        raise UserError(f"{facts.name}: one debate does not show how debates vary; plan from a pilot of {FEW} or more")
    sampled = sorted(random.Random(seed).sample(usable, MOST_DEBATES)) if len(usable) > MOST_DEBATES else usable
    shared = [row for case, calls in of_case.items() if is_shared_id(case) for row in calls if _paid(row)]
    paid = [[row for row in of_case[case] if _paid(row)] for case in sampled]
    models = sorted({row["model"] for row in rows if _paid(row)})
    known = dict(facts.prices)
    if prices is not None:
        known |= {model: price for model in models if (price := prices.price(model)) is not None}
    restarts = [each.started_at for each in RunFolder(folder).epochs()] + _decided_at(rows)
    spans = [_span(calls, first[case]["wall_s"] or 0.0, restarts) for case, calls in zip(sampled, paid, strict=True)]
    started = {row["case_id"] for row in rows if not is_shared_id(row["case_id"])}
    bindings = [member for members in (content.get("bindings") or {}).values() for member in members]
    sessions = [session for session in content.get("sessions") or [{}] if isinstance(session, dict)]
    return Pilot(
        name=facts.name,
        protocol=facts.protocol or "",
        task=facts.task or "",
        engine=str(sessions[-1].get("engine") or content.get("engine") or ""),
        placement=str(sessions[-1].get("placement") or content.get("placement") or ""),
        max_open=content.get("max_open") if isinstance(content.get("max_open"), int) else None,
        models=tuple(models),
        prices=tuple(known.get(model) for model in models),
        **_used(paid, shared, len(started), models, [known.get(model) for model in models]),
        alone_s=np.array([alone for alone, _ in spans]),
        failed=np.array([bool(first[case]["failed"]) for case in sampled]),
        skipped=np.array([first[case]["how"] == "skipped" for case in sampled]),
        log_probabilities=any(member.get("top_logprobs") for member in bindings if isinstance(member, dict)),
        simulated=facts.simulated,
        in_process=all(_in_process(model) for model in models),
        sampled_from=len(usable),
        unfinished=len(started - first.keys()),
        with_reused=len(reused),
        later_attempts=sum(row["attempt"] > 0 for row in verdicts),
        shared=len(shared),
        waits_unknown=sum(row["waited_s"] is None for calls in paid for row in calls),
        interrupted=sum(gaps for _, gaps in spans),
        under_way=most_under_way(row for row in rows if _paid(row)),
    )


def _used(
    paid: Sequence[Sequence[Row]],
    shared: Sequence[Row],
    started: int,
    models: Sequence[str],
    prices: Sequence[Price | None],
) -> Mapping[str, Any]:
    """Use of each debate, with its proportion of the shared replies."""
    by_model = ("requests", "tokens", "busy_s")
    plain = (
        "calls",
        "prompt_tokens",
        "completion_tokens",
        "cost_usd",
        "calls_without_usage",
        "calls_without_price",
        "unconfirmed_tokens",
    )
    used: dict[str, Floats] = {name: np.zeros((len(paid), len(models))) for name in by_model}
    used |= {name: np.zeros(len(paid)) for name in plain}
    price_of, column = dict(zip(models, prices, strict=True)), {model: n for n, model in enumerate(models)}
    for debate, rows in enumerate(paid):
        for row in rows:
            _add(used, debate, column[row["model"]], row, price_of[row["model"]], 1.0)
    for row in shared:
        _add(used, slice(None), column[row["model"]], row, price_of[row["model"]], 1.0 / max(1, started))
    for debate, rows in enumerate(paid):
        for row, busy_s in _busy(rows):
            used["busy_s"][debate, column[row["model"]]] += busy_s
    return used


def _add(used: dict[str, Floats], debate: Any, model: int, row: Row, price: Price | None, proportion: float) -> None:
    prompt, completion = row["prompt_tokens"], row["completion_tokens"]
    reserved = (prompt or 0) + max(row["max_tokens"] or 0, completion or 0)
    has_usage = prompt is not None and completion is not None
    requests = (row["http_attempts"] or 0) or (row["unconfirmed_attempts"] or 0) or 1
    used["calls"][debate] += proportion
    used["requests"][debate, model] += proportion * requests
    used["tokens"][debate, model] += proportion * (prompt + completion if has_usage else reserved)
    used["prompt_tokens"][debate] += proportion * (prompt or 0)
    used["completion_tokens"][debate] += proportion * (completion or 0)
    used["calls_without_usage"][debate] += proportion * (not has_usage)
    used["calls_without_price"][debate] += proportion * (price is None)
    used["unconfirmed_tokens"][debate] += proportion * (row["unconfirmed_tokens_max"] or 0)
    if has_usage and price is not None:
        used["cost_usd"][debate] += proportion * price.bound_usd(prompt, completion)


def _asks(rows: Iterable[Row]) -> dict[tuple[str, str, float], list[Row]]:
    """Rows of each ask, in order; an ask has several if its first call was unreadable or stopped early."""
    asks: defaultdict[tuple[str, str, float], list[Row]] = defaultdict(list)
    for row in rows:
        if row["latency_s"] is not None:
            asks[row["case_id"], row["path"].partition("~")[0], row["at"] or 0.0].append(row)
    return {key: sorted(chain, key=lambda row: row["latency_s"]) for key, chain in asks.items()}


def _busy(rows: Iterable[Row]) -> Iterable[tuple[Row, float]]:
    """Seconds in flight of each call; latencies and waits of an ask accumulate over its calls."""
    for chain in _asks(rows).values():
        latency_before = waited_before = 0.0
        for row in chain:
            latency, waited = row["latency_s"], row["waited_s"] or 0.0
            yield row, max(0.0, (latency - latency_before) - (waited - waited_before))
            latency_before, waited_before = latency, waited


def _span(rows: Iterable[Row], wall_s: float, restarts: Sequence[float]) -> tuple[float, int]:
    """Seconds of a debate without rate-limit waits and interruptions, and the number of interruptions.

    An interruption is a gap between calls that ends with a new session or a decision.
    """
    calls = [(at, chain[-1]["waited_s"] or 0.0, chain[-1]["latency_s"]) for (_, _, at), chain in _asks(rows).items()]
    busy = _union([(at + min(waited, latency), at + latency) for at, waited, latency in calls])
    known = _union([(at, at + latency) for at, _, latency in calls])
    gaps = [(end, start) for (_, end), (start, _) in pairwise(known)]
    cut = [gap for gap in gaps if any(gap[0] < restart < gap[1] for restart in restarts)]
    begin, end = (known[0][0], known[-1][1]) if known else (0.0, 0.0)
    closing = max(0.0, wall_s - (end - begin))
    return _length(busy) + _length(gaps) - _length(cut) + closing, len(cut)


def _union(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _length(spans: Iterable[tuple[float, float]]) -> float:
    return sum(end - start for start, end in spans)


def most_under_way(rows: Iterable[Row]) -> int:
    """Maximum number of calls in flight; 0 if no row has a latency.

    The calls of an ask follow one another, from the end of its rate-limit wait to its last reply. The last tenth of
    that time is not counted: a call releases its slot before the end of its recorded latency.
    """
    changes = []
    for (_, _, at), chain in _asks(rows).items():
        latency = chain[-1]["latency_s"]
        began = at + min(max(row["waited_s"] or 0.0 for row in chain), latency)
        changes += [(began, 1), (began + 0.9 * (at + latency - began), -1)]
    return max(accumulate(change for _, change in sorted(changes)), default=0)  # an end sorts before a start


def _decided_at(rows: Iterable[Row]) -> list[float]:
    """Times of decisions by persons; in an unattended run a decision takes no time."""
    people = (row for row in rows if row["role"] == "person" and row["model"] != _UNATTENDED)
    return [row["at"] for row in people if row["at"]]


def _paid(row: Row) -> bool:
    return row["role"] != "person" and not row["reused_from"] and row["failure"] != UNSENT


def _in_process(model: str) -> bool:
    return model.partition("?")[0] == "simulated" or model.startswith(("local/", "replay/"))


def _no_basis(name: str, reused: int, reuse: object) -> str:
    if not reused:
        return f"{name}: no debate has a verdict yet, so there is no basis for a plan"
    source = f": plan from it, with --from {reuse}" if reuse else ""
    return f"{name}: each of its {reused:,} debates has replies of another run, whose calls took no time in it{source}"
