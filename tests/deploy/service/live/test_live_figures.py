"""Figures of a run under way: what the summary says of the same record, in bounded memory."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import moot
from moot.actors.record.folder import RunFolder
from moot.actors.record.follow import RecordFollower
from moot.deploy.results.report.charts import chart_data
from moot.deploy.results.summaries.summary import summarise
from moot.deploy.service.live.bands import SAMPLED, RoundBands
from moot.deploy.service.live.charts import live_charts
from moot.deploy.service.live.figures import READ, READ_OF_JOURNAL, RunningFigures
from moot.deploy.service.live.series import MOST_POINTS, RecentRate, RunningAccuracy, TimeBins
from moot.protocols.events import RoundFigures


@pytest.mark.parametrize(
    ("task", "protocol"),
    [("sample", "selene"), ("sample-symptoms", "evince"), ("sample-subjects", "socrasynth"), ("sample-claims", "ceda")],
)
def test_at_the_end_they_are_those_of_the_summary(task: str, protocol: str, tmp_path: Path) -> None:
    moot.run(task=task, protocol=protocol, limit=8, engine="inline", out=tmp_path / "run")
    running = RunningFigures(8, {})
    with closing(RecordFollower(RunFolder(tmp_path / "run"), READ, READ_OF_JOURNAL)) as follower:
        for added in follower.read():
            running.add(added)
    figures, summary = running.figures(), summarise(tmp_path / "run")
    for name in ("finished", "failed", "scored", "accuracy", "accuracy_interval", "cost_usd"):
        assert getattr(figures, name) == getattr(summary, name), name
    assert (figures.tokens, figures.replies) == (summary.tokens_paid, summary.calls)
    assert figures.simulated
    assert figures.open == 0
    charts = [chart_data(chart) for chart in live_charts(running)]
    assert len({chart["name"] for chart in charts}) == len(charts)
    if summary.accuracy is not None:
        accuracy = next(chart for chart in charts if chart["name"] == "live-accuracy")["series"][0]
        assert accuracy["y"][-1] == pytest.approx(summary.accuracy, rel=1e-4)


def test_series_and_samples_stay_small() -> None:
    accuracy, bins, bands = RunningAccuracy(), TimeBins(), RoundBands()
    correct = np.random.default_rng(0).random(50_000) < 0.8
    for part in np.array_split(correct, 700):
        accuracy.add(part)
        bins.add(np.arange(len(part), dtype=np.float64) + 1e9 + 100.0 * accuracy.scored, np.ones(len(part)))
    points = accuracy.points()
    assert len(points) <= MOST_POINTS + 1
    assert points[-1].scored == 50_000
    assert all(point.accuracy == correct[: point.scored].mean() for point in points)
    minutes, rates = bins.rates()
    assert len(minutes) <= MOST_POINTS
    assert sum(rates) * bins.width_s == pytest.approx(50_000, rel=0.02)
    for value in np.random.default_rng(1).random(20 * SAMPLED):
        bands.add(RoundFigures(round=1, d=float(value)))
    ((measure, (band,)),) = bands.bands()
    assert (measure.key, band.n) == ("d", 20 * SAMPLED)
    assert (band.low_10, band.median, band.high_90) == pytest.approx((0.1, 0.5, 0.9), abs=0.08)


def test_a_pace_is_unknown_at_first_and_of_the_last_seconds() -> None:
    pace = RecentRate(window_s=30.0)
    assert pace.per_s() is None
    for second in range(100):
        pace.update(second, 0.0 if second < 50 else 10.0 * (second - 50))
    assert pace.per_s() == pytest.approx(10.0, rel=0.05)
