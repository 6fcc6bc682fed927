"""Training examples: judges' summaries of claims with gold labels, from the records of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from moot.actors.record.tables import read_table
from moot.deploy.results.record import VerdictRow, latest_verdicts, read_events
from moot.deploy.results.references import References
from moot.deploy.results.run_info import RunInfo, read_run_info
from moot.protocols.ceda.events import SummaryGiven
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, text_hash
from moot.protocols.errors import ConfigError


class TrainingExample(NamedTuple):
    """Summary of a judge, with the label and group of its claim.

    Attributes:
        text: input of the classifier: the summary and its points; the summary alone in older records.
        hallucinated: whether the claim is hallucinated.
        content_hash: content hash of the case.
        claim: hash of the claim, equal for any spelling; see `moot.protocols.claims.text_hash`.
        source: likewise of the group of its reference; empty if there is none.
        group: connected group of cases with the same claim or source; each group is in one fold.
        judged_hallucinated: the judges' bare verdict; None if undecided.
    """

    text: str
    hallucinated: bool
    content_hash: str
    claim: str
    source: str
    group: str
    judged_hallucinated: bool | None


@dataclass(frozen=True)
class TrainingExamples:
    """Training examples of some runs.

    Attributes:
        rows: examples sorted by content and text, whatever the order of runs.
        runs: description of each run.
        left_out: number of unusable cases by reason.
    """

    rows: tuple[TrainingExample, ...]
    runs: tuple[RunInfo, ...]
    left_out: dict[str, int]

    @property
    def simulated(self) -> bool:
        """Whether any reply is from a simulated model."""
        return any(run.simulated for run in self.runs)

    @property
    def outcome(self) -> npt.NDArray[np.float64]:
        """Labels, `(n,)`: 1 for a hallucinated claim."""
        return np.array([float(row.hallucinated) for row in self.rows])

    @property
    def groups(self) -> npt.NDArray[np.str_]:
        """Group of each example, `(n,)`."""
        return np.array([row.group for row in self.rows])

    def digest(self, settings: dict[str, Any]) -> str:
        """Digest of summaries, labels, groups and settings, independent of their order."""
        data = sorted(row._replace(judged_hallucinated=None) for row in self.rows)
        return blake2b(msgspec.json.encode([data, settings], order="deterministic"), digest_size=16).hexdigest()


def read_examples(folders: Sequence[str | Path]) -> TrainingExamples:
    """Read the summaries of the latest attempt of each case.

    All summaries of a claim or a source are in one group, across runs.

    Raises:
        ConfigError: a run is named twice, or has no summaries.
        RecordError: there is no run in a folder, or it cannot be read.
    """
    if len({Path(folder).resolve() for folder in folders}) < len(folders):
        raise ConfigError("a run is given twice: its summaries would count twice")
    rows: list[TrainingExample] = []
    left_out: Counter[str] = Counter()
    facts = [read_run_info(folder) for folder in folders]
    for folder in folders:
        rows += _of_run(folder, left_out)
    groups = connected_groups(
        [[f"claim {row.claim}", *([f"source {row.source}"] if row.source else [])] for row in rows]
    )
    unique = list(dict.fromkeys(row._replace(group=group) for row, group in zip(rows, groups, strict=True)))
    if len(unique) < len(rows):
        left_out["the same summary of the same case again"] += len(rows) - len(unique)
    return TrainingExamples(tuple(sorted(unique, key=_order)), tuple(facts), dict(left_out))


def _order(row: TrainingExample) -> tuple[str, str]:
    return row.content_hash, row.text


def _of_run(folder: str | Path, left_out: Counter[str]) -> Iterator[TrainingExample]:
    summaries = {noted.key: SummaryGiven.read(noted.data) for noted in read_events(folder, [SummaryGiven.kind])}
    if not summaries:
        raise ConfigError(
            f"{folder}: no judge's summary in it: use runs of a protocol that rules on claims, such as ceda"
        )
    cases = {row["case_id"]: row for row in read_table(folder, "cases", ["content_hash", "question"]).to_pylist()}
    references = References.of(folder)
    for verdict in latest_verdicts(folder):
        summary = summaries.get(verdict.key)
        reason = _unusable(verdict, summary)
        if summary is None or reason:
            left_out[reason] += 1
            continue
        case, source = cases[verdict.case_id], references[verdict.case_id].group
        yield TrainingExample(
            text=(summary.classifier_text or summary.summary).strip(),
            hallucinated=verdict.gold == HALLUCINATED,
            content_hash=case["content_hash"],
            claim=text_hash(case["question"]),
            source=text_hash(source) if source else "",
            group="",
            judged_hallucinated=summary.verdict == 0 if summary.verdict in (0, 1) else None,
        )


def _unusable(verdict: VerdictRow, ruling: SummaryGiven | None) -> str:
    """Reason why a case is unusable; empty if it is usable."""
    if verdict.failed:
        return "failed"
    if verdict.gold is None:
        return "no gold label"
    if verdict.gold not in CLAIM_LABELS:
        return f"a gold label other than {' and '.join(CLAIM_LABELS)}"
    return "" if ruling is not None and ruling.summary.strip() else "no summary"


def connected_groups(keys: Sequence[Iterable[str]]) -> list[str]:
    """Connected components: rows that share a key, directly or indirectly, are one group.

    Args:
        keys: keys of each row, at least one.

    Returns:
        Name of each row's group: its smallest key, whatever the order of the rows.

    >>> connected_groups([["a"], ["b", "page"], ["c"], ["a", "page"]])
    ['a', 'a', 'c', 'a']
    """
    root: dict[str, str] = {}

    def find(key: str) -> str:
        while (parent := root.setdefault(key, key)) != key:
            root[key] = root[parent]
            key = root[key]
        return key

    rows = [list(each) for each in keys]
    for first, *others in rows:
        for other in others:
            one, two = sorted((find(first), find(other)))
            root[two] = one
    return [find(first) for first, *_ in rows]
