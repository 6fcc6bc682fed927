"""Tests of a gate that could not be made because a value was unknown: their counts, as text and as a warning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc

from moot.deploy.results.figures.replies import FOLLOWED, model_replies, server_warnings, warnings_of
from moot.deploy.results.record import RunRecord, once_per_record
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.run_info import RunInfo
from moot.deploy.results.text import cases
from moot.protocols.selene.events import GateDecided

_SIGNALS = {"disagreement": "D", "misalignment": "M", "low_intrinsic": "mean p"}
"""Signal of each test."""

_REMEDY = (
    "examines a model's log-probabilities; without them, --set gate.intrinsic=resampled estimates p from further "
    "replies, and gate.intrinsic=none does without these tests"
)

_WITHOUT_P = (
    "--set gate.intrinsic=none skips on D and equal answers alone, and gate.intrinsic=resampled estimates p from "
    "further replies"
)
FREE_TEXT = "the cases have no labels"
"""Reason of an unknown p where no case has labels."""


class UntestedGates(FrozenModel):
    """Gates that could not make a test because a value was unknown, of the attempts that count.

    Attributes:
        cases: number of cases with a gate.
        tests: number of cases by test: `disagreement`, `misalignment`, `low_intrinsic`.
        untested: number of cases without one of the tests.
        skipped: number of those that were skipped.
        intended: whether no value was expected, because `gate.intrinsic` is `none`.
        reason: the commonest reason of an unknown probability; empty if none is recorded.
    """

    cases: int
    tests: dict[str, int]
    untested: int
    skipped: int
    intended: bool
    reason: str

    @property
    def words(self) -> str:
        """Counts by signal.

        >>> UntestedGates(
        ...     cases=9, tests={"misalignment": 2, "low_intrinsic": 3}, untested=3, skipped=0, intended=False, reason=""
        ... ).words
        'M in 2, mean p in 3 of 9 cases'
        """
        counts = ", ".join(f"{_SIGNALS.get(test, test)} in {n:,}" for test, n in self.tests.items())
        return f"{counts} of {cases(self.cases)}"


class GateCoverage(FrozenModel):
    """Gates whose M and mean p are of a part of the openings, because the others' p is unknown.

    Attributes:
        known: number of openings with a known p, over all cases with a gate.
        openings: number of valid openings.
        cases: number of cases whose M and p are of a part of the openings.
        gated: number of cases with a gate.
    """

    known: int
    openings: int
    cases: int
    gated: int

    @property
    def words(self) -> str:
        """Counts as text.

        >>> GateCoverage(known=30, openings=48, cases=15, gated=16).words
        'p is known of 30 of 48 openings; in 15 of 16 cases M and mean p are of a part of them'
        """
        part = f"in {self.cases:,} of {cases(self.gated)} M and mean p are of a part of them"
        return f"p is known of {self.known:,} of {self.openings:,} openings; {part}"


_PARTLY_KNOWN = r'"intrinsic":\[[^\]]*(?:\d,null|null,\d)'
"""Pattern of a gate's event with known and unknown p."""


@once_per_record
def gate_coverage(record: RunRecord) -> GateCoverage | None:
    """Coverage of M and mean p; None where each gate's are of all openings, or of none.

    Raises:
        RecordError: the record cannot be read.
    """
    if not record.gated:
        return None
    events = record.rows_that_count(record.events_of_kind(GateDecided.kind))
    partly = pc.match_substring_regex(pc.fill_null(events["data"], ""), _PARTLY_KNOWN)
    if not pc.any(partly).as_py():
        return None
    gates = [gate for data in events["data"].to_pylist() if (gate := GateDecided.read_json(data)) is not None]
    return GateCoverage(
        known=sum(gate.p_known for gate in gates),
        openings=sum(len(gate.intrinsic) for gate in gates),
        cases=pc.sum(partly).as_py(),
        gated=events.num_rows,
    )


@once_per_record
def untested_gates(record: RunRecord) -> UntestedGates | None:
    """Counts of the gates that could not make a test; None without any.

    Raises:
        RecordError: the record cannot be read.
    """
    if not record.gated:
        return None
    events = record.rows_that_count(record.events_of_kind(GateDecided.kind))
    without = events.filter(pc.match_substring(pc.fill_null(events["data"], ""), '"untested":["'))
    gates = [gate for data in without["data"].to_pylist() if (gate := GateDecided.read_json(data)) is not None]
    if not gates:
        return None
    return UntestedGates(
        cases=events.num_rows,
        tests=dict(Counter(test for gate in gates for test in gate.untested)),
        untested=len(gates),
        skipped=sum(gate.skip for gate in gates),
        intended=all(gate.intrinsic_reading == "none" for gate in gates),
        reason=_commonest_reason(record),
    )


def _commonest_reason(record: RunRecord) -> str:
    """Commonest reason why the probability of a first answer is unknown; empty if none is recorded."""
    if record.cases.num_rows == record.cases["labels"].null_count > 0:
        return FREE_TEXT
    turns = record.turns
    first = turns.filter(pc.starts_with(turns["path"], "opening/"))["p_reason"]
    counts = Counter(reason for reason in first.to_pylist() if reason)
    return counts.most_common(1)[0][0] if counts else ""


def gate_warnings(found: UntestedGates | None, info: RunInfo) -> Iterator[str]:
    """Warning about tests that could not be made, except where none was expected."""
    if found is None or found.intended:
        return
    done = f"{found.skipped:,} were skipped without them" if found.skipped else "these were debated"
    if found.reason == FREE_TEXT:
        yield f"the gate could not test {found.words}: answers in free text have no p; {done}: {_WITHOUT_P}"
        return
    why = f" ({found.reason})" if found.reason else ""
    examined = info.doctor_commands("agent", alone=True)
    yield f"the gate could not test {found.words}: p is unknown{why}; {done}: {examined} {_REMEDY}"


def run_warnings(source: RunRecord | str | Path) -> list[str]:
    """Warnings about a run, each with a remedy: about its replies and their servers, about tests of its gate, and about
    its run.yaml.

    Raises:
        RecordError: the record cannot be read.
    """
    record = RunRecord.of(source)
    replies = [*warnings_of(model_replies(record), record.info), *server_warnings(record)]
    if "`moot doctor " in record.info.stopped_by:  # which says the same, with the names filled in
        replies = [line for line in replies if FOLLOWED not in line]
    return [*record.info.remarks, *replies, *gate_warnings(untested_gates(record), record.info)]
