"""What a run's folder holds, read for showing: run.yaml, verdicts, replies, events, and the cases' references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.agent.attempt import LENGTH
from moot.actors.models.prices import Price
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.schema import SCHEMA_VERSION, CaseKey
from moot.actors.record.store.mirror import display_name
from moot.actors.record.tables import read_table
from moot.protocols.case import Reference
from moot.protocols.errors import UNSENT, RecordError
from moot.protocols.events import DebateEvent
from moot.protocols.messages import family_of
from moot.protocols.tasks.scoring import is_correct


class RecordedEvent(Protocol):
    """An event of the record, before it is read as its type."""

    @property
    def kind(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def data(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=RecordedEvent)
E = TypeVar("E", bound=DebateEvent)

_REFERENCE_COLUMNS = ["scoring", "accepted", "ratings", "group", "part", "tags"]


class References:
    """The references of a run's cases.

    Args:
        by_case: by case id; a case that is missing here is scored by label.
    """

    def __init__(self, by_case: Mapping[str, Reference]) -> None:
        self._by_case = by_case

    @classmethod
    def of(cls, folder: str | Path) -> References:
        """Those of a run; records from before there were any score by label.

        Raises:
            RecordError: when the record cannot be read.
        """
        rows = read_table(folder, "cases", _REFERENCE_COLUMNS).to_pylist()
        return cls({row["case_id"]: _reference(row) for row in rows})

    def __getitem__(self, case_id: str) -> Reference:
        """The reference of a case."""
        return self._by_case.get(case_id, Reference())

    def independent(self, case_ids: Iterable[str]) -> bool:
        """Whether no two of the cases are of one group."""
        groups = [group for case_id in case_ids if (group := self[case_id].group)]
        return len(set(groups)) == len(groups)

    def correct(self, case_id: str, answer: str | None, gold: str | None) -> bool | None:
        """Whether an answer to a case is right; see `is_correct`."""
        return is_correct(answer, gold, self[case_id])


def rescore_verdicts(folder: str | Path, rows: Iterable[dict[str, Any]]) -> None:
    """Score rows of `verdicts` in place as they would be written now: no answer is wrong.

    Records from before that was so have null there. A case that is a reply to judge asks for no answer: it stays null.

    Raises:
        RecordError: when the record cannot be read.
    """
    without_answer = [row for row in rows if not row["failed"] and row["answer"] is None]
    unscored = [row for row in without_answer if row["correct"] is None and row["gold"] is not None]
    if not unscored:
        return
    cases = read_table(folder, "cases", ["judged"])
    replies = set(cases.filter(pc.is_valid(cases["judged"]))["case_id"].to_pylist())
    for row in unscored:
        row["correct"] = None if row["case_id"] in replies else False


def _reference(row: Mapping[str, Any]) -> Reference:
    return Reference(
        scoring=row["scoring"] or "label",
        accepted=tuple(row["accepted"] or ()),
        ratings=tuple(row["ratings"] or ()),
        group=row["group"] or "",
        part=row["part"] or "",
        tags=msgspec.json.decode(row["tags"]) if row["tags"] else {},
    )


class ReplyRow(NamedTuple):
    """A row of `turns`, as far as counting goes.

    Attributes:
        prompt, completion: tokens billed; None when the server did not say.
        reused: taken from another run, so not paid for here.
        superseded: replaced by a later reply on the same path.
        unconfirmed: attempts that may have been billed without the server saying what they used.
        unconfirmed_tokens: at most so many tokens in them.
        received: tokens that had come of a reply that was stopped early; None for any other.
        estimated: whether `prompt` or `completion` is an estimate, as the server said fewer than the texts have.
        truncated: whether it ended at its token limit.
    """

    case_id: str
    attempt: int
    path: str
    role: str
    model: str
    outcome: str
    failure: str
    prompt: int | None
    completion: int | None
    reused: bool
    superseded: bool
    unconfirmed: int = 0
    unconfirmed_tokens: int = 0
    received: int | None = None
    estimated: bool = False
    truncated: bool = False

    @property
    def key(self) -> CaseKey:
        """The debate it belongs to."""
        return (self.case_id, self.attempt)

    @property
    def is_call(self) -> bool:
        """Whether a model was called for it."""
        return not self.reused and self.failure != UNSENT

    @property
    def tokens(self) -> int | None:
        """Tokens billed; None unless both parts are known."""
        return None if self.prompt is None or self.completion is None else self.prompt + self.completion


class EventRow(NamedTuple):
    """A row of `events`."""

    case_id: str
    attempt: int
    kind: str
    path: str
    data: dict[str, Any]

    @property
    def key(self) -> CaseKey:
        """The debate it belongs to."""
        return (self.case_id, self.attempt)


class VerdictRow(NamedTuple):
    """A row of `verdicts`, as far as counting goes; `correct` is None for what cannot be scored: see
    `rescore_verdicts`.

    Not a `DebateResult`: figures read every verdict of a run, and of a million the payloads and distributions alone
    would take gigabytes.
    """

    case_id: str
    attempt: int
    answer: str | None
    how: str
    rounds: int
    failed: bool
    failure: str
    gold: str | None
    correct: bool | None
    at: float

    @property
    def key(self) -> CaseKey:
        """The debate it closes."""
        return (self.case_id, self.attempt)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What run.yaml says, as far as it says it; `models` falls back to what the replies name.

    Attributes:
        path: the run's folder.
        preset: what a paper states of the protocol, on which the run was built; None without one.
        simulated: whether any reply is a simulated model's; False for a run that asked no model.
        cases: that the run is over; None when its source could not be counted.
        wall_s: over all sessions; None when there is none or one of them (a killed one) has none.
        wall_unknown_since: when the first of those that have none began; None when there is no such session.
        last_started_at: unix time at which the last owner took the folder; None when unknown.
        owners: how many owners the folder has had.
        stopped_by: what stopped the last session by itself; empty when nothing did.
        prices: by model, as they were when the run began; only of models whose price was known.
        unsettled: by budget (`tokens`, `usd`), what killed sessions may have used beyond the record, summed.
    """

    path: Path
    schema_version: int
    task: str | None
    protocol: str | None
    preset: str | None
    models: dict[str, list[str]]
    simulated: bool
    encoder: str | None
    seed: int | None
    cases: int | None
    wall_s: float | None
    wall_unknown_since: str | None
    last_started_at: float | None
    owners: int
    stopped_by: str
    prices: dict[str, Price]
    unsettled: dict[str, float]

    @property
    def name(self) -> str:
        """What users call the run: its folder, or its URI."""
        return display_name(self.path)


