"""Verdicts that accuracies are over."""

from __future__ import annotations

from moot.deploy.results.figures.claims import trained_on
from moot.deploy.results.record import RunRecord, VerdictRow, once_per_record


@once_per_record
def counted_verdicts(record: RunRecord) -> list[VerdictRow]:
    """Verdicts that accuracies are over: not failed, and of no case of `trained_on`."""
    left_out = trained_on(record)
    return [each for each in record.verdicts if not each.failed and each.case_id not in left_out]
