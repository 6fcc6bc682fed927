"""Typed events are recorded as their data, and read back as what they were; what is not of a type is not read as it."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from pydantic import Field, ValidationError

from moot.protocols.events import DebateEvent, RoundFigures, as_event
from moot.protocols.messages import Event
from moot.protocols.verdict_sources import VerdictSources


class Passed(DebateEvent):
    kind: ClassVar[str] = "passed"

    number: int = Field(validation_alias="pass", serialization_alias="pass")
    share: float | None = None


def test_only_what_was_set_is_recorded_under_the_names_of_the_record() -> None:
    assert as_event(Passed(number=3, path="round/1")) == Event("passed", "round/1", {"pass": 3})
    assert as_event(Passed(number=3, share=None)).data == {"pass": 3, "share": None}


def test_it_is_read_back_and_keys_of_other_versions_are_ignored() -> None:
    assert Passed.read({"pass": 3, "share": 0.5, "later": 1}, "x") == Passed(number=3, share=0.5, path="x")


def test_data_of_another_shape_is_not_read() -> None:
    assert [Passed.read(data) for data in ({}, {"pass": "3"}, {"pass": 3, "share": "high"}, None, [1])] == [None] * 5


def test_what_a_type_does_not_define_cannot_be_written() -> None:
    unknown: Any = {"number": 3, "later": 1}
    with pytest.raises(ValidationError, match="later"):
        Passed(**unknown)


def test_a_figure_of_another_form_is_unknown_and_hides_no_other() -> None:
    odd = {"round": 1, "kappa": "high", "crit": {"agent/0": True, "agent/1": 1}, "gamma": [], "order": [1], "words": 3}
    read = RoundFigures.read(odd, "round/1")
    assert read == RoundFigures(
        round=1, kappa=None, crit={"agent/0": None, "agent/1": 1.0}, gamma=[], order=None, words=3.0, path="round/1"
    )
    assert VerdictSources.of({"confidence_from": 3, "distribution_from": "votes"}).distribution_from == "votes"
    assert VerdictSources.of({"confidence_from": 3}).confidence_from is None
