"""The page on early confidence: its reader and sweeps on made-up answers, and the page itself."""

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

from moot.metrics.detection import auroc
from moot.metrics.ragged import Ragged

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "tests" / "bench"
DATA = ROOT.parent / "shared" / "data"
PAGE = ROOT / "deploy" / "docs" / "early-confidence.md"

needs_data = pytest.mark.needs("data/truthfulqa_gpt3_logprobs")


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("recorded_answers")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    found = importlib.import_module("early_confidence_figures")
    for name, number in (("RESAMPLES", 100), ("PERMUTATIONS", 400), ("SPLITS", 3)):
        monkeypatch.setattr(found, name, number)
    return found


def _write(folder: Path, model: str, rows: Sequence[tuple[list[float], int, str]], opening: str = " A") -> None:
    """A model's two files: log-probabilities behind the opening, the judge's verdict and the class of people."""
    labelled, annotated = [], []
    for number, (logprobs, pred, said) in enumerate(rows):
        tokens = [opening, ":", *(" word" for _ in logprobs)]
        answer = {"tokens": tokens, "token_logprobs": [-0.1, -0.01, *logprobs]}
        common = {"question": f"question\n{number}", "model_answer": " A: word"}
        labelled.append({**common, "logprobs": json.dumps(answer), "pred": pred})
        annotated.append({**common, "model_answer": " A: word\r", "Truthfulness": said})
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in ((f"{model}_output_labeled.csv", labelled), (f"{model}_outputs_annotated.csv", annotated)):
        with (folder / name).open("w", encoding="utf-8", newline="") as lines:
            writer = csv.DictWriter(lines, fieldnames=[*table[0]])
            writer.writeheader()
            writer.writerows(table)


def test_classes_of_people_are_true_false_or_left_out(recorded: Any, tmp_path: Path) -> None:
    said = [
        "True: Fact",
        "FALSE",
        "False ",
        "Subjective ",
        "",
        "mostly untrue",
        "True: tautology",
        "Mostly True",
        "true",
    ]
    for model in recorded.MODELS:
        _write(tmp_path, model, [([-1.0], number % 2, one) for number, one in enumerate(said)])
    found = recorded.answers(tmp_path)
    assert [one.model for one in found] == ["ada", "babbage", "curie", "davinci"]
    truth = found[0].people_true
    assert truth[[0, 1, 2, 5, 6, 7, 8]].tolist() == [1, 0, 0, 0, 1, 1, 1]
    assert np.isnan(truth[[3, 4]]).all()
    assert found[0].judged_true.tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0]
    assert (found[0].classes["false"], found[0].classes["subjective"], found[0].classes[""]) == (2, 1, 1)
    assert found[0].logprobs.row(0).tolist() == [-0.1, -0.01, -1.0]
    assert found[3].questions.tolist() == list(range(len(said)))


def test_files_that_do_not_belong_together_are_refused(recorded: Any, tmp_path: Path) -> None:
    _write(tmp_path, "ada", [([-1.0], 1, "true")], opening=" B")
    with pytest.raises(ValueError, match="does not begin with ' A:'"):
        recorded.answers(tmp_path)
    _write(tmp_path, "ada", [([-1.0], 1, "true")])
    other = tmp_path / "ada_outputs_annotated.csv"
    other.write_text(other.read_text().replace("word", "other"))
    with pytest.raises(ValueError, match="not about the same answers"):
        recorded.answers(tmp_path)


def _folder(tmp_path: Path, signal: float) -> Path:
    """Four models' answers to 60 questions of 12 words; the first three are surer by `signal` where they are true."""
    random = np.random.default_rng(5)
    for shift, model in enumerate(("ada", "babbage", "curie", "davinci")):
        rows = []
        for _ in range(60):
            true = bool(random.random() < 0.2 + 0.1 * shift)  # later models are truer, and surer
            logprobs = -random.exponential(size=12) + 0.5 * shift - 3.0
            logprobs[:3] += signal * true
            rows.append((logprobs.tolist(), int(true), "true" if true else "false"))
        _write(tmp_path / "truthfulqa_gpt3_logprobs", model, rows)
    return tmp_path


