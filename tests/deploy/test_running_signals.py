"""The signals of a run while it goes on, held against the analysis of its record."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import moot
from moot.deploy.analysis.measured import Measured, measure
from moot.deploy.analysis.recorded import replies_of_runs
from moot.deploy.analysis.replies import FLAG
from moot.metrics.online.divergence_counts import JointCounts, divergences
from moot.metrics.rank_correlation import pearson_matrix
from moot.metrics.trajectory import percent_grid

CASES = 40
ROLES = ("constructor", "auditor")
MODELS = {"constructor": "simulated?confidence_signal=0.8", "auditor": "simulated?confidence_signal=0.8&competence=0.9"}
QUICK = moot.AnalysisSettings().model_copy(update={"resamples": 5, "permutations": 5})
"""Neither intervals nor p-values are looked at here."""

MU_OFF = 0.0051
"""How far an end of confidence may be off: half a bin."""

PLACE_OFF = 0.0251
"""The same of a quantile along the replies; or 0.0002 next to 0."""


class Both:
    """A run's last signals, the analysis of its record, and the replies that it is of."""

    def __init__(self, folder: Path, signals: moot.Signals) -> None:
        self.signals, self.found = signals, moot.analyze(folder, settings=QUICK)
        self.measured: Measured = measure(replies_of_runs([folder]))
        (self.domain,) = {domain for domain, _ in signals.groups()}
        self._tables = cache(lambda table: self.found.table(table).to_pylist())

    def rows(self, role: str) -> np.ndarray:
        """The numbers of a role's replies."""
        return np.flatnonzero(self.measured.replies.role == role)

    def row(self, table: str, **keys: str) -> dict[str, Any]:
        """The one row of a table."""
        (row,) = [row for row in self._tables(table) if keys.items() <= row.items()]
        return dict(row)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Of simulated models, whose confidence shows the quality of what they say."""
    folder = tmp_path_factory.mktemp("runs") / "one"

    async def hold() -> moot.Signals:
        last = moot.Signals()
        options: dict[str, Any] = {"task": "sample", "limit": CASES, "out": folder, "engine": "inline", "seed": 9}
        protocol: dict[str, Any] = {"protocol": "constructor-auditor", "set": {"judge.passes": 2}}
        async for given in moot.stream(**options, **protocol, model="simulated", roles=MODELS):
            if isinstance(given, moot.Signals):
                last = given
        return last

    return Both(folder, asyncio.run(hold()))


@pytest.mark.parametrize("role", ROLES)
def test_groups_are_of_the_same_replies(role: str, both: Both) -> None:
    signals, replies, rows = both.signals, both.measured.replies, both.rows(role)
    assert signals.group(both.domain, role).replies == len(rows) == CASES
    assert signals.models(both.domain, role) == sorted(set(replies.model[rows]))
    assert signals.samplings(both.domain, role) == [replies.sampling[rows[0]]]
    assert signals.samplings(both.domain, role)[0].stage == "before"


@pytest.mark.parametrize("role", ROLES)
def test_correlations_are_the_same_but_for_rounding(role: str, both: Both) -> None:
    running, replies, rows = both.signals.correlation(both.domain, role), both.measured.replies, both.rows(role)
    targets = {**replies.ordinal, "flag": replies.flag, "correct": replies.correct}
    assert set(running.targets) == set(targets)
    assert 0 < np.nansum(replies.flag[rows]) < CASES
    x = np.column_stack([both.measured.column(name)[rows] for name in running.features])
    exact = pearson_matrix(x, np.column_stack([targets[name][rows] for name in running.targets]))
    np.testing.assert_allclose(running.value, exact, atol=1e-6)
    for name, target in (("flag", FLAG), ("correct", "correct")):
        row = both.row("associations", role=role, feature="logprob.full.mean", target=target)
        f, t = running.features.index("logprob.full.mean"), running.targets.index(name)
        assert (row["second"], row["n"]) == (pytest.approx(running.value[f, t], abs=1e-6), running.n[f, t])
    pair = both.row("signal_pairs", role=role, pair="(Q, mu)")
    f, t = running.features.index("logprob.full.mean"), running.targets.index("quality")
    assert (pair["pearson"], pair["n"]) == (pytest.approx(running.value[f, t], abs=1e-6), running.n[f, t])


@pytest.mark.parametrize("role", ROLES)
def test_divergences_are_the_same_but_for_replies_beside_an_end(role: str, both: Both) -> None:
    """A reply may count otherwise if it shares a bin, 1 % wide, with an end of confidence; n is the same."""
    running, mu = both.signals.divergences(both.domain, role), both.measured.mu[both.rows(role)]
    ends = np.quantile(mu, [0.25, 0.75], method="inverted_cdf")
    assert running.mu_low == pytest.approx(ends[0], rel=MU_OFF)
    unclear = int((np.abs(mu[:, np.newaxis] / [running.mu_low, running.mu_high] - 1.0) <= MU_OFF).any(axis=1).sum())
    assert unclear <= CASES // 6
    for each in running:
        row = both.row("divergences", role=role, divergence=each.name)
        assert each.n == row["n"] == CASES
        off = 0 if each.name == "good reasoning, wrong answer" else unclear
        assert abs(each.count - row["count"]) <= off
        assert abs(each.expected - row["independent"]) <= off / CASES + 1e-9
    assert running.good_but_wrong.count > 0


@pytest.mark.parametrize("role", ROLES)
def test_trajectories_are_the_same_but_for_the_width_of_a_bin(role: str, both: Both) -> None:
    """A running quantile is one of the replies' values, the analysis' lies between two of them."""
    running = both.signals.bands(both.domain, role)
    curve = [row for row in both.found.table("trajectory_percent").to_pylist() if row["role"] == role]
    assert running.n.tolist() == [row["n"] for row in curve]
    np.testing.assert_allclose(running.mean, [row["mean"] for row in curve], rtol=1e-9)
    values = np.sort(percent_grid(both.measured.replies.logprobs.take(both.rows(role))), axis=0)
    for share, name in ((0.1, "low_10"), (0.25, "low_25"), (0.75, "high_75"), (0.9, "high_90")):
        place = share * (CASES - 1)
        least, most = values[int(np.floor(place))], values[int(np.ceil(place))]
        exact = np.array([row[name] for row in curve])
        assert ((least - 1e-6 <= exact) & (exact <= most + 1e-6)).all()
        off = np.maximum(PLACE_OFF * np.abs(least), 2e-4)
        found = getattr(running, name)
        assert ((least - off <= found) & (found <= most + off)).all()


def analysed(path: Path, mu: np.ndarray, quality: np.ndarray, correct: np.ndarray) -> list[dict[str, Any]]:
    """The divergences of replies of one token, from a table."""
    columns = {"logprob": mu[:, np.newaxis].tolist(), "quality": quality, "score_a": [2] * len(mu)}
    pq.write_table(pa.table(columns | {"flag": [False] * len(mu), "correct": correct}), path)
    return list(moot.analyze(table=path, settings=QUICK).table("divergences").to_pylist())


@pytest.mark.parametrize("scale", [1e-7, 1e-5, 1.0])
def test_near_certain_replies_count_in_both(scale: float, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    mu = -scale * np.exp(random.normal(0.0, 1.0, 400))
    quality, correct = random.choice([3.0, 6.0, 9.0], 400), random.random(400) < 0.5
    rows = analysed(tmp_path / "replies.parquet", mu, quality, correct)
    running = divergences(JointCounts.of(mu, quality, np.zeros(400), correct.astype(float)))
    for each, row in zip(running, rows, strict=True):
        assert (each.name, each.n) == (row["divergence"], row["n"])
        assert abs(each.count - row["count"]) <= 4


def test_replies_that_are_all_alike_are_neither_sure_nor_unsure_in_both(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    mu, quality, correct = np.full(60, -0.3), random.choice([3.0, 9.0], 60), random.random(60) < 0.5
    rows = analysed(tmp_path / "replies.parquet", mu, quality, correct)
    running = divergences(JointCounts.of(mu, quality, np.zeros(60), correct.astype(float)))
    assert [each.n for each in running] == [0, 60, 0]
    assert [(row["divergence"], row["count"]) for row in rows] == [
        ("good reasoning, wrong answer", running.good_but_wrong.count)
    ]
