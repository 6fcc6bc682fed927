"""Two ways to answer the same cases, compared case by case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moot.deploy.reading.frozen import Frozen
from moot.deploy.reading.record import Noted, VerdictRow
from moot.deploy.reading.references import References
from moot.metrics.significance import paired_difference


class Paired(Frozen):
    """Two ways to answer the same cases, compared case by case (McNemar's exact test).

    Attributes:
        only_first, only_second: cases that only the one got right.
        difference: accuracy of the first minus accuracy of the second; None for n = 0.
        p_value: two-sided; None for n = 0.
        n: cases on which both can be scored.
    """

    only_first: int
    only_second: int
    difference: float | None
    p_value: float | None
    n: int


def paired(first: Sequence[bool | None], second: Sequence[bool | None]) -> Paired:
    """Compare two ways to answer the same cases, in the same order; unknown outcomes are left out."""
    found = paired_difference(first, second)
    return Paired(
        only_first=found.b,
        only_second=found.c,
        difference=found.difference if found.n else None,
        p_value=found.p_value if found.n else None,
        n=found.n,
    )


def audit_difference(finished: Iterable[VerdictRow], events: Iterable[Noted], references: References) -> Paired | None:
    """Skipped answers against those of the debates held anyway; None where none was (`audit_skipped`, `both_branches`).

    Of a run of both branches, the cases that the gate skipped count.
    """
    gold = {verdict.key: verdict.gold for verdict in finished}
    audits = [
        event
        for event in events
        if event.key in gold
        and (event.kind == "audit" or (event.kind == "branches" and event.data.get("verdict_from") == "skip"))
    ]
    if not audits:
        return None
    return paired(
        [references.correct(event.case_id, event.data.get("skipped_answer"), gold[event.key]) for event in audits],
        [references.correct(event.case_id, event.data.get("debated_answer"), gold[event.key]) for event in audits],
    )
