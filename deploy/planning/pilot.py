"""What a pilot's record says of its debates: their asks, in which order, how long each took and what it used."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.actors.models.prices import Price, PriceTable
from moot.actors.record.folder import RunFolder
from moot.actors.record.rows import SHARED
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.schema import ASKED
from moot.actors.record.tables import read_table
from moot.deploy.planning.order import Timed, waits_for
from moot.deploy.reading.record import read_facts
from moot.protocols.errors import UserError

MOST_DEBATES = 5_000
"""A larger pilot is sampled: what more debates would tell is less than what next week's prices and servers change."""

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
    "at",
    "process_id",
]

_UNATTENDED = "unattended"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a debate.

    Attributes:
        model: number of its model in `Pilot.models`.
        after: numbers of the calls of its debate whose replies it waits for.
        gap_s: from the last of these replies, or the debate's begin, until an agent takes it up.
        busy_s: how long it was under way, retries included, waits for leave and after 429s not.
        requests: sent to the server, retries included.
        prompt, completion: tokens; None when the server did not say.
        reserved: tokens that a limit on tokens holds back while it is under way.
    """

    model: int
    after: tuple[int, ...]
    gap_s: float
    busy_s: float
    requests: int
    prompt: int | None
    completion: int | None
    reserved: int


@dataclass(frozen=True, slots=True)
class Debate:
    """A case of the pilot; the steps are in the order in which their replies came.

    Attributes:
        closing_s: of the time from its opening to its verdict what no call accounts for.
        unconfirmed_tokens: at most so many beyond `steps`, in attempts that the server may have billed.
    """

    case_id: str
    steps: tuple[Step, ...]
    closing_s: float
    failed: bool
    skipped: bool
    unconfirmed_tokens: int

    @property
    def alone_s(self) -> float:
        """How long it takes with nothing to wait for but its own replies: its critical path."""
        ended: list[float] = []
        for step in self.steps:
            ready = max((ended[before] for before in step.after), default=0.0)
            ended.append(ready + step.gap_s + step.busy_s)
        return max(ended, default=0.0) + self.closing_s


@dataclass(frozen=True, slots=True)
class Pilot:
    """A pilot's debates and what a reader must know of them.

    Attributes:
        models: names, as `Step.model` numbers them; prices: of each, None when it is not known.
        log_probabilities: whether any were asked for.
        simulated: whether a model was simulated; in_process: whether all answered in the run's own processes.
        sampled_from: how many debates could have been taken; more than `debates` in a large pilot.
        unfinished, with_reused, later_attempts: debates left out: without a verdict, with replies of another run, and
            second attempts at failed cases.
        shared: replies that several cases share; each is counted with one of the debates that were open then.
        waits_unknown: calls of a record from before waits were written down.
        interrupted: gaps in debates that a new session or a person's decision falls into, which count as none.
    """

    path: Path
    protocol: str
    task: str
    engine: str
    placement: str
    max_open: int | None
    models: tuple[str, ...]
    prices: tuple[Price | None, ...]
    debates: tuple[Debate, ...]
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


def read_pilot(folder: str | Path, *, prices: PriceTable | None = None, seed: int = 0) -> Pilot:
    """Read what a finished or stopped run measured.

    Args:
        folder: the run's folder.
        prices: over those that the run began with.
        seed: of the sample that is taken of a large pilot.

    Raises:
        RecordError: there is no run in the folder, or it cannot be read.
        UserError: nothing in it can be planned from.
    """
    facts, content = read_facts(folder), read_run_yaml(RunFolder(folder))
    turns = read_table(folder, "turns", _COLUMNS)
    rows = [row for row in turns.to_pylist() if not row["superseded"]]
    verdicts = read_table(folder, "verdicts", ["failed", "how", "wall_s"]).to_pylist()
    first = {row["case_id"]: row for row in verdicts if row["attempt"] == 0}
    of_case = _by_case(rows)
    reused = {case for case in first if any(row["reused_from"] for row in of_case[case])}
    usable = sorted(first.keys() - reused)
    if not usable:
        raise UserError(_nothing(facts.path, len(reused), content.get("reuse")))
    taken = sorted(random.Random(seed).sample(usable, MOST_DEBATES)) if len(usable) > MOST_DEBATES else usable
    marks = sorted([each.started_at for each in RunFolder(folder).epochs()] + _decided_at(rows))
    reading = _Reading(sorted({row["model"] for row in rows if _paid(row)}), _asked_at(folder), marks)
    shared = [row for case, found in of_case.items() if case.startswith(f"{SHARED}-") for row in found if _paid(row)]
    bindings = [member for members in (content.get("bindings") or {}).values() for member in members]
    known = dict(facts.prices)
    if prices is not None:
        known |= {model: price for model in reading.models if (price := prices.price(model)) is not None}
    sessions = [session for session in content.get("sessions") or [{}] if isinstance(session, dict)]
    begun = {row["case_id"] for row in rows if not row["case_id"].startswith(f"{SHARED}-")}
    paid = {case: [row for row in of_case[case] if _paid(row)] for case in taken}
    debates = reading.debates(paid, first, shared, {case: reading.began_at(of_case[case]) for case in begun})
    return Pilot(
        path=facts.path,
        protocol=facts.protocol or "",
        task=facts.task or "",
        engine=str(sessions[-1].get("engine") or content.get("engine") or ""),
        placement=str(sessions[-1].get("placement") or content.get("placement") or ""),
        max_open=content.get("max_open") if isinstance(content.get("max_open"), int) else None,
        models=tuple(reading.models),
        prices=tuple(known.get(model) for model in reading.models),
        debates=debates,
        log_probabilities=any(member.get("top_logprobs") for member in bindings if isinstance(member, dict)),
        simulated=facts.simulated,
        in_process=all(_in_process(model) for model in reading.models),
        sampled_from=len(usable),
        unfinished=len(begun - first.keys()),
        with_reused=len(reused),
        later_attempts=sum(row["attempt"] > 0 for row in verdicts),
        shared=len(shared),
        waits_unknown=reading.waits_unknown,
        interrupted=reading.interrupted,
    )


class _Reading:
    """Makes debates of rows.

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


def _by_case(rows: Iterable[Row]) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["attempt"] == 0:
            found[row["case_id"]].append(row)
    return found


def _asked_at(folder: str | Path) -> dict[tuple[str, str], list[float]]:
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for row in read_table(folder, "events", ["kind", "path", "at"]).to_pylist():
        if row["kind"] == ASKED and row["attempt"] == 0:
            found[row["case_id"], row["path"]].append(row["at"])
    return found


def _decided_at(rows: Iterable[Row]) -> list[float]:
    """When people decided; where nobody attends, a decision takes no time."""
    people = (row for row in rows if row["role"] == "person" and row["model"] != _UNATTENDED)
    return [row["at"] for row in people if row["at"]]


def _paid(row: Row) -> bool:
    return row["role"] != "person" and not row["reused_from"]


def _in_process(model: str) -> bool:
    return model.partition("?")[0] == "simulated" or model.startswith(("local/", "replay/"))


def _nothing(path: Path, reused: int, reuse: object) -> str:
    if not reused:
        return f"{path}: no debate has a verdict yet, so there is nothing to plan from"
    source = f": plan from it, with --from {reuse}" if reuse else ""
    return f"{path}: each of its {reused:,} debates has replies of another run, whose calls took no time here{source}"
