"""Cases of a cell: whether each verdict is right, or why that is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moot.deploy.results.figures.claims import ids_trained_on, read_claims
from moot.deploy.results.record import RunRecord, VerdictRow

Unscored = Literal["failed", "no gold label", "trained on", "no verdict", "other text"]
"""Reason why a case cannot be paired."""


@dataclass(frozen=True)
class CellCases:
    """Cases of a cell.

    Attributes:
        content: content hash by case id.
        labels: closed set of labels by case id; empty if there is none.
        verdicts: latest verdict by case id.
        groups: group of dependent cases by case id; its own id for an independent case.
        trained_on: ids of the claims in the training data of the run's classifier, or with a group in it; they are
            excluded from accuracies.
    """

    content: Mapping[str, str]
    labels: Mapping[str, tuple[str, ...]]
    verdicts: Mapping[str, VerdictRow]
    groups: Mapping[str, str]
    trained_on: frozenset[str]

    @property
    def answered(self) -> int:
        """Number of cases with an answer."""
        return sum(not each.failed and each.answer is not None for each in self.verdicts.values())

    @property
    def abstained(self) -> int:
        """Number of cases with a verdict that did not fail and has no answer."""
        return sum(not each.failed and each.answer is None for each in self.verdicts.values())

    @property
    def answers(self) -> dict[str, int]:
        """Number of cases by answer, most frequent first."""
        counts = Counter(each.answer for each in self.verdicts.values() if not each.failed and each.answer is not None)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def right(self, case_id: str) -> bool | None:
        """Whether the verdict on a case is right; None if unknown or excluded."""
        verdict = self.verdicts.get(case_id)
        return None if verdict is None or verdict.failed or case_id in self.trained_on else verdict.correct


def read_cell(folder: str | Path) -> CellCases:
    """Read the cases of a cell.

    Raises:
        RecordError: the record cannot be read.
        ConfigError: the copy of the classifier's card was changed.
    """
    record = RunRecord(folder)
    columns = (record.cases[name].to_pylist() for name in ("case_id", "content_hash", "labels"))
    rows = list(zip(*columns, strict=True))
    return CellCases(
        content={case_id: content for case_id, content, _ in rows},
        labels={case_id: tuple(labels or ()) for case_id, _, labels in rows},
        verdicts=record.by_case,
        groups={case_id: record.references.group(case_id) for case_id, _, _ in rows},
        trained_on=ids_trained_on(read_claims(record)),
    )


def pairs(first: CellCases, second: CellCases) -> tuple[list[str], dict[str, int]]:
    """Paired cases of two cells, and the number of unpaired ones by reason."""
    paired, left_out = list[str](), Counter[str]()
    for case_id in sorted({*first.content, *second.content}):
        reason = _unscored(case_id, (first, second))
        if reason is None:
            paired.append(case_id)
        else:
            left_out[reason] += 1
    return paired, dict(sorted(left_out.items()))


def _unscored(case_id: str, cells: Iterable[CellCases]) -> Unscored | None:
    cells = list(cells)
    verdicts = [each.verdicts[case_id] for each in cells if case_id in each.verdicts]
    if len(verdicts) < len(cells):
        return "no verdict"
    if len({each.content.get(case_id) for each in cells}) > 1:
        return "other text"
    if any(verdict.failed for verdict in verdicts):
        return "failed"
    if any(verdict.correct is None for verdict in verdicts):
        return "no gold label"
    return "trained on" if any(case_id in each.trained_on for each in cells) else None


def scored_by_all(cells: Iterable[CellCases]) -> list[str]:
    """Cases scored in every cell, sorted by id."""
    cells = list(cells)
    ids = sorted({case_id for each in cells for case_id in each.content})
    return [case_id for case_id in ids if _unscored(case_id, cells) is None]


def groups_of(cells: Iterable[CellCases]) -> dict[str, str]:
    """Group of each case of the cells, by id."""
    return {case_id: group for each in cells for case_id, group in each.groups.items()}
