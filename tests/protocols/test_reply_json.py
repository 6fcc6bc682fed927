"""What the JSON of a reply says, whatever stands around it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.protocols.ceda.replies import MessageReply
from moot.protocols.constructor_auditor.replies import Synthesis
from moot.protocols.replies import Position, Score
from moot.protocols.reply_json import MENDED, SEVERAL, answer_start, read_object
from moot.protocols.reply_parsing import InvalidReply, parse_reply
from moot.protocols.text.latex_escapes import mend_escapes

LABELS = ("Yes", "No")


def position(answer: Any = "Yes", reasoning: str = "r", confidence: Any = 0.5) -> str:
    return json.dumps({"answer": answer, "reasoning": reasoning, "confidence": confidence})


YES, NO = position(), position("No", "draft", 0.1)
FENCED = f"```json\n{YES}\n```"
PARTS = '"confidence": 0.5, "answer": "Yes", "reasoning": "r"'


STRICT = [
    YES,
    f" {YES}\n",
    json.dumps({**json.loads(YES), "note": [f"```json\n{NO}\n```", "}{"]}),
    f"{{{PARTS}, {PARTS}}}",
]


@pytest.mark.parametrize(
    "text",
    [
        *STRICT,
        FENCED,
        f"```\n{YES}",
        f"```python\nd = {{'a': 1}}\n{{x for x in d}}\n```\nSo:\n{FENCED}\nDone {{smile}} }}",
        f"{{x | x > 0}}, {{1, 2}}, {{x : x > 0}} and \\frac{{1}}{{2}}: {YES}",
        f"An open {{ and {{'one. {YES}",
        f'The form is {{"answer": "<label>", "reasoning": ..., "confidence": <0-1>}}.\n{YES}',
        f'{{"answer": "No"}} is not enough. {YES}',
        f"[{YES}]",
        f'{{"reply": {YES}}}',
        f'{{"reply": {YES}',
        f"{{{YES}}}",
        f"{YES}}}",
        f"<answer>{YES}</answer>",
        f"\ufeff{YES}",
        json.dumps(YES),
        # several that are equal
        f"{FENCED}\nAgain: {YES}",
        f"{YES}\n{json.dumps(json.loads(YES), sort_keys=True)}",
        # not JSON
        f"{{{PARTS},}}",
        f"{{{PARTS}",
        f"```json\n{{{PARTS}\n```",
        f"{{{PARTS.replace(chr(34), chr(39))}}}",
        "{\u201canswer\u201d: \u201cYes\u201d, \u201creasoning\u201d: \u201cr\u201d, \u201cconfidence\u201d: 0.5}",
        '{answer: Yes, reasoning: r, confidence: 0.5} // or {"a": 1}',
        '{"answer": "Yes", // or "No"\n"reasoning": "r", # short\n"confidence": 50%}',
    ],
)
def test_the_object_that_fits_is_read(text: str) -> None:
    read = read_object(text, Position)
    assert read.validated == Position(answer="Yes", reasoning="r", confidence=0.5)
    assert read.repaired == (text not in STRICT)
    place = answer_start(text, Position)
    assert place is None or text.startswith("Yes", place)


@pytest.mark.parametrize(
    "text",
    [
        f"{NO}{YES}",
        f"First: {NO}\nOn reflection:\n{FENCED}",
        f"{YES} The other wrote {NO}",
        f"[{YES}, {NO}]",
        json.dumps({"draft": json.loads(NO), "final": json.loads(YES)}),
        f"{NO} Final: {YES[:-20]}",  # the final one was cut
        f"{NO} Final: {{{PARTS},}}",  # or is flawed
        f'{{{PARTS}, "answer": "No"}}',
        f'{{{PARTS}, "answer" : "No",}}',
        "{answer: Yes, reasoning: r, confidence: 0.5, answer: No}",
        f'{{"answer": "Yes", "reasoning": "unlike {NO}", "confidence": 0.5}}',  # quoted without escapes
        f'{{"reasoning": "unlike {NO}}}", "answer": "Yes", "confidence": 0.5}}',
    ],
)
def test_several_that_differ_are_none(text: str) -> None:
    with pytest.raises(InvalidReply):
        read_object(text, Position)


def test_a_judge_that_quotes_a_judgment_is_asked_again_and_one_that_quotes_a_candidate_is_not() -> None:
    said = '{"rationale": "bad", "support": "contradicted", "score": 0.0}'
    assert parse_reply(f"The candidate wrote {NO}, which is wrong. {said}", Score).data["score"] == 0.0
    for text in (
        '{"support": "supported", "score": 1.0}: no. ' + said,
        said + ' not {"support": "supported", "score": 1}',
        said.replace('"bad"', '{"support": "supported", "score": 1}'),
        "So: " + said.replace('"bad"', '{"support": "supported", "score": 1}'),
    ):
        with pytest.raises(InvalidReply):
            parse_reply(text, Score)


@pytest.mark.parametrize(
    "written",
    [
        "5%",
        "5 kg",
        ">5",
        "$5",
        "-.5",
        "1/2",
        "1 / 2",
        "1,000",
        "007",
        "3:1",
        "5-10",
        "No, not so",
        "(1, 2)",
        r"\frac{1}{2}",
    ],
)
def test_repair_changes_no_value(written: str) -> None:
    assert read_object(f'{{"answer": {written}, "rationale": "r",}}', Synthesis).value["answer"] == written
    assert read_object(f"{{answer: {written}, rationale: r}}", Synthesis).value["answer"] == written


@pytest.mark.parametrize(
    "torn", ['"answer": "No', '"answer": No', "'answer': 'No", '"answer": 1', '"answer": "', '"answer": tru']
)
def test_a_torn_answer_names_nothing_and_torn_prose_stays(torn: str) -> None:
    with pytest.raises(InvalidReply):
        read_object(f'{{"reasoning": "r", "confidence": 0.5, {torn}', Position)
    read = read_object('{"answer": "No", "confidence": 0.5, "reasoning": "we agree', Position)
    assert (read.value["answer"], read.value["reasoning"], read.readings) == ("No", "we agree", (MENDED,))
    assert read_object('{"answer": "No", "rationale": ', Synthesis).value == {"answer": "No"}


def test_what_was_read_leniently_is_marked() -> None:
    marks = [parse_reply(text, Position, LABELS).readings for text in (YES, FENCED, f"{{{PARTS},}}", f"{YES} {YES}")]
    assert marks == [(), (), (MENDED,), (SEVERAL,)]
    assert parse_reply(YES.replace('"r"', r'"\beta"'), Position).readings == (MENDED,)


@pytest.mark.parametrize(
    ("text", "said"),
    [("DENY. {x | x > 0} holds.", "DENY. {x | x > 0} holds."), ('So: {"text": "No."}', "No."), ('{"other": 1}', None)],
)
def test_braces_in_prose_are_prose_where_prose_is_a_reply(text: str, said: str | None) -> None:
    if said is None:
        with pytest.raises(InvalidReply):
            read_object(text, MessageReply)
    else:
        assert read_object(text, MessageReply).value["text"] == said


_PROSE = st.text(st.sampled_from("ab {}[]()'\"`:,.\\\n<>0"), max_size=60)
_TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40)


@given(before=_PROSE, after=_PROSE, answer=_TEXTS.filter(bool), reasoning=_TEXTS.filter(bool), fence=st.booleans())
def test_an_object_reads_the_same_bare_and_among_prose(
    before: str, after: str, answer: str, reasoning: str, fence: bool
) -> None:
    bare = json.dumps({"answer": answer, "reasoning": reasoning, "confidence": 0.5}, ensure_ascii="a" in answer)
    inside = f"{before}\n```json\n{bare}\n```\n{after}" if fence else f"{before} {bare} {after}"
    expected = read_object(bare, Position)
    assert read_object(inside, Position).validated == expected.validated
    assert read_object(f"[{bare}]", Position).value == expected.value == json.loads(bare)


_COMMANDS = r"""
    frac theta times nu rho beta bar neq nabla text right underline forall binom tau tan to top triangle ne notin not ni
    rangle rceil rm sqrt alpha pi( { [
"""
LATEX = [
    *[rf"\{command}" for command in _COMMANDS.split()],
    r"h\nu",
    r"x \ne 0",
    r"\lim_{x \to 0} \nabla \nu \ni x",
    r"a \in \{b\} \mid c \nmid d \nexists e",
]


@pytest.mark.parametrize("said", LATEX)
def test_latex_with_one_backslash_is_latex(said: str) -> None:
    text = f'{{"answer": "{said}", "reasoning": "$x {said}$", "confidence": 0.5}}'
    for written in (text, f"So:\n{text}"):
        read = read_object(written, Position)
        assert (read.value["answer"], read.value["reasoning"], read.readings) == (said, f"$x {said}$", (MENDED,))
    escaped = position(said, f"$x {said}$")
    assert read_object(escaped, Position).readings == ()
    assert read_object(escaped, Position).value["answer"] == said


@pytest.mark.parametrize(
    "said",
    [
        "The first.\nThe second\nand no\nnot\nnever\nto\ntext",
        "Let:\nu = x^2\nv = 3\ni think so",
        "a) x\ne) y\n\nu and\nless\nexists",
        "x\tan apple\ttotal\ttext is external\textra\r\nno",
        "tab\tThe \b \f end",
        "Steps:\neq. 5 holds\neg. this",
    ],
)
def test_lines_and_tabs_of_prose_stay_lines_and_tabs(said: str) -> None:
    written = json.dumps(said)
    assert mend_escapes(written) is written
    beside = json.loads(mend_escapes(written[:-1] + r' \(x\)"'))  # even beside LaTeX with one backslash
    assert beside == said + r" \(x\)"


@given(_TEXTS)
def test_json_that_was_escaped_is_never_changed(said: str) -> None:
    assert json.loads(mend_escapes(json.dumps(said))) == said


@pytest.mark.parametrize("answer", ["Yes\x0c", "\x08", "a\x00b", "a\x7f", "a\x85"])
def test_a_control_character_is_never_part_of_an_answer(answer: str) -> None:
    with pytest.raises(InvalidReply):
        parse_reply(position(answer), Position)
    assert parse_reply(position("a\tb\nc"), Position).answer == "a b c"


def test_a_worked_solution_keeps_its_lines_and_its_latex() -> None:
    said = "Step 1: \\(\\frac{3}{4}\\).\nThen $x \\neq 0$, $E = h\\nu$.\n\nu = 5, so\n\\theta \\to \\pi.\n\\boxed{42}"
    written = said.replace("\n", "\\n")
    assert read_object(f'{{"answer": "42", "rationale": "{written}"}}', Synthesis).value["rationale"] == said


@pytest.mark.parametrize("levels", [100, 400, 900, 100_000])
def test_depth_is_an_invalid_reply_at_most(levels: int) -> None:
    for deep in ("[" * levels + "]" * levels, '{"a":' * levels + "1" + "}" * levels):
        for text in (f'{{{PARTS}, "x": {deep}}}', f'{{"answer": "", "x": {deep}}}', f'So {{{PARTS}, "x": {deep},}}'):
            with suppress(InvalidReply):
                assert read_object(text, Position).value["answer"] == "Yes"
