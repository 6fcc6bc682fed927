"""A table of ratings: the agreement of its raters, against figures worked out by hand or by their own functions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from moot.deploy.cli.main import app
from moot.deploy.studies.analysis.ratings import RatingAgreement, rating_agreement
from moot.metrics.agreement import krippendorff_alpha
from moot.metrics.weighted_kappa import cohen_kappa, quadratic_weighted_kappa
from moot.protocols.errors import ConfigError

A = [1, 2, 3, 3, 2, 1, 2, 3, 1, 2]
B = [1, 2, 3, 2, 2, 1, 3, 3, 1, 1]


def csv(path: Path, *raters: Sequence[object]) -> Path:
    lines = [f"i{i},r{r},{score}" for r, scores in enumerate(raters) for i, score in enumerate(scores)]
    path.write_text("item,rater,score\n" + "\n".join(lines) + "\n")
    return path


def test_the_figures_are_those_of_the_formulas(tmp_path: Path) -> None:
    found = rating_agreement(csv(tmp_path / "r.csv", A, B))
    assert (found.items, found.ratings, found.raters, found.categories) == (10, 20, ["r0", "r1"], ["1", "2", "3"])
    of = {each.name: each for each in found.together + found.pairs}
    assert of["Krippendorff's alpha, ordinal"].value == pytest.approx(krippendorff_alpha([A, B], "ordinal"))
    # 7 of 10 equal; by chance .3 * .4 + .4 * .3 + .3 * .3 = .33
    assert of["Cohen's kappa"].value == pytest.approx((0.7 - 0.33) / (1 - 0.33)) == pytest.approx(cohen_kappa(A, B))
    assert of["quadratic weighted kappa"].value == pytest.approx(quadratic_weighted_kappa(A, B, 1, 3))
    assert of["raw agreement"].value == pytest.approx(0.7)
    for each in of.values():
        assert each.value is not None
        assert each.interval is not None
        assert each.interval[0] < each.value < each.interval[1]


def test_names_have_nominal_figures_only_and_missing_ones_count_for_nothing(tmp_path: Path) -> None:
    found = rating_agreement(csv(tmp_path / "r.csv", ["yes", "no", "", "no"], ["yes", "yes", "no", "no"]))
    assert (found.numeric, found.ratings, found.categories) == (False, 7, ["no", "yes"])
    assert [each.name for each in found.pairs] == ["Cohen's kappa"]
    assert found.pairs[0].n == 3
    assert found.pairs[0].interval is None, "three items"


def test_items_of_a_group_are_drawn_together(tmp_path: Path) -> None:
    rows = [{"item": i, "rater": r, "score": s[i], "group": i // 5} for r, s in (("x", A), ("y", B)) for i in range(10)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "r.parquet")
    found = rating_agreement(tmp_path / "r.parquet")
    assert (found.items, found.groups) == (10, 2)
    assert all(each.interval is None for each in found.together)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item,rater\n1,a\n", "found no `score`"),
        ("item,rater,score,colour\n1,a,1,red\n", "colour"),
        ("item,rater,score\n1,a,1\n1,a,2\n", "scores item '1' a second time"),
        ("item,rater,score\n1,a,1\n,b,2\n", "row 2 has no `item`"),
        ("item,rater,score\n1,a,1\n", "expected two raters or more, found 1"),
        ("item,rater,score,group\n1,a,1,g\n1,b,1,h\n", "item '1' is in two groups"),
        ("item,rater,score\n", "has no rows"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(ConfigError) as refused:
        rating_agreement(tmp_path / "r.csv")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_command(tmp_path: Path) -> None:
    path = csv(tmp_path / "r.csv", A, B)
    shown = {form: CliRunner().invoke(app, ["analyze", "--ratings", str(path), "--format", form]) for form in
             ("text", "json", "md")}  # fmt: skip
    assert all(each.exit_code == 0 for each in shown.values())
    assert RatingAgreement.model_validate_json(shown["json"].output) == rating_agreement(path)
    assert json.loads(shown["json"].output)["numeric"]
    assert "quadratic weighted kappa" in shown["text"].output
    assert "| r0 - r1 | Cohen's kappa |" in shown["md"].output
    refused = CliRunner().invoke(app, ["analyze", "--ratings", str(path), "--table", "x.parquet"])
    assert isinstance(refused.exception, ConfigError)
