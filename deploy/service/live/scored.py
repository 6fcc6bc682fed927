"""Accuracy of a run so far, over those verdicts that its summary counts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from moot.deploy.results.figures.claims import trained_groups, training_data
from moot.deploy.results.record import decode_json
from moot.deploy.results.text import Interval
from moot.deploy.service.live.series import RunningAccuracy
from moot.metrics.significance import wilson_interval


class ScoredVerdicts:
    """Verdicts that can be scored, without those on claims from the training data of the run's classifier.

    Args:
        folder: of the run.

    Attributes:
        accuracy: over them.
        columns: what is read of a verdict.
    """

    def __init__(self, folder: Path) -> None:
        self._trained_groups = trained_groups(folder)
        self.columns = ["case_id", "correct", *(["payload"] if self._has_classifier else [])]
        self.accuracy = RunningAccuracy()
        self._group: dict[str, str] = {}
        self._contents: dict[str, str] = {}
        self._counted: set[str] | None = set()

    @property
    def _has_classifier(self) -> bool:
        return self._trained_groups is not None

    def add_cases(self, cases: pa.Table) -> None:
        """Add rows of `cases`, which come before their verdicts; groups and hashes are kept until the verdict."""
        if self._counted is None and not self._trained_groups:
            return
        of_a_group = cases.filter(pc.not_equal(pc.fill_null(cases["group"], ""), ""))
        self._group.update(zip(of_a_group["case_id"].to_pylist(), of_a_group["group"].to_pylist(), strict=True))
        if self._counted is not None:
            self._contents.update(zip(cases["case_id"].to_pylist(), cases["content_hash"].to_pylist(), strict=True))

    def add(self, finished: pa.Table) -> None:
        """Add rows of `verdicts` that did not fail."""
        counted = finished.filter(self._counts(finished)) if self._has_classifier else finished
        for case_id in counted["case_id"].to_pylist() if self._counted is not None else ():
            self._count_groups(f"group {self._group.pop(case_id, '')}", f"text {self._contents.pop(case_id, '')}")
        self.accuracy.add(counted["correct"].drop_null().to_numpy())

    def _counts(self, finished: pa.Table) -> pa.Array:
        """For each verdict, whether the run's classifier was not trained on its claim."""
        rows = zip(finished["case_id"].to_pylist(), finished["payload"].to_pylist(), strict=True)
        known = self._trained_groups or frozenset()
        return pa.array(
            [training_data(decode_json(payload), self._group.get(case, ""), known) is None for case, payload in rows],
            pa.bool_(),
        )

    def _count_groups(self, *names: str) -> None:
        known = [name for name in names if name not in ("group ", "text ")]
        if self._counted is None:
            return
        if self._counted.isdisjoint(known):
            self._counted.update(known)
        else:  # two of one group: nothing more of groups matters
            self._counted, self._contents = None, {}
            self._group = {} if not self._trained_groups else self._group

    def interval(self) -> Interval | None:
        """Wilson's interval; none where several of the verdicts are of one group."""
        if self._counted is None or not self.accuracy.scored:
            return None
        ends = wilson_interval(self.accuracy.correct, self.accuracy.scored)
        return ends.low, ends.high
