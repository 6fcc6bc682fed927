"""The table of real models' pairs: its readers on the real files where they are, its figures on made-up ones."""

from __future__ import annotations

import csv
import importlib
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCH = Path(__file__).parents[1] / "bench"
DATA = Path(__file__).parents[2].parent / "shared" / "data"

needs_data = pytest.mark.needs("data/mcq_logprobs", "data/llm_confidence_panel")


@pytest.fixture
def panels(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("model_panels")


def _write(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines).writerows([header, *rows])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two models each; token columns in other orders, stated rows in other orders, and one of each trap."""
    for stage in ("Direct", "afterThinking"):
        name = f"college_medicine_LogProbs_{stage}.csv"
        _write(
            tmp_path / "mcq_logprobs" / f"one-{stage}" / name,
            ["question", "choices", "answer", "b", "a", "|", "c", "d"],
            [
                ["q", "['x'\n 'y']", 0, 0.5, 0.5, "True", "", ""],  # an empty cell is no mass
                ["q", "['x'\n 'y']", 1, 0.4, 0.1, 0.5, "", ""],  # half of it was on another token
                ["q", "['x'\n 'y']", 2, "", "", 1.0, "", ""],  # no mass on the options
                ["q", "['x'\n 'y']", 3, 0.0, 0.0, 0.0, "True", 1.0],  # no number
            ],
        )
        _write(
            tmp_path / "mcq_logprobs" / f"two-{stage}" / name,
            ["answer", "d", "c", "b", "a"],
            [[0, 0, 0, 0, 1], [1, 0, 0, 1, 0], [2, 0, 1, 0, 0], [3, 1, 0, 0, 0]],
        )
    header = ["Question ID", "A", "B", "C", "D", "E", "correct_answer"]
    first: list[list[object]] = [["7", 1, 0, 0, 0, 0, "A"], ["3", 0, 0, 2, 0, 2, "C"], ["5", "", "", "", "", "", "E"]]
    second: list[list[object]] = [["5", 0, 0, 0, 0, 1, "E"], ["7", 0, 1, 0, 0, 0, "A"], ["3", 0, 0, 1, 0, 0, "C"]]
    for model, rows in (("three", first), ("four", second)):
        _write(tmp_path / "llm_confidence_panel" / model / "lsat_ar_test_processed.csv", header, rows)
    return tmp_path


def test_token_probabilities_are_those_of_the_options(panels: Any, folder: Path) -> None:
    found = panels.token_panel(folder / "mcq_logprobs", "Direct")
    rows = found.rows["one-Direct"]
    assert rows[:2].tolist() == [[0.5, 0.5, 0.0, 0.0], [0.2, 0.8, 0.0, 0.0]]
    assert np.isnan(rows[2:]).all()
    assert found.rescaled == {"one-Direct": 1, "two-Direct": 0}
    assert found.truth.tolist() == [0, 1, 2, 3]
    assert found.rows["two-Direct"].tolist() == np.eye(4).tolist()


def test_stated_probabilities_are_joined_on_the_question(panels: Any, folder: Path) -> None:
    found = panels.stated_panel(folder / "llm_confidence_panel")
    assert found.truth.tolist() == [2, 4, 0]  # questions 3, 5, 7
    assert found.rows["three"][0].tolist() == [0.0, 0.0, 0.5, 0.0, 0.5]
    assert np.isnan(found.rows["three"][1]).all()
    assert found.rows["four"][2].tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]
    assert found.rescaled == {"three": 1, "four": 0}


def test_files_that_do_not_belong_together_are_refused(panels: Any, folder: Path) -> None:
    with pytest.raises(ValueError, match="no file of the form"):
        panels.token_panel(folder / "llm_confidence_panel", "Direct")
    tokens = folder / "mcq_logprobs" / "two-Direct" / "college_medicine_LogProbs_Direct.csv"
    tokens.write_text(tokens.read_text().replace("3,1,0,0,0", "2,1,0,0,0"))
    with pytest.raises(ValueError, match="right answers"):
        panels.token_panel(folder / "mcq_logprobs", "Direct")
    stated = folder / "llm_confidence_panel" / "four" / "lsat_ar_test_processed.csv"
    stated.write_text(stated.read_text().replace("\n7,", "\n8,"))
    with pytest.raises(ValueError, match="Question IDs"):
        panels.stated_panel(folder / "llm_confidence_panel")


def _run(*args: str) -> str:
    command = [sys.executable, str(BENCH / "model_pairs.py"), *args]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout


def test_the_figures_of_a_pair_by_hand(folder: Path) -> None:
    """Stated: on questions 3 and 7 `three` says (C, E: .5 each; A: 1), `four` says (C: 1; B: 1); C and A are right."""
    stated = json.loads(_run(str(folder)))[2]
    (pair,) = stated["pairs"]
    assert (pair["a"], pair["b"]) == ("four", "three")
    assert pair["n"] == 2
    assert pair["tv"] == pytest.approx((0.5 + 1.0) / 2)
    half = 0.5 * math.log(1 / 0.75) + 0.25 * math.log(0.5 / 0.75) + 0.25 * math.log(0.5 / 0.25)
    assert pair["jsd"] == pytest.approx((half + math.log(2)) / 2)
    assert pair["brier"][:2] == pytest.approx([(0.0 + 2.0) / 2, (0.5 + 0.0) / 2])
    # Reliabilities 1 - ln 2 / ln 5 and 1 on question 3, equal on question 7.
    weight = (1 - math.log(2) / math.log(5)) / (2 - math.log(2) / math.log(5))
    mixed = 2 * (weight / 2) ** 2
    assert pair["brier"][2] == pytest.approx((mixed + 0.5) / 2)
    assert pair["kl_to_truth"][0] == {"mean": 0.0, "infinite": 1}
    assert pair["kl_to_truth"][1] == {"mean": pytest.approx(math.log(2) / 2), "infinite": 0}
    assert pair["beats_better"] == 0.0
    assert pair["over_better_model"] == pytest.approx((mixed + 0.5) / 2 - 0.25)
    assert pair["calibration_error"] == pytest.approx((weight / 2 + 0.5) / 2), "right at 1 - weight / 2, wrong at 0.5"
    perfect = {first / 2 + 0.25 for first in (weight / 2, 1 - weight / 2)}  # right or wrong where it is surer
    assert sorted(perfect) == pytest.approx([pair["null_band"]["low"], pair["null_band"]["high"]])
    three = next(model for model in stated["models"] if model["model"] == "three")
    assert (three["covered"], three["asked"], three["rescaled"]) == (2, 3, 1)
    assert three["accuracy"] == 0.5  # a tie earns nothing


def test_the_tables_name_every_model_and_pair(folder: Path) -> None:
    page = _run(str(folder), "--markdown")
    assert page.count("## ") == 3
    assert "| four, three | 2 |" in page
    assert "| one-Direct | 2/4 | 1 |" in page
    assert page.count("| mixture's ECE (perfect: mean, 95 %) |") == 3
    assert "nan" not in page.split("## Stated")[1].split("Pairs:")[0]


@needs_data
def test_the_real_token_probabilities(panels: Any) -> None:
    for stage, missing in (("Direct", 0), ("afterThinking", 6)):
        found = panels.token_panel(DATA / "mcq_logprobs", stage)
        assert len(found.rows) == 7
        rows = np.stack([*found.rows.values()])
        assert rows.shape == (7, 86, 4)
        assert int(np.isnan(rows).any(axis=-1).sum()) == missing
        assert np.nansum(rows, axis=-1)[~np.isnan(rows).any(axis=-1)] == pytest.approx(1.0)


@needs_data
def test_the_real_stated_probabilities(panels: Any) -> None:
    found = panels.stated_panel(DATA / "llm_confidence_panel")
    right = {
        model: float((rows.argmax(axis=1) == found.truth)[~np.isnan(rows[:, 0])].mean())
        for model, rows in found.rows.items()
    }
    assert len(right) == 8
    assert right["gemini-2.5-pro"] > 0.9 > 0.4 > right["gpt-4o"]  # joined on the row number, all would be near chance
