"""What a judge may write for a mark, and what makes it be asked again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moot.actors.models.schema_dialects import json_schema
from moot.protocols.crit.appraisal import CritDocument, appraise
from moot.protocols.crit.replies import Argument, Reading
from moot.protocols.reply_parsing import InvalidReply, parse_reply
from moot.protocols.templates import Templates


def reply(**argument: Any) -> str:
    reason = {"text": "It is quick.", "validity": 8, "credibility": 7} | argument
    whole = {"claim": "It works.", "reasons": [reason], "rivals": [], "justification": "So.", "reflection": "Here."}
    return json.dumps(whole)


def read(text: str) -> Reading:
    return Reading.model_validate(parse_reply(text, Reading).data)


class TestMarks:
    @pytest.mark.parametrize(
        ("written", "mark"),
        [("8/10", 8.0), (" 7.5 / 10 ", 7.5), ("80%", 8.0), ("0 %", 0.0), ("10/10", 10.0)],
    )
    def test_are_mended_and_say_so(self, written: str, mark: float) -> None:
        found = read(reply(validity=written))
        assert found.reasons[0].validity == mark
        assert found.reasons[0].repairs == (f"validity: {written.strip()}",)
        assert appraise(CritDocument("", "x"), found).notes == ("marks-repaired",)

    @pytest.mark.parametrize(
        "mark",
        [11, -1, "11/10", "110%", "7/8", "high", "", "eight", "-1/10", "8-9", True, None, float("nan"), "nan", "inf"],
        ids=repr,
    )
    def test_anything_else_is_refused(self, mark: object) -> None:
        for name in ("validity", "credibility"):
            with pytest.raises(InvalidReply, match=name):
                read(reply(**{name: mark}))


class TestShape:
    def test_marks_are_asked_for_after_what_they_rest_on(self) -> None:
        said = list(Argument.model_fields)
        assert said.index("why") < min(said.index(mark) for mark in Argument.marks)
        slots = {"claim": "", "text": "It is.", "facts": "", "opposing": "", "max_reasons": 5, "max_rivals": 3}
        prompt = Templates().render("crit/reading", slots)[0].content
        assert prompt.index('"why"') < prompt.index('"validity"')

    @pytest.mark.parametrize("missing", ["claim", "reasons", "rivals", "justification", "reflection"])
    def test_a_torn_reply_is_refused(self, missing: str) -> None:
        whole = json.loads(reply())
        del whole[missing]
        with pytest.raises(InvalidReply, match=missing):
            read(json.dumps(whole))

    def test_the_schema_requires_all_fields_except_repairs(self) -> None:
        schema = json_schema(Reading)
        argument = schema["properties"]["reasons"]["items"]
        assert argument["required"] == ["text", "why", "validity", "credibility", "is_claim", "contradicts_facts"]
        assert "repairs" not in json.dumps(schema)
        assert "description" not in argument
