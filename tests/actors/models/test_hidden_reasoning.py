"""Hidden reasoning on every path that a reply takes: never the answer, counted, its tokens none of the reply's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from openai_server import completion, token

from moot.actors.agent.intrinsic import intrinsic_of
from moot.actors.models import anthropic_wire
from moot.actors.models.early_stop import REPETITION, EarlyStop, stream_with_early_stop
from moot.actors.models.hidden_reasoning import SplitReply, is_thinking, split_reasoning, split_thinking
from moot.actors.models.interface import ModelReply
from moot.actors.models.openai_stream import EVENT_STREAM, read_pieces
from moot.actors.models.openai_wire import decode_reply
from moot.actors.models.responses_wire import decode_response
from moot.actors.models.token_logprobs import UNALIGNED, text_start
from moot.protocols.constructor_auditor.replies import Synthesis
from moot.protocols.messages import Ask, Decoding, Message, Usage
from moot.protocols.reply_ids import reply_id

ASKED = Decoding(top_logprobs=2)
JSON = '{"answer": "Yes"}'


def body(message: dict[str, Any], tokens: list[str] | None = None, **choice: Any) -> bytes:
    listed = None if tokens is None else {"content": [known(text) for text in tokens]}
    return json.dumps(completion(message=message, logprobs=listed, **choice)).encode()


def known(text: str) -> dict[str, Any]:
    logprob = -0.25 if text == "Yes" else -0.5
    return token(text, logprob, (text, logprob))


@pytest.mark.parametrize(
    ("content", "fields", "expected"),
    [
        ("Yes", {}, SplitReply("Yes", "")),
        ("Yes", {"reasoning": "It rained."}, SplitReply("Yes", "It rained.")),
        ("Yes", {"reasoning_content": "It rained."}, SplitReply("Yes", "It rained.")),
        ("Yes", {"reasoning": None, "reasoning_content": "It rained."}, SplitReply("Yes", "It rained.")),
        ("Yes", {"reasoning": {"effort": "high"}}, SplitReply("Yes", "")),
        ("<think>\nIt rained.\n</think>\n\nYes", {}, SplitReply("Yes", "It rained.")),
        ("\n<think></think>Yes", {}, SplitReply("Yes", "")),
        ("It rained.\n</think>\n\nYes", {}, SplitReply("Yes", "It rained.")),
        ("<think>It rai", {}, SplitReply("", "It rai")),
        # the word alone, in a reply, opens and closes nothing
        ('{"answer": "</think>"}', {}, SplitReply('{"answer": "</think>"}', "")),
        ("It says <think> here", {}, SplitReply("It says <think> here", "")),
        # a schema-held reply where reasoning belongs
        ("", {"reasoning_content": f" {JSON}\n"}, SplitReply(JSON, "", from_reasoning=True)),
        (None, {"reasoning": JSON}, SplitReply(JSON, "", from_reasoning=True)),
        (None, {"reasoning": "I think it is Yes"}, SplitReply("", "I think it is Yes")),
        (None, {"reasoning": '{"answer": "Ye'}, SplitReply("", '{"answer": "Ye')),
        (None, {"reasoning": f"So: {JSON}"}, SplitReply("", f"So: {JSON}")),
        ("No", {"reasoning": JSON}, SplitReply("No", JSON)),
    ],
)
def test_reply_and_reasoning_are_separated(content: str | None, fields: dict[str, Any], expected: SplitReply) -> None:
    reply = decode_reply(body({"content": content, **fields}), Decoding())
    assert SplitReply(reply.text, reply.reasoning, reply.from_reasoning) == expected
    assert split_reasoning(content or "", fields.get("reasoning"), fields.get("reasoning_content")) == expected


_FINAL = '{"answer": "Yes", "reasoning": "</think> and <|end|> close."}'
_CHANNEL, _START, _MESSAGE, _END = "<|channel|>", "<|start|>assistant", "<|message|>", "<|end|>"
BLOCKS = [
    *[(f"<{name}>", f"</{name}>\n") for name in ("think", "thinking", "Thought", "reasoning", "seed:think")],
    ("[THINK]", "[/THINK]"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("<|begin_of_thought|>\n", "<|end_of_thought|>\n\n<|begin_of_solution|>\n"),
    ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("Here's my thought process: ", "Here's my response: "),
    (f"{_CHANNEL}analysis{_MESSAGE}", f"{_END}{_START}{_CHANNEL}final{_MESSAGE}"),
    (
        f"{_START}{_CHANNEL}analysis{_MESSAGE}",
        f"{_END}{_START}{_CHANNEL}commentary to=f {_MESSAGE}x{_END}{_START}{_CHANNEL}final <|constrain|>JSON{_MESSAGE}",
    ),
    ("analysisThe", "assistantcommentaryassistantfinal"),
    ("<think>a</think><think>", "</think>"),
]
UNUSUAL = [
    ("<think><think>a</think>", "</think>"),
    ("<think>A <think> opens.", "</think>"),
    ("Sure. <reasoning>", "</reasoning>"),
    ("", "</thinking>"),
    ("", "[/THINK]"),
    ("", BLOCKS[11][1]),
    ("We", "assistantfinal"),
]
DRAFT = 'Perhaps {"answer": "No"}?'


@pytest.mark.parametrize(("opening", "closing"), [*BLOCKS, *UNUSUAL])
def test_a_draft_in_leaked_reasoning_is_never_the_reply(opening: str, closing: str) -> None:
    parts = [opening, DRAFT, closing, _FINAL]
    reply = decode_reply(body({"content": "".join(parts)}, parts), ASKED)
    assert reply.text == _FINAL
    assert "Perhaps" in reply.reasoning
    assert reply.tokens is not None
    assert reply.tokens.tokens == [_FINAL]


@pytest.mark.parametrize(("opening", "closing"), BLOCKS)
def test_a_partial_reply_is_reasoning_until_its_block_ends(opening: str, closing: str) -> None:
    content = f"{opening}{DRAFT}{closing}{_FINAL}"
    begins = len(content) - len(_FINAL)
    assert [is_thinking(content[:end]) for end in range(begins + 2)][:: max(1, begins + 1)] == [True, False]
    assert split_thinking(f"{opening}{DRAFT}")[1] == ""


@pytest.mark.parametrize(
    "text",
    [
        _FINAL,
        f"```json\n{_FINAL}\n```",
        "analysis of the text: the assistant's final word is Yes",
        "I open with <analysis>a part</analysis> of my text",
        "<answer>Yes</answer>",
        "Here is my response: Yes",
    ],
)
def test_a_text_with_a_tag_in_it_is_whole(text: str) -> None:
    assert split_thinking(text) == ("", text)
    assert not is_thinking(text)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<think>a</think><answer>Yes</answer>", "Yes"),
        ("<|START_RESPONSE|>Yes<|END_RESPONSE|>", "Yes"),
        (f"{_CHANNEL}final{_MESSAGE}Yes<|return|>", "Yes"),
        (f"{_CHANNEL}analysis{_MESSAGE}Yes{_END}", ""),
        (f"{_CHANNEL}ana", ""),
        ("analysisThe", ""),
        ("<reasoning>It rained.\n<answer>Yes</answer>", "Yes"),
    ],
)
def test_what_stands_around_a_reply_is_no_part_of_it(content: str, text: str) -> None:
    assert split_thinking(content)[1] == text


def test_tokens_of_reasoning_are_none_of_the_reply() -> None:
    tokens = ["<think>", "It ", "rained", "</think>", "\n\n", '{"answer": "', "Yes", '"}', "<eos>"]
    by_block = decode_reply(body({"content": f"<think>It rained</think>\n\n{JSON}"}, tokens), ASKED)
    by_field = decode_reply(body({"content": JSON, "reasoning": "It rained"}, tokens), ASKED)
    for reply in (by_block, by_field):
        assert reply.tokens is not None
        assert reply.tokens.tokens == ['{"answer": "', "Yes", '"}']
        assert reply.tokens.alt_logprob.shape == (3, 2)
        assert len(reply.tokens.alt_tokens) == 6
    assert decode_reply(body({"content": "<think>It "}, tokens[:2], finish_reason="length"), ASKED).tokens is None


ASK = Ask(
    case_id="c", attempt=0, path="p", role="agent/0", template="t", slots={}, reply=reply_id(Synthesis),
    labels=("Yes", "No"),
)  # fmt: skip


def _reply(text: str, tokens: list[str]) -> ModelReply:
    decoded = decode_reply(body({"content": text}, tokens), ASKED)
    assert decoded.tokens is not None
    return decoded


_BEHIND = r'{"reasoning": "Its \"answer\": no.", "answer": "Yes", "confidence": 1}'
_DRAFTED = 'A {"answer": ""}, a {set} and {"x": {"answer": 1}, "answer": "Yes"}'
_PARTS = ['{"answer": "', "Yes", '"}']


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (JSON, _PARTS),
        (JSON, ["```", "json", "\n", *_PARTS, "\n", "```"]),
        (JSON, ["\n\n", *_PARTS, "\n\n\n"]),
        (JSON, ['{"answer": "No"}\n', *_PARTS]),
        (_BEHIND, ['{"reasoning": "Its ', r"\"answer\": no", '.", ', '"answer": "', "Yes", '", "confidence": 1}']),
        (_DRAFTED, ['A {"answer": ', '""', "}, a {set} and ", '{"x": {"answer": 1}, "answer": "', "Yes", '"}']),
    ],
)
def test_the_answer_is_located_among_the_tokens(text: str, tokens: list[str]) -> None:
    found = intrinsic_of(_reply(text, tokens), "Yes", ASK, "before")
    assert found is not None
    assert found.raw == pytest.approx(np.exp(-0.25))


@pytest.mark.parametrize("text", [f"{JSON} or {JSON}", "{'answer': 'Yes'}", json.dumps(JSON)])
def test_a_place_that_is_not_certain_is_unknown(text: str) -> None:
    found = intrinsic_of(_reply(text, [text]), "Yes", ASK, "before")
    assert found is not None
    assert (found.raw, bool(found.reason)) == (None, True)


def test_what_cannot_be_aligned_is_unknown_and_says_so() -> None:
    found = intrinsic_of(_reply(JSON, ['{"answer":', ' "', "Yes", '" }']), "Yes", ASK, "before")
    assert found is not None
    assert (found.raw, found.normalised, found.reason) == (None, None, UNALIGNED)


@pytest.mark.timeout(30)  # milliseconds; at the square of the length it takes minutes
def test_alignment_takes_time_that_grows_with_the_length() -> None:
    assert text_start(["a"] * 2**19, "b" + "a" * 2**18) is None
    assert text_start(["b", *["a"] * 2**19], "a" * 2**18) == 2**18 + 1


@pytest.mark.timeout(30)  # milliseconds; at the square of the length it takes minutes
@pytest.mark.parametrize("repeated", ["a", " ", "<|end|>", "<|start|>", "<|channel|>a ", "<think></think>"])
def test_channels_are_read_in_time_that_grows_with_the_length(repeated: str) -> None:
    for start in ("<|channel|>", "<|channel|>final<|message|>"):
        split_thinking(f"{start}{repeated * (2**17 // len(repeated))}x")


async def _events(deltas: list[dict[str, Any]]) -> AsyncIterator[bytes]:
    for delta in deltas:
        tokens = [known(text) for text in delta.values()]
        event = {"choices": [{"delta": delta, "logprobs": {"content": tokens}}]}
        yield f"data: {json.dumps(event)}\n\n".encode()
    yield b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


class _Streamed:
    """Streams deltas as a server would."""

    def __init__(self, deltas: list[dict[str, Any]]) -> None:
        self._deltas = deltas

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        return read_pieces(_events(self._deltas), EVENT_STREAM, ASKED)


STOP = EarlyStop(window=2, statistic="mean", keep="below", bound=-0.1)
"""Keeps every reply whose first two tokens are known to be of logprob -0.5."""


async def _watched(deltas: list[dict[str, Any]], stop: EarlyStop = STOP) -> ModelReply:
    streaming: Any = _Streamed(deltas)
    return await stream_with_early_stop(streaming, (Message("user", "?"),), ASKED, stop, step_key="s", stage="unknown")


@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": "It "}, {"reasoning_content": "rained"}, {"content": "Yes"}, {"content": ", it did"}],
        [{"reasoning": "It rained"}, {"content": "Yes"}, {"content": ", it did"}],
        [{"content": "<think>"}, {"content": "It rained"}, {"content": "</think>"}, {"content": "Yes, it did"}],
        [{"content": each} for each in (*f"{_CHANNEL}analysis{_MESSAGE}", "It rained", BLOCKS[11][1], "Yes, it did")],
    ],
)
async def test_streamed_reasoning_is_apart(deltas: list[dict[str, Any]]) -> None:
    reply = await _watched(deltas)
    assert (reply.text, reply.reasoning) == ("Yes, it did", "It rained")
    assert reply.tokens is not None
    assert "".join(reply.tokens.tokens) == "Yes, it did"


async def test_streamed_reasoning_is_not_among_the_first_tokens() -> None:
    """Four tokens come before the reply's only one: too few of its own to stop it."""
    unsure = STOP.model_copy(update={"keep": "above"})
    reply = await _watched(
        [*[{"content": part} for part in ("<think>", "a", "b", "</think>")], {"content": "Y"}], unsure
    )
    assert (reply.text, reply.finish_reason) == ("Y", "stop")
    reply = await _watched([{"reasoning": "a"}, {"reasoning": "b"}, {"content": "Y"}], unsure)
    assert (reply.text, reply.finish_reason) == ("Y", "stop")
    stopped = await _watched([{"content": part} for part in ("Y", "e", "s")], unsure)
    assert (stopped.text, stopped.finish_reason) == ("Ye", "cut")


async def test_a_stream_that_repeats_itself_is_stopped() -> None:
    parts = [{"content": '{"answer": "Yes", "reasoning": "'}, *[{"content": "It is so. "}] * 200]
    reply = await _watched(parts)
    assert (reply.finish_reason, reply.usage) == (REPETITION, Usage())
    assert len(reply.text) < 600
    thinking = await _watched([*[{"reasoning": "It is so. "}] * 200, {"content": "Yes"}])
    assert (thinking.finish_reason, thinking.text) == ("stop", "Yes")


def test_reasoning_leaks_nowhere_by_any_wire() -> None:
    text = f"[THINK]{DRAFT}[/THINK]{JSON}"
    message = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": {}}
    output = [{"type": "message", "content": [{"type": "output_text", "text": text, "logprobs": [known(text)]}]}]
    by_message = anthropic_wire.decode_reply(json.dumps(message).encode())
    by_response = decode_response(json.dumps({"output": output, "status": "completed"}).encode(), ASKED)
    assert by_response.tokens is not None
    for reply in (by_message, by_response):
        assert (reply.text, reply.reasoning) == (JSON, DRAFT)
