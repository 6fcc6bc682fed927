"""What was planted is found: associations, the best feature and its direction, divergences, a role without any link.
Where nothing is linked nothing is found, though essays share something on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted_replies import Population, analysed, planted, population, row_of, rows_of
from scipy.stats import binom

from moot.deploy.results.figures.token_confidence import AnalysisSettings
from moot.deploy.studies.analysis.analyze import Analysis

pytestmark = pytest.mark.slow

LINKS = {"constructor": 0.6, "auditor": 0.0}
WORLDS, ESSAYS = 8, 40
SETTINGS = AnalysisSettings(resamples=100, permutations=100)

Judged = tuple[str, dict[str, Any], str, float]


@pytest.fixture(scope="module")
def truth() -> dict[str, Population]:
    """By role."""
    return {role: population(link) for role, link in LINKS.items()}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> list[Analysis]:
    """The same kind of replies again and again."""
    folder = tmp_path_factory.mktemp("planted")
    return [analysed(planted(ESSAYS, seed, LINKS), folder, SETTINGS) for seed in range(WORLDS)]


def _compare_with_truth(found: Analysis, truth: dict[str, Population]) -> Iterator[Judged]:
    """Kind, row, key and what it is in the population."""
    for role, true in truth.items():
        yield "Spearman", row_of(found, "signal_pairs", role=role, pair="(Q, mu)"), "spearman", true.rho
        of_mu = {"role": role, "feature": "logprob.full.mean"}
        yield "Spearman", row_of(found, "associations", target="quality", **of_mu), "value", true.rho
        for target, auroc in true.auroc.items():
            yield "AUROC", row_of(found, "associations", target=target, **of_mu), "value", auroc
        for name, prevalence in true.prevalence.items():
            yield name, row_of(found, "divergences", role=role, divergence=name), "prevalence", prevalence


def test_intervals_cover_the_planted_values(worlds: list[Analysis], truth: dict[str, Population]) -> None:
    """95 % should, and do over many seeds; of these 9 in 10, and 5 in 6 of each kind."""
    held, counted = Counter[str](), Counter[str]()
    for found in worlds:
        for kind, row, key, true in _compare_with_truth(found, truth):
            assert row[f"{key}_low"] <= row[key] <= row[f"{key}_high"]
            counted[kind] += 1
            held[kind] += row[f"{key}_low"] <= true <= row[f"{key}_high"]
    assert set(counted.values()) == {2 * WORLDS, 4 * WORLDS}
    assert sum(held.values()) >= 0.9 * sum(counted.values())
    assert {kind: held[kind] for kind in counted if held[kind] < counted[kind] * 5 / 6} == {}


def test_the_best_feature_is_the_one_that_carries_the_link(worlds: list[Analysis]) -> None:
    tops = [row_of(found, "top_features", role="constructor", target="quality", rank=1) for found in worlds]
    assert sum(top["feature"] == "logprob.full.mean" for top in tops) >= WORLDS - 1
    for top in tops:
        assert top["direction"] == "confident -> better"
        assert top["max_p"] == pytest.approx(1 / 101)
        assert abs(top["held_out"] - top["folded"]) < 0.12
        assert abs(top["length_value"]) < 0.2
    assert sum(top["held_out"] < top["folded"] for top in tops) >= WORLDS - 1, "the best of many is optimistic"


def test_one_role_has_the_link_and_the_other_has_not(worlds: list[Analysis]) -> None:
    for found in worlds:
        same = row_of(found, "role_differences", target="quality", feature="Full-response mean")
        assert same["difference_low"] > 0.0
        assert same["first"] > same["second"]
        assert same["somers_first"] > 0.25
        assert row_of(found, "role_ratios", over="every score")["ratio"] > 1.3


def test_more_confident_may_be_worse(tmp_path: Path) -> None:
    found = analysed(planted(40, 1, {"constructor": -0.6}), tmp_path)
    of_mu = {"feature": "logprob.full.mean"}
    quality, flag, correct = (
        row_of(found, "associations", target=target, **of_mu) for target in ("quality", "critical flag", "correct")
    )
    assert {row["direction"] for row in (quality, flag, correct)} == {"confident -> worse"}
    assert quality["value"] < -0.4
    assert flag["value"] > 0.7
    assert correct["value"] < 0.35
    assert quality["folded"] == -quality["value"]
    assert flag["folded"] == flag["value"]
    assert correct["folded"] == 1.0 - correct["value"]


def test_a_wide_spread_is_not_confident(tmp_path: Path) -> None:
    """Confidence sits in the standard deviation alone, falling with it; variance, which ranks alike, is not listed."""
    found = analysed(planted(40, 2, {"constructor": 0.6}, carrier="std"), tmp_path)
    top = row_of(found, "top_features", target="quality", rank=1)
    assert (top["feature"], top["direction"]) == ("logprob.full.std", "confident -> better")
    assert top["value"] < -0.4
    assert not [row for row in rows_of(found, "top_features") if row["window_statistic"] == "variance"]
    variance, std = (
        row_of(found, "associations", target="quality", feature=f"logprob.full.{name}") for name in ("variance", "std")
    )
    assert variance["value"] == std["value"]
    assert not {row["direction"] for row in rows_of(found, "associations", window_statistic="slope")} - {""}
    assert not {row["direction"] for row in rows_of(found, "associations", feature="length")} - {""}


def test_equal_roles_are_not_distinguished(tmp_path: Path) -> None:
    found = analysed(planted(60, 3, {"constructor": 0.6, "auditor": 0.6}), tmp_path)
    same = row_of(found, "role_differences", target="quality", feature="Full-response mean")
    assert same["difference_low"] < 0.0 < same["difference_high"]
    ratio = row_of(found, "role_ratios", over="every score")
    assert 0.8 < ratio["ratio"] < 1.25


def test_predictors_of_a_right_answer(worlds: list[Analysis]) -> None:
    """The mean does, in the role that has the link; the slope adds nothing to it."""
    found = worlds[0]
    asked = {"question": "does the slope add to the mean?"}
    mean = row_of(found, "correctness", role="constructor", model_of="mean", **asked)
    assert mean["gain_low"] > 0.0
    assert mean["auroc"] > 0.65
    assert row_of(found, "correctness", role="constructor", model_of="and slope", **asked)["gain_low"] < 0.0
    assert row_of(found, "correctness", role="auditor", model_of="mean", **asked)["gain_low"] < 0.0


NULL_WORLDS, LEVEL = 20, 0.05
TARGETS = ("quality", "correct")


@pytest.fixture(scope="module")
def unlinked(tmp_path_factory: pytest.TempPathFactory) -> list[Analysis]:
    """Analyses of replies without any link, of one role, with Q and correctness as their only targets."""
    folder, settings = tmp_path_factory.mktemp("null"), AnalysisSettings(resamples=50, permutations=199)
    found = []
    for seed in range(NULL_WORLDS):
        table = planted(24, seed, {"constructor": 0.0}, shared=0.9, tokens=16)
        quality = [sum(scores) for scores in zip(*(table[f"score_{name}"].to_pylist() for name in "abc"), strict=True)]
        plain = table.drop_columns(["score_a", "score_b", "score_c", "flag"]).append_column("quality", [quality])
        found.append(analysed(plain, folder, settings))
    return found


def _most(tests: int) -> int:
    """As many tests at the level reject at once in a thousand repetitions only."""
    return int(binom.ppf(0.999, tests, LEVEL))


def test_the_best_of_the_sweep_is_rarely_significant(unlinked: list[Analysis]) -> None:
    tops = [row for found in unlinked for row in rows_of(found, "top_features", rank=1)]
    assert len(tops) == NULL_WORLDS * len(TARGETS)
    assert sum(top["max_p"] <= LEVEL for top in tops) <= _most(len(tops))


def test_few_worlds_have_any_discovery(unlinked: list[Analysis]) -> None:
    """When nothing is linked, the false discovery rate is the chance of any discovery."""
    discovering = [any((row["q"] or 1.0) <= LEVEL for row in rows_of(found, "associations")) for found in unlinked]
    assert sum(discovering) <= _most(NULL_WORLDS)


def test_p_values_of_a_fixed_feature_are_spread_evenly(unlinked: list[Analysis]) -> None:
    p = [row["p"] for found in unlinked for row in rows_of(found, "associations", feature="logprob.full.mean")]
    assert len(p) == NULL_WORLDS * len(TARGETS)
    assert sum(each <= LEVEL for each in p) <= _most(len(p))
    assert 0.3 < float(np.mean(p)) < 0.7


def test_the_chosen_feature_is_worth_nothing_on_other_essays(unlinked: list[Analysis]) -> None:
    for target, nothing, tolerance in (("quality", 0.0, 0.08), ("correct", 0.5, 0.04)):
        tops = [row for found in unlinked for row in rows_of(found, "top_features", rank=1, target=target)]
        assert abs(float(np.mean([top["held_out"] for top in tops])) - nothing) < tolerance
        assert min(top["folded"] for top in tops) > nothing + 0.04, "in the sample it looks like something"


def test_confidence_does_not_predict_a_right_answer(unlinked: list[Analysis]) -> None:
    gains = [row["gain_low"] for found in unlinked for row in rows_of(found, "correctness", model_of="mean")]
    assert len(gains) == NULL_WORLDS
    assert sum(low > 0.0 for low in gains) <= _most(NULL_WORLDS)
