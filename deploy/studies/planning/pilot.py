"""Reads a pilot run: time and use of each debate, and what is left out."""

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
from moot.deploy.results.record.run_info import read_run_info
from moot.protocols.case import is_shared_id
from moot.protocols.errors import UNSENT, UserError

FEW = 20
"""Least debates of a pilot: fewer say little about the rare long ones."""

MOST_DEBATES = 5_000
"""A larger pilot is sampled: more debates would add less than prices and servers change within a week."""

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
    """A pilot's debates with caveats. Arrays are by debate, `(n,)` or `(n, models)`.

    Attributes:
        name: the record's folder or URI.
        models: names; prices: of each, None when it is not known.
        calls, requests, tokens, busy_s: calls; by model requests sent, tokens used and seconds in flight, including
            retries, without rate-limit waits.
        alone_s: seconds of each debate that only waits for its own replies.
        prompt_tokens, completion_tokens: of the calls with known usage; cost_usd: of those with a known price, too.
        calls_without_usage, calls_without_price: calls without usage, and without a known price.
        unconfirmed_tokens: upper bound of further tokens, in attempts that the server may have billed.
        failed, skipped: how the debates ended.
        log_probabilities: whether any were requested.
        simulated: whether a model was simulated; in_process: whether all answered in the run's own processes.
        sampled_from: number of usable debates; more than there are here for a large pilot.
        unfinished, with_reused, later_attempts: debates left out: without a verdict, with replies of another run, and
            second attempts at failed cases.
        shared: replies that several cases share, in proportion to each debate.
        waits_unknown: calls without recorded rate-limit waits (older records).
        interrupted: gaps in debates with a new session or a person's decision, which do not count.
        under_way: maximum calls in flight, over all models.
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
        folder: the run's folder, or its URI.
        prices: override those of the run.
        seed: random seed of the sample of a large pilot.

    Raises:
        ConfigError: pyarrow does not support the URI, or its store is unreachable.
        RecordError: there is no run in the folder, or it cannot be read.
        UserError: the run is no basis for a plan: it has at most one debate with a verdict from its own calls.
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
        raise UserError(_nothing(facts.name, len(reused), content.get("reuse")))
    if len(usable) == 1:
        raise UserError(f"{facts.name}: one debate does not say how debates differ; plan from a pilot of {FEW} or more")
    taken = sorted(random.Random(seed).sample(usable, MOST_DEBATES)) if len(usable) > MOST_DEBATES else usable
    shared = [row for case, found in of_case.items() if is_shared_id(case) for row in found if _paid(row)]
    paid = [[row for row in of_case[case] if _paid(row)] for case in taken]
    models = sorted({row["model"] for row in rows if _paid(row)})
    known = dict(facts.prices)
    if prices is not None:
        known |= {model: price for model in models if (price := prices.price(model)) is not None}
    marks = [each.started_at for each in RunFolder(folder).epochs()] + _decided_at(rows)
    spans = [_span(found, first[case]["wall_s"] or 0.0, marks) for case, found in zip(taken, paid, strict=True)]
    begun = {row["case_id"] for row in rows if not is_shared_id(row["case_id"])}
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
        **_used(paid, shared, len(begun), models, [known.get(model) for model in models]),
        alone_s=np.array([alone for alone, _ in spans]),
        failed=np.array([bool(first[case]["failed"]) for case in taken]),
        skipped=np.array([first[case]["how"] == "skipped" for case in taken]),
        log_probabilities=any(member.get("top_logprobs") for member in bindings if isinstance(member, dict)),
        simulated=facts.simulated,
        in_process=all(_in_process(model) for model in models),
        sampled_from=len(usable),
        unfinished=len(begun - first.keys()),
        with_reused=len(reused),
        later_attempts=sum(row["attempt"] > 0 for row in verdicts),
        shared=len(shared),
        waits_unknown=sum(row["waited_s"] is None for found in paid for row in found),
        interrupted=sum(gaps for _, gaps in spans),
        under_way=most_under_way(row for row in rows if _paid(row)),
    )


def _used(
    paid: Sequence[Sequence[Row]],
    shared: Sequence[Row],
    begun: int,
    models: Sequence[str],
    prices: Sequence[Price | None],
) -> Mapping[str, Any]:
    """Use of each debate, with its part of the shared replies."""
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
    found: dict[str, Floats] = {name: np.zeros((len(paid), len(models))) for name in by_model}
    found |= {name: np.zeros(len(paid)) for name in plain}
    price_of, column = dict(zip(models, prices, strict=True)), {model: n for n, model in enumerate(models)}
    for debate, rows in enumerate(paid):
        for row in rows:
            _add(found, debate, column[row["model"]], row, price_of[row["model"]], 1.0)
    for row in shared:
        _add(found, slice(None), column[row["model"]], row, price_of[row["model"]], 1.0 / max(1, begun))
    for debate, rows in enumerate(paid):
        for row, busy_s in _busy(rows):
            found["busy_s"][debate, column[row["model"]]] += busy_s
    return found


def _add(found: dict[str, Floats], debate: Any, model: int, row: Row, price: Price | None, part: float) -> None:
    prompt, completion = row["prompt_tokens"], row["completion_tokens"]
    reserved = (prompt or 0) + max(row["max_tokens"] or 0, completion or 0)
    is_told = prompt is not None and completion is not None
    requests = (row["http_attempts"] or 0) or (row["unconfirmed_attempts"] or 0) or 1
    found["calls"][debate] += part
    found["requests"][debate, model] += part * requests
    found["tokens"][debate, model] += part * (prompt + completion if is_told else reserved)
    found["prompt_tokens"][debate] += part * (prompt or 0)
    found["completion_tokens"][debate] += part * (completion or 0)
    found["calls_without_usage"][debate] += part * (not is_told)
    found["calls_without_price"][debate] += part * (price is None)
    found["unconfirmed_tokens"][debate] += part * (row["unconfirmed_tokens_max"] or 0)
    if is_told and price is not None:
        found["cost_usd"][debate] += part * price.bound_usd(prompt, completion)


def _asks(rows: Iterable[Row]) -> dict[tuple[str, str, float], list[Row]]:
    """The rows of each request in order: one with an unreadable or early-stopped first call has several."""
    asks: defaultdict[tuple[str, str, float], list[Row]] = defaultdict(list)
    for row in rows:
        if row["latency_s"] is not None:
            asks[row["case_id"], row["path"].partition("~")[0], row["at"] or 0.0].append(row)
    return {key: sorted(found, key=lambda row: row["latency_s"]) for key, found in asks.items()}


def _busy(rows: Iterable[Row]) -> Iterable[tuple[Row, float]]:
    """Seconds in flight of each call; a request's latencies and waits add up over its calls."""
    for chain in _asks(rows).values():
        latency_before = waited_before = 0.0
        for row in chain:
            latency, waited = row["latency_s"], row["waited_s"] or 0.0
            yield row, max(0.0, (latency - latency_before) - (waited - waited_before))
            latency_before, waited_before = latency, waited


