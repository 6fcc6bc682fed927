"""The same signals from a finished record, reply by reply, for the running ones to be held against."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from moot.actors.record.signals import Signals
from moot.actors.record.tables import read_table
from moot.metrics.online.divergence_counts import JointCounts, divergences

Floats = npt.NDArray[np.float64]


@dataclass
class Judged:
    """Judged replies of one domain and role: their tokens (None: not recorded), and what they are held against."""

    logprobs: list[Floats | None] = field(default_factory=list)
    targets: list[dict[str, float]] = field(default_factory=list)

    def target(self, name: str) -> Floats:
        """One target of every reply."""
        return np.array([told.get(name, np.nan) for told in self.targets])

    def mean_logprobs(self) -> Floats:
        """NaN where none are recorded."""
        return np.array([np.nan if one is None else one.mean() for one in self.logprobs])


def judged_replies(folder: Path) -> dict[tuple[str, str], Judged]:
    """The judged replies of a record whose debates ended well, by domain and role."""
    verdicts = {(row["case_id"], row["attempt"]): row for row in read_table(folder, "verdicts").to_pylist()}
    tokens = {
        (row["case_id"], row["attempt"], row["path"]): np.array(row["logprob"], np.float64)
        for row in read_table(folder, "tokens").to_pylist()
    }
    groups: dict[tuple[str, str], Judged] = {}
    for row in read_table(folder, "events").to_pylist():
        verdict = verdicts.get((row["case_id"], row["attempt"]))
        if row["kind"] != "assessment" or verdict is None or verdict["failed"]:
            continue
        told = json.loads(row["data"])
        group = groups.setdefault((told["domain"], told["role"]), Judged())
        group.logprobs.append(tokens.get((row["case_id"], row["attempt"], told["reply"])))
        flag = None if told["flag"] is None else told["flag"] >= 0.5
        values = told["scores"] | {"quality": told["quality"], "flag": flag, "correct": verdict["correct"]}
        group.targets.append({name: np.nan if value is None else float(value) for name, value in values.items()})
    return groups


def assert_signals_of(signals: Signals, folder: Path) -> None:
    """The signals are those of the record: counts exactly, figures but for rounding."""
    groups = judged_replies(folder)
    assert signals.groups() == sorted(groups)
    for (domain, role), judged in groups.items():
        _assert_sizes(signals, domain, role, judged)
        _assert_correlations(signals, domain, role, judged)
        targets = (judged.target(name) for name in ("quality", "flag", "correct"))
        whole = divergences(JointCounts.of(judged.mean_logprobs(), *targets))
        assert repr(signals.divergences(domain, role)) == repr(whole)


def _assert_sizes(signals: Signals, domain: str, role: str, judged: Judged) -> None:
    group = signals.group(domain, role)
    assert group.replies == len(judged.targets)
    assert group.without_logprobs == sum(one is None for one in judged.logprobs)


def _assert_correlations(signals: Signals, domain: str, role: str, judged: Judged) -> None:
    """Those of a reply's mean; of the other features, and of the bands, only that they are there."""
    found = signals.correlation(domain, role)
    assert set(found.targets) == {name for told in judged.targets for name in told}
    feature, x = found.features.index("logprob.full.mean"), judged.mean_logprobs()
    for number, target in enumerate(found.targets):
        y = judged.target(target)
        known = ~np.isnan(x) & ~np.isnan(y)
        assert found.n[feature, number] == known.sum()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what does not vary correlates with nothing
            value = np.corrcoef(x[known], y[known])[0, 1] if known.sum() > 2 else np.nan
        assert found.value[feature, number] == pytest.approx(value, abs=1e-7, nan_ok=True), target
    assert (signals.bands(domain, role).n == (~np.isnan(x)).sum()).all()


def assert_same_signals(one: Signals, other: Signals) -> None:
    """Equal but for rounding."""
    assert one.groups() == other.groups()
    for group in one.groups():
        mine, its = one.group(*group), other.group(*group)
        assert (mine.replies, mine.without_logprobs) == (its.replies, its.without_logprobs)
        np.testing.assert_array_equal(mine.bands.counts, its.bands.counts)
        np.testing.assert_allclose(mine.curve.mean, its.curve.mean, rtol=1e-9)
        assert mine.joint.cells.tolist() == its.joint.cells.tolist()
        assert mine.joint.counts.tolist() == its.joint.counts.tolist()
        found, expected = one.correlation(*group), other.correlation(*group)
        np.testing.assert_array_equal(found.n, expected.n)
        np.testing.assert_allclose(found.value, expected.value, atol=1e-9)
