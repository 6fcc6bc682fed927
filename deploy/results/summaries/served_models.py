"""What the servers of a run's models returned with their replies: missing log-probabilities, and the models' names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc

from moot.actors.record.rows import NO_LOGPROBS, has_reading_mark
from moot.deploy.results.record.run_record import RunRecord, once_per_record
from moot.protocols.messages import family_of

_COLUMNS = ["role", "model", "server", "served_model", "reading", "logprob_stage"]

_MOST_NAMED = 4
"""Names of models or servers that a warning lists."""


@once_per_record
def _replies(record: RunRecord) -> list[dict[str, Any]]:
    """Received replies of the attempts that count, grouped by the columns; `count_all` is a group's size."""
    table = record.rows_that_count(record.turns.select(["case_id", "attempt", "superseded", "text", *_COLUMNS]))
    received = table.filter(pc.and_(table["text"].is_valid(), pc.invert(table["superseded"])))
    counted: Any = [([], "count_all")]
    groups: list[dict[str, Any]] = received.group_by(_COLUMNS).aggregate(counted).to_pylist()
    return groups


def server_warnings(record: RunRecord) -> Iterator[str]:
    """Warnings about replies without the log-probabilities that were requested, and about several models behind one
    name.

    Raises:
        RecordError: the record cannot be read.
    """
    groups = _replies(record)
    for role in sorted({family_of(row["role"] or "") for row in groups}):
        examined = record.info.doctor_commands(role, alone=True)
        yield from _coverage([row for row in groups if family_of(row["role"] or "") == role], role, examined)
    for model in sorted({row["model"] or "" for row in groups}):
        if model.startswith("http"):
            yield from _several_models([row for row in groups if row["model"] == model], model)


def _coverage(groups: list[dict[str, Any]], role: str, examined: str) -> Iterator[str]:
    """Warning of one role: how many replies have the log-probabilities that were requested."""
    given = sum(row["count_all"] for row in groups if row["logprob_stage"] is not None)
    lacking = Counter[str]()
    for row in groups:
        if has_reading_mark(row["reading"], NO_LOGPROBS):
            lacking[row["server"] or row["model"] or "unknown"] += row["count_all"]
    if lacking:
        without = lacking.total()
        yield (
            f"{without:,} of {given + without:,} replies of {role} came without the log-probabilities that were "
            f"requested ({_listed(lacking)}): figures of token probabilities cover the other {given:,}; "
            f"{examined} examines each server"
        )


def _several_models(groups: list[dict[str, Any]], model: str) -> Iterator[str]:
    """Warning of one configured model whose servers report different models or fingerprints."""
    served = Counter[str]()
    for row in groups:
        if row["served_model"]:
            served[row["served_model"]] += row["count_all"]
    if len(served) > 1:
        yield (
            f"the replies of {model} are of {len(served)} models or versions, as its servers report "
            f"({_listed(served)}): the figures mix them; the column `served_model` says which reply is of which"
        )


def _listed(counts: Counter[str]) -> str:
    named = [f"{name}: {n:,}" for name, n in counts.most_common(_MOST_NAMED)]
    more = len(counts) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])])