def read_run_info(folder: str | Path, replies: Iterable[ReplyRow] = ()) -> RunInfo:
    """Read run.yaml and epochs.json.

    Args:
        folder: the run's folder.
        replies: the run's replies, for the models' names where run.yaml has none.

    Raises:
        RecordError: when there is no run in the folder or its run.yaml cannot be read.
    """
    run = RunFolder(folder)
    if not run.exists():
        raise RecordError(run.missing())
    raw = read_run_yaml(run)
    said = _mapping(raw.get("models"))
    models = {str(role): list(map(str, names if isinstance(names, list) else [names])) for role, names in said.items()}
    models = models or _models_used(replies)
    simulated = raw.get("simulated")
    if not isinstance(simulated, bool):
        simulated = any(name.partition("?")[0] == "simulated" for names in models.values() for name in names)
    listed = raw.get("sessions")
    sessions = [each for each in (listed if isinstance(listed, list) else ()) if isinstance(each, Mapping)]
    timeless = [session for session in sessions if not isinstance(session.get("wall_s"), int | float)]
    unsettled = Counter[str]()
    for session in sessions:
        unsettled.update(_mapping(session.get("unsettled")))
    epochs = run.epochs()
    texts: dict[str, Any] = {name: _text(raw.get(name)) for name in ("task", "protocol", "preset", "encoder")}
    counts: dict[str, Any] = {name: raw[name] if isinstance(raw.get(name), int) else None for name in ("seed", "cases")}
    return RunInfo(
        path=run.path,
        schema_version=raw.get("schema_version", SCHEMA_VERSION),
        models=models,
        simulated=simulated and _asked_a_model(run.path),
        wall_s=float(sum(each["wall_s"] for each in sessions)) if sessions and not timeless else None,
        wall_unknown_since=_text(timeless[0].get("started_at")) if timeless else None,
        last_started_at=epochs[-1].started_at if epochs else None,
        owners=len(epochs),
        stopped_by=str(sessions[-1].get("stopped_by") or "") if sessions else "",
        prices={str(name): Price.model_validate(price) for name, price in _mapping(raw.get("price_table")).items()},
        unsettled=dict(unsettled),
        **texts,
        **counts,
    )


