"""The glossary of reports: one line a term, found without regard to case; an unknown term names the nearest."""

from __future__ import annotations

import pytest
from planted_records import Command

from moot.actors.record.counters import FAILURES
from moot.deploy.results.glossary import TERMS, explain
from moot.protocols.errors import ConfigError


def test_a_term_is_found_by_any_case_and_by_its_word() -> None:
    assert explain("ece").rows == [("ECE", TERMS["ECE"])]
    assert explain("Brier").rows[0][0] == "Brier score"
    assert len(explain().rows) == len(TERMS)


def test_a_word_of_several_terms_gives_all_and_a_code_its_meaning() -> None:
    assert [row[0] for row in explain("p").rows] == ["own probability, p", "McNemar p"]
    assert explain("quorum_failed").rows == [("quorum_failed", "too few usable replies to continue")]
    assert explain("stable-disagree").rows[0][1].endswith("they differ")


def test_every_kind_of_failure_has_a_meaning() -> None:
    assert all(explain(kind).rows[0][1] for kind in FAILURES)


def test_an_unknown_term_names_the_nearest(command: Command) -> None:
    with pytest.raises(ConfigError, match="judge stability"):
        explain("judge stabilty")
    code, _, error = command("explain", "zzz")
    assert (code, "moot explain lists all" in error) == (2, True)
    code, out, _ = command("explain", "alpha")
    assert (code, "Krippendorff" in out) == (0, True)
