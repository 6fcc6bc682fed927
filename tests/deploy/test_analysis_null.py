"""Where nothing is linked nothing is found, though essays share something on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from planted_replies import analysed, planted, rows_of
from scipy.stats import binom

from moot.deploy.analysis.analysis import Analysis
from moot.deploy.analysis.settings import AnalysisSettings

pytestmark = pytest.mark.slow

WORLDS, ESSAYS, SHARED, LEVEL = 20, 24, 0.9, 0.05
TARGETS = ("quality", "correct")
SETTINGS = AnalysisSettings(resamples=50, permutations=199)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> list[Analysis]:
    """Analyses of replies without any link, of one role, with Q and correctness as their only targets."""
    folder = tmp_path_factory.mktemp("null")
    found = []
    for seed in range(WORLDS):
        table = planted(ESSAYS, seed, {"constructor": 0.0}, shared=SHARED, tokens=16)
        quality = [sum(scores) for scores in zip(*(table[f"score_{name}"].to_pylist() for name in "abc"), strict=True)]
        plain = table.drop_columns(["score_a", "score_b", "score_c", "flag"]).append_column("quality", [quality])
        found.append(analysed(plain, folder, SETTINGS))
    return found


def _most(tests: int) -> int:
    """As many tests at the level reject at once in a thousand repetitions only."""
    return int(binom.ppf(0.999, tests, LEVEL))


def test_the_best_of_the_sweep_is_rarely_significant(worlds: list[Analysis]) -> None:
    tops = [row for found in worlds for row in rows_of(found, "top_features", rank=1)]
    assert len(tops) == WORLDS * len(TARGETS)
    assert sum(top["max_p"] <= LEVEL for top in tops) <= _most(len(tops))


def test_few_worlds_have_any_discovery(worlds: list[Analysis]) -> None:
    """When nothing is linked, the false discovery rate is the chance of any discovery."""
    discovering = [any((row["q"] or 1.0) <= LEVEL for row in rows_of(found, "associations")) for found in worlds]
    assert sum(discovering) <= _most(WORLDS)


def test_p_values_of_a_fixed_feature_are_spread_evenly(worlds: list[Analysis]) -> None:
    p = [row["p"] for found in worlds for row in rows_of(found, "associations", feature="logprob.full.mean")]
    assert len(p) == WORLDS * len(TARGETS)
    assert sum(each <= LEVEL for each in p) <= _most(len(p))
    assert 0.3 < float(np.mean(p)) < 0.7


def test_the_chosen_feature_is_worth_nothing_on_other_essays(worlds: list[Analysis]) -> None:
    for target, nothing, tolerance in (("quality", 0.0, 0.08), ("correct", 0.5, 0.04)):
        tops = [row for found in worlds for row in rows_of(found, "top_features", rank=1, target=target)]
        assert abs(float(np.mean([top["held_out"] for top in tops])) - nothing) < tolerance
        assert min(top["folded"] for top in tops) > nothing + 0.04, "in the sample it looks like something"


def test_confidence_foretells_no_right_answer(worlds: list[Analysis]) -> None:
    gains = [row["gain_low"] for found in worlds for row in rows_of(found, "correctness", model_of="mean")]
    assert len(gains) == WORLDS
    assert sum(low > 0.0 for low in gains) <= _most(WORLDS)
