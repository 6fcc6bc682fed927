"""Analyses of runs: the record's figures by plain code, the running signals, several runs, and debates that failed."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged_replies import _judged
from planted_records import PlantedSession
from planted_replies import QUICK, row_of, rows_of, shown
from scipy.stats import pearsonr, spearmanr

import moot
from moot.actors.record.signals import Signals
from moot.actors.record.tables import read_table
from moot.deploy.studies.analysis.analyze import Analysis, analyze
from moot.metrics.ragged import RaggedArray
from moot.metrics.trajectory import percent_grid
from moot.protocols.errors import ConfigError, RecordError

CASES = 30
OPTIONS: dict[str, Any] = {
    "protocol": "constructor-auditor",
    "model": "simulated?confidence_signal=0.8&latency_ms=5",  # or a run is over before whoever reads its stream
    "engine": "inline",
    "set": {"judge.passes": 2},
    "seed": 9,
}
ROLES = ("constructor", "auditor")


@dataclass
class PlainReplies:
    """One role's judged replies, read from the record without anything of the analysis; NaN is unknown."""

    logprobs: list[np.ndarray]
    quality: np.ndarray
    scores: list[dict[str, float]]
    flag: np.ndarray
    correct: np.ndarray

    @property
    def mu(self) -> np.ndarray:
        """Mean log-probabilities."""
        return np.array([tokens.mean() for tokens in self.logprobs])


def plain(folder: Path) -> dict[str, PlainReplies]:
    """By role."""
    tokens = {(row["case_id"], row["path"]): row["logprob"] for row in read_table(folder, "tokens").to_pylist()}
    correct = {row["case_id"]: row["correct"] for row in read_table(folder, "verdicts").to_pylist()}
    found = {}
    for role in ROLES:
        rows = [row for row in read_table(folder, "events").to_pylist() if row["kind"] == "assessment"]
        told = [(row["case_id"], json.loads(row["data"])) for row in rows]
        told = [(case, data) for case, data in told if data["role"] == role]
        found[role] = PlainReplies(
            logprobs=[np.array(tokens[case, data["reply"]], np.float64) for case, data in told],
            quality=np.array([data["quality"] for _, data in told]),
            scores=[data["scores"] for _, data in told],
            flag=np.array([data["flag"] >= 0.5 for _, data in told]),
            correct=np.array([correct[case] for case, _ in told], float),
        )
    return found


def streamed(out: Path, **changes: Any) -> Signals:
    """The last signals of a run."""

    async def hold() -> Signals:
        last = Signals()
        stream: Any = moot.stream(**OPTIONS | {"task": "sample", "limit": CASES, "out": out} | changes)
        async with aclosing(stream):
            async for given in stream:
                if isinstance(given, Signals):
                    last = given
        return last

    return asyncio.run(hold())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Signals]:
    """A run of simulated models, whose confidence shows the quality of what they say, and its last signals."""
    folder = tmp_path_factory.mktemp("runs") / "one"
    return folder, streamed(folder)


@pytest.fixture(scope="module")
def found(run: tuple[Path, Signals]) -> Analysis:
    """Its analysis."""
    return analyze(run[0], settings=QUICK)


def test_the_facts_of_a_run(found: Analysis, run: tuple[Path, Signals]) -> None:
    facts = found.facts
    assert (facts.replies, facts.cases, facts.groups) == (2 * CASES, CASES, CASES)
    assert (facts.with_logprobs, facts.judged, facts.scored) == (2 * CASES, 2 * CASES, 2 * CASES)
    assert facts.simulated
    assert facts.left_out == {}
    assert "simulated models" in shown(found)
    assert [row["role"] for row in rows_of(found, "strata")] == list(ROLES)
    assert {row["dataset"] for row in rows_of(found, "strata")} == {"sample"}