def _span(rows: Iterable[Row], wall_s: float, marks: Sequence[float]) -> tuple[float, int]:
    """Seconds of a debate without rate-limit waits and gaps in which it did not run; and the number of such gaps, ended
    by a new session or a decision."""
    calls = [(at, chain[-1]["waited_s"] or 0.0, chain[-1]["latency_s"]) for (_, _, at), chain in _asks(rows).items()]
    busy = _union([(at + min(waited, latency), at + latency) for at, waited, latency in calls])
    known = _union([(at, at + latency) for at, _, latency in calls])
    gaps = [(end, start) for (_, end), (start, _) in pairwise(known)]
    cut = [gap for gap in gaps if any(gap[0] < mark < gap[1] for mark in marks)]
    begin, end = (known[0][0], known[-1][1]) if known else (0.0, 0.0)
    closing = max(0.0, wall_s - (end - begin))
    return _length(busy) + _length(gaps) - _length(cut) + closing, len(cut)


def _union(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _length(spans: Iterable[tuple[float, float]]) -> float:
    return sum(end - start for start, end in spans)


def most_under_way(rows: Iterable[Row]) -> int:
    """Maximum calls in flight; 0 when no row has a latency.

    A request has one call after another in flight: from the end of its rate-limit wait to its last reply. The last
    tenth of that does not count: a call releases its slot before all that its latency includes is over.
    """
    changes = []
    for (_, _, at), chain in _asks(rows).items():
        latency = chain[-1]["latency_s"]
        began = at + min(max(row["waited_s"] or 0.0 for row in chain), latency)
        changes += [(began, 1), (began + 0.9 * (at + latency - began), -1)]
    return max(accumulate(change for _, change in sorted(changes)), default=0)  # an end sorts before a start


def _decided_at(rows: Iterable[Row]) -> list[float]:
    """Times of people's decisions; in an unattended run a decision takes no time."""
    people = (row for row in rows if row["role"] == "person" and row["model"] != _UNATTENDED)
    return [row["at"] for row in people if row["at"]]


def _paid(row: Row) -> bool:
    return row["role"] != "person" and not row["reused_from"] and row["failure"] != UNSENT


def _in_process(model: str) -> bool:
    return model.partition("?")[0] == "simulated" or model.startswith(("local/", "replay/"))


def _nothing(name: str, reused: int, reuse: object) -> str:
    if not reused:
        return f"{name}: no debate has a verdict yet, so there is no basis for a plan"
    source = f": plan from it, with --from {reuse}" if reuse else ""
    return f"{name}: each of its {reused:,} debates has replies of another run, whose calls took no time here{source}"