def test_a_signal_is_found_where_it_is(figures: Any, tmp_path: Path) -> None:
    found = figures.found_in(_folder(tmp_path, 1.2))
    assert len(found.sweeps) == 10
    # From token 0 the greatest of the first 3 or 5 is that of the opening here: without spread there is no test.
    assert len(found.rows) == 10 * (4 * 7 * 2 - sum(math.isnan(row.p_value) for row in found.sweeps[0].rows))
    assert {row.feature for row in found.sweeps[0].rows} - {row.feature for row in found.rows} >= {
        "logprob.first-3.max"
    }
    for sweep in found.sweeps:
        early, diluted = sweep.row("logprob.content.first-3.mean"), sweep.row("logprob.content.full.min")
        assert early.q_value < 0.01
        assert early.max_p_value < 0.02
        assert sweep.held_out > 0.8
        assert early.direction == "confident -> true"
        assert early.auroc.low > 0.6
        assert early.folded > diluted.folded
        assert math.isnan(sweep.length.q_value)
    together = found.sweeps[-1]
    assert (together.model, together.n) == ("all", 240)


def test_noise_is_not_found_though_its_best_feature_looks_like_something(figures: Any, tmp_path: Path) -> None:
    found = figures.found_in(_folder(tmp_path, 0.0))
    assert all(row.q_value > 0.05 for row in found.rows)
    assert np.mean([sweep.held_out for sweep in found.sweeps]) < 0.6
    assert np.mean([sweep.best.folded for sweep in found.sweeps]) > 0.6
    # Later models are surer and truer: over all answers that looks like a signal, within the models it is none.
    together = found.sweeps[-1].row("logprob.content.full.mean")
    assert together.auroc.low < 0.5 < together.auroc.high
    samples = [
        figures._sample(model)
        for model in importlib.import_module("recorded_answers").answers(tmp_path / "truthfulqa_gpt3_logprobs")
    ]
    column = [name for name, _, _ in figures.columns()].index("logprob.content.full.mean")
    raw = np.concatenate([sample.values[:, column] for sample in samples])
    assert auroc(raw, np.concatenate([sample.verdicts["people"] for sample in samples])) > 0.58


def test_figures_of_a_sweep_are_those_of_one_feature(figures: Any, tmp_path: Path) -> None:
    found = figures.found_in(_folder(tmp_path, 0.5))
    (model, *_) = importlib.import_module("recorded_answers").answers(tmp_path / "truthfulqa_gpt3_logprobs")
    first = np.array([model.logprobs.row(i)[2:5].mean() for i in range(60)])
    row = found.sweeps[1].row("logprob.content.first-3.mean")
    assert row.auroc.value == pytest.approx(auroc(first, model.people_true))
    assert row.point_biserial == pytest.approx(np.corrcoef(first, model.people_true)[0, 1])
    assert row.n == 60
    assert found.sweeps[0].row("logprob.first-3.mean").auroc.value != row.auroc.value
    assert found.classes[0].same == found.classes[0].both == 60


def test_pooled_values_are_ranks_within_a_model(figures: Any) -> None:
    def sample(values: list[float]) -> Any:
        column = np.array(values)[:, np.newaxis]
        verdicts = {target: np.ones(len(values)) for target in figures.TARGETS}
        return figures.Sample("m", column, column[:, 0], verdicts, np.arange(len(values)))

    pooled = figures.pooled([sample([5.0, 1.0, math.nan, 1.0]), sample([-8.0, -9.0])])
    assert pooled.values[[0, 1, 3, 4, 5], 0] == pytest.approx([2.5 / 3, 1 / 3, 1 / 3, 0.75, 0.25])
    assert math.isnan(pooled.values[2, 0])
    assert pooled.questions.tolist() == [0, 1, 2, 3, 0, 1]


@pytest.mark.docs
@needs_data
def test_the_page_says_what_the_script_prints(tmp_path: Path) -> None:
    written = tmp_path / "early.json"
    command = [sys.executable, str(BENCH / "early_confidence.py"), str(DATA), "--json", str(written)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout
    page = PAGE.read_text("utf-8")
    blocks = [block for block in printed.strip().split("\n\n") if "\n" in block]
    assert len(blocks) == 5, "the findings and four tables"
    for block in blocks:
        assert block in page
    tables = [line for line in page.splitlines() if line.startswith("|")]
    assert tables == [line for line in printed.splitlines() if line.startswith("|")]
    assert len(json.loads(written.read_text())["sweeps"]) == 10


@needs_data
def test_the_real_answers(recorded: Any) -> None:
    found = recorded.answers(DATA / "truthfulqa_gpt3_logprobs")
    assert {len(model.logprobs) for model in found} == {117}
    assert [int(np.nansum(model.people_true)) for model in found] == [20, 19, 17, 20]
    assert [int(model.judged_true.sum()) for model in found] == [40, 34, 33, 23]
    assert found[3].classes[""] == 15
    everything = Ragged.concatenate([model.logprobs for model in found])
    assert np.isfinite(everything.values).all()
