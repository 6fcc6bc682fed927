"""The same signals from a finished record, reply by reply, for the running ones to be held against."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from moot.actors.record.signals import Signals
from moot.actors.record.tables import read_table
from moot.metrics.confidence_features import window_statistic
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


def _window(logprobs: Floats, window: str) -> Floats:
    if window == "full":
        return logprobs
    size = len(logprobs) // 2 if window == "first-50%" else int(window.split("-")[1])
    if size > len(logprobs):
        return logprobs[:0]
    return logprobs[:size] if window.startswith("first") else logprobs[len(logprobs) - size :]


def _feature(logprobs: Floats | None, name: str) -> float:
    _, window, statistic = name.split(".")
    values = np.zeros(0) if logprobs is None else _window(logprobs, window)
    return float(window_statistic(values, statistic)) if len(values) else np.nan  # type: ignore[arg-type]


def _pearson(x: Floats, y: Floats) -> tuple[float, int]:
    both = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[both], y[both]
    if len(x) < 3 or np.ptp(x) < 1e-12 or np.ptp(y) == 0:
        return np.nan, len(x)
    return float(np.corrcoef(x, y)[0, 1]), len(x)


def assert_signals_of(signals: Signals, folder: Path) -> None:
    """The signals are those of the record: counts exactly, figures but for rounding and the width of a bin."""
    groups = judged_replies(folder)
    assert signals.groups() == sorted(groups)
    for (domain, role), judged in groups.items():
        _assert_sizes(signals, domain, role, judged)
        _assert_correlations(signals, domain, role, judged)
        _assert_bands(signals, domain, role, judged)
        targets = (judged.target(name) for name in ("quality", "flag", "correct"))
        whole = divergences(JointCounts.of(judged.mean_logprobs(), *targets))
        assert repr(signals.divergences(domain, role)) == repr(whole)


def _assert_sizes(signals: Signals, domain: str, role: str, judged: Judged) -> None:
    group = signals.group(domain, role)
    assert group.replies == len(judged.targets)
    assert group.without_logprobs == sum(one is None for one in judged.logprobs)


def _assert_correlations(signals: Signals, domain: str, role: str, judged: Judged) -> None:
    found = signals.correlation(domain, role)
    assert set(found.targets) == {name for told in judged.targets for name in told}
    for f, feature in enumerate(found.features):
        x = np.array([_feature(one, feature) for one in judged.logprobs])
        for t, target in enumerate(found.targets):
            value, n = _pearson(x, judged.target(target))
            assert found.n[f, t] == n
            assert found.value[f, t] == pytest.approx(value, abs=1e-7, nan_ok=True), (feature, target)


def _curves(judged: Judged) -> Iterator[Floats]:
    grid = np.linspace(0, 1, 101)
    for one in judged.logprobs:
        if one is not None:
            yield np.interp(grid, np.linspace(0, 1, len(one)), one)


def _assert_bands(signals: Signals, domain: str, role: str, judged: Judged) -> None:
    bands, curves = signals.bands(domain, role), np.array(list(_curves(judged)))
    assert (bands.n == len(curves)).all()
    if not len(curves):
        assert np.isnan(bands.mean).all()
        return
    np.testing.assert_allclose(bands.mean, curves.mean(axis=0), rtol=1e-9)
    for share, found in zip(
        (0.1, 0.25, 0.5, 0.75, 0.9),
        (bands.low_10, bands.low_25, bands.median, bands.high_75, bands.high_90),
        strict=True,
    ):
        exact = np.quantile(curves, share, axis=0, method="inverted_cdf")
        assert (np.abs(found - exact) <= np.maximum(0.0251 * np.abs(exact), 2e-4)).all()


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