def _asked_a_model(folder: Path) -> bool:
    """Whether a model was asked anything: a protocol may ask none, whoever is bound to its roles."""
    roles = read_table(folder, "turns", ["role"])["role"]
    return bool(pc.any(pc.fill_null(pc.not_equal(roles, "person"), True)).as_py())


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _models_used(replies: Iterable[ReplyRow]) -> dict[str, list[str]]:
    used: dict[str, dict[str, None]] = {}
    for reply in replies:
        if reply.role != "person":
            used.setdefault(family_of(reply.role), {})[reply.model] = None
    return {family: sorted(names) for family, names in sorted(used.items())}


def read_replies(folder: str | Path) -> list[ReplyRow]:
    """Every paid or reused reply, superseded ones included; a person's decisions, which cost nothing, are not."""
    texts = ["role", "model", "outcome", "failure"]
    more = ["prompt_tokens", "completion_tokens", "reused_from", "finish_reason", "completion_tokens_estimate"]
    more += ["unconfirmed_attempts", "unconfirmed_tokens_max", "prompt_tokens_stated", "completion_tokens_stated"]
    table = read_table(folder, "turns", [*texts, *more])
    table = table.filter(pc.not_equal(pc.fill_null(table["role"], ""), "person"))
    estimated = pc.or_(pc.is_valid(table["prompt_tokens_stated"]), pc.is_valid(table["completion_tokens_stated"]))
    columns = {
        **{name: table[name] for name in ("case_id", "attempt", "path")},
        **{name: pc.fill_null(table[name], "") for name in texts},
        "prompt": table["prompt_tokens"],
        "completion": table["completion_tokens"],
        "reused": pc.not_equal(pc.fill_null(table["reused_from"], ""), ""),
        "superseded": table["superseded"],
        "unconfirmed": pc.fill_null(table["unconfirmed_attempts"], 0),
        "unconfirmed_tokens": pc.fill_null(table["unconfirmed_tokens_max"], 0),
        "received": table["completion_tokens_estimate"],
        "estimated": estimated,
        "truncated": pc.equal(pc.fill_null(table["finish_reason"], ""), LENGTH),
    }
    return list(map(ReplyRow._make, zip(*(columns[name].to_pylist() for name in ReplyRow._fields), strict=True)))


def read_events(folder: str | Path, kinds: Iterable[str]) -> list[EventRow]:
    """The events of some kinds."""
    table = read_table(folder, "events", ["data"], pc.field("kind").isin(pa.array(sorted(kinds), pa.string())))
    columns = (table[name].to_pylist() for name in ("case_id", "attempt", "kind", "path"))
    return list(map(EventRow._make, zip(*columns, map(decode_json, table["data"].to_pylist()), strict=True)))


def read_as(events: Iterable[R], event_type: type[E]) -> Iterator[tuple[R, E]]:
    """The events of a type, read as such; those of its kind that have another form are left out."""
    for event in events:
        if event.kind == event_type.kind and (read := event_type.read(event.data, event.path)) is not None:
            yield event, read


def decode_json(data: str | None) -> dict[str, Any]:
    """A JSON object of the record; empty for null."""
    if not data or data == "{}":  # as of each ask
        return {}
    found = msgspec.json.decode(data)
    return found if isinstance(found, dict) else {"value": found}


def latest_verdicts(folder: str | Path) -> list[VerdictRow]:
    """The verdict of each case's latest attempt that has one, in order of case id."""
    names = ["answer", "how", "rounds", "failed", "failure", "gold", "correct", "at"]
    rows = read_table(folder, "verdicts", names).to_pylist()
    rescore_verdicts(folder, rows)
    latest = {row["case_id"]: row for row in sorted(rows, key=lambda row: row["attempt"])}
    return [
        VerdictRow(
            case_id=case_id,
            attempt=row["attempt"],
            answer=row["answer"],
            how=row["how"] or "",
            rounds=row["rounds"] or 0,
            failed=bool(row["failed"]),
            failure=row["failure"] or "",
            gold=row["gold"],
            correct=row["correct"],
            at=row["at"] or 0.0,
        )
        for case_id, row in sorted(latest.items())
    ]


def latest_rows(rows: pa.Table) -> pa.Table:
    """The rows of each case's latest attempt among them."""
    if not rows.num_rows or pc.max(rows["attempt"]).as_py() == 0:
        return rows
    last = rows.group_by("case_id").aggregate([("attempt", "max")]).rename_columns({"attempt_max": "attempt"})
    return rows.join(last, ["case_id", "attempt"], join_type="left semi")
