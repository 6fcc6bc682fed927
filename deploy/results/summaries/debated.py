"""Skipped and debated cases of a run, with the figures of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moot.deploy.results.record.rows import VerdictRow
from moot.deploy.results.record.run_record import RunRecord
from moot.deploy.results.summaries.accuracy import accuracy_by_part, accuracy_by_rounds, accuracy_of, answered
from moot.deploy.results.text import mean_of


def skipped_and_debated(record: RunRecord, finished: Sequence[VerdictRow]) -> tuple[list[VerdictRow], list[VerdictRow]]:
    """Verdicts whose debate a gate skipped, and verdicts of debates; a single answer is neither.

    Args:
        record: the run's record.
        finished: verdicts of the cases that did not fail.
    """
    skipped = [verdict for verdict in finished if verdict.how == "skipped"]
    return skipped, [verdict for verdict in finished if verdict.key in record.debated]


def debate_shares(record: RunRecord, finished: Sequence[VerdictRow]) -> dict[str, Any]:
    """Share of skipped debates and mean rounds, by field of `Summary`."""
    skipped, debated = skipped_and_debated(record, finished)
    decided = len(skipped) + sum(verdict.key in record.gated for verdict in debated)
    return {
        "skip_rate": len(skipped) / decided if decided else None,
        "debate_rounds_mean": mean_of(verdict.rounds for verdict in finished),
        "debate_rounds_mean_debated": mean_of(verdict.rounds for verdict in debated),
    }


def accuracies(record: RunRecord, counted: Sequence[VerdictRow]) -> dict[str, Any]:
    """Accuracies of all, skipped, debated and answered cases, by field of `Summary`."""
    skipped, debated = skipped_and_debated(record, counted)
    references = record.references
    found: dict[str, Any] = {
        "accuracy_by_part": accuracy_by_part(counted, references),
        "accuracy_by_rounds": accuracy_by_rounds(debated, references),
    }
    for name, verdicts in (("", counted), ("_skipped", skipped), ("_debated", debated)):
        value, interval, n = accuracy_of(verdicts, references)
        found |= {f"accuracy{name}": value, f"accuracy{name}_interval": interval, f"scored{name}": n}
    found["scored_groups"] = references.number_of_groups(each.case_id for each in counted if each.correct is not None)
    value, interval, n = accuracy_of(answered(counted), references)
    return found | {"accuracy_answered": value, "accuracy_answered_interval": interval, "answered": n}
