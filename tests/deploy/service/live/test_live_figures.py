"""Figures of a run under way: what the summary says of the same record, in bounded memory."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted_records import PlantedSession
from summary_debate import BAD, GOOD, Classifying, card, write_classifier_folder

import moot
from moot.actors.record.folder import RunFolder
from moot.actors.record.follow import RecordFollower
from moot.actors.record.signal_file import SignalReader
from moot.deploy.results.figures.run_list import RunFigures, run_figures
from moot.deploy.results.figures.summary import Summary, summarise
from moot.deploy.results.report.charts import chart_data
from moot.deploy.results.run_info import read_run_info
from moot.deploy.service.live.charts import live_charts
from moot.deploy.service.live.figures import READ_OF_JOURNAL, LiveFigures, RunningFigures
from moot.deploy.service.live.series import MOST_POINTS, RecentRate, RunningAccuracy, TimeBins
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED, text_hash
from moot.protocols.errors import UNSENT


def followed(run: Path) -> RunningFigures:
    """The figures of all that a record holds."""
    running = RunningFigures(read_run_info(run))
    with closing(RecordFollower(RunFolder(run), running.columns, READ_OF_JOURNAL)) as follower:
        for added in follower.read():
            running.add(added)
    return running


def equal_to_summary(running: RunningFigures, run: Path) -> tuple[LiveFigures, Summary]:
    """The figures and the run's summary, which says the same."""
    figures, summary = running.figures(), summarise(run)
    for name in ("finished", "failed", "scored", "accuracy", "accuracy_interval", "cost_usd", "calls_without_usage"):
        assert getattr(figures, name) == getattr(summary, name), name
    assert (figures.tokens, figures.replies) == (summary.tokens_paid, summary.calls)
    may_be_simulated = not running.done and read_run_info(run).binds_simulated  # until it is known who replies
    assert bool(figures.simulated) == summary.simulated or may_be_simulated
    assert run_figures(run) == RunFigures(**{name: getattr(summary, name) for name in RunFigures.model_fields})
    return figures, summary


@pytest.mark.parametrize(
    ("task", "protocol"),
    [("sample", "selene"), ("sample-symptoms", "evince"), ("sample-subjects", "socrasynth"), ("sample-claims", "ceda")],
)
def test_at_the_end_they_are_those_of_the_summary(task: str, protocol: str, tmp_path: Path) -> None:
    moot.run(task=task, protocol=protocol, limit=8, engine="inline", out=tmp_path / "run")
    running = followed(tmp_path / "run")
    figures, summary = equal_to_summary(running, tmp_path / "run")
    assert figures.simulated
    assert figures.open == 0
    signals = SignalReader(tmp_path / "run").signals()
    charts = [chart_data(chart) for chart in live_charts(running, signals)]
    assert len({chart["name"] for chart in charts}) == len(charts)
    drawn = {chart["name"]: chart["series"][-1] for chart in charts}
    for measure in signals.measures():
        bands = signals.rounds(measure)
        if bands.n.any():
            shown = drawn[f"live-{measure.replace('_', '-')}"]
            known = bands.known()
            assert shown["x"] == known.round.tolist(), measure
            times = 10.0 if measure in ("crit", "gamma") else 1.0
            assert shown["y"] == pytest.approx((times * known.median).tolist(), rel=1e-4), measure
    for speaker in signals.speakers():
        assert any(name.startswith("live-tokens") and speaker.role in name for name in drawn)
    if summary.accuracy is not None:
        accuracy = next(chart for chart in charts if chart["name"] == "live-accuracy")["series"][0]
        assert accuracy["y"][-1] == pytest.approx(summary.accuracy, rel=1e-4)


def test_notes_of_charts_count_one_debate_as_one(tmp_path: Path) -> None:
    moot.run(task="sample", protocol="evince", limit=1, engine="inline", out=tmp_path / "run")
    notes = [chart.note for chart in live_charts(followed(tmp_path / "run"), SignalReader(tmp_path / "run").signals())]
    assert any(note.startswith("Over 1 debate so far.") for note in notes)
    assert not any(word in note for note in notes for word in ("Over 1 debates", "Over 1 replies"))


@pytest.mark.parametrize(("shared", "last"), [("", "again"), ("One page", "again"), ("", "too")])
def test_claims_that_the_classifier_was_trained_on_are_in_no_accuracy(shared: str, last: str, tmp_path: Path) -> None:
    known = card([text_hash(GOOD)], trained_on_groups=(text_hash("The page"),))
    rows = [
        (GOOD, SUPPORTED, ""),
        (BAD, HALLUCINATED, "The page"),
        (f"{GOOD} too", HALLUCINATED, "Another page"),
        (f"{BAD} too", HALLUCINATED, shared),
        (f"{BAD} {last}", HALLUCINATED, shared),
    ]
    claims = [
        {"id": f"c-{n}", "question": claim, "labels": list(CLAIM_LABELS), "gold": gold, "group": group}
        for n, (claim, gold, group) in enumerate(rows)
    ]
    clf = write_classifier_folder(tmp_path / "clf", known)
    moot.run(task=claims, protocol=Classifying(), engine="inline", classifier=clf, out=tmp_path / "run")
    figures, _ = equal_to_summary(followed(tmp_path / "run"), tmp_path / "run")
    assert (figures.finished, figures.scored, figures.accuracy) == (5, 3, 2 / 3)
    assert (figures.accuracy_interval is None) == (bool(shared) or last == "too")


FREE = {"outcome": "failed", "failure": "timeout"}


@pytest.mark.parametrize(
    ("replies", "silent"),
    [
        ([{"tokens": 10}, {"tokens": None}], 1),
        ([{"tokens": 10}, {"tokens": None, **FREE}], 0),
        ([{"tokens": 10}, {"tokens": None, **FREE, "unconfirmed_attempts": 2}], 1),
        ([{"tokens": 10}, {"tokens": 0, **FREE, "failure": UNSENT}], 0),
        ([{"tokens": 10, "completion_tokens": None}], 1),
        ([{"tokens": None}], 1),
        ([{"tokens": None, **FREE}], 0),
        ([{"tokens": 10, "reused_from": "other"}], 0),
        ([{"tokens": 10, "role": "person"}], 0),
        ([], 0),
    ],
)
def test_usage_is_a_lower_bound_where_a_call_may_have_used_more(
    replies: list[dict[str, Any]], silent: int, session: PlantedSession
) -> None:
    session.case("one")
    for n, reply in enumerate(replies):
        session.reply("one", f"round/{n}/agent/0", reply.pop("tokens"), **reply)
    run = session.plant(schema_version=1, models={"agent": ["simulated"]}, price_table={"m": {"input": 1, "output": 1}})
    figures, _ = equal_to_summary(followed(run), run)
    assert figures.calls_without_usage == silent


def test_series_stay_small() -> None:
    accuracy, bins = RunningAccuracy(), TimeBins()
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


def test_a_pace_is_unknown_at_first_and_of_the_last_seconds() -> None:
    pace = RecentRate(window_s=30.0)
    assert pace.per_s() is None
    for second in range(100):
        pace.update(second, 0.0 if second < 50 else 10.0 * (second - 50))
    assert pace.per_s() == pytest.approx(10.0, rel=0.05)
