"""Reads a pilot: which debates of a run's record are gone by, and what is left out of them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from moot.actors.models.prices import PriceTable
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.schema import ASKED
from moot.actors.record.store.mirror import record_path
from moot.actors.record.tables import read_table
from moot.deploy.planning.debates import Reading, Row, most_under_way
from moot.deploy.planning.pilot import FEW, Pilot
from moot.deploy.reading.record import read_facts
from moot.protocols.case import is_shared_id
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


def read_pilot(folder: str | Path, *, prices: PriceTable | None = None, seed: int = 0) -> Pilot:
    """Read what a finished or stopped run measured.

    Args:
        folder: the run's folder, or its URI.
        prices: over those that the run began with.
        seed: of the sample that is taken of a large pilot.

    Raises:
        ConfigError: the URI says nothing that pyarrow knows, or its store cannot be reached.
        RecordError: there is no run in the folder, or it cannot be read.
        UserError: nothing in it can be planned from: there is no debate with a verdict of its own calls, or only one.
    """
    folder = record_path(folder)
    facts, content = read_facts(folder), read_run_yaml(RunFolder(folder))
    turns = read_table(folder, "turns", _COLUMNS)
    rows = [row for row in turns.to_pylist() if not row["superseded"]]
    verdicts = read_table(folder, "verdicts", ["failed", "how", "wall_s"]).to_pylist()
    first = {row["case_id"]: row for row in verdicts if row["attempt"] == 0}
    of_case = _by_case(rows)
    reused = {case for case in first if any(row["reused_from"] for row in of_case[case])}
    usable = sorted(first.keys() - reused)
    if not usable:
        raise UserError(_nothing(facts.name, len(reused), content.get("reuse")))
    if len(usable) == 1:
        raise UserError(f"{facts.name}: one debate does not say how debates differ; plan from a pilot of {FEW} or more")
    taken = sorted(random.Random(seed).sample(usable, MOST_DEBATES)) if len(usable) > MOST_DEBATES else usable
    marks = sorted([each.started_at for each in RunFolder(folder).epochs()] + _decided_at(rows))
    reading = Reading(sorted({row["model"] for row in rows if _paid(row)}), _asked_at(folder), marks)
    shared = [row for case, found in of_case.items() if is_shared_id(case) for row in found if _paid(row)]
    bindings = [member for members in (content.get("bindings") or {}).values() for member in members]
    known = dict(facts.prices)
    if prices is not None:
        known |= {model: price for model in reading.models if (price := prices.price(model)) is not None}
    sessions = [session for session in content.get("sessions") or [{}] if isinstance(session, dict)]
    begun = {row["case_id"] for row in rows if not is_shared_id(row["case_id"])}
    paid = {case: [row for row in of_case[case] if _paid(row)] for case in taken}
    debates = reading.debates(paid, first, shared, {case: reading.began_at(of_case[case]) for case in begun})
    return Pilot(
        name=facts.name,
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
        under_way=most_under_way(row for row in rows if _paid(row)),
    )


def _by_case(rows: Iterable[Row]) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["attempt"] == 0:
            found[row["case_id"]].append(row)
    return found


def _asked_at(folder: Path) -> dict[tuple[str, str], list[float]]:
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


def _nothing(name: str, reused: int, reuse: object) -> str:
    if not reused:
        return f"{name}: no debate has a verdict yet, so there is nothing to plan from"
    source = f": plan from it, with --from {reuse}" if reuse else ""
    return f"{name}: each of its {reused:,} debates has replies of another run, whose calls took no time here{source}"