@pytest.mark.parametrize("role", ROLES)
def test_figures_are_those_of_the_record(role: str, found: Analysis, run: tuple[Path, Signals]) -> None:
    replies = plain(run[0])[role]
    mu, q = replies.mu, replies.quality
    pair = row_of(found, "signal_pairs", role=role, pair="(Q, mu)")
    assert pair["n"] == CASES
    assert pair["spearman"] == pytest.approx(spearmanr(q, mu).statistic, abs=1e-9)
    assert pair["pearson"] == pytest.approx(pearsonr(q, mu).statistic, abs=1e-6)
    ranges = [np.ptp(tokens[:3]) for tokens in replies.logprobs]
    early = row_of(found, "associations", role=role, target="quality", feature="logprob.first-3.range")
    assert early["value"] == pytest.approx(spearmanr(q, ranges).statistic, abs=1e-9)
    flagged, others = mu[replies.flag], mu[~replies.flag]
    assert len(flagged)
    wins = (flagged[:, None] > others).mean() + 0.5 * (flagged[:, None] == others).mean()
    area = row_of(found, "associations", role=role, target="critical flag", feature="logprob.full.mean")
    assert area["value"] == pytest.approx(wins, abs=1e-9)
    length = row_of(found, "associations", role=role, target="quality", feature="length")
    assert length["value"] == pytest.approx(spearmanr(q, list(map(len, replies.logprobs))).statistic, abs=1e-9)


@pytest.mark.parametrize("role", ROLES)
def test_scores_and_divergences_are_those_of_the_record(role: str, found: Analysis, run: tuple[Path, Signals]) -> None:
    replies = plain(run[0])[role]
    for name in replies.scores[0]:
        scores = np.array([each[name] for each in replies.scores])
        row = row_of(found, "score_distributions", role=role, target=name)
        assert row["mean"] == pytest.approx(scores.mean())
        assert row["at_top"] == pytest.approx((scores == scores.max()).mean())
        assert row["passed"] == pytest.approx(((scores >= 2.0) & ~replies.flag).mean())
    mu, right = replies.mu, replies.correct == 1.0
    low, high = np.quantile(mu, [0.25, 0.75])
    weak, good = (replies.quality <= 5.0) | replies.flag, (replies.quality >= 8.0) & ~replies.flag
    for name, one, other in (
        ("confident but weak", mu >= high, weak),
        ("good reasoning, wrong answer", good, ~right),
        ("unsure but right", mu <= low, right),
    ):
        row = row_of(found, "divergences", role=role, divergence=name)
        assert (row["n"], row["count"]) == (CASES, int((one & other).sum())), name
        assert row["independent"] == pytest.approx(one.mean() * other.mean())
        assert len(rows_of(found, "divergence_cases", role=role, divergence=name)) == row["count"]
    opening = row_of(found, "phases", role=role, phase="opening")
    means = np.mean([np.exp(tokens[:5]) for tokens in replies.logprobs], axis=0)
    assert (opening["mean"], opening["n"]) == (pytest.approx(means.mean(), abs=1e-6), CASES)


@pytest.mark.parametrize("role", ROLES)
def test_the_last_running_signals_are_those_of_the_analysis(
    role: str, found: Analysis, run: tuple[Path, Signals]
) -> None:
    """But for rounding; a running quantile is one of the replies' values, at most 2.5 % off, or 0.0002 next to 0; the
    ends of confidence are at most 0.5 % off."""
    signals = run[1]
    (domain,) = {domain for domain, _ in signals.groups()}
    bands, curve = signals.bands(domain, role), rows_of(found, "trajectory_percent", role=role)
    assert signals.group(domain, role).replies == CASES
    np.testing.assert_allclose(bands.mean, [row["mean"] for row in curve], rtol=1e-9)
    assert bands.n.tolist() == [row["n"] for row in curve]
    values = np.sort(percent_grid(RaggedArray.from_lists(plain(run[0])[role].logprobs)), axis=0)
    for share, name in ((0.1, "low_10"), (0.25, "low_25"), (0.75, "high_75"), (0.9, "high_90")):
        least, most = values[int(np.floor(share * (CASES - 1)))], values[int(np.ceil(share * (CASES - 1)))]
        quantile, running = np.array([row[name] for row in curve]), getattr(bands, name)
        off = np.maximum(0.0251 * np.abs(least), 2e-4)
        assert ((least - 1e-6 <= quantile) & (quantile <= most + 1e-6)).all()
        assert ((least - off <= running) & (running <= most + off)).all()
    correlations = signals.correlation(domain, role)
    targets, features = correlations.targets, list(correlations.features)
    for f, feature in enumerate(features):
        exact, running = (
            row_of(found, "associations", role=role, target="correct", feature=feature),
            correlations.value[f],
        )
        second = np.nan if exact["second"] is None else exact["second"]
        assert second == pytest.approx(running[targets.index("correct")], abs=1e-6, nan_ok=True), feature
        assert exact["n"] == correlations.n[f, targets.index("correct")]
    for pair, name in (("(Q, mu)", "mean"), ("(Q, sigma)", "std")):
        value = correlations.value[features.index(f"logprob.full.{name}"), targets.index("quality")]
        assert row_of(found, "signal_pairs", role=role, pair=pair)["pearson"] == pytest.approx(value, abs=1e-6)
    divergences, mu = signals.divergences(domain, role), plain(run[0])[role].mu
    ends = np.array([divergences.mu_low, divergences.mu_high])
    unclear = int((np.abs(mu[:, None] - ends) <= 0.0051 * np.abs(ends)).any(axis=1).sum())
    assert unclear <= CASES // 6
    for each in divergences:
        row = row_of(found, "divergences", role=role, divergence=each.name)
        assert each.n == row["n"]
        assert abs(each.count - row["count"]) <= (0 if each.name == "good reasoning, wrong answer" else unclear)


