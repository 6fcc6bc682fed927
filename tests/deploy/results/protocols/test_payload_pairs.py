"""A verdict's payload in words, by protocol; another protocol's as it is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from moot.deploy.results.transcript_blocks import payload_pairs

PANEL = {
    "rubric": "reasoning",
    "dimensions": {"evidence_grounding": {"mean": 1.5, "median": 1.5, "spread": 1}},
    "quality": 2.25,
    "flag": 0.5,
    "flagged": True,
    "judgments": 2,
    "missing": 1,
    "abstentions": {"refused": 1},
}


@pytest.mark.parametrize(
    ("payload", "pairs"),
    [
        (
            {"skip": False, "reasons": ["not_unanimous", "of_my_own"], "d": 0.25, "m": None, "p": 0.5},
            [
                ("gate", "debate: the answers differ; of_my_own"),
                ("D (disagreement)", "0.25"),
                ("M (misalignment)", "unknown"),
                ("mean p", "0.5"),
            ],
        ),
        ({"skip": True, "reasons": ["all_tests_passed"]}, [("gate", "skip the debate: every test passes")]),
        (
            {"domain": "factual QA", "quality": {"auditor": 5.0, "constructor": None}, "flagged": {"auditor": True}},
            [
                ("domain", "factual QA"),
                ("Q of the auditor", "5, flagged"),
                ("Q of the constructor", "unknown, flag unknown"),
            ],
        ),
        (
            PANEL,
            [
                ("rubric", "reasoning"),
                ("Q (quality, mean)", "2.25"),
                ("flagged", "yes, by 50.0 % of the marks"),
                ("evidence grounding", "mean 1.5, median 1.5, highest less lowest 1"),
                ("marks", "2, and 1 missing (refused 1)"),
            ],
        ),
        ({"d": 0.1, "own": {"key": None}, "confidence_from": "judge"}, [("d", "0.1"), ("own.key", "unknown")]),
    ],
)
def test_a_payload_is_shown_in_the_words_of_its_protocol(payload: dict[str, Any], pairs: list[tuple[str, str]]) -> None:
    assert payload_pairs(payload) == pairs
