"""The glossary of reports: one line a term, found without regard to case; an unknown term names the nearest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from planted_records import Command

from moot.actors.record.counters import FAILURES
from moot.deploy.results.figures.round_trace import MEASURES
from moot.deploy.results.figures.summary import Summary, summary_rows
from moot.deploy.results.glossary import TERMS, explain
from moot.protocols.errors import ConfigError

EARLIER = Path(__file__).parents[1] / "runs" / "earlier_records"


def test_a_term_is_found_by_any_case_and_by_its_word() -> None:
    assert explain("ece").rows == [("ECE", TERMS["ECE"])]
    assert explain("Brier").rows[0][0] == "Brier score"
    assert len(explain().rows) == len(TERMS)


def test_a_word_of_several_terms_gives_all_and_a_code_its_meaning() -> None:
    assert [row[0] for row in explain("p").rows] == ["own probability, p", "McNemar p"]
    assert explain("quorum_failed").rows == [("quorum_failed", "too few usable replies to continue")]
    assert explain("stable-disagree").rows[0][1].endswith("they differ")


@pytest.mark.parametrize("record", sorted(EARLIER.glob("*.json")), ids=lambda file: file.stem)
def test_every_row_of_a_summary_has_a_meaning(record: Path) -> None:
    for of in json.loads(record.read_text("utf-8")).values():
        for label, _ in summary_rows(Summary.model_validate(of["run"])):
            assert explain(label).rows, label


def test_every_measure_of_a_round_has_a_meaning() -> None:
    for measure in MEASURES:
        assert explain(measure.name).rows, measure.name


@pytest.mark.parametrize(
    ("written", "term"),
    [
        ("accuracy, skipped", "accuracy"),
        ("Brier, judge confidence", "Brier score"),
        ("tokens /case", "tokens per case"),
        ("Krippendorff's alpha", "alpha"),
        ("max turns", "max_turns"),
        ("rho", "rho"),
        ("+b/-c", "+b/-c"),
    ],
)
def test_a_label_has_the_meaning_of_its_term(written: str, term: str) -> None:
    assert [row[0] for row in explain(written).rows] == [term]


def test_every_kind_of_failure_has_a_meaning() -> None:
    assert all(explain(kind).rows[0][1] for kind in FAILURES)


def test_an_unknown_term_names_the_nearest(command: Command) -> None:
    with pytest.raises(ConfigError, match="judge stability"):
        explain("judge stabilty")
    code, _, error = command("explain", "zzz")
    assert (code, "moot explain lists all" in error) == (2, True)
    code, out, _ = command("explain", "effective", "number", "of", "debaters")
    assert (code, "2 / (1 + rho)" in out) == (0, True)