@pytest.mark.slow
def test_two_runs_on_the_same_cases(found: Analysis, run: tuple[Path, Signals], tmp_path: Path) -> None:
    """They are pooled, and a case is one cluster in both; of two folders with one name each is named in full."""
    other = tmp_path / "one"
    streamed(other, seed=6)
    both = analyze(run[0], other, settings=QUICK)
    assert (both.facts.replies, both.facts.cases, both.facts.groups) == (4 * CASES, CASES, CASES)
    assert {row["replies"] for row in rows_of(both, "strata")} == {2 * CASES}
    assert {row["run"] for row in rows_of(both, "divergence_cases")} == {str(run[0]), str(other)}
    first, second = plain(run[0])["auditor"], plain(other)["auditor"]
    rho = spearmanr([*first.quality, *second.quality], [*first.mu, *second.mu]).statistic
    assert row_of(both, "signal_pairs", role="auditor", pair="(Q, mu)")["spearman"] == pytest.approx(rho, abs=1e-9)


def test_a_run_named_twice_is_refused(run: tuple[Path, Signals]) -> None:
    with pytest.raises(ConfigError, match="twice"):
        analyze(run[0], run[0].parent / "." / run[0].name)


def test_replies_of_failed_and_open_debates_are_left_out_and_counted(session: PlantedSession) -> None:
    for number in range(14):
        case = f"c{number:02d}"
        session.case(case)
        _judged(session, case, number)
        if number != 12:
            session.verdict(case, failure="quorum" if number in (10, 11, 13) else "")
    session.event("c00", "assessment", "elsewhere", {"mine": True})
    again = type(session)(cases=session.cases)
    _judged(again, "c13", 13, attempt=1)
    again.verdict("c13", attempt=1)
    found = analyze(session.plant(again), settings=QUICK)
    assert found.facts.replies == 11
    assert found.facts.left_out == {
        "of a debate that failed": 2,
        "of a debate without verdict": 1,
        "of an attempt that was retried": 1,
        "with marks of another form than a panel's": 1,
    }
    words = " ".join(shown(found).split())
    assert "2 replies of a debate that failed: left out" in words
    assert "1 reply of a debate without verdict: left out" in words
    assert row_of(found, "signal_pairs", pair="(Q, mu)")["n"] == 11


def test_a_run_whose_judged_debates_are_all_open_says_so(session: PlantedSession) -> None:
    session.case("c00")
    _judged(session, "c00", 0)
    with pytest.raises(RecordError, match="1 of a debate without verdict"):
        analyze(session.plant())


def test_a_run_that_nobody_judged_is_refused_in_one_line(session: PlantedSession) -> None:
    session.case("c00")
    session.said("c00", "opening/agent/0", "Yes", 0.5, "so it is")
    session.verdict("c00")
    with pytest.raises(RecordError, match="moot judge") as refused:
        analyze(session.plant(protocol="selene", task="boolq:my data.jsonl"))
    said = str(refused.value)
    assert "\n" not in said
    assert "(protocol selene)" in said
    assert "--protocol constructor-auditor --task 'boolq:my data.jsonl'" in said
