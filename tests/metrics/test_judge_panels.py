"""The page on judges and panels: its readers on made-up files, its figures by hand, and the page itself."""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "tests" / "bench"
DATA = ROOT.parent / "shared" / "data"
PAGE = ROOT / "deploy" / "docs" / "judge-panels.md"

needs_data = pytest.mark.needs("data/pandalm", "data/qags", "data/llmbar_natural", "data/judgebench")


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("recorded_judges")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    found = importlib.import_module("judge_figures")
    monkeypatch.setattr(found, "RESAMPLES", 200)
    return found


def _write(path: Path, content: object, lines: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = content if isinstance(content, list) else [content]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n" if lines else json.dumps(content), "utf-8")


def _pandalm(folder: Path, gpt: list[str], panda: list[int]) -> Path:
    """Pairs on which people say 1 1 1, 2 2 0, 1 2 0 and 0 0 0; the first two are about one task."""
    people = [(1, 1, 1), (2, 2, 0), (1, 2, 0), (0, 0, 0)]
    tasks = ["a", "a", "b", "c"]
    rows = [
        {"idx": i, "instruction": task, "input": "", **{f"annotator{n + 1}": said[n] for n in range(3)}}
        for i, (task, said) in enumerate(zip(tasks, people, strict=True))
    ]
    _write(folder / "testset-v1.json", rows)
    _write(folder / "gpt-3.5-turbo-testset-v1.json", [{"idx": i, "gpt_result": said} for i, said in enumerate(gpt)])
    panda_rows = [{"idx": i, "pandalm_result": said} for i, said in enumerate(panda)]
    _write(folder / "pandalm-7b-testset-v1.json", panda_rows)
    return folder


def test_pandalm_is_read_as_preferences(judges: Any, tmp_path: Path) -> None:
    folder = _pandalm(tmp_path, ["1", "Tie", "garbage", "2"], [1, 0, 2, 2])
    people = judges.pandalm_people(folder)
    assert people.ratings.T.tolist() == [[-1, -1, -1], [1, 1, 0], [-1, 1, 0], [0, 0, 0]]
    assert people.clusters.tolist() == [0, 0, 1, 2]
    gpt, panda = judges.pandalm_judges(folder).ratings
    assert gpt[[0, 1, 3]].tolist() == [-1, 0, 1]
    assert math.isnan(gpt[2])
    assert panda.tolist() == [-1, 0, 1, 1]
    with pytest.raises(ValueError, match="not those of testset-v1"):
        judges.pandalm_judges(_pandalm(tmp_path, ["1"], [1, 0, 2, 2]))


def test_judges_are_held_against_most_people(judges: Any, figures: Any, tmp_path: Path) -> None:
    folder = _pandalm(tmp_path, ["1", "Tie", "garbage", "2"], [1, 0, 2, 2])
    gpt, panda, both, person = figures.against_people(judges.pandalm_people(folder), judges.pandalm_judges(folder))
    assert [(one.name, one.units) for one in (gpt, panda)] == [("gpt-3.5-turbo", 3), ("pandalm-7b", 4)]
    assert gpt.majority.value == pytest.approx(1 / 3)  # right, wrong, missing, wrong
    assert panda.majority.value == pytest.approx(1 / 3)  # right, wrong, no majority, wrong
    assert gpt.one_person.value == pytest.approx((3 + 1 + 0) / 9)
    assert panda.one_person.value == pytest.approx((3 + 1 + 1 + 0) / 12)
    assert (both.units, both.majority.value) == (3, pytest.approx(1 / 3))
    # Where the two others agree: all three on the first and last pair, one of three on the second.
    assert person.units == 3
    assert person.majority.value == pytest.approx((3 + 0 + 3) / 7)
    assert person.one_person.value == pytest.approx((3 + 1 + 0 + 3) / 12)


def test_qags_keeps_the_sentences_of_a_summary_together(judges: Any, tmp_path: Path) -> None:
    def sentence(*said: str) -> dict[str, object]:
        return {"sentence": "s", "responses": [{"worker_id": i, "response": each} for i, each in enumerate(said)]}

    rows = [{"summary_sentences": [sentence("yes", "no", "yes"), sentence("no", "no", "no")]}]
    _write(tmp_path / "mturk_xsum.jsonl", [*rows, {"summary_sentences": [sentence("yes", "yes", "yes")]}], lines=True)
    found = judges.qags_people(tmp_path, "xsum")
    assert found.ratings.T.tolist() == [[1, 0, 1], [0, 0, 0], [1, 1, 1]]
    assert found.clusters.tolist() == [0, 0, 1]


def _llmbar(folder: Path, said: dict[str, list[tuple[str | None, str | None]]], labels: list[int]) -> Path:
    for judge, winners in said.items():
        rows = [
            {
                "input": f"{i}",
                "label": label,
                "results": [{"swap = False": {"winner": first}, "swap = True": {"winner": second}}],
            }
            for i, ((first, second), label) in enumerate(zip(winners, labels, strict=True))
        ]
        _write(folder / judge / "Vanilla" / "result.json", rows)
    return folder


def test_llmbar_s_winners_are_texts_in_both_orders(judges: Any, figures: Any, tmp_path: Path) -> None:
    """Text 1 is right in the first pair, text 2 in the others."""
    said: dict[str, list[tuple[str | None, str | None]]] = {
        "always-first": [("1", "2"), ("1", "2"), ("1", "2")],
        "right": [("1", "1"), ("2", "2"), ("2", "2")],
        "silent-once": [("1", "1"), ("2", "1"), (None, None)],
    }
    compared = judges.llmbar_judges(_llmbar(tmp_path, said, [1, 2, 2]))
    biased = figures.order("always-first", compared)
    assert (biased.first_shown.value, biased.changed.value) == (1.0, 1.0)
    assert (biased.counts.first_twice, biased.counts.judged) == (3, 0)
    assert figures.order("right", compared).right.value == 1.0
    scored = {one.name: one for one in figures.scores(compared)}
    assert scored["always-first"].score.value == pytest.approx(0.5)
    assert (scored["always-first"].text1_first, scored["always-first"].text2_first) == pytest.approx((1 / 3, 2 / 3))
    assert (scored["silent-once"].pairs, scored["silent-once"].undecided) == (2, 2)
    assert scored["silent-once"].score.value == pytest.approx(0.75)
    # With text 1 first 3:0, 1:2, and 1:1, a tie; with text 2 first 2:1, 1:2 and 0:2.
    assert scored["majority, each order alone"].score.value == pytest.approx((3 + 2.5) / 6)
    assert scored["majority, each order alone"].ties == 1
    assert scored["majority, each order alone"].strict == pytest.approx(5 / 6)
    # Over both orders 5:1, 2:4 and 1:3.
    assert scored["majority, both orders"].score.value == 1.0
    assert scored["always-first"].less_panel.value == pytest.approx(-0.5)
    assert scored["majority, both orders"].undecided == 0
    with pytest.raises(ValueError, match="about the same"):
        judges.llmbar_judges(_llmbar(tmp_path, {"other": [("1", "1")]}, [1]))


def test_a_majority_of_votes(figures: Any) -> None:
    votes = np.array([[1, 1, 0, math.nan, 2], [2, 1, 0, math.nan, math.nan], [math.nan, 2, 1, math.nan, 0]])
    found = figures.majority(votes)
    assert found[[0, 1, 2, 4]].tolist() == [0, 1, 1, 2]
    assert math.isnan(found[3])


def test_judgebench_s_second_order_is_turned_round(judges: Any, tmp_path: Path) -> None:
    def row(label: str, *decisions: str) -> dict[str, object]:
        return {"pair_id": label, "label": label, "judgments": [{"decision": decision} for decision in decisions]}

    rows = [row("A>B", "A>B", "B>A"), row("B>A", "A>B", "A>B"), row("B>A", "A=B", "A>B")]
    name = "dataset=judgebench,response_model=m,judge_name=arena_hard,judge_model=Maker_judge-1.jsonl"
    _write(tmp_path / name, rows, lines=True)
    found = judges.judgebench_judges(tmp_path)
    assert found.gold.tolist() == [1, 2, 2]
    ((judge, (text1_first, text2_first)),) = found.said.items()
    assert judge == "judge-1 (arena_hard)"
    assert text1_first.tolist() == [1, 1, 0]
    assert text2_first.tolist() == [1, 2, 2]


@pytest.mark.docs
@needs_data
def test_the_page_says_what_the_script_prints(tmp_path: Path) -> None:
    written = tmp_path / "judges.json"
    command = [sys.executable, str(BENCH / "judge_panels.py"), str(DATA), "--json", str(written)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout
    page = PAGE.read_text("utf-8")
    blocks = [block for block in printed.strip().split("\n\n") if "\n" in block]
    assert len(blocks) == 7, "the findings and six tables"
    for block in blocks:
        assert block in page
    tables = [line for line in page.splitlines() if line.startswith("|")]
    assert tables == [line for line in printed.splitlines() if line.startswith("|")]
    assert set(json.loads(written.read_text())) == {"agreements", "orders", "scores", "people", "text2_right"}


@needs_data
def test_real_raters_and_judges(judges: Any, figures: Any) -> None:
    """What the README of the files says of them, and figures counted apart from this code."""
    people = judges.pandalm_people(DATA / "pandalm")
    assert people.ratings.shape == (3, 143)
    assert int((people.ratings != people.ratings[0]).any(axis=0).sum()) == 12
    assert figures.agreement(people).raw.value == pytest.approx((131 + 12 / 3) / 143)  # no pair has three answers
    llmbar = judges.llmbar_judges(DATA / "llmbar_natural")
    falcon, gpt4 = figures.order("Falcon", llmbar), figures.order("GPT-4", llmbar)
    assert (falcon.counts.first_twice, falcon.counts.second_twice, falcon.counts.consistent) == (24, 0, 26)
    assert gpt4.counts.consistent == 48
    o1, reward = judges.judgebench_judges(DATA / "judgebench").said.values()
    assert int((o1[0] == o1[1]).sum()) == 34  # one tie in both orders
    assert np.array_equal(*reward)  # scores do not know an order
