"""`local/PATH` holds replies to schemas: each row to its own; log-probabilities stay the model's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel
from schema_asks import LABELS, asked
from tiny_model import END, WARM, ask, byte_tokenizer, metaspace_tokenizer, said, tiny_folder
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from moot.actors.models.interface import ModelError, ModelReply, ReplySchema
from moot.actors.models.local.model import LocalModel
from moot.actors.models.local.token_mask import TokenMask, TokenMasks
from moot.actors.models.reply_schema import reply_schema
from moot.protocols.constructor_auditor.replies import NumberSynthesis
from moot.protocols.messages import Decoding
from moot.protocols.replies import Position, Score
from moot.protocols.reply_parsing import parse_reply

pytestmark = pytest.mark.extras

ROOMY = Decoding(temperature=1.0, top_p=None, max_tokens=1500, top_logprobs=3)
POSITION = reply_schema(Position, "llguidance", ("Yes", "No"), 40)
SCORE = reply_schema(Score, "llguidance", None, 40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("held"), context=2048)


async def run_with_schema(
    model: LocalModel, text: str, schema: ReplySchema | None, decoding: Decoding = ROOMY, key: str | None = None
) -> ModelReply:
    return await model.complete(said(text), decoding, step_key=key or f"case/{text}", schema=schema)


def _labels(reply: type[BaseModel]) -> tuple[str, ...] | None:
    """The closed set of a case that is asked for such a reply."""
    return None if reply is NumberSynthesis else LABELS


class TestReplies:
    async def test_every_reply_of_every_protocol_can_be_read(self, folder: Path) -> None:
        model = LocalModel(str(folder), seed=1)
        # bounded as for short replies: a random model writes as much as it may
        wanted = {reply: reply_schema(reply, "llguidance", _labels(reply), 60) for _, reply, _ in asked()}
        replies = await asyncio.gather(
            *(run_with_schema(model, reply.__name__, schema) for reply, schema in wanted.items())
        )
        await model.close()
        for (reply, schema), found in zip(wanted.items(), replies, strict=True):
            assert found.finish_reason == "stop"
            Draft202012Validator(msgspec.json.decode(schema.body)).validate(json.loads(found.text))
            parse_reply(found.text, reply, _labels(reply))

    async def test_rows_of_one_batch_do_not_touch_each_other(self, folder: Path) -> None:
        model = LocalModel(str(folder), seed=1)
        asks = [("a", POSITION, ROOMY), ("b", SCORE, ROOMY), ("c", None, WARM), ("d", POSITION, WARM)]
        together = await asyncio.gather(*(run_with_schema(model, text, schema, how) for text, schema, how in asks))
        alone = [await run_with_schema(model, text, schema, how) for text, schema, how in asks]
        free = await ask(model, "c", WARM)
        await model.close()
        assert [reply.text for reply in together] == [reply.text for reply in alone]
        assert [reply.finish_reason for reply in together] == [reply.finish_reason for reply in alone]
        assert [list(json.loads(reply.text)) for reply in together[:2]] == [
            list(msgspec.json.decode(schema.body)["properties"]) for schema in (POSITION, SCORE)
        ]
        assert together[2].text == free.text

    async def test_log_probabilities_are_those_before_the_schema(self, folder: Path) -> None:
        model = LocalModel(str(folder), seed=1)
        every = Decoding(temperature=0.0, top_p=None, max_tokens=1, top_logprobs=300)
        free, masked = (
            await run_with_schema(model, "x", None, every),
            await run_with_schema(model, "x", POSITION, every),
        )
        await model.close()
        assert free.tokens is not None
        assert masked.tokens is not None
        np.testing.assert_array_equal(masked.tokens.alt_logprob, free.tokens.alt_logprob)
        assert (masked.tokens.tokens, masked.tokens.alt_tokens) == (["{"], free.tokens.alt_tokens)
        place = masked.tokens.alt_tokens.index("{")
        assert place > 0, "the model itself would have begun otherwise"
        assert masked.tokens.logprob[0] == pytest.approx(float(masked.tokens.alt_logprob[0, place]))

    async def test_a_reply_that_fills_its_tokens_is_cut_and_one_that_just_fits_is_whole(self, folder: Path) -> None:
        model = LocalModel(str(folder), seed=1)
        whole = await run_with_schema(model, "x", POSITION)
        tokens = whole.usage.completion_tokens or 0
        found = [
            await run_with_schema(model, "x", POSITION, msgspec.structs.replace(ROOMY, max_tokens=most))
            for most in (tokens - 1, tokens, tokens + 1)
        ]
        await model.close()
        assert [reply.finish_reason for reply in (whole, *found)] == ["stop", "length", "stop", "stop"]
        assert [reply.text for reply in found] == [whole.text[:-1], whole.text, whole.text]

    async def test_an_end_token_does_not_cut_a_constrained_reply(self, folder: Path, tmp_path: Path) -> None:
        other = tiny_folder(tmp_path / "ends", context=2048)
        tokenizer = byte_tokenizer()
        ends = [tokenizer.eos_token_id, *(tokenizer.convert_tokens_to_ids(letter) for letter in "QZ1")]
        (other / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
        model = LocalModel(str(other), seed=1)
        replies = await asyncio.gather(*(run_with_schema(model, f"x{number}", POSITION) for number in range(8)))
        await model.close()
        for reply in replies:
            assert json.loads(reply.text)["answer"] in ("Yes", "No")
            assert not set("QZ") & set(reply.text)


class TestSchemas:
    async def test_a_reply_that_cannot_be_constrained_fails_only_its_own_ask(self, folder: Path) -> None:
        model = LocalModel(str(folder), seed=1)
        odd = ReplySchema("Odd", _object({"type": "string", "pattern": "(?=a)b"}))
        failed, whole = await asyncio.gather(
            run_with_schema(model, "x", odd), run_with_schema(model, "y", POSITION), return_exceptions=True
        )
        await model.close()
        assert isinstance(failed, ModelError)
        assert (failed.kind, "Odd" in failed.message) == ("request", True)
        assert isinstance(whole, ModelReply)
        assert json.loads(whole.text)

    async def test_what_becomes_too_much_fails_its_own_ask_alone(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        advance = TokenMask.advance

        def tried(self: TokenMask, token: int) -> None:
            if self is broken[0]:
                token = 0  # which the schema does not permit
            advance(self, token)

        broken: list[TokenMask] = []
        of_reply = TokenMasks.of_reply

        def noted(self: TokenMasks, schema: ReplySchema) -> TokenMask:
            broken.append(of_reply(self, schema))
            return broken[-1]

        monkeypatch.setattr(TokenMasks, "of_reply", noted)
        monkeypatch.setattr(TokenMask, "advance", tried)
        model = LocalModel(str(folder), seed=1)
        found = await asyncio.gather(
            run_with_schema(model, "x", POSITION),
            run_with_schema(model, "y", POSITION),
            run_with_schema(model, "z", None, WARM),
            return_exceptions=True,
        )
        await model.close()
        errors = [one for one in found if isinstance(one, ModelError)]
        assert [error.kind for error in errors] == ["server"]
        assert "\n" not in errors[0].message


def _object(part: dict[str, Any]) -> bytes:
    whole = {"type": "object", "properties": {"x": part}, "required": ["x"], "additionalProperties": False}
    return msgspec.json.encode(whole)


def _masks(tokenizer: Any) -> TokenMasks:
    return TokenMasks(tokenizer, len(tokenizer), [tokenizer.eos_token_id])


def _takes(tokenizer: Any, part: dict[str, Any], value: str, *, first: int = 0) -> bool:
    """Whether a reply whose only field has this value is permitted, token by token, and whole with its last one."""
    mask = _masks(tokenizer).of_reply(ReplySchema("X", _object(part)))
    for token in tokenizer.encode('{"x": ' + value + "}", add_special_tokens=False)[first:]:
        if not mask.permitted(len(tokenizer))[token]:
            return False
        mask.advance(token)
    return mask.complete


@pytest.mark.parametrize(
    ("part", "taken", "refused"),
    [
        ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"é€😀"', '"\\n\\""'], ['"a"', '"abcd"', "null"]),
        ({"type": "string", "pattern": "^[0-9]{1,2}$"}, ['"1"', '"12"'], ['""', '"123"', '"a"']),
        (
            {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2},
            ["[true]", "[true, false]"],
            ["[]", "[true, false, true]", "[1]"],
        ),
        ({"type": "integer", "minimum": 1, "maximum": 10}, ["1", "10"], ["0", "11", "01", "1.5"]),
        (
            {"type": "string", "enum": ["No", "Not sure", "да"]},
            [f'"{label}"' for label in ("No", "Not sure", "да")],
            ['"N"'],
        ),
        ({"enum": [0, 0.05, 1]}, ["0", "0.05", "1"], ["0.5", "0.050"]),
        ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, ["null", "true"], ["1"]),
    ],
    ids=["lengths", "pattern", "items", "integers", "labels", "numbers", "either"],
)
def test_what_the_dialect_keeps_is_enforced(part: dict[str, Any], taken: list[str], refused: list[str]) -> None:
    tokenizer = byte_tokenizer()
    assert [value for value in taken if not _takes(tokenizer, part, value)] == []
    assert [value for value in refused if _takes(tokenizer, part, value)] == []


def test_a_tokenizer_with_marks_for_spaces_and_bytes() -> None:
    # its first token is a space before the whole text, which its decoder takes off again
    assert _takes(metaspace_tokenizer(), {"type": "string", "maxLength": 8}, '"Yes é No"', first=1)
    assert not _takes(metaspace_tokenizer(), {"type": "string", "maxLength": 7}, '"Yes é No"', first=1)


async def test_a_tokenizer_that_cannot_be_read_as_bytes_leaves_replies_free(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m")
    core = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2, END: 3}, unk_token="[UNK]"))
    core.decoder = decoders.WordPiece()
    PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]", eos_token=END).save_pretrained(folder)
    model = LocalModel(str(folder), seed=1)
    await model.check()
    found = (model.capabilities.structured_output, LocalModel.capabilities.structured_output)
    assert found == ("no", "yes")
